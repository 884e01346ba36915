"""Refused: parallel scatter."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  read at: int32[8]
  accumulate out: float32[7]

  serial i < 8
    out: out[at[i]] += x[i]  over i
"""
STEP = ("parallel", "i")
CODE = 1502
RENDERING = """\
parallel(loop='i'): iterations of i may depend on each other
    serial i < 8
    ^^^^^^^^^^^^
      out: out[at[i]] += x[i]  over i
"""
