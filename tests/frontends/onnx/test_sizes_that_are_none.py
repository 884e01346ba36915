"""Sizes that data decide where there are no elements: beside an extent of 0, or themselves 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

import tilework
from tilework.dims import Dim, dim

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
