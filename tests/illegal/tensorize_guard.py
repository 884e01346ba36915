"""Refused: tensorize guard."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 2]
  read b: float32[8, 2]
  accumulate c: float32[8]

  serial i < 8
    serial l < 2
      c: c[i] += a[i, l] * b[i, l]  over l  where 1 - l - i >= 0
"""
MACHINE = "toy"
STEP = ("tensorize", "l", "multiply_add")
CODE = 1521
RENDERING = """\
tensorize(loop='l', instruction='multiply_add'): multiply_add: c is guarded
    serial i < 8
      serial l < 2
        c: c[i] += a[i, l] * b[i, l]  over l  where -i - l + 1 >= 0
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
