"""Refused: split marked."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 4]
  write c: float32[8, 4]

  serial i < 8
    vectorized j < 4
      c: c[i, j] = a[i, j] * 2.0
"""
STEP = ("split", "j", 2)
CODE = 1506
RENDERING = """\
split(loop='j', factor=2): j is vectorized; split it before it is marked
    serial i < 8
      vectorized j < 4
      ^^^^^^^^^^^^^^^^
        c: c[i, j] = a[i, j] * 2.0
"""
