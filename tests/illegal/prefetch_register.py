"""Refused: prefetch register."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8]
  write out: float32[8]

  serial i < 8
    register s: float32[1]
    s: s[0] = x[i]
    out: out[i] = s[0]
"""
STEP = ("prefetch", "s", "i")
CODE = 1518
RENDERING = """\
prefetch(statement='s', at='i'): s is in register storage; only memory can be brought near
    serial i < 8
      register s: float32[1]
      s: s[0] = x[i]
      ^^^^^^^^^^^^^^
      out: out[i] = s[0]
"""
