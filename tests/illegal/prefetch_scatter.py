"""Refused: prefetch scatter."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  read at: int32[8]
  accumulate out: float32[7]

  serial i < 8
    out: out[at[i]] += x[i]  over i
"""
STEP = ("prefetch", "out", "i")
CODE = 1502
RENDERING = """\
prefetch(statement='out', at='i'): data say where out stores
    serial i < 8
      out: out[at[i]] += x[i]  over i
      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
