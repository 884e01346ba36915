"""Refused: reverse compute at partial."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8, 4]
  write out: float32[8]

  global t: float32[8]
  serial p < 8
    serial k < 4
      t: t[p] += x[p, k]  init 0.0 over k
  serial q < 8
    out: out[q] = t[q] * 2.0
"""
STEP = ("reverse_compute_at", "out", "k")
CODE = 1502
RENDERING = """\
reverse_compute_at(statement='out', at='k'): iterations of k may write the same elements of t
    global t: float32[8]
    serial p < 8
      serial k < 4
      ^^^^^^^^^^^^
        t: t[p] += x[p, k]  init 0.0 over k
    serial q < 8
      out: out[q] = t[q] * 2.0
"""
