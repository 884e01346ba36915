"""Refused: cache write restarted."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[3, 8, 5]
  write c: float32[8]

  serial i < 8
    serial k < 5
      serial p < 3
        c: c[i] += x[p, i, k]  init 0.0 over k
"""
STEP = ("cache_write", "c", "i", "acc")
CODE = 1502
RENDERING = """\
cache_write(statement='c', at='i', buffer='acc'): c starts again in every iteration of p
    serial i < 8
      serial k < 5
        serial p < 3
        ^^^^^^^^^^^^
          c: c[i] += x[p, i, k]  init 0.0 over k
"""
