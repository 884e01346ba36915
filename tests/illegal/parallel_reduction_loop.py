"""Refused: parallel reduction loop."""

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
STEP = ("parallel", "k")
CODE = 1513
DEPENDENCE = ("flow", "c", ("k",), ("<",))
WITNESS = ({"k": 0}, {"k": 1})
RENDERING = """\
parallel(loop='k'): iterations of k combine into the same element of c
  flow dependence on c with direction (k:<)
  iterations (k=0) and (k=1) would swap or meet
    serial i < 8
      serial j < 4
        serial k < 6
        ^^^^^^^^^^^^
          c: c[i, j] += a[i, k] * b[k, j]  init 0.0 over k
"""
