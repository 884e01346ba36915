"""Refused: compute at scan."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  write out: float32[8]

  global t: float32[9]
  t.first: t[0] = 0.0
  serial p < 8
    t: t[p + 1] = t[p] + x[p]
  serial q < 8
    out: out[q] = t[q + 1] * 2.0
"""
STEP = ("compute_at", "t", "q")
CODE = 1502
RENDERING = """\
compute_at(statement='t', at='q'): the statements that write t are no nest of their own
    global t: float32[9]
    t.first: t[0] = 0.0
    ^^^^^^^^^^^^^^^^^^^
    serial p < 8
      t: t[p + 1] = t[p] + x[p]
      ^^^^^^^^^^^^^^^^^^^^^^^^^
    serial q < 8
      out: out[q] = t[q + 1] * 2.0
"""
