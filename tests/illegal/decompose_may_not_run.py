"""Refused: decompose may not run."""

from __future__ import annotations

PROGRAM = """\
program example
  symbol N in 0..
  read x: float32[8, N]
  accumulate c: float32[8]

  serial i < 8
    serial k < N
      c: c[i] += x[i, k]  init 0.0 over k
"""
STEP = ("decompose_reduction", "c")
CODE = 1502
RENDERING = """\
decompose_reduction(statement='c'): where k has no iteration nothing may start
    serial i < 8
      serial k < N
      ^^^^^^^^^^^^
        c: c[i] += x[i, k]  init 0.0 over k
"""
