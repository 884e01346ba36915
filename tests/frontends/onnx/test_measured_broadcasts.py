"""Sizes that the call measures beside others: whether one is 1, and so broadcasts, is known only when it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

import tilework
from tilework.errors import RunError

F32 = np.float32
HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'


def parsed(text: str) -> ModelProto:
    return parser.parse_model(HEAD + text)


def chosen(count: int, of: int, rng: np.random.Generator) -> Any:
    """So many positive numbers among negative ones."""
    x = -rng.integers(1, 9, of).astype(F32)
    x[rng.permutation(of)[:count]] *= -1
    return x


PAIRS: dict[str, Any] = {"Add": np.add, "Max": np.maximum, "Less": np.less}


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("operator", ["Add", "Max", "Less"])
def test_a_measured_size_beside_a_constant_one(operator: str, swapped: bool, checked: bool) -> None:
    rng = np.random.default_rng(3)
    order = "w, c" if swapped else "c, w"
    kind = "bool" if operator == "Less" else "float"
    proto = parsed(
        f"g (float[a] x) => ({kind}[?] z) <float o = {{0}}, float[3] w = {{1, 2, 3}}> "
        f"{{ p = Greater(x, o) c = Compress(x, p) z = {operator}({order}) }}"
    )
    executable = tilework.compile(proto, checked=checked)
    w = np.array([1, 2, 3], F32)
    for count, of in ((3, 5), (1, 4), (1, 1), (3, 3)):
        x = chosen(count, of, rng)
        sides = (w, x[x > 0]) if swapped else (x[x > 0], w)
        (got,) = executable(x=x)
        np.testing.assert_array_equal(got, PAIRS[operator](*sides))
    for count in (0, 2, 4):
        with pytest.raises(RunError, match=r"1803.*needs chosen = 1, or chosen = 3"):
            executable(x=chosen(count, 5, rng))


@pytest.mark.parametrize("other", ["measured", "free"])
@pytest.mark.parametrize("checked", [False, True])
def test_two_sizes_of_which_either_may_be_one(other: str, checked: bool) -> None:
    rng = np.random.default_rng(4)
    made = "q = Greater(v, o) d = Compress(v, q)" if other == "measured" else "d = Identity(v)"
    proto = parsed(
        "g (float[a] x, float[b] v) => (float[?] z, float[?] y) <float o = {0}> "
        f"{{ p = Greater(x, o) c = Compress(x, p) {made} z = Add(d, c) y = Mul(z, c) }}"
    )
    executable = tilework.compile(proto, checked=checked)
    for n, m in ((3, 3), (1, 3), (3, 1), (1, 1), (0, 1), (1, 0), (0, 0), (2, 2)):
        x, v = chosen(n, 5, rng), chosen(m, 4, rng)
        v = v if other == "measured" else v[v > 0]
        c, d = x[x > 0], v[v > 0]
        for got, wanted in zip(executable(x=x, v=v), (d + c, (d + c) * c), strict=True):
            assert got.shape == wanted.shape
            np.testing.assert_array_equal(got, wanted)
    for n, m in ((2, 3), (0, 2), (3, 0)):
        x, v = chosen(n, 5, rng), chosen(m, 4, rng)
        with pytest.raises(RunError, match="1803"):
            executable(x=x, v=v if other == "measured" else v[v > 0])


def test_three_measured_sizes_in_one_selection() -> None:
    rng = np.random.default_rng(5)
    names = "abc"
    made = " ".join(f"p{n} = Greater({n}, o) c{n} = Compress({n}, p{n})" for n in names)
    proto = parsed(
        f"g ({', '.join(f'float[d{n}] {n}' for n in names)}) => (float[?] z, float[?] y) "
        f"<float o = {{0}}, float f = {{5}}> {{ {made} m = Greater(ca, f) z = Where(m, cb, cc) y = Sum(ca, cb, cc) }}"
    )
    executable = tilework.compile(proto)
    for counts in ((1, 1, 1), (1, 1, 4), (4, 1, 4), (1, 4, 1), (4, 4, 4), (0, 1, 1), (1, 0, 0)):
        feed = {name: chosen(count, 6, rng) for name, count in zip(names, counts, strict=True)}
        a, b, c = (x[x > 0] for x in feed.values())
        expected: list[Any] = [np.where(a > 5, b, c), a + b + c]
        for got, wanted in zip(executable(**feed), expected, strict=True):
            assert got.shape == wanted.shape
            np.testing.assert_array_equal(got, wanted)
    with pytest.raises(RunError, match="1803"):
        executable(**{name: chosen(count, 6, rng) for name, count in zip(names, (1, 2, 3), strict=True)})


@pytest.mark.parametrize("checked", [False, True])
def test_expand_of_a_measured_size(checked: bool) -> None:
    rng = np.random.default_rng(6)
    proto = parsed(
        "g (float[a] x) => (float[?, ?] z) <float o = {0}, int64[2] s = {2, 3}> "
        "{ p = Greater(x, o) c = Compress(x, p) z = Expand(c, s) }"
    )
    executable = tilework.compile(proto, checked=checked)
    for count in (1, 3):
        x = chosen(count, 4, rng)
        (got,) = executable(x=x)
        np.testing.assert_array_equal(got, np.broadcast_to(x[x > 0], (2, 3)))
    for count in (0, 2):
        with pytest.raises(RunError, match="1803"):
            executable(x=chosen(count, 4, rng))


def test_expand_to_a_measured_size() -> None:
    """Of a measured one, of a free one, and of a constant one."""
    rng = np.random.default_rng(7)
    for given, made in (("float[b] v", "d = Identity(v)"), ("float[b] v", "q = Greater(v, o) d = Compress(v, q)"),
                        ("float[3] v", "d = Identity(v)"), ("float[1] v", "d = Identity(v)")):  # fmt: skip
        proto = parsed(
            f"g (float[a] x, {given}) => (float[?] z) <float o = {{0}}> "
            f"{{ p = Greater(x, o) c = Compress(x, p) s = Shape(c) {made} z = Expand(d, s) }}"
        )
        executable = tilework.compile(proto)
        for n, m in ((1, 3), (3, 3), (4, 1), (1, 1), (0, 1), (2, 3)):
            if f"float[{m}]" not in given and "float[b]" not in given:
                continue
            x, v = chosen(n, 5, rng), chosen(m, m, rng)
            if n in (1, m) or m == 1:
                (got,) = executable(x=x, v=v)
                wanted = np.broadcast_to(v, np.broadcast_shapes((n,), (m,)))
                assert got.shape == wanted.shape
                np.testing.assert_array_equal(got, wanted)
            else:
                with pytest.raises(RunError, match="1803"):
                    executable(x=x, v=v)


def test_expand_of_a_quotient() -> None:
    """No symbol solves a // 2 = 3: each call is held against it, and one where it is 1 has code of its own."""
    proto = parsed(
        "g (float[a, 1] x) => (float[?, ?] z) "
        "<int64[2] s = {3, 2}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}> "
        "{ n = Shape(x) rows = Slice(n, zero, one) half = Div(rows, two) y = Slice(x, zero, half) z = Expand(y, s) }"
    )
    executable = tilework.compile(proto)
    for a in (6, 2, 7, 3):
        x = np.arange(a, dtype=F32).reshape(a, 1)
        (got,) = executable(x=x)
        np.testing.assert_array_equal(got, np.broadcast_to(x[: a // 2], (3, 2)))
    with pytest.raises(tilework.TileworkError):
        executable(x=np.zeros((4, 1), F32))


LOOP = (
    "y = Loop(n, , x)<body: graph = b (int64 i, bool c, float[?, ?] s) => (bool go, float[?, ?] so) "
    "{{ go = Identity(c) {} }}>"
)


def _odd_rows_from(s: Any, w: Any) -> Any:
    return np.concatenate([w[:1] * 0 + s[:1], w[1:2], w[2:] * 0 + s[-1:]])


STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "so = Expand(s, h)": lambda s, w: np.broadcast_to(s, w.shape),
    "so = Add(s, w)": np.add,
    "so = Where(m, s, w)": _odd_rows_from,
    "so = Max(w, s)": np.maximum,
}


@pytest.mark.parametrize("rows", ["1", "a"])
@pytest.mark.parametrize("step", STEPS)
def test_a_carried_size_becomes_larger(step: str, rows: str) -> None:
    rng = np.random.default_rng(8)
    proto = parsed(
        f"g (float[{rows}, 4] x, float[3, 4] w, int64 n) => (float[?, ?] y) "
        f"<int64[2] h = {{3, 4}}, bool[3, 1] m = {{1, 0, 1}}> {{ {LOOP.format(step)} }}"
    )
    executable = tilework.compile(proto)
    for trips, count in ((0, 1), (1, 1), (2, 1), (3, 1), (2, 3)):
        if count == 1 or rows == "a":
            x, w = (rng.integers(-9, 9, (k, 4)).astype(F32) for k in (count, 3))
            wanted: Any = x
            for _ in range(trips):
                wanted = STEPS[step](wanted, w)
            (got,) = executable(x=x, w=w, n=np.array(trips))
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("checked", [False, True])
def test_products_whose_stacks_are_measured(checked: bool) -> None:
    rng = np.random.default_rng(9)
    proto = parsed(
        "g (float[a, 2, 3] x, bool[a] p, float[4, 3, 2] w) => (float[?, ?, ?] z) "
        "{ c = Compress<axis = 0>(x, p) z = MatMul(c, w) }"
    )
    executable = tilework.compile(proto, checked=checked)
    x, w = rng.integers(-5, 5, (6, 2, 3)).astype(F32), rng.integers(-5, 5, (4, 3, 2)).astype(F32)
    for count in (1, 4):
        p = np.arange(6) < count
        (got,) = executable(x=x, p=p, w=w)
        np.testing.assert_array_equal(got, x[p] @ w)
    with pytest.raises(RunError, match="1803"):
        executable(x=x, p=np.arange(6) < 2, w=w)


def test_rows_added_to_a_product_are_measured() -> None:
    rng = np.random.default_rng(10)
    proto = parsed(
        "g (float[2, 3] x, float[3, 4] w, float[a, 4] v, bool[a] p) => (float[?, ?] z) "
        "{ c = Compress<axis = 0>(v, p) z = Gemm<beta = 2.0>(x, w, c) }"
    )
    executable = tilework.compile(proto)
    x, w, v = (rng.integers(-5, 5, s).astype(F32) for s in ((2, 3), (3, 4), (5, 4)))
    for count in (1, 2):
        p = np.arange(5) < count
        (got,) = executable(x=x, w=w, v=v, p=p)
        np.testing.assert_array_equal(got, x @ w + 2 * v[p])
    with pytest.raises(RunError, match="1803"):
        executable(x=x, w=w, v=v, p=np.arange(5) < 3)
