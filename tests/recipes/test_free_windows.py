"""Convolutions and products with free extents: whole tiles, broken ones, and what is in between, in few versions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tilework
from tilework import dtypes
from tilework.compiler.compile import lower_graph
from tilework.compiler.options import CompileOptions
from tilework.frontends.compile import load_graph
from tilework.ops.builder import GraphBuilder
from tilework.ops.interpret import interpret
from tilework.runtime.context import ContextOptions

Array = np.ndarray[Any, np.dtype[Any]]


def convolution(weights: Array, stride: int, groups: int) -> onnx.ModelProto:
    """A convolution with free images and equal padding, and a bias of 1, 2, ..."""
    features, _, taps, _ = weights.shape
    given = helper.make_node(
        "Conv", ["x", "w", "b"], ["y"], strides=[stride, stride], pads=[taps // 2] * 4, group=groups
    )
    bias = np.arange(1, features + 1, dtype=np.float32)
    graph = helper.make_graph(
        [given],
        "windows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", weights.shape[1] * groups, "h", "w0"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", features, None, None])],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(bias, "b")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def compare(model: onnx.ModelProto, images: list[Array]) -> None:
    evaluator: Any = ReferenceEvaluator(model)
    for threads, checked in ((1, False), (3, False), (2, True)):
        with tilework.Context(ContextOptions(threads=threads)) as context:
            compiled = tilework.compile(model, context=context, checked=checked)
            for image in images:
                np.testing.assert_array_equal(compiled(image)[0], evaluator.run(None, {"x": image})[0])


def images(random: np.random.Generator, channels: int) -> list[Array]:
    """Small integers: sums of their products are exact in any order."""
    sizes = [(1, 1), (2, 9), (7, 7), (8, 8), (10, 16), (11, 17), (21, 33), (33, 5)]
    return [random.integers(-3, 4, (2, channels, *size)).astype(np.float32) for size in sizes]


@pytest.mark.parametrize(("taps", "stride"), [*itertools.product((3, 5), (1, 2))])
def test_windows_of_free_images(taps: int, stride: int) -> None:
    random = np.random.default_rng(taps + 10 * stride)
    weights = random.integers(-3, 4, (5, 1, taps, taps)).astype(np.float32)
    compare(convolution(weights, stride, 5), images(random, 5))


@pytest.mark.parametrize("features", [3, 16, 33])
def test_sums_of_free_images(features: int) -> None:
    random = np.random.default_rng(features)
    weights = random.integers(-3, 4, (features, 4, 3, 3)).astype(np.float32)
    compare(convolution(weights, 1, 1), images(random, 4))


@pytest.mark.parametrize("stride", [1, 2])
def test_padding_stays_out_of_the_sums(stride: int) -> None:
    """An infinite weight makes no number of a tap that is not there; one image's NaN stays with its neighbours."""
    random = np.random.default_rng(stride)
    weights = random.integers(1, 4, (3, 1, 3, 3)).astype(np.float32)
    weights[0, 0, 0, 0], weights[1, 0, 2, 2], weights[2, 0, 1, 0] = np.inf, -np.inf, np.inf
    compiled = tilework.compile(convolution(weights, stride, 3))
    for size in ((1, 1), (9, 8), (10, 17), (21, 33)):
        image = random.integers(1, 4, (1, 3, *size)).astype(np.float32)
        image[0, :, size[0] // 2, size[1] - 1] = np.nan
        padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
        exists = np.pad(np.ones(size, bool), 1)
        high, wide = ((extent - 1) // stride + 1 for extent in size)
        wanted = np.zeros((1, 3, high, wide), np.float32) + np.arange(1, 4, dtype=np.float32)[:, None, None]
        for i, j in itertools.product(range(3), range(3)):
            rows, columns = (slice(k, k + stride * (many - 1) + 1, stride) for k, many in ((i, high), (j, wide)))
            there = exists[rows, columns]
            with np.errstate(invalid="ignore"):
                wanted += np.where(there, padded[:, :, rows, columns] * weights[:, 0, i, j][:, None, None], 0)
        np.testing.assert_array_equal(compiled(image)[0], wanted)


def test_few_versions() -> None:
    """Four of a tile of 30 products, each with and without streaming, where versions of versions were 24."""
    model = convolution(np.ones((8, 1, 3, 3), np.float32), 1, 8)
    kernels = lower_graph(load_graph(model), CompileOptions()).kernels
    text = max((kernel.kernel.ir for kernel in kernels), key=len)
    assert text.count("@llvm.fma") < 300


def test_threads_share_a_free_image_of_a_free_batch() -> None:
    """A batch may be 1: its loop alone would be one thread's, so it is fused with those inside it."""
    weights = np.ones((8, 8, 1, 1), np.float32)
    (kernel,) = lower_graph(load_graph(convolution(weights, 1, 1)), CompileOptions()).kernels
    steps = [str(step) for step in kernel.schedule.trace]
    (shared,) = [step for step in steps if step.startswith("parallel")]
    assert any(step.startswith("fuse") for step in steps)
    assert "i0_" in shared
    sizes = ((1, 40, 9), (0, 3, 3), (3, 1, 1))
    compare(convolution(weights, 1, 1), [np.ones((n, 8, h, w), np.float32) for n, h, w in sizes])


@pytest.mark.parametrize(("channels", "unrolled"), [(1, False), (2, True), (3, True), (5, False)])
def test_images_of_few_channels_take_them_in_one_trip(channels: int, unrolled: bool) -> None:
    """A stem: the channels, last in memory, are the innermost loop of the sum."""
    random = np.random.default_rng(channels)
    weights = random.integers(-3, 4, (5, 5, channels, 20)).astype(np.float32)
    builder = GraphBuilder("stem")
    x, w = builder.input("x", dtypes.float32, 2, 21, 24, channels), builder.constant(weights, "w")
    made = builder.apply_one(
        "convolution", x, w, window_strides=(2, 2), padding=((2, 2), (2, 2)),
        input_dimensions=(0, 3, 1, 2), kernel_dimensions=(3, 2, 0, 1), output_dimensions=(0, 3, 1, 2),
    )  # fmt: skip
    graph = builder.build([made])
    image = random.integers(-3, 4, (2, 21, 24, channels)).astype(np.float32)
    (wanted,) = interpret(graph, {"x": image})
    for threads, checked in ((1, False), (3, False), (2, True)):
        with tilework.Context(ContextOptions(threads=threads)) as context:
            compiled = tilework.compile(graph, context=context, checked=checked)
            np.testing.assert_array_equal(compiled(image)[0], wanted)
            (region,) = compiled.explain().regions
            assert ("unroll(loop='v0.k0')" in region.trace) == unrolled
