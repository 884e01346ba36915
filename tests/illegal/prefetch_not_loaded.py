"""Refused: prefetch of a buffer that is not loaded."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[64]
  write out: float32[32]

  serial i < 4
    serial l < 8
      s: out[8*i + l] = x[8*i + l] * 2.0
"""
STEP = ("prefetch", "s", "i", "out", 2)
CODE = 1518
RENDERING = """\
prefetch(statement='s', at='i', buffer='out', ahead=2): s does not load out
    serial i < 4
      serial l < 8
        s: out[8*i + l] = x[8*i + l] * 2.0
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
