"""Refused: inline result."""

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
STEP = ("compute_inline", "out")
CODE = 1514
RENDERING = """\
compute_inline(statement='out'): out is an argument; its values must be stored
    global t: float32[8]
    serial p < 8
      t: t[p] = x[p] + 1.0
    serial q < 8
      out: out[q] = t[q] * 2.0
      ^^^^^^^^^^^^^^^^^^^^^^^^
"""
