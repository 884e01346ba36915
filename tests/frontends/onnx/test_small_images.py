"""Images smaller than the window: pooling takes what there is where less than a stride is missing, and has no window
where less than two are, as ONNX Runtime (it rounds towards zero); everything else is refused. Sizes that go through
several layers are checked as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

import tilework
from tests.frontends.onnx.models import model
from tilework.errors import CallError, FrontendError

F32 = np.float32


def images(count: int) -> Any:
    return np.random.default_rng(count).standard_normal((2, 3, count)).astype(F32)


@pytest.mark.parametrize("extent", ["n", 2])
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
def test_one_window_of_what_there_is(operator: str, extent: int | str) -> None:
    node = helper.make_node(operator, ["x"], ["y"], kernel_shape=[4], strides=[3])
    executable = tilework.compile(model([node], {"x": (F32, [2, 3, extent])}, ["y"], {}, 22), checked=True)
    for count in (2, 3, 4, 9) if extent == "n" else (2,):
        x = images(count)
        windows = [x[..., at : at + 4] for at in range(0, max(count - 3, 1), 3)]
        taken = [w.max(-1) if operator == "MaxPool" else w.mean(-1) for w in windows]
        (y,) = executable(x)
        np.testing.assert_allclose(y, np.stack(taken, -1), rtol=1e-6, atol=1e-6)


def test_too_small() -> None:
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[4], strides=[1])
    with pytest.raises(FrontendError) as caught:
        tilework.compile(model([node], {"x": (F32, [2, 3, 1])}, ["y"], {}, 22))
    assert "window that spans 4" in str(caught.value)
    executable = tilework.compile(model([node], {"x": (F32, [2, 3, "n"])}, ["y"], {}, 22))
    with pytest.raises((CallError, FrontendError)):
        executable(images(1))


@pytest.mark.parametrize("extent", ["n", 2])
@pytest.mark.parametrize("more", [{}, {"ceil_mode": 1}, {"auto_pad": "VALID"}, {"count_include_pad": 1}])
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool"])
def test_no_window_where_less_than_two_strides_are_missing(
    operator: str, more: dict[str, Any], extent: int | str
) -> None:
    if operator != "AveragePool" and "count_include_pad" in more:
        return
    outputs = ["y", "places"] if operator == "MaxPool" else ["y"]
    node = helper.make_node(operator, ["x"], outputs, kernel_shape=[5], strides=[2], **more)
    executable = tilework.compile(model([node], {"x": (F32, [2, 3, extent])}, outputs, {}, 22), checked=True)
    for count in (3, 2) if extent == "n" else (2,):
        assert [found.shape for found in executable(images(count))] == [(2, 3, 0)] * len(outputs)
    if extent == "n":
        with pytest.raises((CallError, FrontendError)):
            executable(images(1))
        assert executable(images(5))[0].shape == (2, 3, 1)


@pytest.mark.parametrize("last", ["GlobalAveragePool", "MaxPool"])
def test_after_other_layers(last: str) -> None:
    """What the last window needs of the image is found through the layers before: never a mean of nothing."""
    half: dict[str, Any] = {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}
    nodes = [
        helper.make_node("MaxPool", ["x"], ["a"], **half),
        helper.make_node("MaxPool", ["a"], ["b"], **half),
        helper.make_node("MaxPool", ["b"], ["c"], kernel_shape=[3], strides=[3]),
    ]
    attributes: dict[str, Any] = {"kernel_shape": [1]} if last == "MaxPool" else {}
    nodes.append(helper.make_node(last, ["c"], ["y"], **attributes))
    executable = tilework.compile(model(nodes, {"x": (F32, [2, 3, "n"])}, ["y"], {}, 22), checked=True)
    for count in (40, 9, 8, 5, 4, 3, 1):
        x = images(count)
        found = x
        for _ in range(2):
            wide = np.pad(found, [(0, 0), (0, 0), (1, 1)], constant_values=-np.inf)
            found = np.stack([wide[..., at : at + 3].max(-1) for at in range(0, wide.shape[-1] - 2, 2)], -1)
        missing = 3 - found.shape[-1]
        assert missing < 3
        found = np.stack([found[..., at : at + 3].max(-1) for at in range(0, max(found.shape[-1] - 2, 1), 3)], -1)
        (y,) = executable(x)
        expected = found if last == "MaxPool" else found.mean(-1, keepdims=True)
        np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6)


def test_convolution_needs_its_whole_window() -> None:
    weights = np.ones((1, 3, 4), F32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides=[3])
    executable = tilework.compile(model([node], {"x": (F32, [2, 3, "n"])}, ["y"], {"w": weights}, 22))
    np.testing.assert_allclose(executable(images(4))[0], images(4).sum((1, 2)).reshape(2, 1, 1), rtol=1e-4, atol=1e-5)
    with pytest.raises((CallError, FrontendError)):
        executable(images(3))


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
def test_a_size_that_no_bound_describes(operator: str) -> None:
    """Behind a rounded-up output, what the next window needs is no bound of one symbol: each call's sizes tell."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["a"], kernel_shape=[7], strides=[4], pads=[0, 6], ceil_mode=1),
        helper.make_node(operator, ["a"], ["y"], kernel_shape=[4], strides=[4]),
    ]
    executable = tilework.compile(model(nodes, {"x": (F32, [2, 3, "n"])}, ["y"], {}, 22), checked=True)
    for count in (1, 3, 5, 9, 13, 16, 17, 40):
        x = images(count)
        first = np.stack([x[..., at : at + 7].max(-1) for at in range(0, count, 4)], -1)
        windows = [first[..., at : at + 4] for at in range(0, max(first.shape[-1] - 3, 1), 4)]
        taken = [w.max(-1) if operator == "MaxPool" else w.mean(-1) for w in windows]
        (y,) = executable(x)
        np.testing.assert_allclose(y, np.stack(taken, -1), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("extent", ["n", 0])
def test_no_window_starts_behind_an_empty_image(extent: int | str) -> None:
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3], strides=[4], ceil_mode=1)
    executable = tilework.compile(model([node], {"x": (F32, [2, 3, extent])}, ["y"], {}, 22))
    (y,) = executable(images(0))
    assert y.shape == (2, 3, 0)
