"""Random numbers: their distributions, and what makes them equal or different."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import tilework
from tests.frontends.onnx.models import codes_of, graph, model, one_node

TYPES = [
    (TensorProto.FLOAT, np.float32), (TensorProto.DOUBLE, np.float64), (TensorProto.FLOAT16, np.float16),
    (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
]  # fmt: skip


def drawn(operator: str, like: Any = None, **attributes: Any) -> Any:
    inputs = {} if like is None else {"x": like}
    return tilework.compile(one_node(operator, inputs, opset=22, **attributes))(*inputs.values())[0]


@pytest.mark.parametrize(("number", "kind"), TYPES, ids=lambda v: getattr(v, "__name__", ""))
def test_uniform(number: int, kind: Any) -> None:
    found = drawn("RandomUniform", shape=[50, 40], low=-1.0, high=3.0, seed=2.0, dtype=number)
    assert found.shape == (50, 40)
    assert found.dtype == kind
    wide = np.sort(found.astype(np.float64).reshape(-1))
    assert wide[0] >= -1
    assert wide[-1] <= 3
    # Kolmogorov's bound for one in a thousand, and the step of the narrow types
    gap = np.abs((wide + 1) / 4 - (np.arange(2000) + 0.5) / 2000).max()
    assert gap < 1.95 / math.sqrt(2000) + (0.01 if found.dtype.itemsize == 2 else 0)


@pytest.mark.parametrize(("number", "kind"), TYPES, ids=lambda v: getattr(v, "__name__", ""))
def test_normal(number: int, kind: Any) -> None:
    found = drawn("RandomNormal", shape=[50, 40], mean=2.0, scale=3.0, seed=2.0, dtype=number)
    assert found.dtype == kind
    wide = np.sort((found.astype(np.float64).reshape(-1) - 2) / 3)
    below = np.array([(1 + math.erf(v / math.sqrt(2))) / 2 for v in wide])
    gap = np.abs(below - (np.arange(2000) + 0.5) / 2000).max()
    assert gap < 1.95 / math.sqrt(2000) + (0.01 if found.dtype.itemsize == 2 else 0)


def test_shapes_and_types_of_others() -> None:
    x = np.zeros((3, 0, 2), np.float16)
    for operator in ("RandomUniformLike", "RandomNormalLike"):
        assert drawn(operator, x).dtype == np.float16
        assert drawn(operator, x).shape == (3, 0, 2)
        assert drawn(operator, np.zeros(7, np.int32), dtype=TensorProto.DOUBLE).dtype == np.float64
        assert codes_of(one_node(operator, {"x": np.zeros(7, np.int32)}, opset=22)) == {1119}
        assert drawn(operator, np.float32(1)).shape == ()


def test_free_dims() -> None:
    x = np.zeros((5, 3), np.float32)
    compiled = tilework.compile(one_node("RandomUniformLike", {"x": x}, opset=22, symbolic=True, seed=1.0))
    (long,), (short,) = compiled(np.zeros((9, 3), np.float32)), compiled(x)
    np.testing.assert_array_equal(long[:5], short)
    assert compiled(np.zeros((0, 3), np.float32))[0].shape == (0, 3)


def test_seeds() -> None:
    fixed = {"shape": [100]}
    one = drawn("RandomUniform", seed=1.0, **fixed)
    np.testing.assert_array_equal(one, drawn("RandomUniform", seed=1.0, **fixed))
    for other in (drawn("RandomUniform", seed=2.0, **fixed), drawn("RandomUniform", **fixed)):
        assert not np.array_equal(one, other)
    assert not np.array_equal(drawn("RandomUniform", **fixed), drawn("RandomUniform", **fixed))


def test_every_call_draws_anew_without_a_seed() -> None:
    nodes = [helper.make_node("RandomUniform", [], [name], shape=[50]) for name in ("a", "b")]
    drawing = tilework.compile(model(nodes, {}, ["a", "b"]))
    rows = [row.tobytes() for _ in range(3) for row in drawing()]
    assert len(set(rows)) == 6
    (box,) = drawing.explain().black_boxes
    assert box.operator == "FreshKey"
    seeded = tilework.compile(one_node("RandomUniform", {}, shape=[50], seed=1.0))
    assert not seeded.explain().black_boxes
    np.testing.assert_array_equal(seeded()[0], seeded()[0])


@pytest.mark.parametrize("seeded", [False, True])
@pytest.mark.parametrize("counted", [False, True])
def test_every_trip_of_a_loop_draws_anew(seeded: bool, counted: bool) -> None:
    attributes: dict[str, Any] = {"seed": 1.0} if seeded else {}
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["row"], **attributes), helper.make_node("Identity", ["c"], ["go"]),
    ]  # fmt: skip
    scalars: dict[str, Any] = {"i": (np.int64, []), "c": (np.bool_, [])}
    body = graph(nodes, scalars, ["go", "row"])
    loop = helper.make_node("Loop", ["trips", "" if counted else "start"], ["y"], body=body)
    inputs: dict[str, Any] = {"x": (np.float32, [20])} | ({} if counted else {"start": (np.bool_, [])})
    compiled = tilework.compile(model([loop], inputs, ["y"], {"trips": np.array(4, np.int64)}))
    arguments = [np.zeros(20, np.float32), *([] if counted else [np.array(True)])]
    (one,), (other,) = compiled(*arguments), compiled(*arguments)
    assert one.shape == (4, 20)
    assert len({row.tobytes() for row in one}) == 4
    assert np.array_equal(one, other) == seeded


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_bernoulli(kind: Any) -> None:
    p = np.tile(np.array([0, 0.25, 0.75, 1, np.nan], kind), (4000, 1))
    found = drawn("Bernoulli", p, seed=3.0)
    assert found.dtype == kind
    assert np.isin(found, (0, 1)).all()
    np.testing.assert_allclose(found.astype(np.float64).mean(0), [0, 0.25, 0.75, 1, 0], atol=0.03)
    assert drawn("Bernoulli", p, dtype=TensorProto.BOOL).dtype == bool
    assert drawn("Bernoulli", p, dtype=TensorProto.INT8).dtype == np.int8


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_multinomial(kind: Any) -> None:
    weights = np.array([[1, 2, 7, 0], [0, 3, 0, 0]], np.float64)
    with np.errstate(divide="ignore"):
        x = (np.log(weights) + 5).astype(kind)
    found = drawn("Multinomial", x, sample_size=5000, seed=1.0)
    assert found.dtype == np.int32
    assert found.shape == (2, 5000)
    shares = [np.bincount(row, minlength=4) / 5000 for row in found]
    np.testing.assert_allclose(shares, weights / weights.sum(1, keepdims=True), atol=0.03)
    assert drawn("Multinomial", x, sample_size=2, dtype=TensorProto.INT64).dtype == np.int64
    assert drawn("Multinomial", x[:0], sample_size=2).shape == (0, 2)


def test_attributes_that_make_no_sense() -> None:
    x = np.zeros((2, 3), np.float32)
    bad = [
        one_node("RandomUniform", {}, opset=22, shape=[-1]),
        one_node("RandomNormal", {}, opset=22, shape=[2], scale=math.inf),
        one_node("RandomUniform", {}, opset=22, shape=[2**40, 2**40]),
        one_node("RandomUniform", {}, opset=22, shape=[2], dtype=TensorProto.INT32),
        one_node("Multinomial", {"x": x}, opset=22, sample_size=-1),
        one_node("Multinomial", {"x": x}, opset=22, dtype=TensorProto.FLOAT),
        one_node("Multinomial", {"x": x[0]}, opset=22),
    ]  # fmt: skip
    for proto in bad:
        assert codes_of(proto) <= {1108, 1119, 1124}
