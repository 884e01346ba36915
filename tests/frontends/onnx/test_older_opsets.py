"""What operators meant in older versions of the operator set, against plain numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.frontends.onnx.models import assert_close, codes_of, model, one_node, run


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(20)


def softmax(values: Any, axis: int) -> Any:
    powers = np.exp(values - values.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_softmax_was_over_everything_from_the_axis_on(random: np.random.Generator, axis: int) -> None:
    x = random.standard_normal((2, 3, 4)).astype(np.float32)
    if axis == 3:
        expected = np.ones_like(x)  # each element is a row of its own
    else:
        start = axis % 3
        flat = x.reshape(int(np.prod(x.shape[:start])), -1)
        expected = softmax(flat, 1).reshape(x.shape)
    for symbolic in (False, True):
        assert_close(run(one_node("Softmax", {"x": x}, opset=11, symbolic=symbolic, axis=axis), {"x": x}), [expected])


def test_softmax_axis_defaults(random: np.random.Generator) -> None:
    x = random.standard_normal((2, 3, 4)).astype(np.float32)
    old = softmax(x.reshape(2, 12), 1).reshape(x.shape)
    assert_close(run(one_node("Softmax", {"x": x}, opset=12), {"x": x}), [old])
    assert_close(run(one_node("Softmax", {"x": x}, opset=13), {"x": x}), [softmax(x, 2)])
    assert_close(run(one_node("LogSoftmax", {"x": x}, opset=12), {"x": x}), [np.log(old)])


def test_clip_bounds_were_attributes(random: np.random.Generator) -> None:
    x = random.integers(-5, 6, (3, 4)).astype(np.float32)
    proto = one_node("Clip", {"x": x}, opset=6 + 1, min=-1.0, max=2.0)
    assert_close(run(proto, {"x": x}), [np.clip(x, -1, 2)])
    assert_close(run(one_node("Clip", {"x": x}, opset=10, max=2.0), {"x": x}), [np.minimum(x, 2)])
    assert_close(run(one_node("Clip", {"x": x}, opset=10), {"x": x}), [x])


def test_clip_keeps_nan_and_leaves_out_infinite_bounds() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    proto = one_node("Clip", {"x": x}, {"low": np.float32(-np.inf), "high": np.float32(3)}, opset=13)
    assert_close(run(proto, {"x": x}), [np.array([np.nan, 3, -np.inf, 1], np.float32)])


def test_slice_positions_were_attributes(random: np.random.Generator) -> None:
    x = random.standard_normal((5, 6)).astype(np.float32)
    proto = one_node("Slice", {"x": x}, opset=9, starts=[1, -3], ends=[2**31 - 1, -1], axes=[0, 1])
    assert_close(run(proto, {"x": x}), [x[1:, -3:-1]])


def test_squeeze_unsqueeze_split_axes_were_attributes(random: np.random.Generator) -> None:
    x = random.standard_normal((2, 1, 6)).astype(np.float32)
    nodes = [
        helper.make_node("Squeeze", ["x"], ["a"], axes=[1]),
        helper.make_node("Unsqueeze", ["a"], ["b"], axes=[0, 3]),
        helper.make_node("Split", ["a"], ["c", "d"], axis=1, split=[2, 4]),
        helper.make_node("Split", ["a"], ["e", "f", "g"], axis=1),
    ]
    proto = model(nodes, {"x": (np.float32, ["n", 1, 6])}, ["a", "b", "c", "d", "e", "f", "g"], opset=11)
    a = x[:, 0]
    assert_close(run(proto, {"x": x}), [a, a[None, :, :, None], a[:, :2], a[:, 2:], *np.split(a, 3, 1)])


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_reduce_axes_moved_from_attribute_to_input(random: np.random.Generator, opset: int) -> None:
    x = random.integers(-9, 10, (2, 3, 4)).astype(np.float32)
    functions: list[tuple[str, Any, int]] = [
        ("ReduceSum", np.sum, 13), ("ReduceMax", np.max, 18), ("ReduceMean", np.mean, 18),
    ]  # fmt: skip
    for operator, function, since in functions:
        if opset >= since:
            proto = one_node(operator, {"x": x}, {"axes": np.array([-1, 0])}, opset=opset, keepdims=0)
        else:
            proto = one_node(operator, {"x": x}, opset=opset, axes=[-1, 0], keepdims=0)
        assert_close(run(proto, {"x": x}), [function(x, axis=(0, 2))])
        assert_close(run(one_node(operator, {"x": x}, opset=opset), {"x": x}), [function(x, keepdims=True)])


def test_empty_axes_can_mean_nothing_is_reduced(random: np.random.Generator) -> None:
    x = random.standard_normal((2, 3)).astype(np.float32)
    proto = one_node("ReduceSum", {"x": x}, opset=13, noop_with_empty_axes=1)
    assert_close(run(proto, {"x": x}), [x])


def test_pad_was_given_by_attributes(random: np.random.Generator) -> None:
    x = random.standard_normal((2, 3)).astype(np.float32)
    proto = one_node("Pad", {"x": x}, opset=10, pads=[0, 1, 2, -1], value=7.0)
    expected = np.pad(x, [(0, 2), (1, 0)], constant_values=7)[:, :-1]
    assert_close(run(proto, {"x": x}), [expected])


def test_dropout_and_batch_normalisation_of_version_7(random: np.random.Generator) -> None:
    x = random.standard_normal((2, 3, 4)).astype(np.float32)
    assert_close(run(one_node("Dropout", {"x": x}, opset=7, outputs=2), {"x": x}), [x, np.ones_like(x)])
    assert_close(run(one_node("Dropout", {"x": x}, opset=12, outputs=2), {"x": x}), [x, np.ones(x.shape, bool)])
    scale, bias, mean, spread = (random.standard_normal(3).astype(np.float32) for _ in range(4))
    constants = {"s": scale, "b": bias, "m": mean, "v": np.abs(spread) + 1}
    columns = {name: array[:, None] for name, array in constants.items()}
    expected = (x - columns["m"]) / np.sqrt(columns["v"] + 1e-5) * columns["s"] + columns["b"]
    for opset in (7, 9, 15):
        assert_close(run(one_node("BatchNormalization", {"x": x}, constants, opset), {"x": x}), [expected])


def test_versions_outside_the_range_are_refused(random: np.random.Generator) -> None:
    x = random.standard_normal(3).astype(np.float32)
    for opset in (-1, 0, 1000, 2**31):
        assert 1106 in codes_of(one_node("Relu", {"x": x}, opset=opset))


def test_an_operator_is_looked_up_in_the_models_version(random: np.random.Generator) -> None:
    x = random.standard_normal((1, 3)).astype(np.float32)
    assert codes_of(one_node("Gelu", {"x": x}, opset=19)) == {1107}
    run(one_node("Gelu", {"x": x}, opset=20), {"x": x})
    assert 1108 in codes_of(one_node("Squeeze", {"x": x}, opset=13, axes=[0]))  # an input since 13
