"""Refused: inline read by index."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  read at: int32[8]
  write out: float32[8]

  global t: int32[8]
  serial p < 8
    t: t[p] = at[p]
  serial q < 8
    out: out[q] = x[t[q]]
"""
STEP = ("compute_inline", "t")
CODE = 1502
RENDERING = """\
compute_inline(statement='t'): t is read by an index or a guard
    global t: int32[8]
    serial p < 8
      t: t[p] = at[p]
      ^^^^^^^^^^^^^^^
    serial q < 8
      out: out[q] = x[t[q]]
"""
