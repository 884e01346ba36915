"""Refused: partition of loops inside in a way that there is not."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  write out: float32[8]

  serial p.o < 3
    serial p.i < 3
      out: out[3*p.o + p.i] = x[3*p.o + p.i] + 1.0  where 7 - 3*p.o - p.i >= 0
"""
STEP = ("partition", "p.o", 100, "both")
CODE = 1505
RENDERING = """\
partition(loop='p.o', budget=100, inside='both'): inside is 'both'; loops inside are "cut" or stay "whole"
"""
