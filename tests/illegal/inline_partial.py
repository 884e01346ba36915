"""Refused: inline partial."""

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
STEP = ("compute_inline", "t")
CODE = 1502
RENDERING = """\
compute_inline(statement='t'): t does not write all of t
    global t: float32[8]
    serial p < 4
      t: t[p] = x[p]
      ^^^^^^^^^^^^^^
    serial q < 4
      out: out[q] = t[q]
"""
