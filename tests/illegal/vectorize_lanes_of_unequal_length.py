"""Refused: vectorize lanes of unequal length."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8, 8]
  accumulate out: float32[8]

  serial i < 8
    serial k < i + 1
      out: out[i] += x[i, k]  over k
"""
STEP = ("vectorize", "i")
CODE = 1510
RENDERING = """\
vectorize(loop='i'): k would run another number of times in each lane
    serial i < 8
    ^^^^^^^^^^^^
      serial k < i + 1
      ^^^^^^^^^^^^^^^^
        out: out[i] += x[i, k]  over k
"""
