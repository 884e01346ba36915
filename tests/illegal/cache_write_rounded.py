"""Refused: cache write rounded."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8, 6]
  read b: float32[6, 4]
  write c: float16[8, 4]

  serial i < 8
    serial j < 4
      serial k < 6
        c: c[i, j] += a[i, k] * b[k, j]  init 0.0 over k  in float32
"""
NUMERICS = "default"
BEFORE = [("reorder", ("i", "k", "j")), ("decompose_reduction", "c")]
STEP = ("cache_write", "c", "k", "acc", (), "register", "target")
CODE = 1512
RENDERING = """\
cache_write(statement='c', at='k', buffer='acc', start='target'): partial results of c would be rounded to c
    serial i < 8
      serial j.init < 4
        c.init: c[i, j.init] = cast(float32(0.0), float16)
      serial k < 6
        serial j < 4
          c: c[i, j] += a[i, k] * b[k, j]  over k  in float32
          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
