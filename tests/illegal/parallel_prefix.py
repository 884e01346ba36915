"""Refused: parallel prefix."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8]
  accumulate c: float32[9]

  serial i < 8
    c: c[i + 1] = c[i] + a[i]
"""
STEP = ("parallel", "i")
CODE = 1513
DEPENDENCE = ("flow", "c", ("i",), ("<",))
WITNESS = ({"i": 0}, {"i": 1})
RENDERING = """\
parallel(loop='i'): iterations of i touch the same element of c
  flow dependence on c with direction (i:<)
  iterations (i=0) and (i=1) would swap or meet
    serial i < 8
    ^^^^^^^^^^^^
      c: c[i + 1] = c[i] + a[i]
"""
