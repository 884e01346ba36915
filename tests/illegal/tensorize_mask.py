"""Refused: tensorize mask."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[15]
  write c: float32[16]

  serial i < 4
    vectorized l < 4
      c: c[4*i + l] = a[4*i + l]  where 14 - 4*i - l >= 0
"""
MACHINE = "toy"
STEP = ("tensorize", "l", "move_four")
CODE = 1521
RENDERING = """\
tensorize(loop='l', instruction='move_four'): move_four works on all lanes, and a may end before the last
    serial i < 4
      vectorized l < 4
        c: c[4*i + l] = a[4*i + l]  where -4*i - l + 14 >= 0
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
