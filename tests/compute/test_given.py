"""What people give to the functions that build computations: understood, or refused with a code and a way out."""

# ruff: noqa: ARG005 - functions of indices that do not use them
# What is given here is wrong on purpose.
# pyright: reportUnknownLambdaType=false, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from tilework import compute as te
from tilework.dims import dim
from tilework.dtypes import float32, float64, int32
from tilework.errors import TileworkError, VerificationError
from tilework.loops.interpret import interpret

ANY = cast("Any", te)
A = te.placeholder("a", float32, 4, 5)
K = te.reduce_axis(5, "k")


def two(body: Any) -> Any:
    return ANY.compute("c", (4, 5), body)


def built(*outputs: Any, inputs: Any = (A,)) -> Any:
    return te.loop_program(ANY.computation("x", inputs, outputs))


@pytest.mark.parametrize("dtype", [float32, "float32", np.float32, np.dtype("float32")])
def test_types_are_understood(dtype: Any) -> None:
    assert ANY.placeholder("p", dtype, 3).dtype == float32


@pytest.mark.parametrize(
    ("given", "extent"),
    [("N", "N"), ("3", "3"), ("2*N + 1", "2*N + 1"), (np.int64(7), "7"), (dim("N") + 1, "N + 1"), (0, "0")],
)
def test_extents_are_understood(given: Any, extent: str) -> None:
    assert tuple(map(str, te.placeholder("p", float32, given).shape)) == (extent,)
    assert str(te.reduce_axis(given, "k").extent) == extent
    made = te.compute("c", (given,), lambda i: te.constant(1.0, float32))
    assert tuple(map(str, made.shape)) == (extent,)
    assert ANY.compute("c", given, lambda i: te.constant(1.0, float32)).shape == made.shape
    assert ANY.placeholder("p", float32, (given, 2)).shape == (*made.shape, 2)


@pytest.mark.parametrize(
    ("code", "given"),
    [
        (1352, 2.5), (1352, None), (1352, True), (1352, np.float64(3)), (1352, 10**30), (1352, []), (1329, -3),
        (1004, "N M"), (1004, ""), (1004, "f(N)"), (1329, "-3"),
    ],
)  # fmt: skip
def test_extents_that_are_none(code: int, given: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: ANY.placeholder("p", float32, 2, given),
        lambda: ANY.reduce_axis(given, "k"),
        lambda: ANY.scan_axis(given, "s"),
        lambda: ANY.compute("c", (2, given), lambda i, j: te.constant(1.0, float32)),
    ]
    for attempt in calls:
        with pytest.raises(TileworkError) as caught:
            attempt()
        assert caught.value.code == code
        assert caught.value.where
        assert caught.value.hint


SLIPS: list[tuple[int, str, Callable[[], object]]] = [
    (1003, "element type", lambda: ANY.placeholder("p", None, 3)),
    (1003, "element type", lambda: ANY.placeholder("p", 3.5, 3)),
    (1003, "floot32", lambda: ANY.placeholder("p", "floot32", 3)),
    (1352, "name", lambda: ANY.placeholder(3, float32, 3)),
    (1352, "name", lambda: ANY.placeholder("", float32, 3)),
    (1352, "constant(1.5", lambda: two(lambda i, j: 1.5)),
    (1352, "returns nothing", lambda: two(lambda i, j: None)),
    (1352, "index(i", lambda: two(lambda i, j: i)),
    (1352, "equal", lambda: two(lambda i, j: A[i, j] == A[j, i])),
    (1352, "defines no elements", lambda: two("text")),
    (1352, "str is no expression", lambda: two(lambda i, j: "text")),
    (1301, "select", lambda: two(lambda i, j: A[i, j] if A[i, j] > 0 else A[j, i])),
    (1301, "index(i", lambda: two(lambda i, j: A[i, j] * i)),
    (1004, "index(i", lambda: two(lambda i, j: i * A[i, j])),
    (1301, "no operand", lambda: two(lambda i, j: A[i, j] + "1")),
    (1301, "no operand", lambda: two(lambda i, j: A[i, j] + None)),
    (1301, "call('exp'", lambda: two(lambda i, j: math.exp(A[i, j]))),  # pyright: ignore[reportArgumentType]
    (1301, "spacing", lambda: two(lambda i, j: np.spacing(A[i, j]))),  # pyright: ignore[reportCallIssue, reportArgumentType]
    (1301, "add", lambda: two(lambda i, j: np.add.reduce(A[i, j]))),  # pyright: ignore[reportArgumentType]
    (1301, "no int32", lambda: te.constant(math.nan, int32)),
    (1301, "no int32", lambda: te.constant(math.inf, int32)),
    (1352, "alone", lambda: two(lambda i, j: te.sum(A[i, K], K) + 1.0)),  # type: ignore[operator]
    (1301, "Reduction is no operand", lambda: two(lambda i, j: A[i, j] * te.sum(A[i, K], K))),  # type: ignore[operator]
    (1352, "alone", lambda: two(lambda i, j: te.sum(ANY.sum(A[i, K], K), K))),
    (1352, "no axis", lambda: ANY.sum(A[0, 0], "k")),
    (1352, "one index for each dimension", lambda: A[0]),
    (1352, "at(i)", lambda: ANY.sum(A[0, A[0, 0]], K)),
    (1004, "2.5", lambda: A[0, cast("Any", 2.5)]),
    (1352, "dimensions", lambda: ANY.compute("c", (4, 5), lambda i: A[i, i])),
    (1352, "no input", lambda: ANY.computation("x", [3], [])),
    (1352, "cannot be an input", lambda: built(two(lambda i, j: A[i, j]), inputs=[two(lambda i, j: A[i, j])])),
    (1352, "cannot be an output", lambda: built(A)),
    (1352, "must be inputs", lambda: built(two(lambda i, j: A[i, j]), inputs=())),
    (1350, "name of an input", lambda: built(ANY.compute("a", (4, 5), lambda i, j: A[i, j]))),
]


@pytest.mark.parametrize(("code", "text", "slip"), SLIPS, ids=[str(n) for n in range(len(SLIPS))])
def test_slips_are_refused_with_a_code(code: int, text: str, slip: Callable[[], object]) -> None:
    with pytest.raises(TileworkError) as caught:
        slip()
    assert caught.value.code == code
    assert text in str(caught.value)
    assert "See the message" not in caught.value.hint


def test_operators_and_functions_of_numpy_make_expressions() -> None:
    x = te.placeholder("x", "float64", 6)
    made: dict[str, tuple[Any, Any]] = {
        "p": (lambda i: np.exp(x[i]), np.exp),
        "q": (lambda i: np.sqrt(abs(x[i])) ** 2.0, lambda v: np.sqrt(abs(v)) ** 2.0),
        "r": (lambda i: te.select(x[i] > 0.0, x[i] % 0.75, np.float64(2.0) * x[i]),
              lambda v: np.where(v > 0, v % 0.75, 2.0 * v)),
        "s": (lambda i: np.maximum(x[i], 0.5), lambda v: np.maximum(v, 0.5)),
        "t": (lambda i: x[i] + te.index(i, "float64"), lambda v: v + np.arange(6)),
    }  # fmt: skip
    outputs = [ANY.compute(name, (6,), body) for name, (body, _) in made.items()]
    program = built(*outputs, inputs=(x,))
    values = np.random.default_rng(3).normal(size=6)
    arrays = {"x": values, **{name: np.zeros(6) for name in made}}
    interpret(program, arrays)
    for name, (_, function) in made.items():
        np.testing.assert_allclose(arrays[name], function(values), rtol=1e-15, err_msg=name)
    assert x.dtype == float64


@pytest.mark.parametrize(
    ("code", "make"),
    [
        (1325, lambda: built(two(lambda i, j: A[i, j + 1]))),
        (1325, lambda: built(two(lambda i, j: A[i, -1]))),
        (1325, lambda: built(two(lambda i, j: A[i + 10**7, j]))),
        (1320, lambda: built(ANY.compute("c", (4,), lambda i: A[i, K]))),
        (1350, lambda: built(two(lambda i, j: A[i, j]), two(lambda i, j: A[i, j] * 2.0))),
        (1354, lambda: te.loop_program(te.Computation("x", (), (A.buffer,), ()))),
    ],
)
def test_programs_are_verified_where_they_are_made(code: int, make: Callable[[], object]) -> None:
    with pytest.raises(VerificationError) as caught:
        make()
    assert caught.value.code == code
