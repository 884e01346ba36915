"""Refused: store at argument."""

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
STEP = ("store_at", "out", "q")
CODE = 1520
RENDERING = """\
store_at(buffer='out', at='q'): out is an argument: store_at needs a temporary
"""
