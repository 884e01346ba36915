"""Refused: partition of no loop, without those inside."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  write out: float32[8]

  serial p.o < 3
    serial p.i < 3
      out: out[3*p.o + p.i] = x[3*p.o + p.i] + 1.0  where 7 - 3*p.o - p.i >= 0
"""
STEP = ("partition", "", 100, "whole")
CODE = 1505
RENDERING = """\
partition(budget=100, inside='whole'): which loop is to be cut without those inside it is not said
"""
