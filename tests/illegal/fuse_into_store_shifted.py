"""Refused: fuse into store shifted."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[12]
  write out: float32[8]

  global t: float32[10]
  serial p < 10
    t: t[p] = x[p] + x[p + 2]
  serial i < 8
    out: out[i] = t[i] - t[i + 2]
"""
STEP = ("fuse_into_store", "out", "t")
CODE = 1502
RENDERING = """\
fuse_into_store(statement='out', into='t'): out does not read t element by element
    global t: float32[10]
    serial p < 10
      t: t[p] = x[p] + x[p + 2]
    serial i < 8
      out: out[i] = t[i] - t[i + 2]
      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
