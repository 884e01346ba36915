"""Refused: reverse compute at not read."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  write y: float32[8]
  write out: float32[8]

  serial p < 8
    y: y[p] = x[p]
  serial q < 8
    out: out[q] = x[q] * 2.0
"""
STEP = ("reverse_compute_at", "out", "p")
CODE = 1520
RENDERING = """\
reverse_compute_at(statement='out', at='p'): out reads nothing of what is computed there
    serial p < 8
      y: y[p] = x[p]
    serial q < 8
      out: out[q] = x[q] * 2.0
      ^^^^^^^^^^^^^^^^^^^^^^^^
"""
