"""Refused: set scope symbolic."""

from __future__ import annotations

PROGRAM = """\
program example
  symbol N in 1..
  read x: float32[N]
  write out: float32[N]

  global t: float32[N]
  serial p < N
    t: t[p] = x[p]
  serial q < N
    out: out[q] = t[q]
"""
STEP = ("set_scope", "t", "register")
CODE = 1522
RENDERING = """\
set_scope(buffer='t', scope='register'): register storage has a constant size; t has not
    global t: float32[N]
    ^^^^^^^^^^^^^^^^^^^^
    serial p < N
      t: t[p] = x[p]
    serial q < N
      out: out[q] = t[q]
"""
