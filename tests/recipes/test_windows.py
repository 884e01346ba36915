"""Windows that slide along rows and columns of images whose channels lie next to each other, and by two along rows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tilework
from tilework import dtypes
from tilework.ops.builder import GraphBuilder
from tilework.runtime.context import ContextOptions

Array = np.ndarray[Any, np.dtype[Any]]


def compiled(weights: Array, size: tuple[int, int], pad: int, context: tilework.Context, *, checked: bool) -> Any:
    """A depthwise convolution of (1, y, x, channels); `weights`: (y, x, 1, channels)."""
    channels = weights.shape[3]
    builder = GraphBuilder("windows", [])
    x = builder.input("x", dtypes.float32, 1, *size, channels)
    made = builder.apply_one(
        "convolution", x, builder.constant(weights, "w"), window_strides=(1, 1), padding=((pad, pad),) * 2,
        feature_group_count=channels, input_dimensions=(0, 3, 1, 2), kernel_dimensions=(3, 2, 0, 1),
        output_dimensions=(0, 3, 1, 2),
    )  # fmt: skip
    return tilework.compile(builder.build([made]), context=context, checked=checked)


def wanted(image: Array, weights: Array, pad: int) -> Array:
    rows, columns = (1 + image.shape[d] + 2 * pad - weights.shape[d - 1] for d in (1, 2))
    wide = np.pad(image.astype(np.float64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    total = np.zeros((1, rows, columns, image.shape[3]))
    for y, x in itertools.product(range(weights.shape[0]), range(weights.shape[1])):
        total += wide[:, y : y + rows, x : x + columns] * weights[y, x]
    return total


@pytest.mark.parametrize("taps", [3, 5])
@pytest.mark.parametrize(
    "shape", [(14, 14, 256), (2, 4, 1000), (6, 28, 127), (7, 33, 130), (16, 64, 66), (4, 4, 1100), (8, 20, 260)]
)
def test_rows_beyond_the_first_cache(shape: tuple[int, int, int], taps: int) -> None:
    """Small integers: sums of their products are exact in any order, and every element is alike for all threads."""
    random = np.random.default_rng(shape[0] * taps)
    weights = random.integers(-3, 4, (taps, taps, 1, shape[2])).astype(np.float32)
    image = random.integers(-3, 4, (1, *shape)).astype(np.float32)
    for threads, checked in ((1, False), (2, True), (3, False), (8, False)):
        with tilework.Context(ContextOptions(threads=threads)) as context:
            found = compiled(weights, shape[:2], taps // 2, context, checked=checked)(image)[0]
        np.testing.assert_array_equal(found, wanted(image, weights, taps // 2))


def test_two_rows_a_pass_where_rows_are_long() -> None:
    def trace(shape: tuple[int, int, int]) -> str:
        weights = np.ones((3, 3, 1, shape[2]), np.float32)
        with tilework.Context(ContextOptions(threads=1)) as context:
            (region,) = compiled(weights, shape[:2], 1, context, checked=False).explain().regions
        return region.trace

    assert "factor=2," in trace((16, 16, 256))
    assert "factor=2," not in trace((16, 16, 16))


def test_padding_stays_out_of_two_rows() -> None:
    """An infinite weight makes no number of a tap that is not there; NaN stays in the windows that hold it."""
    shape = (6, 12, 321)
    random = np.random.default_rng(3)
    weights = random.integers(1, 4, (3, 3, 1, shape[2])).astype(np.float32)
    weights[0, 1], weights[2, 2] = np.inf, -np.inf
    image = random.integers(1, 4, (1, *shape)).astype(np.float32)
    image[0, 4, 11, 5] = np.nan
    with tilework.Context(ContextOptions(threads=2)) as context:
        found = compiled(weights, shape[:2], 1, context, checked=True)(image)[0]
    exists = np.pad(np.ones(shape[:2], bool), 1)
    wide = np.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0)))
    total = np.zeros((1, *shape), np.float32)
    with np.errstate(invalid="ignore"):
        for y, x in itertools.product(range(3), range(3)):
            here = exists[y : y + shape[0], x : x + shape[1], None]
            total += np.where(here, wide[:, y : y + shape[0], x : x + shape[1]] * weights[y, x], 0)
    np.testing.assert_array_equal(found, total)


@pytest.mark.parametrize(("taps", "stride", "dilation"), [*itertools.product((3, 5), (2, 3), (1, 2))])
def test_strided_windows_of_small_images(taps: int, stride: int, dilation: int) -> None:
    """Channels first, columns that are no whole vectors, and an image that ends where its memory does."""
    random = np.random.default_rng(taps + 10 * stride)
    pad = dilation * (taps // 2)
    for size in ((7, 7), (14, 14), (15, 29), (28, 56), (1, 3), (9, 1)):
        weights = random.integers(-3, 4, (3, 1, taps, taps)).astype(np.float32)
        node = helper.make_node(
            "Conv", ["x", "w"], ["y"], strides=[stride] * 2, pads=[pad] * 4, dilations=[dilation] * 2, group=3
        )
        graph = helper.make_graph(
            [node],
            "strided",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, *size])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, None, None])],
            [numpy_helper.from_array(weights, "w")],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        image = random.integers(-3, 4, (1, 3, *size)).astype(np.float32)
        evaluator: Any = ReferenceEvaluator(model)
        for checked in (False, True):
            with tilework.Context(ContextOptions(threads=2)) as context:
                found = tilework.compile(model, context=context, checked=checked)(image)[0]
            np.testing.assert_array_equal(found, evaluator.run(None, {"x": image})[0])
