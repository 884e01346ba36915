"""Refused: store at elsewhere."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  write out: float32[8]

  serial p < 8
    global t: float32[1]
    t: t[0] = x[p]
    out: out[p] = t[0]
  serial q < 8
    u: out[q] = out[q] + 1.0
"""
STEP = ("store_at", "t", "q")
CODE = 1520
RENDERING = """\
store_at(buffer='t', at='q'): t lives neither around q nor inside it
    serial p < 8
      global t: float32[1]
      ^^^^^^^^^^^^^^^^^^^^
      t: t[0] = x[p]
      out: out[p] = t[0]
    serial q < 8
    ^^^^^^^^^^^^
      u: out[q] = out[q] + 1.0
"""
