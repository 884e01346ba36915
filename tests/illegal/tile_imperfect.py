"""Refused: tile imperfect."""

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
STEP = ("tile", "p", "q", 2, 2)
CODE = 1508
RENDERING = """\
tile(first='p', second='q', first_factor=2, second_factor=2): p.outer, q.outer, p.inner, q.inner are not the \
loops of one perfect nest
    global t: float32[8]
    serial p < 8
      t: t[p] = x[p] + 1.0
    serial q < 8
      out: out[q] = t[q] * 2.0
"""
