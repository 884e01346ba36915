"""Refused: cache write strict."""

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
BEFORE = [("reorder", ("i", "k", "j"))]
STEP = ("cache_write", "c", "k", "acc")
CODE = 1512
RENDERING = """\
cache_write(statement='c', at='k', buffer='acc'): partial results of c would be regrouped
    serial i < 8
      serial k < 6
        serial j < 4
          c: c[i, j] += a[i, k] * b[k, j]  init 0.0 over k
          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
