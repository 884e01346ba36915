"""Pooling windows that lie in the padding altogether: the least value, NaN, or 0, as the operator has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import tilework
from tests.frontends.onnx.models import model

F32 = np.float32


def pool(operator: str, dtype: Any, outputs: list[str], **attributes: Any) -> Any:
    node = helper.make_node(operator, ["x"], outputs, kernel_shape=[2], pads=[3, 3], **attributes)
    return model([node], {"x": (dtype, [1, 2, "n"])}, outputs, {}, 22)


@pytest.mark.parametrize(("dtype", "least"), [(F32, -np.inf), (np.float64, -np.inf), (np.int8, -128), (np.uint8, 0)])
def test_largest(dtype: Any, least: float) -> None:
    executable = tilework.compile(pool("MaxPool", dtype, ["y", "places"]), checked=True)
    for count in (5, 1, 0):
        x = np.random.default_rng(count).integers(1, 100, (1, 2, count)).astype(dtype)
        padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (3, 3)], constant_values=least)
        y, places = executable(x)
        assert y.dtype == dtype
        np.testing.assert_array_equal(y, np.maximum(padded[..., :-1], padded[..., 1:]))
        assert not places[..., :2].any()  # nothing is there: place 0


@pytest.mark.parametrize("counted", [0, 1])
def test_mean(counted: int) -> None:
    proto = pool("AveragePool", F32, ["y"], count_include_pad=counted)
    executable = tilework.compile(proto, checked=True)
    for count in (5, 1):
        x = np.random.default_rng(count).standard_normal((1, 2, count)).astype(F32)
        with pytest.warns(RuntimeWarning) if not counted else np.errstate():
            expected: Any = ReferenceEvaluator(proto).run(None, {"x": x})  # pyright: ignore[reportUnknownMemberType]
        (found,) = executable(x)
        np.testing.assert_allclose(found, expected[0], rtol=1e-6)
        assert np.isnan(found[..., 0]).all() if not counted else not found[..., 0].any()


def test_length() -> None:
    (found,) = tilework.compile(pool("LpPool", F32, ["y"]))(np.ones((1, 2, 3), F32))
    np.testing.assert_allclose(found[0, 0], [0, 0, 1, 2**0.5, 2**0.5, 1, 0, 0], rtol=1e-6)


@pytest.mark.parametrize("automatic", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("size", "stride"), [(1, 3), (2, 4), (1, 5), (3, 7), (2, 5), (2, 3)])
def test_windows_with_elements_between_them(size: int, stride: int, automatic: str) -> None:
    """Automatic padding is negative then: what it cuts is halved and rounded towards zero, as in ONNX Runtime."""
    node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[size], strides=[stride], auto_pad=automatic)
    executable = tilework.compile(model([node], {"x": (F32, [1, 2, "n"])}, ["y"], {}, 22), checked=True)
    for count in range(1, 16):
        x = np.random.default_rng(count).integers(1, 9, (1, 2, count)).astype(F32)
        starts = range(0, -(-count // stride) * stride, stride)
        total = starts[-1] + size - count
        low = int((total + (automatic == "SAME_LOWER")) / 2)
        expected = [x[..., max(at - low, 0) : max(at - low, 0) + size - max(low - at, 0)].mean(-1) for at in starts]
        np.testing.assert_allclose(executable(x)[0], np.stack(expected, -1), rtol=1e-6)
