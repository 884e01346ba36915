"""Refused: parallel nested."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 4]
  write c: float32[8, 4]

  serial i < 8
    parallel j < 4
      c: c[i, j] = a[i, j] * 2.0
"""
STEP = ("parallel", "i")
CODE = 1511
RENDERING = """\
parallel(loop='i'): j (parallel) and i are nested; only one loop can be the threads
    serial i < 8
    ^^^^^^^^^^^^
      parallel j < 4
      ^^^^^^^^^^^^^^
        c: c[i, j] = a[i, j] * 2.0
"""
