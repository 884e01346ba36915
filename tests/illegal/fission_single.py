"""Refused: fission of one node."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8]
  write c: float32[8]

  serial i < 8
    c: c[i] = a[i] * 2.0
"""
STEP = ("fission", "i")
CODE = 1508
RENDERING = """\
fission(loop='i'): i holds one node only
    serial i < 8
    ^^^^^^^^^^^^
      c: c[i] = a[i] * 2.0
"""
