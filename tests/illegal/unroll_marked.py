"""Refused: unroll marked."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 4]
  write c: float32[8, 4]

  parallel i < 8
    vectorized j < 4
      c: c[i, j] = a[i, j] * 2.0
"""
STEP = ("unroll", "j")
CODE = 1506
RENDERING = """\
unroll(loop='j'): j is vectorized already
    parallel i < 8
      vectorized j < 4
      ^^^^^^^^^^^^^^^^
        c: c[i, j] = a[i, j] * 2.0
"""
