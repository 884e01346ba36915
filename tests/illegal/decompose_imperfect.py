"""Refused: decompose imperfect."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  write s: float32[1]
  write m: float32[8]

  serial i < 8
    s: s[0] += x[i]  init 0.0 over i
    m: m[i] = x[i] * 2.0
"""
STEP = ("decompose_reduction", "s")
CODE = 1508
RENDERING = """\
decompose_reduction(statement='s'): i holds more than s
    serial i < 8
    ^^^^^^^^^^^^
      s: s[0] += x[i]  init 0.0 over i
      m: m[i] = x[i] * 2.0
"""
