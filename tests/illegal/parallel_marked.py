"""Refused: parallel marked."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 4]
  write c: float32[8, 4]

  serial i < 8
    vectorized j < 4
      c: c[i, j] = a[i, j] * 2.0
"""
STEP = ("parallel", "j")
CODE = 1506
RENDERING = """\
parallel(loop='j'): j is vectorized already
    serial i < 8
      vectorized j < 4
      ^^^^^^^^^^^^^^^^
        c: c[i, j] = a[i, j] * 2.0
"""
