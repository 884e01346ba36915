"""Refused: vectorize nested."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 4]
  write c: float32[8, 4]

  serial i < 8
    vectorized j < 4
      c: c[i, j] = a[i, j] * 2.0
"""
STEP = ("vectorize", "i")
CODE = 1511
RENDERING = """\
vectorize(loop='i'): j (vectorized) and i are nested; only one loop can be the lanes
    serial i < 8
    ^^^^^^^^^^^^
      vectorized j < 4
      ^^^^^^^^^^^^^^^^
        c: c[i, j] = a[i, j] * 2.0
"""
