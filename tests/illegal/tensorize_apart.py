"""Refused: tensorize apart."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 2]
  read b: float32[4, 3]
  accumulate c: float32[8, 4]

  serial i < 8
    vectorized l < 4
      serial g < 2
        c: c[i, l] += a[i, g] * b[l, g]  over g
"""
MACHINE = "toy"
STEP = ("tensorize", "l", "dot")
CODE = 1521
RENDERING = """\
tensorize(loop='l', instruction='dot'): dot: elements of b are 3 apart, those of q of the instruction 2
    serial i < 8
      vectorized l < 4
        serial g < 2
          c: c[i, l] += a[i, g] * b[l, g]  over g
          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
