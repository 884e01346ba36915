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
