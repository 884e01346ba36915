"""Refused: cache write register of unknown size."""

from __future__ import annotations

PROGRAM = """\
program example
  symbol N in 1..
  read a: float32[N]
  write c: float32[N]

  serial i < N
    c: c[i] = a[i] * 2.0
"""
STEP = ("cache_write", "c", "", "acc")
CODE = 1522
RENDERING = """\
cache_write(statement='c', at='', buffer='acc'): a tile in register storage has a constant size
    serial i < N
      c: c[i] = a[i] * 2.0
      ^^^^^^^^^^^^^^^^^^^^
"""
