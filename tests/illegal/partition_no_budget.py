"""Refused: partition no budget."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  write out: float32[8]

  serial p.o < 3
    serial p.i < 3
      out: out[3*p.o + p.i] = x[3*p.o + p.i] + 1.0  where 7 - 3*p.o - p.i >= 0
"""
STEP = ("partition", "", 0)
CODE = 1505
RENDERING = """\
partition(budget=0): the budget is 0 nodes; it must be at least 1
"""
