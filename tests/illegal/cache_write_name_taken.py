"""Refused: cache write name taken."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 6]
  read b: float32[6, 4]
  write c: float32[8, 4]

  serial i < 8
    serial j < 4
      serial k < 6
        c: c[i, j] += a[i, k] * b[k, j]  init 0.0 over k
"""
STEP = ("cache_write", "c", "i", "a")
CODE = 1507
RENDERING = """\
cache_write(statement='c', at='i', buffer='a'): a buffer is already called 'a'
    serial i < 8
      serial j < 4
        serial k < 6
          c: c[i, j] += a[i, k] * b[k, j]  init 0.0 over k
          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
