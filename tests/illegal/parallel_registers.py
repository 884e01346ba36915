"""Refused: parallel registers."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 4]
  write c: float32[8, 4]

  serial i < 8
    register s: float32[4]
    serial j < 4
      s: s[j] = a[i, j] * 2.0
    serial k < 4
      c: c[i, k] = s[k]
"""
STEP = ("parallel", "j")
CODE = 1522
RENDERING = """\
parallel(loop='j'): threads share no registers, and j uses s
    serial i < 8
      register s: float32[4]
      ^^^^^^^^^^^^^^^^^^^^^^
      serial j < 4
      ^^^^^^^^^^^^
        s: s[j] = a[i, j] * 2.0
      serial k < 4
        c: c[i, k] = s[k]
"""
