"""Indices that depend on data: checked when they run, reported in the error word, and harmless to memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lowering.native import Native
from tilework import dtypes
from tilework.dims import Dim, Symbol, dim, loaded
from tilework.loops.expressions import Load, constant
from tilework.loops.program import Access, Argument, Compute, Loop, LoopProgram, Node, buffer, sequence
from tilework.loops.reducers import reducer

F = dtypes.float32


def gather(lanes: int, width: int | None = None, kind: str = "serial") -> LoopProgram:
    """y[i] = x[w[i]], or whole rows y[i, l] = x[w[i], l] where a width is given."""
    n = dim("N")
    x = buffer("x", F, "M", *([width] if width else []))
    w = buffer("w", dtypes.int64, "N")
    y = buffer("y", F, "N", *([width] if width else []))
    rest: tuple[Dim, ...]
    if width:
        i, rest = dim("i"), (dim("l"),)
    else:
        i, rest = dim("i") * lanes + dim("l") if lanes else dim("i"), ()
    guards = (n - 1 - i,) if lanes and not width else ()
    node: Node = Compute("take", (Access("y", (i, *rest)),), (Load("x", (loaded("w", (i,)), *rest), F),), guards=guards)
    if lanes:
        node = Loop("l", dim(width or lanes), "vectorized", node)
    first = Compute("first", (Access("y", (dim("z"), *(dim(0) for _ in rest))),), (constant(5, F),))
    body = sequence(
        Loop("z", n, "serial", first),
        Loop("i", n.ceildiv(lanes) if lanes and not width else n, "parallel" if kind == "parallel" else "serial", node),
    )
    arguments = (Argument(x, "read"), Argument(w, "read"), Argument(y, "write"))
    return LoopProgram("gather", arguments, body, (Symbol("M"), Symbol("N")))


@pytest.mark.parametrize(("lanes", "width"), [(0, None), (8, None), (8, 8), (16, 16)])
@pytest.mark.parametrize("kind", ["serial", "parallel"])
@pytest.mark.parametrize("bad", [-1, 4, 2**62, -(2**63)])
def test_an_index_outside_is_reported(lanes: int, width: int | None, kind: str, bad: int) -> None:
    native = Native(gather(lanes, width, kind))
    shape = (width,) if width else ()
    x = np.arange(4 * (width or 1), dtype=np.float32).reshape(4, *shape) + 1
    w = np.array([0, 3, 1, 2, 3, 0, 1, 2, 2, 1], np.int64)
    y = np.zeros((10, *shape), np.float32)
    outcome = native.run({"x": x, "w": w, "y": y})
    assert (outcome.status, outcome.error) == (0, 0)
    np.testing.assert_array_equal(outcome.arrays["y"], x[w])
    w[6] = bad
    outcome = native.run({"x": x, "w": w, "y": y})
    assert outcome.status != 0
    code, detail = divmod(outcome.error, 1 << 32)
    assert code == 1801
    assert native.text.signature.faults[detail] == "take"
    fine = np.arange(10) != 6
    np.testing.assert_array_equal(outcome.arrays["y"][fine], x[w[fine]])


def test_nothing_is_read_from_an_empty_buffer() -> None:
    for lanes, width in ((0, None), (8, None), (16, 16)):
        native = Native(gather(lanes, width))
        shape = (width,) if width else ()
        arrays = {
            "x": np.zeros((0, *shape), np.float32), "w": np.zeros(3, np.int64), "y": np.ones((3, *shape), np.float32),
        }  # fmt: skip
        outcome = native.run(arrays)
        assert outcome.error >> 32 == 1801
        assert not outcome.arrays["y"].any()


@pytest.mark.parametrize("lanes", [0, 8])
def test_a_bad_store_writes_nothing(lanes: int) -> None:
    n = dim("N")
    x, w, y = buffer("x", F, "N"), buffer("w", dtypes.int32, "N"), buffer("y", F, "M")
    i = dim("i") * lanes + dim("l") if lanes else dim("i")
    for found in (None, reducer("sum", F)):
        node: Node = Compute(
            "put",
            (Access("y", (loaded("w", (i,)),)),),
            (Load("x", (i,), F),),
            found,
            guards=(n - 1 - i,) if lanes else (),
        )
        if lanes:
            node = Loop("l", dim(lanes), "vectorized", node)
        p = LoopProgram(
            "put", (Argument(x, "read"), Argument(w, "read"), Argument(y, "accumulate")),
            Loop("i", n.ceildiv(lanes) if lanes else n, "serial", node), (Symbol("M"), Symbol("N")),
        )  # fmt: skip
        native = Native(p)
        w_ = np.array([0, 1, 7, 2, -1], np.int32)
        outcome = native.run({"x": np.ones(5, np.float32), "w": w_, "y": np.zeros(3, np.float32)})
        assert outcome.error == (1801 << 32) | 0
        np.testing.assert_array_equal(outcome.arrays["y"], [1, 1, 1])


def test_the_first_fault_stays() -> None:
    native = Native(gather(0))
    error: Any = np.array([77], np.int64)
    import ctypes

    x, w, y = np.zeros(1, np.float32), np.array([5], np.int64), np.zeros(1, np.float32)
    block = (ctypes.c_int64 * 6)(error.ctypes.data, x.ctypes.data, w.ctypes.data, y.ctypes.data, 1, 1)
    assert native.entry(ctypes.addressof(block), None) == 1
    assert error[0] == 77


def test_a_checked_build_finds_a_wrong_access() -> None:
    x, y = buffer("x", F, "N"), buffer("y", F, "N")
    for lanes in (0, 8):
        i = dim("i") * lanes + dim("l") if lanes else dim("i")
        node: Node = Compute("shifted", (Access("y", (i,)),), (Load("x", (i + 1,), F),), guards=(dim("N") - 1 - i,))
        if lanes:
            node = Loop("l", dim(lanes), "vectorized", node)
        p = LoopProgram(
            "shifted", (Argument(x, "read"), Argument(y, "write")),
            Loop("i", dim("N").ceildiv(lanes) if lanes else dim("N"), "serial", node), (Symbol("N"),),
        )  # fmt: skip
        native = Native(p, checked=True)
        outcome = native.run({"x": np.arange(9, dtype=np.float32), "y": np.zeros(9, np.float32)})
        assert outcome.error >> 32 == 1802
        assert native.text.signature.faults[outcome.error & 0xFFFFFFFF] == "shifted"
        assert outcome.arrays["y"][:8].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_no_fault_is_raised_for_a_statement_that_does_not_run() -> None:
    """The guard is false wherever the index would be bad; the loop around may also run no time."""
    w, x, y = buffer("w", dtypes.int64, "N"), buffer("x", F, 2), buffer("y", F, "N", "K")
    i = dim("i")
    place = loaded("w", (i,))
    node = Compute("some", (Access("y", (i, dim("k"))),), (Load("x", (place,), F),), guards=(1 - place, place))
    p = LoopProgram(
        "some", (Argument(w, "read"), Argument(x, "read"), Argument(y, "accumulate")),
        Loop("i", dim("N"), "serial", Loop("k", dim("K"), "serial", node)), (Symbol("N"), Symbol("K")),
    )  # fmt: skip
    native = Native(p)
    for k in (0, 2):
        arrays = {"w": np.array([0, 9, 1]), "x": np.array([3, 4], np.float32), "y": np.zeros((3, k), np.float32)}
        outcome = native.run(arrays)
        assert outcome.error == 0
        assert outcome.arrays["y"].sum() == 7 * k
