"""Refused: store at parallel."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[12]
  write out: float32[8]

  parallel i < 8
    global t: float32[3]
    serial p < 3
      t: t[p] = x[i + p] * 2.0
    out: out[i] = t[0] + t[2]
"""
STEP = ("store_at", "t", "")
CODE = 1520
RENDERING = """\
store_at(buffer='t'): iterations of the parallel loop i cannot keep values for each other
    parallel i < 8
    ^^^^^^^^^^^^^^
      global t: float32[3]
      serial p < 3
        t: t[p] = x[i + p] * 2.0
      out: out[i] = t[0] + t[2]
"""
