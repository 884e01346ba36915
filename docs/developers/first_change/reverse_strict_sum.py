"""Refused: reverse strict sum."""

from __future__ import annotations

PROGRAM = """\
program example
  read a: float32[8]
  write c: float32[1]

  serial i < 8
    c: c[0] += a[i]  init 0.0 over i
"""
NUMERICS = "strict"
STEP = ("reverse", "i")
CODE = 1502
DEPENDENCE = ("flow", "c", ("i",), ("<",))
WITNESS = ({"i": 0}, {"i": 1})
RENDERING = """\
reverse(loop='i'): the order of i may matter
  flow dependence on c with direction (i:<)
  iterations (i=0) and (i=1) would swap or meet
    serial i < 8
    ^^^^^^^^^^^^
      c: c[0] += a[i]  init 0.0 over i
"""
