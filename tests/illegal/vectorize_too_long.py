"""Refused: vectorize too long."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 100]
  write c: float32[8, 100]

  serial i < 8
    serial j < 100
      c: c[i, j] = a[i, j] * 2.0
"""
STEP = ("vectorize", "j")
CODE = 1510
RENDERING = """\
vectorize(loop='j'): j has 100 iterations; it must be a constant <= 64
    serial i < 8
      serial j < 100
      ^^^^^^^^^^^^^^
        c: c[i, j] = a[i, j] * 2.0
"""
