"""Refused: split around instruction."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 2]
  read b: float32[8, 2]
  accumulate c: float32[8]

  serial i < 8
    intrinsic multiply_add
      serial l < 2
        c: c[i] += a[i, l] * b[i, l]  over l
"""
STEP = ("split", "i", 3)
CODE = 1519
RENDERING = """\
split(loop='i', factor=3): multiply_add knows no guard, and 3 does not divide
    serial i < 8
      intrinsic multiply_add
      ^^^^^^^^^^^^^^^^^^^^^^
        serial l < 2
          c: c[i] += a[i, l] * b[i, l]  over l
"""
