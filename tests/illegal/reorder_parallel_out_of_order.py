"""Refused: reorder parallel out of order."""

from __future__ import annotations

PROGRAM = """\
program example
  read x: float32[8, 4]
  accumulate c: float32[11]

  serial j < 4
    parallel i < 8
      c: c[i + j] += x[i, j]
"""
STEP = ("reorder", ("i", "j"))
CODE = 1513
DEPENDENCE = ("flow", "c", ("i",), ("<",))
WITNESS = ({"i": 0, "j": 1}, {"i": 1, "j": 0})
RENDERING = """\
reorder(loops=('i', 'j')): the parallel loop i would no longer be legal: iterations of i combine into the \
same element of c
  flow dependence on c with direction (i:<)
  iterations (i=0, j=1) and (i=1, j=0) would swap or meet
    serial j < 4
      parallel i < 8
      ^^^^^^^^^^^^^^
        c: c[i + j] += x[i, j]
"""
