"""Refused: tensorize start."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 2]
  read b: float32[8, 2]
  write c: float32[8]

  serial i < 8
    serial l < 2
      c: c[i] += a[i, l] * b[i, l]  init 0.0 over l
"""
MACHINE = "toy"
STEP = ("tensorize", "l", "multiply_add")
CODE = 1521
RENDERING = """\
tensorize(loop='l', instruction='multiply_add'): multiply_add: c starts its reduction here
    serial i < 8
      serial l < 2
        c: c[i] += a[i, l] * b[i, l]  init 0.0 over l
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
