"""Refused: tensorize extent."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 3]
  read b: float32[8, 3]
  accumulate c: float32[8]

  serial i < 8
    serial l < 3
      c: c[i] += a[i, l] * b[i, l]  over l
"""
MACHINE = "toy"
STEP = ("tensorize", "l", "multiply_add")
CODE = 1521
RENDERING = """\
tensorize(loop='l', instruction='multiply_add'): multiply_add: l has 3 iterations, l of the instruction 2
    serial i < 8
      serial l < 3
      ^^^^^^^^^^^^
        c: c[i] += a[i, l] * b[i, l]  over l
"""
