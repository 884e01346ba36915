"""Resize and Upsample: every transformation, mode and version, extents fixed and free, against onnx.reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

import tilework
from tests.frontends.onnx.models import assert_close, codes_of, model, one_node, reference, run
from tilework.frontends.onnx.importer import import_model

MODES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
SCALES = ((1, 1, 2, 2), (1, 1, 0.6, 0.7), (1, 1, 1.5, 3), (1, 1, 4, 1))


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(5)


def resize(
    x: Any, free: tuple[int, ...] = (), opset: int = 19, inputs: dict[str, Any] | None = None, **how: Any
) -> Any:
    """A model of one Resize; `inputs` are its constant roi, scales and sizes."""
    given = inputs or {}
    order = ["x", *(name if name in given else "" for name in ("roi", "scales", "sizes"))]
    while not order[-1]:
        order.pop()
    constants = {name: np.array(v, np.int64 if name == "sizes" else np.float32) for name, v in given.items()}
    proto = one_node("Resize", {"x": x}, constants, opset=opset, order=order, **how)
    for place in free:
        proto.graph.input[0].type.tensor_type.shape.dim[place].dim_param = f"d{place}"
    return proto


def check(proto: ModelProto, x: Any) -> None:
    assert_close(run(proto, {"x": x}), reference(proto, {"x": x}))


@pytest.mark.parametrize("free", [(), (0, 2, 3)])
@pytest.mark.parametrize("how", MODES)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_scales(random: np.random.Generator, mode: str, how: str, free: tuple[int, ...]) -> None:
    x = random.standard_normal((2, 3, 5, 6)).astype(np.float32)
    for scales in SCALES:
        check(resize(x, free, inputs={"scales": scales}, mode=mode, coordinate_transformation_mode=how), x)


@pytest.mark.parametrize("how", MODES)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_nearest(random: np.random.Generator, rounding: str, how: str) -> None:
    x = random.standard_normal((1, 2, 6, 5)).astype(np.float32)
    options: dict[str, Any] = {"nearest_mode": rounding, "coordinate_transformation_mode": how}
    for sizes in ((1, 2, 12, 15), (1, 2, 4, 7), (1, 2, 1, 1)):
        check(resize(x, inputs={"sizes": sizes}, **options), x)
    # onnx.reference divides by the rounded scale in float64: of 0.6, what should be 2 is 1.9999999 there
    for scales in ((1, 1, 2, 2), (1, 1, 0.5, 1.5), (1, 1, 4, 1)):
        check(resize(x, (0, 2, 3), inputs={"scales": scales}, **options), x)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("free", [(), (2, 3)])
def test_crop_and_resize(random: np.random.Generator, mode: str, free: tuple[int, ...]) -> None:
    x = random.standard_normal((1, 2, 6, 5)).astype(np.float32)
    roi = (0, 0, 0.1, -0.3, 1, 1, 0.7, 1.4)
    for sizes in ((1, 2, 4, 7), (1, 2, 1, 9)):
        proto = resize(
            x, free, inputs={"roi": roi, "sizes": sizes}, mode=mode, extrapolation_value=7.5,
            coordinate_transformation_mode="tf_crop_and_resize",
        )  # fmt: skip
        check(proto, x)


def test_the_region_may_be_computed(random: np.random.Generator) -> None:
    x, roi = random.standard_normal((6, 5)).astype(np.float32), np.array([0.1, 0.2, 0.9, 1.3], np.float32)
    feeds = {"x": x, "roi": roi}
    proto = one_node(
        "Resize", feeds, {"sizes": np.array([4, 7])}, order=["x", "roi", "", "sizes"], mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
    )  # fmt: skip
    assert_close(run(proto, feeds), reference(proto, feeds))


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("outside", [0, 1])
def test_antialias(random: np.random.Generator, mode: str, outside: int) -> None:
    x = random.standard_normal((1, 2, 13, 16)).astype(np.float32)
    for sizes in ((1, 2, 5, 6), (1, 2, 2, 1), (1, 2, 20, 4)):
        check(resize(x, inputs={"sizes": sizes}, mode=mode, antialias=1, exclude_outside=outside), x)
    check(resize(x, (2, 3), inputs={"scales": (1, 1, 0.5, 0.25)}, mode=mode, antialias=1, exclude_outside=outside), x)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("free", [(), (2, 3)])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_proportions_are_kept(random: np.random.Generator, mode: str, policy: str, free: tuple[int, ...]) -> None:
    x = random.standard_normal((1, 2, 6, 8)).astype(np.float32)
    for sizes in ((7, 9), (12, 11), (4, 4), (3, 8)):
        # with `axes` onnx.reference reads scales as if they were of the first dimensions; all of them are named here
        proto = resize(x, free, inputs={"sizes": sizes}, mode=mode, axes=[2, 3], keep_aspect_ratio_policy=policy)
        check(proto, x)


def test_scales_and_sizes_belong_to_axes(random: np.random.Generator) -> None:
    x = random.standard_normal((2, 3, 4, 5)).astype(np.float32)
    (one,) = run(resize(x, inputs={"scales": (3, 2)}, axes=[-1, 2], mode="linear"), {"x": x})
    (other,) = run(resize(x, inputs={"scales": (1, 1, 2, 3)}, mode="linear"), {"x": x})
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_sizes_are_computed_from_shapes(random: np.random.Generator, mode: str) -> None:
    nodes = [
        helper.make_node("Shape", ["like"], ["shape"]),
        helper.make_node("Slice", ["shape", "two", "four"], ["spatial"]),
        helper.make_node("Shape", ["x"], ["own"]),
        helper.make_node("Slice", ["own", "zero", "two"], ["lead"]),
        helper.make_node("Concat", ["lead", "spatial"], ["sizes"], axis=0),
        helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode=mode),
    ]
    constants = {"zero": np.array([0]), "two": np.array([2]), "four": np.array([4])}
    shapes: Any = {"x": (np.float32, ["n", 2, "h", "w"]), "like": (np.float32, ["n", 2, "i", "j"])}
    proto = model(nodes, shapes, ["y"], constants)
    for extents in ((3, 4, 6, 8), (5, 5, 3, 7), (4, 6, 4, 6)):
        x = random.standard_normal((1, 2, *extents[:2])).astype(np.float32)
        feeds = {"x": x, "like": np.zeros((1, 2, *extents[2:]), np.float32)}
        assert_close(run(proto, feeds), reference(proto, feeds))


def test_sizes_and_scales_are_computed_in_floating_point(random: np.random.Generator) -> None:
    """As exporters write them: a shape is scaled and rounded, or one is divided by another."""
    split = [
        helper.make_node("Shape", ["x"], ["own"]),
        helper.make_node("Slice", ["own", "zero", "two"], ["lead"]),
        helper.make_node("Slice", ["own", "two", "four"], ["spatial"]),
        helper.make_node("Cast", ["spatial"], ["floats"], to=1),
    ]
    by_sizes = [
        helper.make_node("Mul", ["floats", "factors"], ["wide"]),
        helper.make_node("Floor", ["wide"], ["rounded"]),
        helper.make_node("Cast", ["rounded"], ["whole"], to=7),
        helper.make_node("Concat", ["lead", "whole"], ["sizes"], axis=0),
        helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear"),
    ]
    by_scales = [
        helper.make_node("Add", ["spatial", "two"], ["wanted"]),
        helper.make_node("Cast", ["wanted"], ["wide"], to=1),
        helper.make_node("Div", ["wide", "floats"], ["ratios"]),
        helper.make_node("Concat", ["ones", "ratios"], ["scales"], axis=0),
        helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="linear"),
    ]
    constants = {
        "zero": np.array([0]), "two": np.array([2]), "four": np.array([4]), "ones": np.ones(2, np.float32),
        "factors": np.array([0.5, 1.5], np.float32),
    }  # fmt: skip
    shapes: Any = {"x": (np.float32, ["n", 2, "h", "w"])}
    first, second = (
        import_model(model([*split, *rest], shapes, ["y"], constants), check="own") for rest in (by_sizes, by_scales)
    )
    for high, wide in ((4, 6), (5, 7), (2, 3), (9, 1)):
        x = random.standard_normal((1, 2, high, wide)).astype(np.float32)
        for imported, sizes in ((first, (high // 2, wide * 3 // 2)), (second, (high + 2, wide + 2))):
            # in float64, as onnx.reference has it, 5 times the float32 of 7 / 5 is 6.9999999
            proto = resize(x, inputs={"sizes": (1, 2, *sizes)}, mode="linear")
            assert_close(run(imported, {"x": x}), reference(proto, {"x": x}))


def test_floating_numbers_of_shapes_are_values_too(random: np.random.Generator) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["own"]),
        helper.make_node("Cast", ["own"], ["floats"], to=1),
        helper.make_node("Gather", ["floats", "two"], ["last"]),
        helper.make_node("Gather", ["floats", "one"], ["middle"]),
        helper.make_node("Mul", ["last", "half"], ["halves"]),
        helper.make_node("Div", ["halves", "middle"], ["ratio"]),
        helper.make_node("Sub", ["ratio", "last"], ["less"]),
        helper.make_node("Ceil", ["ratio"], ["up"]),
        helper.make_node("Concat", ["halves", "ratio", "less", "up"], ["y"], axis=0),
    ]
    constants = {"one": np.array([1]), "two": np.array([2]), "half": np.array([0.5], np.float32)}
    proto = model(nodes, {"x": (np.float32, ["n", "h", "w"])}, ["y"], constants)
    for extents in ((1, 3, 5), (2, 1, 8), (1, 4, 0)):
        x = np.zeros(extents, np.float32)
        assert_close(run(proto, {"x": x}), reference(proto, {"x": x}))


@pytest.mark.parametrize("operator", ["Resize", "Upsample"])
def test_before_version_11(random: np.random.Generator, operator: str) -> None:
    """Coordinates are i / scale."""
    x = random.standard_normal((1, 2, 4, 6)).astype(np.float32)
    scales = np.array([1, 1, 2, 1.5], np.float32)
    opset = 10 if operator == "Resize" else 9
    wanted = x[:, :, [0, 0, 1, 1, 2, 2, 3, 3]][..., [0, 0, 1, 2, 2, 3, 4, 4, 5]]
    for free in (False, True):
        proto = one_node(operator, {"x": x}, {"scales": scales}, opset=opset, symbolic=free)
        assert_close(run(proto, {"x": x}), [wanted])
    later = resize(x, inputs={"scales": scales}, mode="linear", coordinate_transformation_mode="asymmetric")
    proto = one_node(operator, {"x": x}, {"scales": scales}, opset=opset, mode="linear")
    assert_close(run(proto, {"x": x}), run(later, {"x": x}))
    if operator == "Upsample":
        proto = one_node("Upsample", {"x": x}, opset=7, scales=[1.0, 1.0, 2.0, 1.5])
        assert_close(run(proto, {"x": x}), [wanted])
        assert codes_of(one_node("Upsample", {"x": x}, opset=7, scales=[1.0, 1.0, 0.5, 1.0])) == {1108}


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int32, np.float16, np.float64, np.bool_, np.int64])
def test_element_types(random: np.random.Generator, kind: Any) -> None:
    x = (random.integers(0, 2, (1, 1, 3, 4)) * 90).astype(kind)
    (found,) = run(resize(x, inputs={"scales": (1, 1, 2, 2)}), {"x": x})
    np.testing.assert_array_equal(found, x.repeat(2, 2).repeat(2, 3))
    if kind == np.bool_:
        assert codes_of(resize(x, inputs={"scales": (1, 1, 2, 2)}, mode="linear")) == {1123}
        return
    (found,) = run(resize(x, inputs={"scales": (1, 1, 1, 2)}, mode="linear"), {"x": x})
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (0, 0), (1, 1)), mode="edge")
    wanted = np.stack([wide[..., 1:-1] * 0.75 + wide[..., :-2] / 4, wide[..., 1:-1] * 0.75 + wide[..., 2:] / 4], -1)
    assert_close([found], [wanted.reshape(1, 1, 3, 8).astype(kind)])  # integers are truncated


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_empty_and_special_values(mode: str) -> None:
    x = np.zeros((0, 2, 3, 4), np.float32)
    for free in ((), (0, 2, 3)):
        (found,) = run(resize(x, free, inputs={"scales": (1, 1, 2, 2)}, mode=mode), {"x": x})
        assert found.shape == (0, 2, 6, 8)
    x = np.array([[[[np.nan, 1.0, -0.0, np.inf]]]], np.float32)
    (found,) = run(resize(x, inputs={"scales": (1, 1, 1, 2)}, mode=mode), {"x": x})
    assert np.isnan(found[..., 0]).all()
    if mode == "nearest":
        np.testing.assert_array_equal(found, x.repeat(2, 3))
        assert np.signbit(found[0, 0, 0, 4])


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_generated_code_for_free_extents(random: np.random.Generator, mode: str, threads: int) -> None:
    from tilework.runtime.context import Context, ContextOptions

    shape = (2, 3, 7, 33)
    x = random.standard_normal(shape).astype(np.float32)
    context = Context(ContextOptions(threads=threads))
    for free in ((), (0, 2, 3)):
        proto = resize(x, free, inputs={"scales": (1, 1, 2, 2)}, mode=mode)
        executable: Any = tilework.compile(proto, context=context)
        for extents in (shape, (1, 3, 1, 1), (2, 3, 9, 40)) if free else (shape,):
            x = random.standard_normal(extents).astype(np.float32)
            assert_close(executable(x=x), run(proto, {"x": x}))


def test_faults_name_the_node(random: np.random.Generator) -> None:
    x = random.standard_normal((1, 2, 3, 4)).astype(np.float32)
    sizes = {"sizes": (1, 2, 5, 5)}
    assert codes_of(resize(x)) == {1117}
    assert codes_of(resize(x, inputs={"scales": (1, 1, 2, 2), **sizes})) == {1117}
    assert codes_of(resize(x, inputs={"scales": (1, 1, 2)})) == {1119}
    assert codes_of(resize(x, inputs={"scales": (1, 1, 0, 2)})) == {1119}
    assert codes_of(resize(x, inputs={"scales": (1, 1, np.nan, 2)})) == {1119}
    assert codes_of(resize(x, inputs={"sizes": (1, 2, -5, 2)})) == {1119}
    assert codes_of(resize(x, inputs=sizes, mode="quintic")) == {1123}
    assert codes_of(resize(x, inputs=sizes, coordinate_transformation_mode="nowhere")) == {1123}
    assert codes_of(resize(x, inputs=sizes, antialias=1)) == {1108}
    assert codes_of(resize(x, inputs={"sizes": (3, 3)}, axes=[2, 2])) == {1108}
    assert codes_of(resize(x, inputs=sizes, coordinate_transformation_mode="tf_crop_and_resize")) == {1117}
    empty = np.zeros((1, 2, 0, 4), np.float32)
    assert codes_of(resize(empty, inputs=sizes)) == {1119}
    assert codes_of(resize(x, inputs=sizes, mode="cubic", cubic_coeff_a=float("inf"))) == {1108}


def test_common_scales_stay_index_arithmetic() -> None:
    x = np.zeros((1, 2, 3, 4), np.float32)
    for mode, how in (("nearest", "asymmetric"), ("linear", "half_pixel"), ("cubic", "half_pixel")):
        scales = {"scales": (1, 1, 2, 4)}
        proto = resize(x, (0, 2, 3), inputs=scales, mode=mode, coordinate_transformation_mode=how)
        assert "take" not in {node.operator for node in import_model(proto, check="own").nodes}
