"""Refused: fuse triangle."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8, 8]
  accumulate out: float32[8]

  serial i < 8
    serial k < i + 1
      out: out[i] += x[i, k]  over k
"""
STEP = ("fuse", "i", "k")
CODE = 1502
RENDERING = """\
fuse(first='i', second='k'): the extent of k is not the same for all iterations of all loops
    serial i < 8
      serial k < i + 1
      ^^^^^^^^^^^^^^^^
        out: out[i] += x[i, k]  over k
"""
