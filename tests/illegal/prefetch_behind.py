"""Refused: prefetch of earlier iterations."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[64]
  write out: float32[32]

  serial i < 4
    serial l < 8
      s: out[8*i + l] = x[8*i + l] * 2.0
"""
STEP = ("prefetch", "s", "i", "x", -1)
CODE = 1518
RENDERING = """\
prefetch(statement='s', at='i', buffer='x', ahead=-1): -1 iterations ahead: only loads can be fetched, and only ahead
    serial i < 4
      serial l < 8
        s: out[8*i + l] = x[8*i + l] * 2.0
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
