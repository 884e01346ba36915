"""Sizes that data decide where there are no elements: beside an extent of 0, or themselves 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

import tilework
from tilework.dims import Dim, dim
from tilework.errors import RunError

F32, I64 = np.float32, np.int64
NUMBERS = (
    "int64 none = {0}, int64 two = {2}, int64[1] first = {0}, int64[1] all = {-1}, float nothing = {0}, bool yes = {1}"
)


def parsed(given: str, results: str, nodes: str, numbers: str = NUMBERS) -> ModelProto:
    return parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> g ({given}) => ({results}) <{numbers}> {{ {nodes} }}'
    )


def masks(length: int) -> list[Any]:
    mixed = np.arange(length) % 2 == 0
    return [mixed, np.zeros(length, np.bool_), np.ones(length, np.bool_)]


CHOSEN = "a = Compress<axis = 0>(x, m)"
GROWN = (
    "r = Loop(two, yes, a)<body = b (int64 i, bool c, float[?, ?] s) => (bool t, float[?, ?] u) "
    "{ t = Identity(c) u = Concat<axis = 0>(s, s) }> f = Reshape(r, all) v = Unique(f) z = Neg(r)"
)
BRANCHED = (
    "w = Cast<to = 6>(m) h = ReduceMax<keepdims = 0>(w) k = Cast<to = 9>(h) r = If(k)<then_branch = t () => "
    "(float[?, ?] u) { u = Transpose(a) }, else_branch = e () => (float[?, ?] v) { v = Identity(x) }> "
    "q = Greater(r, nothing) f = Reshape(q, all) z = Compress(r, f)"
)
LENGTH, COUNT = dim("length"), dim("count")


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        ("z = Unique(a)", (dim(0),)),
        ("z = Reshape(a, all)", (dim(0),)),
        ("f = Reshape(a, all) q = Greater(f, nothing) z = Compress(f, q)", (dim(0),)),
        ("f = Reshape(a, all) g = Neg(f) z = Concat<axis = 0>(g, f, g)", (dim(0),)),
        ("f = Flatten<axis = 0>(a) z = Transpose(f)", (dim(0), dim(1))),
        ("g = NonZero(a) z = Cast<to = 1>(g)", (dim(2), dim(0))),
        ("z = Concat<axis = 0>(a, x, a)", (COUNT * 2 + LENGTH, dim(0))),
        (GROWN, (COUNT * 4, dim(0))),
        (BRANCHED, (dim(0),)),
    ],
)
def test_measured_beside_an_extent_of_nothing(nodes: str, wanted: tuple[Dim, ...], checked: bool) -> None:
    result = f"float[{', '.join('?' * len(wanted))}] z"
    executable = tilework.compile(parsed("float[n, 0] x, bool[n] m", result, f"{CHOSEN} {nodes}"), checked=checked)
    for length in (3, 1, 0, 5):
        for mask in masks(length):
            sizes = {"length": length, "count": int(mask.sum())}
            (found,) = executable(x=np.zeros((length, 0), F32), m=mask)
            assert found.shape == tuple(int(extent.evaluate(sizes)) for extent in wanted)


def test_branches_of_which_none_has_elements() -> None:
    proto = parsed(
        "int64[0, 1] z, bool c", "int64[?] y",
        "q = If(c)<then_branch = t () => (int64[?, ?] u) { u, w = Split<axis = 1>(z, sizes) }, "
        "else_branch = e () => (int64[?, ?] v) { v = Transpose(z) }> g = Greater(q, none) r = Reshape(g, all) "
        "y = Compress(q, r)",
        "int64[2] sizes = {0, 1}, int64 none = {0}, int64[1] all = {-1}",
    )  # fmt: skip
    executable = tilework.compile(proto)
    for which in (True, False):
        (found,) = executable(z=np.zeros((0, 1), I64), c=np.array(which))
        assert found.shape == (0,)


SLICES = (
    "int64[1] one = {1}, int64[1] two = {2}, int64[1] zero = {0}, int64[1] back = {-1}, int64[1] two_back = {-2}, "
    "int64[1] end = {9223372036854775807}, int64[1] end32 = {2147483647}, int64[1] start = {-9223372036854775807}, "
    "bool yes = {1}, float[1] seven = {7}, int64 first = {0}"
)


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize(
    ("bounds", "part"),
    [
        ("one, end", slice(1, None)),
        ("one, end32", slice(1, None)),
        ("two, end", slice(2, None)),
        ("zero, back", slice(0, -1)),
        ("zero, two_back", slice(0, -2)),
        ("back, end", slice(-1, None)),
        ("two_back, back", slice(-2, -1)),
        ("one, back", slice(1, -1)),
        ("one, end, zero, two", slice(1, None, 2)),
        ("back, start, zero, two_back", slice(None, None, -2)),
    ],
)
def test_slices_of_what_data_chose(bounds: str, part: slice, checked: bool) -> None:
    """Also where it has no elements."""
    given = bounds if bounds.count(",") > 1 else f"{bounds}, zero"
    proto = parsed("float[n] x, bool[n] m", "float[?] z", f"a = Compress(x, m) z = Slice(a, {given})", SLICES)
    executable = tilework.compile(proto, checked=checked)
    for length in (3, 1, 0, 8):
        x = np.arange(length, dtype=F32)
        for mask in masks(length):
            np.testing.assert_array_equal(executable(x=x, m=mask)[0], x[mask][part])


def test_neighbours_of_what_data_chose() -> None:
    for one, other in (("one, end", "zero, back"), ("two, end", "zero, two_back")):
        nodes = f"a = Compress(x, m) b = Slice(a, {one}, zero) c = Slice(a, {other}, zero) z = Sub(b, c)"
        proto = parsed("float[n] x, bool[n] m", "float[?] z", nodes, SLICES)
        executable = tilework.compile(proto)
        for length in (9, 3, 1, 0):
            x = np.arange(length, dtype=F32) ** 2
            for mask in masks(length):
                chosen, apart = x[mask], 1 if one.startswith("one") else 2
                wanted = chosen[apart:] - chosen[: max(0, len(chosen) - apart)]
                np.testing.assert_array_equal(executable(x=x, m=mask)[0], wanted)


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize(("bounds", "first"), [("one, end", True), ("zero, back", False)])
def test_state_that_a_loop_shortens_to_nothing(bounds: str, first: bool, checked: bool) -> None:
    loop = (
        "z = Loop(k, yes, x)<body = b (int64 i, bool c, float[?] s) => (bool t, float[?] u) "
        f"{{ t = Identity(c) u = Slice(s, {bounds}, zero) }}>"
    )
    executable = tilework.compile(parsed("float[n] x, int64 k", "float[?] z", loop, SLICES), checked=checked)
    for length in (3, 0, 1):
        x = np.arange(length, dtype=F32)
        for count in (0, 1, 3, 5):
            left = max(0, length - count)
            (found,) = executable(x=x, k=np.array(count))
            np.testing.assert_array_equal(found, x[length - left :] if first else x[:left])


NEEDS: list[tuple[str, str, int, Callable[[Any], Any]]] = [
    ("float[1] u", "u = Gather(a, zero)", 1, lambda chosen: chosen[:1]),
    ("float[1] u", "f = Gather(a, first) u = Unsqueeze(f, zero)", 1, lambda chosen: chosen[:1]),
    ("float[1] u", "f = GatherND(a, zero) u = Unsqueeze(f, zero)", 1, lambda chosen: chosen[:1]),
    ("float[?] u", "w = Unsqueeze(a, both) p = MaxPool<kernel_shape = [3]>(w) u = Squeeze(p, both)", 3,
     lambda chosen: np.maximum(np.maximum(chosen[:-2], chosen[1:-1]), chosen[2:])),
    ("float[?] u", "w = Unsqueeze(a, both) p = Conv(w, k) u = Squeeze(p, both)", 3,
     lambda chosen: chosen[:-2] + 2 * chosen[1:-1] + 3 * chosen[2:]),
]  # fmt: skip


@pytest.mark.parametrize(("result", "nodes", "least", "wanted"), NEEDS)
def test_what_needs_elements_in_a_branch_that_runs_only_with_them(
    result: str, nodes: str, least: int, wanted: Callable[[Any], Any]
) -> None:
    """Where a size is measured it is not known whether what needs elements runs; where it does, it says so."""
    numbers = f"{SLICES}, int64[2] both = {{0, 1}}, float[1, 1, 3] k = {{1, 2, 3}}, int64[1] few = {{{least - 1}}}"
    guarded = (
        "a = Compress(x, m) s = Shape(a) g = Greater(s, few) q = Squeeze(g) "
        f"z = If(q)<then_branch = t () => ({result}) {{ {nodes} }}, "
        "else_branch = e () => (float[1] v) { v = Identity(seven) }>"
    )
    executable = tilework.compile(parsed("float[n] x, bool[n] m", "float[?] z", guarded, numbers))
    bare = tilework.compile(parsed("float[n] x, bool[n] m", "float[?] u", f"a = Compress(x, m) {nodes}", numbers))
    for length in (6, 4, 2, 1, 0):
        x = np.arange(length, dtype=F32) ** 2
        for mask in masks(length):
            chosen = x[mask]
            enough = len(chosen) >= least
            held = wanted(chosen) if enough else np.array([7], F32)
            np.testing.assert_array_equal(executable(x=x, m=mask)[0], held)
            if enough:
                np.testing.assert_array_equal(bare(x=x, m=mask)[0], held)
            elif len(chosen) < least - 1 or least == 1:  # pooling takes a window of which one element is missing
                with pytest.raises(RunError, match=r"180[13]"):
                    bare(x=x, m=mask)
