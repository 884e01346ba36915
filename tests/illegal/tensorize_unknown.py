"""Refused: tensorize unknown."""

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
STEP = ("tensorize", "l", "square")
CODE = 1521
RENDERING = """\
tensorize(loop='l', instruction='square'): the machine has no instruction square
    serial i < 8
      serial l < 2
      ^^^^^^^^^^^^
        c: c[i] += a[i, l] * b[i, l]  over l
"""
