"""Refused: vectorize around instruction."""

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
STEP = ("vectorize", "i")
CODE = 1519
RENDERING = """\
vectorize(loop='i'): multiply_add is no lane of i
    serial i < 8
    ^^^^^^^^^^^^
      intrinsic multiply_add
      ^^^^^^^^^^^^^^^^^^^^^^
        serial l < 2
          c: c[i] += a[i, l] * b[i, l]  over l
"""
