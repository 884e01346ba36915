"""Inputs whose values decide shapes: compiled for what they hold, at the first call with it, and kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

import tilework
from tests.frontends.onnx.models import model
from tilework.errors import CallError, FrontendError
from tilework.frontends.onnx import backend
from tilework.runtime.per_shape import PerShape

F32, I64 = np.float32, np.int64


def compiled(proto: ModelProto) -> PerShape:
    found = tilework.compile(proto)
    assert isinstance(found, PerShape)
    return found


def test_axes_that_a_caller_gives() -> None:
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["s"], keepdims=0), helper.make_node("Neg", ["s"], ["y"])]
    executable = compiled(model(nodes, {"x": (F32, ["n", 3, 4]), "axes": (I64, ["k"])}, ["y"], {}, 13))
    assert executable.deciding == ()  # n is not known yet: sizes may be all that is missing
    x = np.random.default_rng(0).integers(-5, 6, (2, 3, 4)).astype(F32)
    for axes in ([0], [1, 2], [-1], [0], [0, 1, 2]):
        np.testing.assert_array_equal(executable(x, np.array(axes))[0], -x.sum(tuple(axes)))
    assert executable.deciding == ("axes",)
    assert len(executable.variants.shapes) == 4  # [0] was kept
    np.testing.assert_array_equal(executable(x=x[:1], axes=np.array([0]))[0], -x[0])


def test_what_follows_from_them_decides_too() -> None:
    """A shape computed from two inputs, one of them a float: both are found, the data are not."""
    nodes = [
        helper.make_node("Cast", ["f"], ["i"], to=7), helper.make_node("Mul", ["i", "n"], ["m"]),
        helper.make_node("Concat", ["m", "rest"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]  # fmt: skip
    proto = model(nodes, {"x": (F32, [24]), "f": (F32, [1]), "n": (I64, [1])}, ["y"], {"rest": np.array([-1])}, 13)
    executable = compiled(proto)
    x = np.arange(24, dtype=F32)
    for f, n in ((2.5, 3), (1.0, 4), (-0.5, 1)):
        given: dict[str, Any] = {"x": x, "f": np.array([f], F32), "n": np.array([n])}
        if int(f) * n == 0:  # 0 stands for the input's own extent
            np.testing.assert_array_equal(executable(**given)[0], x.reshape(24, 1))
        else:
            np.testing.assert_array_equal(executable(**given)[0], x.reshape(int(f) * n, -1))
    assert set(executable.deciding) == {"f", "n"}


def test_values_that_the_model_does_not_allow() -> None:
    nodes = [helper.make_node("Squeeze", ["x", "axes"], ["y"], name="drops")]
    proto = model(nodes, {"x": (F32, [1, 3]), "axes": (I64, [1])}, ["y"], {}, 13)
    executable = compiled(proto)
    x = np.ones((1, 3), F32)
    np.testing.assert_array_equal(executable(x, np.array([0]))[0], x[0])
    for axis in (1, 5):
        with pytest.raises(FrontendError, match="drops"):
            executable(x, np.array([axis]))
    for wrong, code in ((np.array([0.0]), 1702), (np.array([[0]]), 1704), (np.array([0, 1]), 1705), ("axes", 1709)):
        with pytest.raises(CallError) as caught:
            executable(x, wrong)
        assert caught.value.code == code


def test_data_never_decide() -> None:
    """Sizes that follow from much data are refused, not compiled into the code."""
    nodes = [helper.make_node("Cast", ["x"], ["i"], to=7), helper.make_node("Reshape", ["w", "i"], ["y"])]
    proto = model(nodes, {"x": (F32, [100]), "w": (F32, [4])}, ["y"], {}, 13)
    executable = compiled(proto)
    with pytest.raises(FrontendError) as caught:
        executable(np.ones(100, F32), np.ones(4, F32))
    assert caught.value.code == 1116


def test_the_backend_takes_inputs_by_name() -> None:
    nodes = [helper.make_node("Tile", ["x", "r"], ["y"])]
    proto = model(nodes, {"x": (F32, [2]), "r": (I64, [1])}, ["y"], {}, 13)
    (found,) = backend.run_model(proto, {"r": np.array([3]), "x": np.array([1, 2], F32)})
    np.testing.assert_array_equal(found, [1, 2, 1, 2, 1, 2])


def test_sizes_alone_decide_where_they_suffice() -> None:
    """Weights with a free extent: once it is known, no value is asked for, and one compilation serves all."""
    inputs: Any = {"x": (np.uint8, [1, 2, 5, 5]), "w": (np.uint8, [3, 2, 2, "k"]), "p": (np.uint8, ())}
    running = tilework.compile(model([helper.make_node("ConvInteger", ["x", "w", "p"], ["y"])], inputs, ["y"]))
    assert isinstance(running, PerShape)
    random = np.random.default_rng(0)
    w = random.integers(0, 255, (3, 2, 2, 3), np.uint8)
    plans: list[Any] = []
    for zero in (0, 3, 255):
        x = random.integers(0, 255, (1, 2, 5, 5), np.uint8)
        (got,) = running(x, w, np.uint8(zero))
        wide = np.lib.stride_tricks.sliding_window_view(x.astype(np.int64) - zero, (2, 3), (2, 3))
        np.testing.assert_array_equal(got, np.einsum("bchwij,fcij->bfhw", wide, w))
        plans.append(running.plan)
    assert running.deciding == ()
    assert plans[0] is plans[1] is plans[2]
