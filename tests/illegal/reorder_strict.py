"""Refused: reorder strict."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 6]
  read b: float32[6, 4]
  write c: float32[8, 4]

  serial i < 8
    serial j < 4
      serial k < 6
        c: c[i, j] += a[i, k] * b[k, j]  init 0.0 over k
"""
NUMERICS = "strict"
BEFORE = [("split", "k", 2)]
STEP = ("reorder", ("k.inner", "k.outer"))
CODE = 1502
RENDERING = """\
reorder(loops=('k.inner', 'k.outer')): the order of k.outer, k.inner may matter (iterator kinds do not decide it)
    serial i < 8
      serial j < 4
        serial k.outer < 3
        ^^^^^^^^^^^^^^^^^^
          serial k.inner < 2
          ^^^^^^^^^^^^^^^^^^
            c: c[i, j] += a[i, k.inner + 2*k.outer] * b[k.inner + 2*k.outer, j]  init 0.0 over k.outer, k.inner
"""
