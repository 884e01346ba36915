"""Copies of parts of a buffer whose dimensions are walked as one."""

from __future__ import annotations

import pytest

from tests.schedule.programs import same_values
from tilework.dims import dim
from tilework.loops.parse import parse_program
from tilework.loops.program import LoopProgram
from tilework.loops.verify import verify
from tilework.schedule.footprint import spans
from tilework.schedule.primitives.cache_read import CacheRead
from tilework.schedule.schedule import Schedule


def walked_as_one(height: int, width: int) -> LoopProgram:
    return parse_program(f"""
program image
  read x: float32[3, {height}, {width}]
  write y: float32[{height * width}, 3]

  serial e < {height * width}
    serial c < 3
      y: y[e, c] = x[c, e // {width}, e % {width}]
""")


@pytest.mark.parametrize(("height", "width"), [(5, 7), (1, 9), (8, 8), (4, 1)])
@pytest.mark.parametrize("factor", [4, 8])
def test_rows_and_columns_are_one_dimension_of_the_copy(height: int, width: int, factor: int) -> None:
    program = walked_as_one(height, width)
    schedule = Schedule(program).split("e", factor, "e0", "e1").cache_read("x", "e0", "t")
    assert schedule.program.buffers["t"].size == 3 * factor
    if (height, width) == (5, 7):
        assert schedule.program.buffers["t"].shape == (dim(3), dim(factor))
    verify(schedule.program)
    same_values(program, schedule.program, 3)


def test_windows_still_are_boxes() -> None:
    """Dimensions that have a range each are not taken together."""
    i, k, j = dim("i"), dim("k"), dim("j")
    found = spans([(i + k, j)], {"k": dim(3), "j": dim(8)}, (dim(20), dim(8)))
    assert found is not None
    assert [(part.dims, part.side.start, part.side.size) for part in found] == [
        (range(1), i, dim(3)),
        (range(1, 2), dim(0), dim(8)),
    ]


def test_no_range_alone_or_together() -> None:
    e, i = dim("e"), dim("i")
    assert spans([(e // 3, i)], {"i": dim(4)}, (dim(9), dim(4))) is not None  # does not move inside
    assert spans([((e + i) // 3, dim(0))], {"i": dim(4)}, (dim(9), dim(4))) is None
    program = parse_program("""
program quotients
  read x: float32[9, 4]
  write y: float32[20]

  serial e < 5
    serial i < 4
      y: y[4*e + i] = x[(4*e + i) // 3, 0]
""")
    assert not Schedule(program).check(CacheRead("x", "e", "t")).legal
