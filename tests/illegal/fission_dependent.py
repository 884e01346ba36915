"""Refused: fission of iterations that hand a value on."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8]
  accumulate b: float32[9]
  write c: float32[8]

  serial i < 8
    c: c[i] = a[i] + b[i]
    b: b[i + 1] = c[i] * 2.0
"""
STEP = ("fission", "i")
CODE = 1502
RENDERING = """\
fission(loop='i'): iterations of i may depend on each other
    serial i < 8
    ^^^^^^^^^^^^
      c: c[i] = a[i] + b[i]
      b: b[i + 1] = c[i] * 2.0
"""
