"""Refused: set scope unknown."""

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
STEP = ("set_scope", "t", "cache")
CODE = 1505
RENDERING = """\
set_scope(buffer='t', scope='cache'): scope='cache' is none of global, shared, register, fragment
"""
