"""Refused: reverse marked."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8]
  write c: float32[8]

  serial i < 8
    c: c[i] = a[i]
"""
BEFORE = [("parallel", "i")]
STEP = ("reverse", "i")
CODE = 1506
RENDERING = """\
reverse(loop='i'): i is parallel already
    parallel i < 8
    ^^^^^^^^^^^^^^
      c: c[i] = a[i]
"""
