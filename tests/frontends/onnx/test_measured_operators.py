# pyright: reportUnknownMemberType=false
"""Operators along a dimension that data measure, down to no elements, against onnx.reference or plain numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

import tilework
from tests.frontends.onnx.models import model
from tests.frontends.onnx.test_data_sizes import node
from tilework.errors import RunError

F32 = np.float32


def measured(
    operator: str,
    shape: tuple[int, ...],
    axis: int,
    constants: dict[str, Any],
    attributes: dict[str, Any],
    count: int = 1,
) -> ModelProto:
    """An operator over `x` of which `p` chooses slices along an axis, with constants as its other inputs."""
    results = [f"z{place}" for place in range(count)]
    nodes = [
        node("Compress", "x p", "y", axis=axis),
        node(operator, " ".join(["y", *constants]), " ".join(results), **attributes),
    ]
    inputs: dict[str, Any] = {"x": (F32, shape), "p": (np.bool_, (shape[axis],))}
    return model(nodes, inputs, results, constants, opset=20)


def numbers(*shape: int) -> Any:
    return np.random.default_rng([7, *shape]).integers(-3, 4, shape).astype(F32)


def ints(*entries: int) -> Any:
    return np.array(entries, np.int64)


CASES: list[tuple[str, tuple[int, ...], int, dict[str, Any], dict[str, Any]]] = [
    ("STFT", (3, 20, 1), 0, {"step": np.int64(4), "window": numbers(8)}, {}),
    ("STFT", (2, 24, 1), 1, {"step": np.int64(4), "window": numbers(8)}, {}),
    ("Col2Im", (3, 8, 9), 0, {"image": ints(4, 4), "block": ints(2, 2)}, {}),
    ("Softmax", (4, 5), 1, {}, {"axis": 1}),
    ("Transpose", (4, 5), 0, {}, {}),
    ("CumSum", (4, 5), 1, {"axis": np.int64(1)}, {"reverse": 1}),
    ("Trilu", (4, 5), 1, {}, {"upper": 0}),
    ("Gemm", (4, 5), 0, {"w": numbers(5, 3)}, {}),
    ("Pad", (4, 5), 0, {"pads": ints(1, 0, 0, 2)}, {}),
    ("Flatten", (4, 5, 2), 1, {}, {"axis": 2}),
    ("Concat", (4, 5), 0, {"w": numbers(2, 5)}, {"axis": 0}),
    ("Slice", (4, 5), 1, {"starts": ints(-1), "ends": ints(-9), "axes": ints(1), "steps": ints(-2)}, {}),
    ("Conv", (2, 4, 6, 5), 2, {"w": numbers(3, 4, 3, 3), "b": numbers(3)}, {"pads": [1, 1, 1, 1]}),
    ("DepthToSpace", (3, 8, 2, 2), 0, {}, {"blocksize": 2}),
    ("Tile", (4, 5), 0, {"repeats": ints(2, 3)}, {}),
]


@pytest.mark.parametrize(("operator", "shape", "axis", "constants", "attributes"), CASES)
def test_an_operator_along_a_measured_dimension(
    operator: str, shape: tuple[int, ...], axis: int, constants: dict[str, Any], attributes: dict[str, Any]
) -> None:
    proto = measured(operator, shape, axis, constants, attributes)
    executable, reference = tilework.compile(proto, checked=True), ReferenceEvaluator(proto)
    x = numbers(*shape)
    for count in (shape[axis], shape[axis] - 1):
        given = {"x": x, "p": np.arange(shape[axis]) < count}
        results: Any = reference.run(None, given)
        for found, wanted in zip(executable(**given), results, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_deformed_convolutions_of_a_measured_batch() -> None:
    """With offsets of 0 it is a convolution."""
    w = numbers(3, 2, 2, 2)
    nodes = [
        node("Compress", "x p", "y", axis=0), node("Compress", "o q", "offsets", axis=0),
        node("DeformConv", "y w offsets", "z", kernel_shape=[2, 2]), node("Conv", "y w", "plain"),
    ]  # fmt: skip
    inputs: dict[str, Any] = {
        "x": (F32, (3, 2, 4, 4)),
        "o": (F32, (3, 8, 3, 3)),
        "p": (np.bool_, (3,)),
        "q": (np.bool_, (3,)),
    }
    executable = tilework.compile(model(nodes, inputs, ["z", "plain"], {"w": w}, opset=20), checked=True)
    for count in (3, 2, 1, 0):
        given = {"x": numbers(3, 2, 4, 4), "o": np.zeros((3, 8, 3, 3), F32), "p": np.arange(3) < count}
        found, wanted = executable(**given, q=given["p"])
        assert found.shape == (count, 3, 3, 3)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
        with pytest.raises(RunError, match="1803"):
            executable(**given, q=np.arange(3) < (count + 1) % 4)


PAIRS: list[tuple[str, tuple[int, ...], Any, str, dict[str, Any]]] = [
    ("GridSample", (3, 2, 4, 4), (numbers(3, 3, 3, 2) / 3).astype(F32), "a b", {}),
    ("MaxUnpool", (3, 1, 2, 2), np.tile(ints(0, 3, 8, 15).reshape(1, 1, 2, 2), (3, 1, 1, 1)), "a b",
     {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("GatherND", (3, 4, 2), ints(1, 0, 2).reshape(3, 1), "a b", {"batch_dims": 1}),
    ("ScatterND", (3, 2), ints(0, 2, 1).reshape(3, 1), "w b a", {}),
    ("GatherElements", (3, 4), ints(0, 0, 0, 0, 0, 0).reshape(3, 2), "a b", {"axis": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "shape", "other", "order", "attributes"), PAIRS)
def test_two_operands_measured_apart(
    operator: str, shape: tuple[int, ...], other: Any, order: str, attributes: dict[str, Any]
) -> None:
    """Their sizes are known to be equal only when the model runs, and are compared there."""
    nodes = [
        node("Compress", "x p", "a", axis=0), node("Compress", "o q", "b", axis=0),
        node(operator, order, "z", **attributes),
    ]  # fmt: skip
    inputs: dict[str, Any] = {"x": (F32, shape), "o": (other.dtype, other.shape)}
    inputs |= {"p": (np.bool_, (3,)), "q": (np.bool_, (3,))}
    proto = model(nodes, inputs, ["z"], {"w": numbers(4, 2)}, opset=20)
    executable, reference = tilework.compile(proto, checked=True), ReferenceEvaluator(proto)
    for count in (3, 2, 1):
        given = {"x": numbers(*shape), "o": other, "p": np.arange(3) < count, "q": np.arange(3) < count}
        results: Any = reference.run(None, given)
        (found,), (wanted,) = executable(**given), results
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
        if operator != "GatherElements":
            with pytest.raises(RunError, match="1803"):
                executable(**{**given, "q": np.arange(3) < (count + 1) % 4})


def test_a_hardmax_of_rows_that_may_be_empty() -> None:
    executable = tilework.compile(measured("Hardmax", (4, 5), 1, {}, {"axis": -1}), checked=True)
    x = np.array([[2, 5, 5, 1, 0], [-np.inf] * 5, [np.nan, 1, 2, 3, 4], [0] * 5], F32)
    for count in (5, 2, 1, 0):
        (found,) = executable(x=x, p=np.arange(5) < count)
        wanted = np.zeros((4, count), F32)
        if count:
            wanted[np.arange(4), np.argmax(x[:, :count], axis=1)] = 1
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("fixed", [False, True])
def test_a_transposed_convolution_of_an_image_without_rows(fixed: bool) -> None:
    """By ONNX's formula it has (0 - 1) x stride + kernel rows, which hold the bias."""
    w, b = numbers(2, 3, 3, 3), numbers(3)
    attributes = {"strides": [2, 2]}
    if fixed:
        proto = model(
            [node("ConvTranspose", "x w b", "z", **attributes)], {"x": (F32, (1, 2, 0, 4))}, ["z"], {"w": w, "b": b}
        )
        (found,) = tilework.compile(proto, checked=True)(np.zeros((1, 2, 0, 4), F32))
    else:
        executable = tilework.compile(
            measured("ConvTranspose", (1, 2, 3, 4), 2, {"w": w, "b": b}, attributes), checked=True
        )
        for count in (3, 1):
            assert executable(x=numbers(1, 2, 3, 4), p=np.arange(3) < count)[0].shape == (1, 3, 2 * count + 1, 9)
        (found,) = executable(x=numbers(1, 2, 3, 4), p=np.zeros(3, np.bool_))
    np.testing.assert_array_equal(found, np.broadcast_to(b[None, :, None, None], (1, 3, 1, 9)))
