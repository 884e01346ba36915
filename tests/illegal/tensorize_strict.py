"""Refused: tensorize strict."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 2]
  read b: float32[8, 2]
  accumulate c: float32[8]

  serial i < 8
    serial l < 2
      c: c[i] += a[i, l] * b[i, l]  over l
"""
MACHINE = "toy"
NUMERICS = "strict"
STEP = ("tensorize", "l", "multiply_add")
CODE = 1512
RENDERING = """\
tensorize(loop='l', instruction='multiply_add'): multiply_add would regroup partial results of c
    serial i < 8
      serial l < 2
        c: c[i] += a[i, l] * b[i, l]  over l
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
