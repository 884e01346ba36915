"""Refused: cache read unwritten."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  write out: float32[8]

  global t: float32[8]
  serial p < 4
    t: t[p] = x[p]
  serial q < 4
    out: out[q] = t[q]
"""
STEP = ("cache_read", "t", "q", "near")
CODE = 1502
RENDERING = """\
cache_read(buffer='t', at='q', copy='near'): elements of t that nobody wrote would be copied
"""
