"""Refused: unroll symbolic."""

from __future__ import annotations

PROGRAM = """\
program example
  symbol N in 1..
  read a: float32[N]
  write c: float32[N]

  serial i < N
    c: c[i] = a[i] * 2.0
"""
STEP = ("unroll", "i")
CODE = 1510
RENDERING = """\
unroll(loop='i'): i has N iterations; it must be a constant <= 1024
    serial i < N
    ^^^^^^^^^^^^
      c: c[i] = a[i] * 2.0
"""
