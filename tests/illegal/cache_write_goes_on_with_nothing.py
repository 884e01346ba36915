"""Refused: cache write goes on with nothing."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 6]
  read b: float32[6, 4]
  write c: float32[8, 4]

  serial i < 8
    serial j < 4
      serial k < 6
        c: c[i, j] += a[i, k] * b[k, j]  init 0.0 over k
"""
NUMERICS = "default"
BEFORE = []
STEP = ("cache_write", "c", "j", "acc", (), "register", "target")
CODE = 1505
RENDERING = """\
cache_write(statement='c', at='j', buffer='acc', start='target'): c has a start of its own: decompose_reduction first
    serial i < 8
      serial j < 4
        serial k < 6
          c: c[i, j] += a[i, k] * b[k, j]  init 0.0 over k
          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
