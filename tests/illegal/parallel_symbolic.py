"""Refused: parallel symbolic."""

from __future__ import annotations

PROGRAM = """\
program example
  symbol N in 2..
  read a: float32[N]
  write c: float32[1]

  serial i < N
    c: c[0] += a[i]  init 0.0 over i
"""
STEP = ("parallel", "i")
CODE = 1513
DEPENDENCE = ("flow", "c", ("i",), ("<",))
WITNESS = ({"i": 0}, {"i": 1})
SYMBOLS = {"N": 3}
RENDERING = """\
parallel(loop='i'): iterations of i combine into the same element of c
  flow dependence on c with direction (i:<)
  iterations (i=0) and (i=1) with N=3 would swap or meet
    serial i < N
    ^^^^^^^^^^^^
      c: c[0] += a[i]  init 0.0 over i
"""
