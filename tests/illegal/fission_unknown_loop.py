"""Refused: fission of a loop that is not there."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8]
  write c: float32[8]

  serial i < 8
    c: c[i] = a[i] * 2.0
"""
STEP = ("fission", "j")
CODE = 1501
RENDERING = """\
there is no loop 'j'
"""
