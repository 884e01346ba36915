"""Refused: prefetch of several elements."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[64]
  write out: float32[32]

  serial i < 4
    serial l < 8
      s: out[8*i + l] = x[8*i + l] + x[8*i + l + 32]
"""
STEP = ("prefetch", "s", "i", "x", 1)
CODE = 1502
RENDERING = """\
prefetch(statement='s', at='i', buffer='x', ahead=1): s loads several elements of x
    serial i < 4
      serial l < 8
        s: out[8*i + l] = x[8*i + l] + x[8*i + l + 32]
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
