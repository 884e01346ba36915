"""Quantised operators of com.microsoft against plain numpy (integers equal to ONNX Runtime's, as measured)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper

import tilework
from tests.frontends.onnx.models import codes_of, value
from tilework.graph.graph import Array

F32 = np.float32
Number = np.float32
RANGES: dict[str, tuple[int, int]] = {"uint8": (0, 255), "int8": (-128, 127)}


def single(
    operator: str, arrays: dict[str, Any], inputs: str, results: list[Any], free: bool = False, **attributes: Any
) -> ModelProto:
    """A model of one node: the operands whose names are in `inputs` are its inputs, the rest constants."""
    given = [name for name in arrays if name in inputs.split()]
    names = [f"out{place}" for place in range(len(results))]
    node = helper.make_node(operator, list(arrays), names, domain="com.microsoft", **attributes)
    graph = helper.make_graph(
        [node], "test",
        [value(n, arrays[n].dtype, [f"{n}{d}" if free else e for d, e in enumerate(arrays[n].shape)]) for n in given],
        [value(n, r.dtype, r.shape if not free else [None] * r.ndim) for n, r in zip(names, results, strict=True)],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in arrays.items() if n and n not in given],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def check(
    operator: str, arrays: dict[str, Any], inputs: str, wanted: Any, tolerance: float = 0, **attributes: Any
) -> None:
    results: list[Any] = [wanted] if isinstance(wanted, np.ndarray) else wanted
    found = tilework.compile(single(operator, arrays, inputs, results, **attributes))(
        **{name: arrays[name] for name in arrays if name in inputs.split()}
    )
    for one, other in zip(found, results, strict=True):
        assert one.dtype == other.dtype
        if other.dtype.kind in "iu":
            np.testing.assert_array_equal(one, other)
        else:
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def numbers(q: Array, scale: Any, zero: Any) -> Array:
    return (q.astype(np.int32) - np.int32(zero)).astype(F32) * F32(scale)


def narrow(x: Any, scale: Any, zero: int, kind: str) -> Array:
    return np.clip(np.rint((np.asarray(x, F32) / F32(scale)).astype(F32)) + zero, *RANGES[kind]).astype(kind)


def leaky(x: Array) -> Array:
    return np.where(x >= 0, x, x * F32(0.25))


UNARY: dict[str, Callable[[Array], Array]] = {
    "QLinearLeakyRelu": leaky, "QLinearSigmoid": lambda x: (1 / (1 + np.exp(-x.astype(np.float64)))).astype(F32),
}  # fmt: skip


@pytest.mark.parametrize("kind", RANGES)
def test_element_by_element(kind: str) -> None:
    random = np.random.default_rng(0)
    low, high = RANGES[kind]

    def draw(*shape: int) -> Array:
        return random.integers(low, high + 1, shape).astype(kind)

    a, b, zero = draw(2, 7, 33), draw(7, 1), np.array([5, 9, 60], kind)
    for operator, make in (("QLinearAdd", np.add), ("QLinearMul", np.multiply)):
        exact: Any = make(numbers(a, 0.25, 5), numbers(b, 0.5, 9))
        arrays = {
            "a": a, "sa": F32(0.25), "za": zero[0], "b": b, "sb": F32(0.5), "zb": zero[1], "sc": F32(2), "zc": zero[2]
        }  # fmt: skip
        check(operator, arrays, "a b", narrow(exact, 2, 60, kind))
    for operator, of in UNARY.items():
        scale = F32(1 / 256 if operator == "QLinearSigmoid" else 0.5)
        arrays = {"a": a, "sa": F32(0.03), "za": zero[0], "sc": scale, "zc": zero[1]}
        attributes = {"alpha": 0.25} if operator == "QLinearLeakyRelu" else {}
        check(operator, arrays, "a", narrow(of(numbers(a, 0.03, 5)), scale, 9, kind), **attributes)
    image = draw(2, 3, 5, 6)
    for last in (0, 1):
        axes = (1, 2) if last else (2, 3)
        total = (image.astype(np.int32) - 5).sum(axes, keepdims=True)
        count = F32(np.prod([image.shape[axis] for axis in axes]))
        factor = F32(0.3) / (F32(0.25) * count)
        wanted = np.clip(np.rint(total.astype(F32) * factor) + 9, low, high).astype(kind)
        arrays = {"x": image, "sx": F32(0.3), "zx": zero[0], "sy": F32(0.25), "zy": zero[1]}
        check("QLinearGlobalAveragePool", arrays, "x", wanted, channels_last=last)
    c = draw(2, 4, 33)
    arrays = {"s": F32(0.5), "z": zero[1], "a": a, "sa": F32(0.25), "za": zero[0], "c": c, "sc": F32(1), "zc": zero[1]}
    parts = [narrow(numbers(a, 0.25, 5), 0.5, 9, kind), narrow(numbers(c, 1, 9), 0.5, 9, kind)]
    check("QLinearConcat", arrays, "a c", np.concatenate(parts, 1), axis=1)


@pytest.mark.parametrize("kind", RANGES)
def test_means_of_windows(kind: str) -> None:
    """Scales are powers of two, so that sums are exact whatever their order."""
    random = np.random.default_rng(2)
    low, high = RANGES[kind]
    x, zero = random.integers(low, high + 1, (2, 3, 5, 6)).astype(kind), np.array([5, 9], kind)
    arrays = {"x": x, "sx": F32(0.5), "zx": zero[0], "sy": F32(0.25), "zy": zero[1]}
    real = np.pad(numbers(x, 0.5, 5), ((0, 0), (0, 0), (1, 1), (1, 1)))
    inside = np.pad(np.ones((5, 6)), 1)
    for counts in (0, 1):
        wanted = np.zeros((2, 3, 5, 3), F32)
        for i in range(5):
            for j in range(3):
                here = (slice(i, i + 3), slice(2 * j, 2 * j + 2))
                count = 6 if counts else inside[here].sum()
                wanted[:, :, i, j] = real[:, :, *here].sum((2, 3)) / F32(count)
        how: dict[str, Any] = {
            "kernel_shape": [3, 2],
            "strides": [1, 2],
            "pads": [1, 1, 1, 0],
            "count_include_pad": counts,
        }
        narrowed = narrow(wanted, 0.25, 9, kind)
        check("QLinearAveragePool", arrays, "x", narrowed, **how)
        last = {**arrays, "x": np.ascontiguousarray(x.transpose(0, 2, 3, 1))}
        check("QLinearAveragePool", last, "x", narrowed.transpose(0, 2, 3, 1), channels_last=1, **how)


@pytest.mark.parametrize("kind", RANGES)
@pytest.mark.parametrize("opset", [12, 13])
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_softmax(kind: str, opset: int, axis: int) -> None:
    random = np.random.default_rng(3)
    low, high = RANGES[kind]
    x = random.integers(low, high + 1, (3, 4, 5)).astype(kind)
    arrays = {"x": x, "sx": F32(0.03), "zx": np.array(5, kind), "sy": F32(1 / 256), "zy": np.array(low, kind)}
    real = numbers(x, 0.03, 5).astype(np.float64)
    rows = real if opset == 13 else real.reshape(int(np.prod(x.shape[: axis % 3])), -1)
    over = axis if opset == 13 else 1
    parts = np.exp(rows - rows.max(over, keepdims=True))
    wanted = (parts / parts.sum(over, keepdims=True)).reshape(x.shape)
    check("QLinearSoftmax", arrays, "x", narrow(wanted, 1 / 256, low, kind), axis=axis, opset=opset)


@pytest.mark.parametrize("per", [False, True])
def test_products(per: bool) -> None:
    random = np.random.default_rng(1)
    a = random.integers(0, 256, (9, 40)).astype(np.uint8)
    b = random.integers(-128, 128, (40, 17)).astype(np.int8)
    sb = random.uniform(0.01, 0.02, 17 if per else ()).astype(F32)
    zb = random.integers(-5, 6, 17 if per else ()).astype(np.int8)
    bias = random.integers(-3000, 3000, 17).astype(np.int32)
    total = (a.astype(np.int64) - 7) @ (b.astype(np.int64) - zb)
    arrays: dict[str, Any] = {
        "a": a, "b": b, "sa": np.array(0.03, F32), "sb": np.asarray(sb), "za": np.array(7, np.uint8),
        "zb": np.asarray(zb), "c": bias.astype(F32),
    }  # fmt: skip
    wanted = total.astype(F32) * (F32(0.03) * sb) + bias.astype(F32)
    for known in ("a", "a b", "a b zb"):
        check("MatMulIntegerToFloat", arrays, known, wanted, 1e-4)
    gemm = {"a": a, "sa": arrays["sa"], "za": arrays["za"], "b": b.T, "sb": arrays["sb"], "zb": arrays["zb"], "c": bias}
    sums = (total + bias).astype(F32)
    for known in ("a", "a b"):
        check("QGemm", gemm, known, sums * (F32(0.03) * sb), 1e-5, transB=1)
    factor = F32(0.03) * sb / F32(0.7)
    narrowed = np.clip(np.rint(sums * factor) + 11, 0, 255).astype(np.uint8)
    check("QGemm", {**gemm, "sy": np.array(0.7, F32), "zy": np.array(11, np.uint8)}, "a", narrowed, transB=1)
    x = random.standard_normal((9, 40)).astype(F32)
    q, scale, zero = dynamic(x)
    found = ((q - zero) @ (b.astype(np.int64) - zb)).astype(F32) * (scale * sb)
    arrays = {"x": x, "b": b, "sb": np.asarray(sb), "zb": np.asarray(zb)}
    check("DynamicQuantizeMatMul", arrays, "x", found, 1e-4)


# -- recurrent ---------------------------------------------------------------------------------------------------------
def dynamic(x: Array) -> tuple[Array, Any, int]:
    low, high = F32(min(x.min(), 0)), F32(max(x.max(), 0))
    scale = F32((high - low) / F32(255)) or F32(1)
    zero = int(np.rint(np.clip(-low / scale, 0, 255)))
    return np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.int64), scale, zero


def lstm(x: Array, w: Array, r: Array, bias: Array, scales: tuple[Any, Any], zeros: tuple[Any, Any]) -> Array:
    """One direction; gates are input, output, forget, cell."""

    def product(rows: Array, weights: Array, scale: Any, offset: Any) -> Array:
        q, own, zero = dynamic(rows)
        return np.asarray(((q - zero) @ (weights.astype(np.int64) - offset)).astype(F32) * (own * scale))

    hidden = r.shape[0]
    inputs = product(x, w, scales[0], zeros[0]) + bias[: 4 * hidden] + bias[4 * hidden :]
    h = c = np.zeros((x.shape[1], hidden), F32)
    found: list[Array] = []
    for row in inputs:
        gates = (row + product(h, r, scales[1], zeros[1])).astype(np.float64)
        i, o, f = (1 / (1 + np.exp(-gate)) for gate in np.split(gates[:, : 3 * hidden], 3, axis=1))
        c = (f * c + i * np.tanh(gates[:, 3 * hidden :])).astype(F32)
        h = (o * np.tanh(c)).astype(F32)
        found.append(h)
    return np.stack(found)


@pytest.mark.parametrize("per", [False, True])
@pytest.mark.parametrize("kind", RANGES)
def test_dynamic_lstm(kind: str, per: bool) -> None:
    random = np.random.default_rng(3)
    length, batch, width, hidden = 4, 2, 5, 6
    low, high = RANGES[kind]
    count = (2, 4 * hidden) if per else (2,)
    w, r = (random.integers(low, high + 1, (2, rows, 4 * hidden)).astype(kind) for rows in (width, hidden))
    scales = [random.uniform(0.004, 0.006, count).astype(F32) for _ in range(2)]
    zeros = [random.integers((low + high) // 2 - 3, (low + high) // 2 + 4, count).astype(kind) for _ in range(2)]
    x, bias = random.standard_normal((length, batch, width)).astype(F32), random.random((2, 8 * hidden)).astype(F32)
    ways: list[Array] = []
    for d, data in enumerate((x, x[::-1])):
        own = tuple(s[d] for s in scales), tuple(z[d].astype(np.int64) for z in zeros)
        one = lstm(data, w[d], r[d], bias[d], own[0], own[1])  # type: ignore[arg-type]
        ways.append(one[::-1] if d else one)
    arrays: dict[str, Any] = {"x": x, "w": w, "r": r, "b": bias}
    node = ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"]
    arrays |= {"ws": scales[0], "wz": zeros[0], "rs": scales[1], "rz": zeros[1]}
    proto = single(
        "DynamicQuantizeLSTM", arrays, "x", [np.stack(ways, 1)], direction="bidirectional", hidden_size=hidden
    )
    del proto.graph.node[0].input[:]
    proto.graph.node[0].input.extend(node)
    (found,) = tilework.compile(proto)(x=x)
    # a rounding of a state's last bit may become one step of its quantisation
    np.testing.assert_allclose(found, np.stack(ways, 1), atol=2e-3)
    assert np.median(np.abs(found - np.stack(ways, 1))) < 1e-6


def test_refusals() -> None:
    a, scale, zero = np.zeros((2, 3), np.uint8), F32(1), np.uint8(0)
    whole: dict[str, Any] = {"a": a, "sa": scale, "za": zero, "b": a, "sb": scale, "zb": zero, "sc": scale}
    result = [np.zeros((2, 3), np.uint8)]
    assert codes_of(single("QLinearAdd", {**whole, "a": a.astype(np.int32)}, "a", result)) == {1119}
    assert codes_of(single("QLinearAdd", {"a": a, "sa": scale, "za": zero}, "a", result)) == {1117}
    assert codes_of(single("QLinearAdd", {**whole, "sa": np.ones(3, F32)}, "a", result)) == {1119}
    assert codes_of(single("QLinearConcat", {"s": scale, "z": zero, "a": a}, "a", result, axis=0)) == {1117}
    assert codes_of(single("QLinearPurple", {"a": a}, "a", result)) == {1105}
