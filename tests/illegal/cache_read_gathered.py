"""Refused: cache read gathered."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  read at: int32[8]
  write out: float32[8]

  serial i < 8
    out: out[i] = x[at[i]]
"""
STEP = ("cache_read", "x", "i", "near")
CODE = 1502
RENDERING = """\
cache_read(buffer='x', at='i', copy='near'): the reads of x inside i are no box
"""
