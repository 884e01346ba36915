"""Refused: reorder triangle."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8, 8]
  accumulate out: float32[8]

  serial i < 8
    serial k < i + 1
      out: out[i] += x[i, k]  over k
"""
STEP = ("reorder", ("k", "i"))
CODE = 1502
RENDERING = """\
reorder(loops=('k', 'i')): the extent of k depends on i
    serial i < 8
      serial k < i + 1
      ^^^^^^^^^^^^^^^^
        out: out[i] += x[i, k]  over k
"""
