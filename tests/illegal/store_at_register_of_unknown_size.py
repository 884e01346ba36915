"""Refused: store at register of unknown size."""

from __future__ import annotations

PROGRAM = """\
program example
  symbol N in 1..
  read x: float32[N + 2]
  write out: float32[N]

  serial i < N
    register t: float32[3]
    serial p < 3
      t: t[p] = x[i + p] * 2.0
    out: out[i] = t[0] + t[2]
"""
STEP = ("store_at", "t", "")
CODE = 1522
RENDERING = """\
store_at(buffer='t'): register storage has a constant size; t would not
    serial i < N
      register t: float32[3]
      ^^^^^^^^^^^^^^^^^^^^^^
      serial p < 3
        t: t[p] = x[i + p] * 2.0
      out: out[i] = t[0] + t[2]
"""
