"""Refused: split mask too wide."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 6]
  read b: float32[6, 4]
  write c: float32[8, 4]

  serial i < 8
    serial j < 4
      serial k < 6
        c: c[i, j] += a[i, k] * b[k, j]  init 0.0 over k
"""
STEP = ("split", "i", 128, "", "", "mask")
CODE = 1505
RENDERING = """\
split(loop='i', factor=128, tail='mask'): a masked piece has at most 64 lanes, not 128
    serial i < 8
    ^^^^^^^^^^^^
      serial j < 4
        serial k < 6
          c: c[i, j] += a[i, k] * b[k, j]  init 0.0 over k
"""
