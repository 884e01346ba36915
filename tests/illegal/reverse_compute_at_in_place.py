"""Refused: reverse compute at in place."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  accumulate y: float32[8]

  serial p < 8
    y: y[p] = x[p] * 2.0
  serial q < 8
    d: y[q] = y[q] + 1.0
"""
STEP = ("reverse_compute_at", "d", "p")
CODE = 1502
RENDERING = """\
reverse_compute_at(statement='d', at='p'): d overwrites y in place
    serial p < 8
      y: y[p] = x[p] * 2.0
    serial q < 8
      d: y[q] = y[q] + 1.0
      ^^^^^^^^^^^^^^^^^^^^
"""
