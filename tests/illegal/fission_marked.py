"""Refused: fission marked."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8]
  write b: float32[8]
  write c: float32[8]

  vectorized i < 8
    b: b[i] = a[i] * 2.0
    c: c[i] = a[i] + 1.0
"""
STEP = ("fission", "i")
CODE = 1506
RENDERING = """\
fission(loop='i'): i is vectorized already
    vectorized i < 8
    ^^^^^^^^^^^^^^^^
      b: b[i] = a[i] * 2.0
      c: c[i] = a[i] + 1.0
"""
