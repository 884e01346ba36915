"""Refused: decompose no start."""

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
STEP = ("decompose_reduction", "c")
CODE = 1517
RENDERING = """\
decompose_reduction(statement='c'): c has no start to take out
    serial i < 8
      serial l < 2
        c: c[i] += a[i, l] * b[i, l]  over l
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
