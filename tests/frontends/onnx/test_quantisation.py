"""Quantised operators: exact integers, every granularity, what scales of 0 and NaN give, and what is refused."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import tilework
from tests.frontends.onnx.models import assert_close, codes_of, one_node, reference, run
from tilework.graph.graph import Array

Random = np.random.Generator
F32 = np.float32
RANGES = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767)}
EIGHT = ("uint8", "int8")


def integers(random: Random, kind: str, *shape: int) -> Array:
    low, high = RANGES[kind]
    return random.integers(low, high + 1, shape).astype(kind)


def check(proto: ModelProto, feeds: dict[str, Array], wanted: list[Array], free: ModelProto | None = None) -> None:
    """The interpreter's and the generated code's results; `free`: the same model with free dimensions."""
    assert_close(run(proto, feeds), wanted)
    for one in (proto, *([] if free is None else [free])):
        found: Any = tilework.compile(one)(**feeds)
        assert_close(list(found), wanted)


def requantised(total: Array, factor: Any, zero: int, kind: str) -> Array:
    """Rounded before the zero point is added, as ONNX says and its reference evaluator does not."""
    scaled = np.rint(total.astype(F32) * np.asarray(factor, F32)).astype(np.float64)
    return np.clip(scaled + zero, *RANGES[kind]).astype(kind)


# -- between numbers and integers --------------------------------------------------------------------------------------
def quantised(x: Array, scale: Any, zero: Any, kind: str) -> Array:
    with np.errstate(all="ignore"):
        found = np.rint(x / scale).astype(np.float64) + zero
    return np.where(np.isnan(found), 0, np.clip(found, *RANGES[kind])).astype(kind)


@pytest.mark.parametrize("kind", RANGES)
@pytest.mark.parametrize("seed", range(3))
def test_quantize_and_back_per_tensor_and_per_axis(kind: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = tuple(int(e) for e in random.choice([0, 1, 2, 3, 7, 33], random.integers(1, 4)))
    axis = int(random.integers(-len(shape), len(shape)))
    x = (random.standard_normal(shape) * 300).astype(F32)
    x.reshape(-1)[: x.size // 5] = random.choice([np.nan, np.inf, -np.inf, -0.0, 0.5, 1.5, 1e30], x.size // 5)
    per_axis = seed > 0
    count = (shape[axis],) if per_axis else ()
    scale = random.uniform(0.1, 3, count).astype(F32)
    zero = integers(random, kind, *count)
    spread = [shape[axis] if a == axis % len(shape) else 1 for a in range(len(shape))] if per_axis else []
    wide_scale, wide_zero = scale.reshape(spread), zero.reshape(spread).astype(np.int64)
    wanted = quantised(x, wide_scale, wide_zero, kind)
    for inputs, held in (({"x": x}, {"s": scale, "z": zero}), ({"x": x, "s": scale, "z": zero}, {})):
        proto, free = (
            one_node("QuantizeLinear", inputs, held, opset=21, axis=axis, symbolic=symbolic)
            for symbolic in (False, True)
        )
        check(proto, inputs, [wanted], free if not held else None)
    back = ((wanted.astype(np.int64) - wide_zero).astype(F32) * wide_scale).astype(F32)
    inputs = {"x": wanted, "s": scale, "z": zero}
    check(one_node("DequantizeLinear", inputs, opset=21, axis=axis), inputs, [back])


@pytest.mark.parametrize(("extent", "block"), [(6, 2), (7, 3), (5, 5), (1, 4), (9, 16)])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_blocks(extent: int, block: int, axis: int) -> None:
    random = np.random.default_rng(extent)
    shape = [2, 3, 2]
    shape[axis] = extent
    few = list(shape)
    few[axis] = -(-extent // block)
    x = (random.standard_normal(shape) * 100).astype(F32)
    scale, zero = random.uniform(0.5, 2, few).astype(F32), integers(random, "int8", *few)
    inputs: dict[str, Array] = {"x": x, "s": scale, "z": zero}
    proto = one_node("QuantizeLinear", inputs, opset=21, axis=axis, block_size=block)
    wide_scale, wide_zero = (
        np.take(np.repeat(p, block, axis), np.arange(extent), axis) for p in (scale, zero.astype(np.int64))
    )
    wanted = quantised(x, wide_scale, wide_zero, "int8")
    check(proto, inputs, [wanted])
    back = {"x": wanted, "s": scale, "z": zero}
    proto = one_node("DequantizeLinear", back, opset=21, axis=axis, block_size=block)
    check(proto, back, [((wanted.astype(np.int64) - wide_zero).astype(F32) * wide_scale).astype(F32)])


@pytest.mark.parametrize("kind", [
    "int2", "uint2", "int4", "uint4", "float4_e2m1fn", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
    "float8_e5m2fnuz",
])  # fmt: skip
def test_narrow_types(kind: str) -> None:
    random = np.random.default_rng(5)
    dtype = np.dtype(getattr(ml_dtypes, kind))
    x = (random.standard_normal((4, 5)) * 20).astype(F32)
    inputs: dict[str, Array] = {"x": x, "s": np.array(1.5, F32)}
    number = helper.np_dtype_to_tensor_dtype(dtype)
    proto = one_node("QuantizeLinear", inputs, opset=25, output_dtype=number)
    (wanted,) = reference(proto, inputs)
    (found,) = run(proto, inputs)
    for one in (found, *tilework.compile(proto)(**inputs)):
        assert one.dtype == dtype
        np.testing.assert_array_equal(one.astype(F32), np.asarray(wanted).astype(F32))
    back = {"x": found, "s": np.array(1.5, F32)}
    proto = one_node("DequantizeLinear", back, opset=25)
    for again in (*run(proto, back), *tilework.compile(proto)(**back)):
        np.testing.assert_array_equal(again, found.astype(F32) * F32(1.5))


def test_scales_that_are_powers_of_two() -> None:
    x = np.linspace(-40, 40, 64).astype(F32)
    inputs: dict[str, Array] = {"x": x, "s": np.array(0.5, ml_dtypes.float8_e8m0fnu)}
    proto = one_node("QuantizeLinear", inputs, opset=25, output_dtype=TensorProto.INT8)
    narrow = np.clip(np.rint(x / F32(0.5)), -128, 127).astype(np.int8)
    check(proto, inputs, [narrow])
    back = {"x": narrow, "s": inputs["s"]}
    proto = one_node("DequantizeLinear", back, opset=25, output_dtype=TensorProto.FLOAT)
    check(proto, back, [narrow.astype(F32) * F32(0.5)])


def test_products_of_small_floats() -> None:
    random = np.random.default_rng(2)
    kind = ml_dtypes.float8_e4m3fn
    a, b = ((random.standard_normal(shape) * 4).astype(F32).astype(kind) for shape in ((3, 8), (8, 5)))
    held: dict[str, Any] = {"sa": F32(0.5), "p": np.zeros((), kind), "sb": F32(2), "q": np.zeros((), kind)}
    held |= {"sy": F32(4), "r": np.zeros((), kind)}
    proto = one_node(
        "QLinearMatMul", {"a": a, "b": b}, held, order=["a", "sa", "p", "b", "sb", "q", "sy", "r"], opset=21
    )
    exact = (a.astype(np.float64) @ b.astype(np.float64) / 4).astype(F32)
    for found in (*run(proto, {"a": a, "b": b}), *tilework.compile(proto)(a=a, b=b)):
        assert found.dtype == kind
        np.testing.assert_array_equal(found.astype(F32), exact.astype(kind).astype(F32))


@pytest.mark.parametrize("scale", [0.0, -0.0, np.nan, np.inf, -2.0, 1e-45])
def test_scales_that_nobody_wants_give_what_the_formula_says(scale: float) -> None:
    x = np.array([-1.0, 0.0, 2.5, np.nan, np.inf], F32)
    inputs: dict[str, Array] = {"x": x, "s": np.array(scale, F32), "z": np.array(7, np.uint8)}
    wanted = quantised(x, inputs["s"], np.array(7), "uint8")
    check(one_node("QuantizeLinear", inputs, opset=13), inputs, [wanted])
    check(one_node("QuantizeLinear", {"x": x}, {"s": inputs["s"], "z": inputs["z"]}, opset=13), {"x": x}, [wanted])


def test_precision_of_the_division() -> None:
    x = np.linspace(-4, 4, 1001).astype(np.float16)
    inputs: dict[str, Array] = {"x": x, "s": np.array(0.0013, np.float16), "z": np.array(3, np.int16)}
    half = np.clip(np.rint(x / inputs["s"]).astype(F32) + 3, -(2**15), 2**15 - 1).astype(np.int16)
    assert_close(run(one_node("QuantizeLinear", inputs, opset=23), inputs), [half])
    wide = np.clip(np.rint(x.astype(F32) / inputs["s"].astype(F32)) + 3, -(2**15), 2**15 - 1).astype(np.int16)
    proto = one_node("QuantizeLinear", inputs, opset=23, precision=TensorProto.FLOAT)
    assert_close(run(proto, inputs), [wide])
    assert (half != wide).any()


@pytest.mark.parametrize("shape", [(5, 7), (0,), (1,), (3, 0, 2)])
def test_dynamic_quantisation(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(F32) + F32(0.5)
    for data in (x, np.abs(x), -np.abs(x), np.zeros_like(x)):
        low, high = F32(min(data.min(initial=0), 0)), F32(max(data.max(initial=0), 0))
        scale = F32((high - low) / F32(255)) or F32(1)
        zero = np.uint8(np.rint(np.clip(-low / scale, 0, 255)))
        wanted = [quantised(data, scale, zero.astype(np.int64), "uint8"), np.asarray(scale), np.asarray(zero)]
        check(one_node("DynamicQuantizeLinear", {"x": data}, opset=13, outputs=3), {"x": data}, wanted)


# -- products ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("left", EIGHT)
@pytest.mark.parametrize("right", EIGHT)
@pytest.mark.parametrize("seed", range(4))
def test_products_of_integers(left: str, right: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, depth, columns = (int(e) for e in random.choice([1, 2, 3, 17, 40], 3))
    lead = (2,) if seed == 3 else ()
    a, b = integers(random, left, *lead, rows, depth), integers(random, right, depth, columns)
    a.reshape(-1)[::2], b.reshape(-1)[::3] = RANGES[left][1], RANGES[right][1]  # what saturates sums of 16 bits
    per = seed % 2 == 1 and not lead
    p, q = integers(random, left, *((rows,) if per else ())), integers(random, right, *((columns,) if per else ()))
    row = p.astype(np.int64).reshape(-1, 1) if per else p.astype(np.int64)
    wanted = np.matmul(a.astype(np.int64) - row, b.astype(np.int64) - q).astype(np.int32)
    everything: dict[str, Array] = {"a": a, "b": b, "p": p, "q": q}
    for known in ("", "bq", "bpq"):
        inputs = {name: array for name, array in everything.items() if name not in known}
        held = {name: everything[name] for name in known}
        proto, free = (
            one_node("MatMulInteger", inputs, held, order=["a", "b", "p", "q"], symbolic=s) for s in (False, True)
        )
        check(proto, inputs, [wanted], free if known != "bpq" and not per else None)
    scales = [np.array(s, F32) for s in (0.03, 0.02, 0.7)]
    for kind in EIGHT:
        zero = integers(random, kind)
        factor = scales[0] * scales[1] / scales[2]
        inputs = {"a": a, "b": b}
        held = {"p": p, "q": q, "r": zero, "sa": scales[0], "sb": scales[1], "sy": scales[2]}
        if per:
            held["sa"], held["sb"] = np.full(rows, scales[0]), np.full(columns, scales[1])
        order = ["a", "sa", "p", "b", "sb", "q", "sy", "r"]
        check(
            one_node("QLinearMatMul", inputs, held, order=order), inputs,
            [requantised(wanted, factor, int(zero), kind)],
        )  # fmt: skip


@pytest.mark.parametrize("shapes", [((4,), (4,)), ((4,), (4, 3)), ((2, 3, 4), (4,)), ((2, 1, 3, 4), (5, 4, 2))])
def test_products_of_any_rank(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    random = np.random.default_rng(3)
    a, b = (integers(random, kind, *shape) for kind, shape in zip(EIGHT, shapes, strict=True))
    inputs: dict[str, Array] = {"a": a, "b": b, "p": np.array(200, np.uint8), "q": np.array(-100, np.int8)}
    wanted = np.matmul(a.astype(np.int64) - 200, b.astype(np.int64) + 100)
    check(one_node("MatMulInteger", inputs), inputs, [np.asarray(wanted.astype(np.int32))])


def convolved(x: Array, w: Array, **attributes: Any) -> Array:
    """The convolution in float64, which holds these integers."""
    node = one_node("Conv", {"x": x.astype(np.float64), "w": w.astype(np.float64)}, **attributes)
    (found,) = run(node, {"x": x.astype(np.float64), "w": w.astype(np.float64)})
    return found.astype(np.int64)


@pytest.mark.parametrize("image", EIGHT)
@pytest.mark.parametrize("weight", EIGHT)
@pytest.mark.parametrize("seed", range(4))
def test_convolutions(image: str, weight: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    groups = int(random.choice([1, 1, 2]))
    channels, features = groups * int(random.choice([1, 3, 8])), groups * int(random.choice([1, 2, 9]))
    size = [int(e) for e in random.choice([1, 2, 3], 2)]
    x = integers(random, image, int(random.integers(0, 3)), channels, 7, 6)
    w = integers(random, weight, features, channels // groups, *size)
    how: dict[str, Any] = {
        "group": groups, "pads": [int(e) for e in random.integers(0, 2, 4)],
        "strides": [int(e) for e in random.integers(1, 3, 2)],
        "dilations": [int(e) for e in random.integers(1, 3, 2)],
    }  # fmt: skip
    p = integers(random, image)
    q = integers(random, weight, *((features,) if seed % 2 else ()))
    centre = q.astype(np.int64).reshape(-1, 1, 1, 1) if q.ndim else q.astype(np.int64)
    total = convolved(x.astype(np.int64) - p.astype(np.int64), w.astype(np.int64) - centre, **how).astype(np.int32)
    everything: dict[str, Array] = {"x": x, "w": w, "p": p, "q": q}
    for known in ("", "wq", "wpq", "xp", "xpq", "xwpq"):
        inputs = {name: array for name, array in everything.items() if name not in known}
        held = {name: everything[name] for name in known}
        check(one_node("ConvInteger", inputs, held, order=["x", "w", "p", "q"], **how), inputs, [total])
    bias = random.integers(-3000, 3000, features).astype(np.int32)
    scale = random.uniform(0.01, 0.02, features).astype(F32)
    whole, zero = np.array(0.05, F32), integers(random, image)
    held = {"w": w, "p": p, "q": np.broadcast_to(q, (features,)), "sx": whole, "sw": scale, "sy": np.array(3.1, F32)}
    held |= {"r": zero, "bias": bias}
    order = ["x", "sx", "p", "w", "sw", "q", "sy", "r", "bias"]
    factor = (whole * scale / held["sy"]).reshape(-1, 1, 1)
    wanted = requantised(total + bias.reshape(-1, 1, 1), factor, int(zero), image)
    check(one_node("QLinearConv", {"x": x}, held, order=order, **how), {"x": x}, [wanted])
    check(one_node("QLinearConv", {}, held | {"x": x}, order=order, **how), {}, [wanted])


# -- refused -----------------------------------------------------------------------------------------------------------
def test_what_does_not_fit_is_refused_by_name() -> None:
    x = np.zeros((2, 3), F32)
    three, eight = np.ones(3, F32), np.zeros((2, 3), np.uint8)

    def refused(operator: str, held: dict[str, Any], first: Array = x, **attributes: Any) -> None:
        assert codes_of(one_node(operator, {"x": first}, held, opset=21, **attributes)) <= {1108, 1119}

    refused("QuantizeLinear", {"s": np.ones(2, F32)})
    refused("QuantizeLinear", {"s": three}, axis=2)
    refused("QuantizeLinear", {"s": np.ones((2, 3), F32)})
    refused("QuantizeLinear", {"s": np.ones((2, 3), F32)}, block_size=2)
    refused("QuantizeLinear", {"s": np.ones((2, 2), F32)}, block_size=-2)
    refused("QuantizeLinear", {"s": three, "z": np.zeros(3, np.int8)}, output_dtype=TensorProto.UINT8)
    refused("DequantizeLinear", {"s": three, "z": np.zeros(2, np.uint8)}, first=eight)
    refused("MatMulInteger", {"b": eight.T, "p": np.zeros(5, np.uint8)}, first=eight)
    refused("QLinearMatMul", {
        "s": F32(1), "p": np.uint8(0), "b": eight.T, "t": F32(1), "q": np.uint8(0), "u": three, "r": np.uint8(0),
    }, first=eight)  # fmt: skip
    image = np.zeros((1, 2, 4, 4), np.uint8)
    refused("ConvInteger", {"w": np.zeros((3, 2, 1, 1), np.uint8), "p": np.uint8(0), "q": np.zeros(2, np.uint8)}, image)


@pytest.mark.parametrize("operator", ["QuantizeLinear", "DequantizeLinear"])
def test_scales_along_a_dimension_that_is_not_there(operator: str) -> None:
    x = np.zeros((), np.float32 if operator == "QuantizeLinear" else np.uint8)
    given = one_node(operator, {"x": x, "s": np.ones(3, np.float32), "z": np.zeros(3, np.uint8)})
    assert codes_of(given) == {1119}
