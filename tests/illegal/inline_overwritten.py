"""Refused: inline overwritten."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  accumulate y: float32[8]
  write out: float32[8]

  global t: float32[8]
  serial p < 8
    t: t[p] = y[p] + x[p]
  serial q < 8
    y: y[q] = x[q] * 3.0
  serial r < 8
    out: out[r] = t[r] * y[r]
"""
STEP = ("compute_inline", "t")
CODE = 1514
RENDERING = """\
compute_inline(statement='t'): a later statement overwrites what t reads
    global t: float32[8]
    serial p < 8
      t: t[p] = y[p] + x[p]
      ^^^^^^^^^^^^^^^^^^^^^
    serial q < 8
      y: y[q] = x[q] * 3.0
      ^^^^^^^^^^^^^^^^^^^^
    serial r < 8
      out: out[r] = t[r] * y[r]
"""
