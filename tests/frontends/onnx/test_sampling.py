"""Images sampled between their elements, regions pooled, windows put back: against onnx.reference or plain numpy."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

import tilework
from tests.frontends.onnx.models import assert_close, check_against_reference, codes_of, one_node, reference, run
from tilework.graph.graph import Array


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(31)


def normal(random: np.random.Generator, *shape: int, kind: Any = np.float32) -> Any:
    return random.standard_normal(shape).astype(kind)


def free(proto: ModelProto, *places: tuple[int, int]) -> ModelProto:
    """With some dimensions of the inputs free, equal extents by one name."""
    for number, place in places:
        dimension = proto.graph.input[number].type.tensor_type.shape.dim[place]
        dimension.dim_param = f"n{dimension.dim_value}"
    return proto


# -- GridSample, AffineGrid --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("aligned", [0, 1])
def test_grid_sample(random: np.random.Generator, mode: str, padding: str, aligned: int) -> None:
    if (mode, padding) == ("cubic", "border"):
        return  # onnx.reference moves the coordinate to the border before it looks for neighbours
    for rows, columns in ((5, 7), (2, 3), (1, 4)):
        if padding == "reflection" and aligned and 1 in (rows, columns):
            continue  # onnx.reference divides by 0
        x = normal(random, 2, 3, rows, columns)
        grid = random.uniform(-2.5, 2.5, (2, 4, 6, 2)).astype(np.float32)
        grid[0, 0, :3] = [[-1, 1], [0, 0], [1, -1]]
        for symbolic in (False, True):
            proto = one_node(
                "GridSample", {"x": x, "grid": grid}, opset=20, mode=mode, padding_mode=padding, align_corners=aligned
            )
            proto = free(proto, (0, 0), (1, 0), (0, 2), (1, 1)) if symbolic else proto
            check_against_reference(proto, {"x": x, "grid": grid}, 2e-5)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_grid_sample_of_volumes(random: np.random.Generator, mode: str) -> None:
    x, grid = normal(random, 1, 2, 3, 4, 5), random.uniform(-1.2, 1.2, (1, 2, 3, 2, 3)).astype(np.float32)
    check_against_reference(one_node("GridSample", {"x": x, "grid": grid}, opset=20, mode=mode), {"x": x, "grid": grid})


def test_grid_sample_keeps_what_it_does_not_read_out(random: np.random.Generator) -> None:
    """NaN and infinities beside the points sampled, and outside the image, do not spread."""
    x = np.array([[[[np.nan, 1, 2, np.inf]]]], np.float32)
    grid = np.array([[[[-0.25, 0], [0.25, 0], [-9, 0], [9, 0]]]], np.float32)
    proto = one_node("GridSample", {"x": x, "grid": grid}, opset=20, mode="nearest")
    (found,) = run(proto, {"x": x, "grid": grid})
    assert found.reshape(-1).tolist() == [1, 2, 0, 0]
    grid = np.array([[[[np.nan, 0], [np.inf, 0], [-np.inf, 0]]]], np.float32)
    proto = one_node("GridSample", {"x": x, "grid": grid}, opset=20, mode="linear")
    (found,) = tilework.compile(proto)(x=x, grid=grid)  # type: ignore[operator]
    assert found.shape == (1, 1, 1, 3)


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float16, np.float64, np.bool_, np.complex64])
def test_grid_sample_of_other_types(random: np.random.Generator, kind: Any) -> None:
    x, grid = normal(random, 1, 2, 4, 5), random.uniform(-1, 1, (1, 3, 3, 2)).astype(np.float32)
    x = (abs(x) * 50).astype(kind)
    proto = one_node("GridSample", {"x": x, "grid": grid}, opset=20, mode="nearest")
    np.testing.assert_array_equal(run(proto, {"x": x, "grid": grid})[0], reference(proto, {"x": x, "grid": grid})[0])
    proto = one_node("GridSample", {"x": x, "grid": grid}, opset=20, mode="linear")
    if np.dtype(kind).kind in "bc":
        assert codes_of(proto) == {1123}
        return
    # onnx.reference rounds the weights to the type of the image
    feeds = {"x": x.astype(np.float64), "grid": grid}
    (wanted,) = reference(one_node("GridSample", feeds, opset=20, mode="linear"), feeds)
    assert_close(run(proto, {"x": x, "grid": grid}), [wanted.astype(kind)], {2: 2e-3}.get(x.dtype.itemsize, 1e-5))


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 1, 6), (2, 1, 2, 3, 4)])
def test_affine_grid(random: np.random.Generator, size: tuple[int, ...], aligned: int) -> None:
    if aligned and 1 in size[2:]:
        return  # onnx.reference divides by 0
    rank = len(size) - 2
    theta = normal(random, 2, rank, rank + 1)
    proto = one_node("AffineGrid", {"theta": theta}, {"size": np.array(size)}, opset=20, align_corners=aligned)
    check_against_reference(proto, {"theta": theta})
    check_against_reference(free(proto, (0, 0)), {"theta": theta})


# -- regions -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 1, 3])
@pytest.mark.parametrize("how", ["half_pixel", "output_half_pixel"])
def test_roi_align(random: np.random.Generator, how: str, ratio: int, mode: str) -> None:
    x = normal(random, 2, 3, 9, 11)
    corners = random.uniform(-3, 18, (5, 2))
    rois = np.concatenate([corners, corners + random.uniform(-1, 12, (5, 2))], 1).astype(np.float32)
    feeds = {"x": x, "rois": rois, "batch": random.integers(0, 2, 5)}
    proto = one_node(
        "RoiAlign", feeds, opset=16, mode=mode, sampling_ratio=ratio, output_height=3, output_width=2,
        spatial_scale=0.75, coordinate_transformation_mode=how,
    )  # fmt: skip
    check_against_reference(proto, feeds, 2e-5)
    check_against_reference(free(proto, (0, 0), (0, 2), (1, 0), (2, 0)), feeds, 2e-5)
    if (how, mode) == ("output_half_pixel", "avg"):
        older = one_node(
            "RoiAlign", feeds, opset=10, mode=mode, sampling_ratio=ratio, output_height=3, output_width=2,
            spatial_scale=0.75,
        )  # fmt: skip
        assert_close(tilework.compile(older)(**feeds), run(proto, feeds), 2e-5)  # type: ignore[operator]


def pooled(x: Array, rois: Array, bins: tuple[int, int], scale: float) -> Array:
    """Girshick, Fast R-CNN: bins of whole elements."""
    found = np.zeros((len(rois), x.shape[1], *bins))
    rows_of: list[list[float]] = rois.tolist()
    for r, (image, *corners) in enumerate(rows_of):
        x1, y1, x2, y2 = (int(np.floor(abs(c) * scale + 0.5) * np.sign(c)) for c in corners)
        high, wide = max(y2 - y1 + 1, 1) / bins[0], max(x2 - x1 + 1, 1) / bins[1]
        for i, j in itertools.product(*map(range, bins)):
            rows = slice(max(0, int(np.floor(i * high)) + y1), max(0, int(np.ceil((i + 1) * high)) + y1))
            columns = slice(max(0, int(np.floor(j * wide)) + x1), max(0, int(np.ceil((j + 1) * wide)) + x1))
            part: Array = x[int(image), :, rows, columns]
            found[r, :, i, j] = part.max((1, 2)) if part.size else 0
    return found.astype(x.dtype)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_max_roi_pool(random: np.random.Generator, scale: float) -> None:
    x = normal(random, 2, 3, 7, 8)
    corners = random.integers(-3, 16, (6, 2))
    rois = np.concatenate([random.integers(0, 2, (6, 1)), corners, corners + random.integers(-1, 12, (6, 2))], 1)
    feeds = {"x": x, "rois": rois.astype(np.float32)}
    proto = one_node("MaxRoiPool", feeds, pooled_shape=[3, 2], spatial_scale=scale)
    for model in (proto, free(proto, (0, 0), (0, 2), (1, 0))):
        assert_close(run(model, feeds), [pooled(x, feeds["rois"], (3, 2), scale)])


# -- windows put back --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    ("image", "block", "strides", "pads", "dilations"),
    [
        ((7, 9), (3, 2), (1, 1), (0, 0, 0, 0), (1, 1)), ((7, 9), (3, 2), (2, 1), (1, 0, 1, 2), (1, 2)),
        ((5,), (3,), (2,), (1, 1), (1,)), ((4, 3, 5), (2, 1, 3), (1, 2, 1), (0, 0, 1, 1, 0, 1), (1, 1, 1)),
    ],
)  # fmt: skip
def test_col2im(
    random: np.random.Generator, image: Any, block: Any, strides: Any, pads: Any, dilations: Any, symbolic: bool
) -> None:
    rank = len(image)
    counts = [
        (image[k] + pads[k] + pads[k + rank] - (block[k] - 1) * dilations[k] - 1) // strides[k] + 1 for k in range(rank)
    ]
    x = random.integers(-4, 5, (2, 3 * math.prod(block), math.prod(counts))).astype(np.float32)
    wanted = np.zeros((2, 3, *image), np.float32)
    columns = x.reshape(2, 3, *block, *counts)
    for tap in np.ndindex(*block):
        for place in np.ndindex(*counts):
            at = [place[k] * strides[k] + tap[k] * dilations[k] - pads[k] for k in range(rank)]
            if all(0 <= a < e for a, e in zip(at, image, strict=True)):
                wanted[(slice(None), slice(None), *at)] += columns[(slice(None), slice(None), *tap, *place)]
    proto = one_node(
        "Col2Im", {"x": x}, {"image": np.array(image), "block": np.array(block)}, opset=18, strides=strides, pads=pads,
        dilations=dilations,
    )  # fmt: skip
    assert_close(run(free(proto, (0, 0), (0, 2)) if symbolic else proto, {"x": x}), [wanted])


@pytest.mark.parametrize("wanted", [None, (2, 3, 9, 12), (2, 3, 8, 10)])
def test_max_unpool(random: np.random.Generator, wanted: tuple[int, ...] | None) -> None:
    x = normal(random, 2, 3, 4, 5)
    feeds = {"x": x, "places": random.permutation(2 * 3 * 8 * 10)[: x.size].reshape(x.shape)}
    constants = {} if wanted is None else {"shape": np.array(wanted)}
    proto = one_node("MaxUnpool", feeds, constants, opset=11, kernel_shape=[2, 2], strides=[2, 2])
    check_against_reference(proto, feeds)
    check_against_reference(free(proto, (0, 2), (1, 2)), feeds)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    ("axes", "shape"), [(None, (3, 7, 2)), ((1,), (4,)), ((-1, 0), (9, 2)), ((2,), (3,)), ((0, 1, 2), (5, 8, 5))]
)
def test_center_crop_pad(random: np.random.Generator, axes: Any, shape: Any, symbolic: bool) -> None:
    x = normal(random, 4, 7, 3)
    how = {} if axes is None else {"axes": axes}
    proto = one_node("CenterCropPad", {"x": x}, {"shape": np.array(shape)}, opset=18, symbolic=symbolic, **how)
    check_against_reference(proto, {"x": x})


# -- DeformConv --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("group", "parts", "masked"), [(1, 1, False), (2, 2, True), (1, 2, True), (2, 1, False)])
def test_deformable_convolution(random: np.random.Generator, group: int, parts: int, masked: bool) -> None:
    x, w = normal(random, 2, 4, 6, 7), normal(random, 6, 4 // group, 3, 2)
    feeds = {"x": x, "w": w, "offset": normal(random, 2, parts * 12, 6, 3) * 2}
    order = ["x", "w", "offset", "b", *(["mask"] if masked else [])]
    feeds["b"] = normal(random, 6)
    if masked:
        feeds["mask"] = random.random((2, parts * 6, 6, 3)).astype(np.float32)
    proto = one_node(
        "DeformConv", feeds, opset=19, order=order, group=group, offset_group=parts, pads=[1, 0, 1, 1], strides=[1, 2],
        dilations=[1, 3],
    )  # fmt: skip
    wanted = reference(proto, feeds)
    assert_close(run(proto, feeds), wanted, 1e-4)
    free(proto, (0, 0), (2, 0), *([(4, 0)] if masked else []))
    assert_close(tilework.compile(proto)(**feeds), wanted, 1e-4)  # type: ignore[operator]


# -- faults ------------------------------------------------------------------------------------------------------------
def test_faults(random: np.random.Generator) -> None:
    x, grid = normal(random, 1, 2, 4, 5), normal(random, 1, 3, 3, 2)
    rois, batch = normal(random, 3, 4), np.zeros(3, np.int64)
    feeds = {"x": x, "grid": grid}
    assert codes_of(one_node("GridSample", {"x": x, "grid": normal(random, 1, 3, 3, 3)}, opset=16)) == {1119}
    assert codes_of(one_node("GridSample", {"x": x, "grid": normal(random, 2, 3, 3, 2)}, opset=16)) == {1119}
    assert codes_of(one_node("GridSample", feeds, opset=16, mode="other")) == {1123}
    feeds = {"x": x, "rois": rois, "batch": batch}
    assert codes_of(one_node("RoiAlign", feeds, opset=16, sampling_ratio=-1)) == {1108}
    assert codes_of(one_node("RoiAlign", feeds, opset=16, output_height=0)) == {1108}
    for shape in ((), (2, 1)):
        of_other_rank = {**feeds, list(feeds)[2]: np.zeros(shape, np.int64)}
        assert codes_of(one_node("RoiAlign", of_other_rank, opset=16)) == {1119}
    assert codes_of(one_node("RoiAlign", feeds, opset=16, spatial_scale=float("nan"))) == {1108}
    assert codes_of(one_node("RoiAlign", {**feeds, "rois": normal(random, 3, 5)}, opset=16)) == {1119}
    assert codes_of(one_node("MaxRoiPool", {"x": x, "rois": normal(random, 3, 5)}, pooled_shape=[2])) == {1108}
    columns = {"image": np.array([4, 4]), "block": np.array([9, 2])}
    assert codes_of(one_node("Col2Im", {"x": normal(random, 1, 18, 3)}, columns, opset=18)) == {1119}
    shape = {"shape": np.array([1, -2])}
    assert codes_of(one_node("CenterCropPad", {"x": x}, shape, opset=18, axes=[2, 3])) == {1119}
    places = np.zeros((1, 2, 4, 4), np.int64)
    assert codes_of(one_node("MaxUnpool", {"x": x, "i": places}, opset=11, kernel_shape=[2, 2])) == {1119}
    offset = normal(random, 1, 12, 2, 4)
    weights = {"w": normal(random, 3, 2, 3, 2)}
    assert codes_of(one_node("DeformConv", {"x": x, **weights, "o": offset}, opset=19, group=3)) == {1119}
    assert codes_of(one_node("DeformConv", {"x": x, **weights, "o": normal(random, 1, 8, 2, 4)}, opset=19)) == {1119}
