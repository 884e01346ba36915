"""Refused: fuse not nested."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  write out: float32[8]

  global t: float32[8]
  serial p < 8
    t: t[p] = x[p] + 1.0
  serial q < 8
    out: out[q] = t[q] * 2.0
"""
STEP = ("fuse", "p", "q")
CODE = 1508
RENDERING = """\
fuse(first='p', second='q'): q is not the whole body of p
    global t: float32[8]
    serial p < 8
    ^^^^^^^^^^^^
      t: t[p] = x[p] + 1.0
    serial q < 8
    ^^^^^^^^^^^^
      out: out[q] = t[q] * 2.0
"""
