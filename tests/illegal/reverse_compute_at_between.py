"""Refused: reverse compute at between."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  write e: float32[8]
  accumulate d: float32[8]

  global t: float32[8]
  serial p < 8
    t: t[p] = x[p] * 2.0
  serial q < 8
    e: e[q] = d[q]
  serial r < 8
    d: d[r] = t[r] + 1.0
"""
STEP = ("reverse_compute_at", "d", "p")
CODE = 1520
RENDERING = """\
reverse_compute_at(statement='d', at='p'): e uses d before d
    global t: float32[8]
    serial p < 8
      t: t[p] = x[p] * 2.0
    serial q < 8
      e: e[q] = d[q]
      ^^^^^^^^^^^^^^
    serial r < 8
      d: d[r] = t[r] + 1.0
      ^^^^^^^^^^^^^^^^^^^^
"""
