"""`while` with states that change their size and rows that are collected, `numbers_below`, `no_value`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilework import dtypes
from tilework.dims import Symbol, dim
from tilework.errors import GraphError, RunError, TileworkError, VerificationError
from tilework.graph.graph import Graph
from tilework.graph.parse import parse
from tilework.graph.text import constants_by_digest, to_text
from tilework.ops.builder import GraphBuilder
from tilework.ops.interpret import interpret
from tilework.ops.verify import verify

F32, I64 = dtypes.float32, dtypes.int64
OWN = Symbol("size", measured=True)


def appending(attributes: dict[str, Any], row_of_state: bool = False) -> Graph:
    """Appends its size to a vector while that is below a limit; a row is twice the size."""
    b = GraphBuilder("g", [Symbol("n"), Symbol("end", measured=True), Symbol("trips", measured=True)])
    x, most = b.input("x", F32, "n"), b.input("most", F32)
    asked = b.subgraph("condition")
    asked.input("v", F32, "size")
    here = asked.apply_one("convert", asked.apply_one("dimension_values", values=(dim("size"),), shape=()), dtype=F32)
    condition = asked.build([asked.apply_one("compare", here, most, direction="LT")]).replace(symbols=(OWN,))
    inner = b.subgraph("body")
    v = inner.input("w", F32, "size")
    size = inner.apply_one("convert", inner.apply_one("dimension_values", values=(dim("size"),), shape=(1,)), dtype=F32)
    row = v if row_of_state else inner.apply_one("add", size, size)
    body = inner.build([inner.apply_one("concatenate", v, size, dimension=0), row]).replace(symbols=(OWN,))
    return b.build(b.apply_all("while", [x], attributes, subgraphs=[condition, body]))


ATTRIBUTES = {"extents": (dim("end"),), "rows": (dim("trips"),)}


@pytest.mark.parametrize("most", [0, 3, 7])
def test_sizes_change_and_rows_are_stacked(most: int) -> None:
    graph = appending(ATTRIBUTES)
    verify(graph)
    x = np.array([9, 8], np.float32)
    found, rows = interpret(graph, [x, np.array(most, np.float32)])
    np.testing.assert_array_equal(found, [9, 8, *range(2, most)])
    np.testing.assert_array_equal(rows, [[2 * size] for size in range(2, most)] or np.zeros((0, 1)))
    again = parse(to_text(graph), constants_by_digest(graph))
    assert to_text(again) == to_text(graph)


@pytest.mark.parametrize("attributes", [{}, {"extents": (dim("end"),)}, {"rows": (dim("trips"),)}])
def test_what_is_missing_is_told(attributes: dict[str, Any]) -> None:
    with pytest.raises(VerificationError):
        appending(attributes)


def test_rows_are_of_one_size() -> None:
    with pytest.raises(VerificationError, match="one size"):
        appending(ATTRIBUTES, row_of_state=True)


def test_numbers_below() -> None:
    b = GraphBuilder("g", [Symbol("m", 0, 5, measured=True)])
    count = b.input("count", I64)
    graph = b.build([b.apply_one("numbers_below", count, extent=(dim("m"),))])
    verify(graph)
    np.testing.assert_array_equal(interpret(graph, [np.array(4)])[0], np.arange(4))
    for wrong in (-1, 6):
        with pytest.raises((GraphError, RunError)):
            interpret(graph, [np.array(wrong)])
    for extent in ((3,), (dim("m") + 1,), (), (dim("m"), dim("m"))):
        with pytest.raises(VerificationError):
            b.apply_one("numbers_below", count, extent=extent)
    with pytest.raises(VerificationError):
        b.apply_one("numbers_below", b.input("real", F32), extent=(dim("m"),))


def test_no_value() -> None:
    b = GraphBuilder("g")
    graph = b.build([b.apply_one("no_value", shape=(2,), dtype=F32, reason="there is none")])
    verify(graph)
    with pytest.raises(TileworkError, match="there is none") as caught:
        interpret(graph, [])
    assert caught.value.code == 1804
