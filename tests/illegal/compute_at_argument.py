"""Refused: compute at argument."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  write out: float32[8]

  global t: float32[8]
  serial p < 8
    t: t[p] = x[p] + 1.0
  serial q < 8
    out: out[q] = t[q] * 2.0
"""
STEP = ("compute_at", "out", "p")
CODE = 1520
RENDERING = """\
compute_at(statement='out', at='p'): out is an argument: compute_at needs a temporary
"""
