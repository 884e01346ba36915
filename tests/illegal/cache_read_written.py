"""Refused: cache read written."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8]
  accumulate c: float32[9]

  serial i < 8
    c: c[i + 1] = c[i] + a[i]
"""
STEP = ("cache_read", "c", "i", "near")
CODE = 1516
RENDERING = """\
cache_read(buffer='c', at='i', copy='near'): c is written inside i
"""
