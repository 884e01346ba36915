"""Refused: store at nothing shared."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8, 3]
  write out: float32[8]

  serial i < 8
    global t: float32[3]
    serial p < 3
      t: t[p] = x[i, p] * index(i, float32)
    out: out[i] = t[0] + t[2]
"""
STEP = ("store_at", "t", "")
CODE = 1502
RENDERING = """\
store_at(buffer='t'): no values that iterations of i compute are provably the same
    serial i < 8
    ^^^^^^^^^^^^
      global t: float32[3]
      serial p < 3
        t: t[p] = x[i, p] * index(i, float32)
      out: out[i] = t[0] + t[2]
"""
