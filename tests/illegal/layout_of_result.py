"""Refused: layout of result."""

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
STEP = ("transform_layout", "c", "layout(1, 0)")
CODE = 1515
RENDERING = """\
transform_layout(buffer='c', layout='layout(1, 0)'): c is a result that the caller expects row-major
"""
