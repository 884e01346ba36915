"""Refused: cache_read narrower."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 4]
  write c: float32[8, 4]

  serial i < 8
    serial l < 4
      c: c[i, l] = a[i, l]
"""
MACHINE = "toy"
STEP = ("cache_read", "a", "i", "near", "global", "bfloat16")
CODE = 1505
RENDERING = """\
cache_read(buffer='a', at='i', copy='near', dtype='bfloat16'): bfloat16 does not have every value of float32
"""
