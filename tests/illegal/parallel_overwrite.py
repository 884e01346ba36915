"""Refused: parallel overwrite."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8]
  write c: float32[1]

  serial i < 8
    c: c[0] = a[i]
"""
STEP = ("parallel", "i")
CODE = 1513
DEPENDENCE = ("output", "c", ("i",), ("<",))
WITNESS = ({"i": 0}, {"i": 1})
RENDERING = """\
parallel(loop='i'): iterations of i touch the same element of c
  output dependence on c with direction (i:<)
  iterations (i=0) and (i=1) would swap or meet
    serial i < 8
    ^^^^^^^^^^^^
      c: c[0] = a[i]
"""
