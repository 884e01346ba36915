"""Refused: inline reduction."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8, 4]
  write out: float32[8]

  global t: float32[8]
  serial p < 8
    serial k < 4
      t: t[p] += x[p, k]  init 0.0 over k
  serial q < 8
    out: out[q] = t[q] * 2.0
"""
STEP = ("compute_inline", "t")
CODE = 1514
RENDERING = """\
compute_inline(statement='t'): t is no elementwise statement
    global t: float32[8]
    serial p < 8
      serial k < 4
        t: t[p] += x[p, k]  init 0.0 over k
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    serial q < 8
      out: out[q] = t[q] * 2.0
"""
