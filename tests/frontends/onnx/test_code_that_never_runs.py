"""What never runs asks nothing of a call: branches not taken, bodies without a trip, nodes that nobody reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

import tilework
from tilework.errors import CallError, FrontendError, RunError

F32 = np.float32
LOOP = (
    "y = Loop({given}, x)<body: graph = b (int64 i, bool c, float[?] s) => (bool go, float[?] so) "
    "{{ go = Identity(c) {nodes} }}>"
)


def parsed(given: str, nodes: str) -> ModelProto:
    return parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> g (float[a] x, {given}) => (float[?] y) '
        f"<float[3] w = {{1, 2, 3}}, int64 never = {{0}}, int64 twice = {{2}}> {{ {nodes} }}"
    )


def numbers(count: int) -> Any:
    return np.random.default_rng(count).integers(-9, 9, count).astype(F32)


def test_nodes_of_a_branch_that_nobody_reads() -> None:
    proto = parsed(
        "bool p",
        "y = If(p)<then_branch: graph = t() => (float[?] u) { u = Abs(x) d = Add(x, w) e = Neg(d) }, "
        "else_branch: graph = f() => (float[?] v) { v = Neg(x) }>",
    )
    executable = tilework.compile(proto)
    for count in (3, 5, 0):
        for p in (True, False):
            x = numbers(count)
            np.testing.assert_array_equal(executable(x=x, p=np.array(p))[0], np.abs(x) if p else -x)


def test_nodes_of_a_body_that_nobody_reads() -> None:
    proto = parsed("int64 n", LOOP.format(given="n,", nodes="d = Add(s, w) e = Relu(d) so = Neg(s)"))
    executable = tilework.compile(proto)
    for count, trips in ((3, 1), (5, 2), (5, 0)):
        x = numbers(count)
        np.testing.assert_array_equal(executable(x=x, n=np.array(trips))[0], x * (-1) ** trips)


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("kind", ["trips", "condition", "both"])
def test_a_body_that_does_not_fit_and_has_no_trip(kind: str, checked: bool) -> None:
    declared = {"trips": "int64 n", "condition": "bool p", "both": "int64 n, bool p"}[kind]
    given = {"trips": "n, ", "condition": ", p", "both": "n, p"}[kind]
    one = "go = Not(c)" if kind == "condition" else "go = Identity(c)"
    proto = parsed(declared, LOOP.format(given=given, nodes="so = Add(s, w)").replace("go = Identity(c)", one))
    executable = tilework.compile(proto, checked=checked)

    def feed(trips: int) -> dict[str, Any]:
        return {
            name: value
            for name, value in (("n", np.array(trips)), ("p", np.array(trips > 0)))
            if f" {name}" in f" {declared}"
        }

    x = numbers(3)
    np.testing.assert_array_equal(executable(x=x, **feed(1))[0], x + np.array([1, 2, 3]))
    x = numbers(5)
    np.testing.assert_array_equal(executable(x=x, **feed(0))[0], x)
    with pytest.raises(RunError, match="1804"):
        executable(x=x, **feed(1))


def test_known_numbers_of_trips() -> None:
    """None is fine; where there surely is one, the model is refused before it runs."""
    x = numbers(5)
    never = tilework.compile(parsed("int64 n", LOOP.format(given="never,", nodes="so = Add(s, w)")))
    np.testing.assert_array_equal(never(x=x, n=np.array(0))[0], x)
    twice = tilework.compile(parsed("int64 n", LOOP.format(given="twice,", nodes="so = Add(s, w)")))
    np.testing.assert_array_equal(twice(x=numbers(3), n=np.array(0))[0], numbers(3) + np.array([2, 4, 6]))
    with pytest.raises((CallError, FrontendError)):
        twice(x=x, n=np.array(0))
