"""Refused: decompose restarted."""

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
STEP = ("decompose_reduction", "c")
CODE = 1502
RENDERING = """\
decompose_reduction(statement='c'): iterations of p may meet in what c writes
    serial i < 8
      serial k < 5
        serial p < 3
        ^^^^^^^^^^^^
          c: c[i] += x[p, i, k]  init 0.0 over k
"""
