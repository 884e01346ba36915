"""Refused: set scope threads."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  write out: float32[8]

  global t: float32[8]
  parallel i < 8
    t: t[i] = x[i] * 2.0
    out: out[i] = t[i] + 1.0
"""
STEP = ("set_scope", "t", "register")
CODE = 1522
RENDERING = """\
set_scope(buffer='t', scope='register'): iterations of i (parallel) share no registers
    global t: float32[8]
    ^^^^^^^^^^^^^^^^^^^^
    parallel i < 8
      t: t[i] = x[i] * 2.0
      out: out[i] = t[i] + 1.0
"""
