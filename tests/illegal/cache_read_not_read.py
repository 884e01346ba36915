"""Refused: cache read not read."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  accumulate y: float32[8]
  write out: float32[8]

  global t: float32[8]
  serial p < 8
    t: t[p] = y[p] + x[p]
  serial q < 8
    y: y[q] = x[q] * 3.0
  serial r < 8
    out: out[r] = t[r] * y[r]
"""
STEP = ("cache_read", "t", "q", "near")
CODE = 1505
RENDERING = """\
cache_read(buffer='t', at='q', copy='near'): nothing inside q reads t
"""
