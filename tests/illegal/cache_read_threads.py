"""Refused: cache read threads."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 4]
  write c: float32[8, 4]

  serial i < 8
    parallel j < 4
      c: c[i, j] = a[i, j] * 2.0
"""
STEP = ("cache_read", "a", "i", "near", "register")
CODE = 1522
RENDERING = """\
cache_read(buffer='a', at='i', copy='near', scope='register'): threads of j share no registers
    serial i < 8
      parallel j < 4
      ^^^^^^^^^^^^^^
        c: c[i, j] = a[i, j] * 2.0
"""
