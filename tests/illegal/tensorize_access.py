"""Refused: tensorize access."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 4]
  read b: float32[8, 4]
  accumulate c: float32[8]

  serial i < 8
    serial l < 2
      c: c[i] += a[i, 2*l] * b[i, l]  over l
"""
MACHINE = "toy"
STEP = ("tensorize", "l", "multiply_add")
CODE = 1521
RENDERING = """\
tensorize(loop='l', instruction='multiply_add'): multiply_add: a[i, 2*l] is not walked like p of the instruction
    serial i < 8
      serial l < 2
        c: c[i] += a[i, 2*l] * b[i, l]  over l
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
