"""Elements past 2^31 and 2^32: index arithmetic is in 64 bits. The arrays are never written, so they take no memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilework import dtypes
from tilework.compiler.compile import compile_graph
from tilework.dims import Symbol, dim
from tilework.ops.builder import GraphBuilder

FAR = 5 << 30
"""Elements, each a byte: beyond what 32 bits count."""
STEP = (1 << 26) + 4096


def _untouched(places: Any) -> Any:
    """Zeros of which only some pages are ever there, and a mark at each of some places."""
    array = np.zeros(FAR, np.int8)
    array[places] = np.arange(len(places), dtype=np.int8) + 1
    return array


@pytest.mark.parametrize("symbolic", [False, True])
def test_strides_reach_far(symbolic: bool) -> None:
    places = np.arange(0, FAR, STEP)
    builder = GraphBuilder("strides", [Symbol("N", 0, FAR)] if symbolic else [])
    extent = dim("N") if symbolic else FAR
    x = builder.input("x", dtypes.int8, extent)
    taken = builder.apply_one("slice", x, start_indices=(0,), limit_indices=(FAR,) if not symbolic else (extent,),
                              strides=(STEP,))  # fmt: skip
    executable = compile_graph(builder.build([builder.apply_one("negate", taken)]))
    (found,) = executable(_untouched(places))
    np.testing.assert_array_equal(found, -(np.arange(len(places), dtype=np.int8) + 1))


def test_positions_reach_far() -> None:
    """Positions that are data, also negative ones that count from the end."""
    places = np.array([FAR - 1, 0, (1 << 31) + 3, (1 << 32) + 5])
    builder = GraphBuilder("positions")
    x, at = builder.input("x", dtypes.int8, FAR), builder.input("at", dtypes.int64, 4)
    executable = compile_graph(builder.build([builder.apply_one("take", x, at, dimension=0)]))
    np.testing.assert_array_equal(executable(_untouched(places), places)[0], [1, 2, 3, 4])


def test_rows_reach_far() -> None:
    """A row past 2^31 of a matrix, its index the product of a loop and an extent."""
    rows = FAR // STEP
    builder = GraphBuilder("rows")
    x = builder.input("x", dtypes.int8, rows, STEP)
    taken = builder.apply_one("slice", x, start_indices=(0, 7), limit_indices=(rows, 8))
    executable = compile_graph(builder.build([builder.apply_one("negate", taken)]))
    places = np.arange(rows) * STEP + 7
    (found,) = executable(_untouched(places)[: rows * STEP].reshape(rows, STEP))
    np.testing.assert_array_equal(found[:, 0], -(np.arange(rows, dtype=np.int8) + 1))
