"""Refused: partition unknown loop."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  write out: float32[8]

  serial p.o < 3
    serial p.i < 3
      out: out[3*p.o + p.i] = x[3*p.o + p.i] + 1.0  where 7 - 3*p.o - p.i >= 0
"""
STEP = ("partition", "z")
CODE = 1501
RENDERING = """\
there is no loop 'z'
"""
