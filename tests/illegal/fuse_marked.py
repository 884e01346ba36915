"""Refused: fuse marked."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 4]
  write c: float32[8, 4]

  parallel i < 8
    vectorized j < 4
      c: c[i, j] = a[i, j] * 2.0
"""
STEP = ("fuse", "i", "j")
CODE = 1506
RENDERING = """\
fuse(first='i', second='j'): only serial loops can be fused; fuse before marking them
    parallel i < 8
    ^^^^^^^^^^^^^^
      vectorized j < 4
      ^^^^^^^^^^^^^^^^
        c: c[i, j] = a[i, j] * 2.0
"""
