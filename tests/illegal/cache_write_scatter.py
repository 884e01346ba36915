"""Refused: cache write scatter."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  read at: int32[8]
  accumulate out: float32[7]

  serial i < 8
    out: out[at[i]] += x[i]  over i
"""
STEP = ("cache_write", "out", "", "acc")
CODE = 1502
RENDERING = """\
cache_write(statement='out', at='', buffer='acc'): out writes where data say
    serial i < 8
      out: out[at[i]] += x[i]  over i
      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
