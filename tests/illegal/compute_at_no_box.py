"""Refused: compute at no box."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  read at: int32[8]
  write out: float32[8]

  global t: float32[8]
  serial p < 8
    t: t[p] = x[p] * 2.0
  serial q < 8
    out: out[q] = t[at[q]]
"""
STEP = ("compute_at", "t", "q")
CODE = 1502
RENDERING = """\
compute_at(statement='t', at='q'): the reads of t inside q are no box
    global t: float32[8]
    serial p < 8
      t: t[p] = x[p] * 2.0
    serial q < 8
    ^^^^^^^^^^^^
      out: out[q] = t[at[q]]
"""
