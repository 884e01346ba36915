# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
"""The tests of this folder would notice: the lowering is broken on purpose, and random programs must tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.lowering.native import assert_same
from tests.lowering.random_programs import draw
from tilework.dims import Dim
from tilework.lowering import parallel, scalars
from tilework.lowering.cells import Cells
from tilework.lowering.indices import Indices, Resolved
from tilework.lowering.memory import Memory
from tilework.lowering.registers import Value
from tilework.lowering.statements import Statements

Patch = Callable[[pytest.MonkeyPatch], None]


def guards_off_by_one(patch: pytest.MonkeyPatch) -> None:
    right = Indices.holds
    patch.setattr(Indices, "holds", lambda self, guard: right(self, guard + 1))


def masks_forgotten(patch: pytest.MonkeyPatch) -> None:
    right = Memory.store

    def wrong(self: Memory, name: str, index: Any, dtype: Any, value: Value, mask: Value | None) -> None:
        right(self, name, index, dtype, value, None)

    patch.setattr(Memory, "store", wrong)


def start_on_every_iteration(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Statements, "_first", lambda *_: True)
    patch.setattr("tilework.lowering.lower.promoted", lambda program, _: program)


def start_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Statements, "_first", lambda *_: False)
    patch.setattr("tilework.lowering.lower.promoted", lambda program, _: program)


def loads_rise_over_stores(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("tilework.lowering.state.State.load_depth", lambda *given, **_: given[-1])
    patch.setattr("tilework.lowering.lower.promoted", lambda program, _: program)


def last_chunk_short(patch: pytest.MonkeyPatch) -> None:
    right = parallel.chunk_bounds

    def wrong(state: Any, extent: Value) -> tuple[Value, Value]:
        start, stop = right(state, extent)
        return start, state.builder.op("sub", "i64", stop, state.builder.integer(1))

    patch.setattr(parallel, "chunk_bounds", wrong)


def division_truncates(patch: pytest.MonkeyPatch) -> None:
    right = Indices.quotient

    def wrong(self: Indices, numerator: Dim, denominator: Dim) -> Value:
        return right(self, numerator + denominator - 1, denominator)

    patch.setattr(Indices, "quotient", wrong)


def cells_not_carried(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Cells, "written", lambda *_: iter(()))


def reversed_lanes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Memory, "reverse", lambda *given: given[-1])


def strides_swapped(patch: pytest.MonkeyPatch) -> None:
    right = Indices.by_lane

    def wrong(self: Indices, found: Resolved, scalar: Value) -> Value:
        return right(self, Resolved(found.constant, found.lane + 1, found.terms, found.vector), scalar)

    patch.setattr(Indices, "by_lane", wrong)


def minimum_is_maximum(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(scalars.EMIT, "minimum", scalars.EMIT["maximum"])


BUGS: tuple[Patch, ...] = (
    guards_off_by_one, masks_forgotten, start_on_every_iteration, start_forgotten, loads_rise_over_stores,
    last_chunk_short, division_truncates, cells_not_carried, reversed_lanes, strides_swapped, minimum_is_maximum,
)  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_caught(bug: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    for seed in range(80):
        found = draw(seed)
        try:
            assert_same(found.program, found.arrays, found.symbols)
        except AssertionError:
            return
    pytest.fail("eighty random programs did not notice")
