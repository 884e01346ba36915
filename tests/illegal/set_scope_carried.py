"""Refused: set scope carried."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  write out: float32[8]

  global t: float32[1]
  serial i < 8
    t: t[0] = x[i]  where 0 - i >= 0
    out: out[i] = t[0]
"""
STEP = ("set_scope", "t", "register", "i")
CODE = 1502
RENDERING = """\
set_scope(buffer='t', scope='register', at='i'): iterations of i may use the same elements of t
    global t: float32[1]
    serial i < 8
    ^^^^^^^^^^^^
      t: t[0] = x[i]  where -i >= 0
      out: out[i] = t[0]
"""
