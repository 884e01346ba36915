"""Refused: cache write may not run."""

from __future__ import annotations

PROGRAM = """\
program example
  symbol N in 0..
  read x: float32[8, N]
  accumulate c: float32[8]

  serial i < 8
    serial k < N
      c: c[i] += x[i, k]  init 0.0 over k
"""
STEP = ("cache_write", "c", "i", "acc")
CODE = 1502
RENDERING = """\
cache_write(statement='c', at='i', buffer='acc'): where k has no iteration nothing may start
    serial i < 8
      serial k < N
      ^^^^^^^^^^^^
        c: c[i] += x[i, k]  init 0.0 over k
"""
