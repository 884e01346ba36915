"""Refused: layout index."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  read at: int32[8]
  accumulate out: float32[7]

  serial i < 8
    out: out[at[i]] += x[i]  over i
"""
STEP = ("transform_layout", "at", "layout(0, 0:4)")
CODE = 1502
RENDERING = """\
transform_layout(buffer='at', layout='layout(0, 0:4)'): at is read by an index or a guard
"""
