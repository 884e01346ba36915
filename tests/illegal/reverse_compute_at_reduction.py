"""Refused: reverse compute at reduction."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8, 4]
  write t: float32[8]

  global s: float32[8, 4]
  serial q < 8
    serial r < 4
      s: s[q, r] = x[q, r]
  serial p < 8
    serial k < 4
      t: t[p] += s[p, k]  init 0.0 over k
"""
STEP = ("reverse_compute_at", "t", "q")
CODE = 1520
RENDERING = """\
reverse_compute_at(statement='t', at='q'): t is no elementwise statement
    global s: float32[8, 4]
    serial q < 8
      serial r < 4
        s: s[q, r] = x[q, r]
    serial p < 8
      serial k < 4
        t: t[p] += s[p, k]  init 0.0 over k
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
