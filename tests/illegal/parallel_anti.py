"""Refused: parallel anti."""

from __future__ import annotations

PROGRAM = """\
program example
  accumulate c: float32[9]

  serial i < 8
    c: c[i] = c[i + 1] * 2.0
"""
STEP = ("parallel", "i")
CODE = 1513
DEPENDENCE = ("anti", "c", ("i",), ("<",))
WITNESS = ({"i": 0}, {"i": 1})
RENDERING = """\
parallel(loop='i'): iterations of i touch the same element of c
  anti dependence on c with direction (i:<)
  iterations (i=0) and (i=1) would swap or meet
    serial i < 8
    ^^^^^^^^^^^^
      c: c[i] = c[i + 1] * 2.0
"""
