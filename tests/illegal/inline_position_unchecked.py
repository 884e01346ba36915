"""Refused: inline where nothing else would check a position."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  read at: int32[8]
  write out: float32[8]

  global t: float32[4]
  serial p < 4
    t: t[p] = x[p + 2]
  serial q < 8
    out: out[q] = t[at[q]]
"""
STEP = ("compute_inline", "t")
CODE = 1502
RENDERING = """\
compute_inline(statement='t'): data name positions in dimension 0 of t, which nothing else would check
    global t: float32[4]
    serial p < 4
      t: t[p] = x[p + 2]
      ^^^^^^^^^^^^^^^^^^
    serial q < 8
      out: out[q] = t[at[q]]
      ^^^^^^^^^^^^^^^^^^^^^^
"""
