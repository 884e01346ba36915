"""Sizes that the call measures beside weights of fixed sizes: the operator's own check, in the call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import tilework
from tilework.errors import RunError

F32 = np.float32
HEAD = (
    '<ir_version: 10, opset_import: ["" : 21]> g (float[a] x) => (float[{ranks}] z) '
    "<float o = {{0}}, int64[2] around = {{0, 2}}, float[3] w3 = {{1, 2, 3}}, "
    "float[3, 3, 1] w331 = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}, float[1, 3, 3] w133 = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}, "
    "float[1, 3, 1] w131 = {{1, 2, 3}}> "
    "{{ p = Greater(x, o) c = Compress(x, p) u = Unsqueeze(c, around) t = Transpose<perm = [0, 2, 1]>(u) {nodes} }}"
)


@pytest.mark.parametrize(
    ("nodes", "rank"),
    [
        ("z = Conv(u, w331)", 3),
        ("z = ConvTranspose(u, w331)", 3),
        ("z = GRU<hidden_size = 1>(t, w133, w131)", 4),
        ("z = RNN<hidden_size = 3>(t, w133, w133)", 4),
        ("z = GroupNormalization<num_groups = 3>(u, w3, w3)", 3),
        ("z = InstanceNormalization(u, w3, w3)", 3),
    ],
)
def test_as_many_channels_as_weights(nodes: str, rank: int) -> None:
    proto = parser.parse_model(HEAD.format(nodes=nodes, ranks=", ".join("?" * rank)))
    executable = tilework.compile(proto, checked=True)
    for x in ([1, -1, 2, 3], [0.5, 0.25, 2]):
        expected: Any = ReferenceEvaluator(proto).run(None, {"x": np.array(x, F32)})  # pyright: ignore[reportUnknownMemberType]
        (got,) = executable(x=np.array(x, F32))
        assert got.shape == expected[0].shape
        np.testing.assert_allclose(got, expected[0], rtol=1e-4, atol=1e-5)
    for x in ([1, -1, 2], [1], [1, 2, 3, 4], [-1]):
        with pytest.raises(RunError, match=r"1803.*needs (chosen = 3|3 = chosen)"):
            executable(x=np.array(x, F32))


@pytest.mark.parametrize("measured", [False, True])
def test_parts_of_which_the_last_are_smaller(measured: bool) -> None:
    made = "p = Greater(x, o) c = Compress(x, p)" if measured else "c = Identity(x)"
    proto = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[a] x) => (float[?] u, float[?] v, float[?] w) '
        f"<float o = {{-1}}> {{ {made} u, v, w = Split<num_outputs = 3>(c) }}"
    )
    executable = tilework.compile(proto, checked=True)
    for count in range(8):
        x = np.arange(count, dtype=F32)
        chunk = -(-count // 3)
        for got, start in zip(executable(x=x), (0, chunk, 2 * chunk), strict=True):
            np.testing.assert_array_equal(got, x[start : start + chunk])


@pytest.mark.parametrize("measured", [False, True])
def test_parts_that_are_equal(measured: bool) -> None:
    made = "p = Greater(x, o) c = Compress(x, p)" if measured else "c = Identity(x)"
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 13]> g (float[a] x) => (float[?] u, float[?] v) '
        f"<float o = {{-1}}> {{ {made} u, v = Split(c) }}"
    )
    executable = tilework.compile(proto)
    for count in (0, 2, 6):
        x = np.arange(count, dtype=F32)
        for got, wanted in zip(executable(x=x), np.split(x, 2), strict=True):
            np.testing.assert_array_equal(got, wanted)
    with pytest.raises(tilework.TileworkError):
        executable(x=np.arange(3, dtype=F32))


@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose"])
def test_weights_whose_channels_are_measured(operator: str) -> None:
    axis = 1 if operator == "Conv" else 0
    shape = "2, a, 1" if operator == "Conv" else "a, 2, 1"
    proto = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> g (float[1, 3, n] x, float[{shape}] w, bool[a] p) '
        f"=> (float[?, ?, ?] z) {{ c = Compress<axis = {axis}>(w, p) z = {operator}(x, c) }}"
    )
    executable = tilework.compile(proto, checked=True)
    random = np.random.default_rng(1)
    x, w = (random.integers(-9, 9, s).astype(F32) for s in ((1, 3, 4), (2, 5, 1) if axis else (5, 2, 1)))
    mask = np.array([1, 0, 1, 1, 0], np.bool_)
    kept = w.compress(mask, axis)[..., 0]
    np.testing.assert_array_equal(executable(x=x, w=w, p=mask)[0], (kept if axis else kept.T) @ x)
    with pytest.raises(RunError, match="1803"):
        executable(x=x, w=w, p=np.array([1, 0, 1, 1, 1], np.bool_))
