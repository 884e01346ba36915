"""TopK of long rows, where the first elements are selected before they are sorted, against stable sorting by NumPy."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from onnx import helper

import tilework
from tests.frontends.onnx.models import model
from tilework.errors import CallError

F32, I64 = np.float32, np.int64


def rows_of(g: np.random.Generator, dtype: Any, rows: int, length: int, kind: str) -> Any:
    """Elements that are distinct, mostly equal, all one, or extreme (NaN, infinities, -0.0, the ends of the type)."""
    if np.dtype(dtype).kind in "iu":
        ends = np.iinfo(dtype)
        if kind == "extreme":
            return g.choice(np.array([ends.min, ends.min + 1, 0, ends.max - 1, ends.max], dtype), (rows, length))
        spread = {"distinct": ends.max, "equal": 3, "one": 1}[kind]
        return g.integers(0, spread, (rows, length), dtype)
    if kind == "extreme":
        found = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal]
        return g.choice(np.array([*found, -np.nan], dtype), (rows, length))
    if kind == "distinct":
        return g.standard_normal((rows, length)).astype(dtype)
    return g.integers(0, {"equal": 3, "one": 1}[kind], (rows, length)).astype(dtype)


def wanted(x: Any, count: int, largest: bool) -> Any:
    """Positions: of equal elements the first ones first, NaN larger than anything."""
    plain: Any = x + np.zeros((), x.dtype) if x.dtype.kind == "f" else x  # -0.0 + 0 is 0
    distinct = cast("Any", np.unique(plain))
    ranks = cast("Any", np.searchsorted(distinct, x)).astype(I64)
    if x.dtype.kind == "f":
        ranks[np.isnan(x)] = len(distinct)
    return cast("Any", np.argsort(-ranks if largest else ranks, 1, kind="stable"))[:, :count]


def check(executable: Any, x: Any, count: int, largest: bool, *rest: Any) -> None:
    values, positions = executable(x, *rest)
    places = wanted(x, count, largest)
    np.testing.assert_array_equal(positions, places)
    np.testing.assert_array_equal(values, np.take_along_axis(x, places, 1))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(
    ("dtype", "length", "count"),
    [
        (F32, 5000, 7), (F32, 1021, 16), (F32, 700, 300), (np.float16, 3001, 20), (np.float64, 2000, 30),
        (np.int32, 4099, 60), (I64, 1500, 5), (np.uint64, 600, 40), (np.uint8, 2500, 100), (F32, 1024, 1),
        (F32, 600, 0),
    ],
)  # fmt: skip
def test_the_first_of_many(dtype: Any, length: int, count: int, largest: bool) -> None:
    proto = model(
        [helper.make_node("TopK", ["x", "k"], ["v", "i"], largest=int(largest))], {"x": (dtype, ["rows", length])},
        ["v", "i"], {"k": np.array([count])}, 11,
    )  # fmt: skip
    executable = tilework.compile(proto)
    g = np.random.default_rng(length + largest)
    for kind in ("distinct", "equal", "one", "extreme"):
        check(executable, rows_of(g, dtype, 2, length, kind), count, largest)
    check(executable, rows_of(g, dtype, 0, length, "one"), count, largest)


@pytest.mark.parametrize("checked", [False, True])
def test_rows_of_any_length(checked: bool) -> None:
    proto = model(
        [helper.make_node("TopK", ["x", "k"], ["v", "i"])], {"x": (F32, ["rows", "n"])}, ["v", "i"],
        {"k": np.array([20])}, 11,
    )  # fmt: skip
    executable = tilework.compile(proto, checked=checked)
    g = np.random.default_rng(checked)
    for length in (20, 21, 257, 1000, 3333):
        for kind in ("distinct", "equal", "extreme"):
            check(executable, rows_of(g, F32, 3, length, kind), 20, True)
    with pytest.raises(CallError, match="TopK") as caught:
        executable(np.zeros((1, 19), F32))
    assert caught.value.code == 1707


def test_a_number_that_the_model_computes() -> None:
    proto = model(
        [helper.make_node("Add", ["k", "one"], ["more"]), helper.make_node("TopK", ["x", "more"], ["v", "i"])],
        {"x": (F32, ["rows", 1500]), "k": (I64, [1])}, ["v", "i"], {"one": np.array([1])}, 11,
    )  # fmt: skip
    executable = tilework.compile(proto)
    g = np.random.default_rng(7)
    for count in (0, 1, 17, 400, 1500):
        check(executable, rows_of(g, F32, 2, 1500, "equal"), count, True, np.array([count - 1]))
