"""Refused: tensorize layout."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[2, 8]
  read b: float32[8, 2]
  write c: float32[8, 2]

  serial i < 8
    serial l < 2
      c: c[i, l] = a[l, i]
"""
MACHINE = "toy"
STEP = ("tensorize", "l", "copy")
CODE = 1521
RENDERING = """\
tensorize(loop='l', instruction='copy'): copy: a[l, i] is not walked like p of the instruction
    serial i < 8
      serial l < 2
        c: c[i, l] = a[l, i]
        ^^^^^^^^^^^^^^^^^^^^
"""
