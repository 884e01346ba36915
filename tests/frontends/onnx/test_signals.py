"""Fourier transforms against numpy's, windows, and the mel scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

import tilework
from tests.frontends.onnx.models import assert_close, check_against_reference, codes_of, model, one_node, run
from tilework.graph.graph import Array

LENGTHS = [1, 2, 3, 7, 16, 97, 100, 250, 521, 600]


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(11)


def whole(value: Array) -> Any:
    """The complex numbers of [..., 1] or [..., 2]."""
    wide = value.astype(np.float64)
    return wide[..., 0] if value.shape[-1] == 1 else wide[..., 0] + 1j * wide[..., 1]


def taken_apart(value: Any) -> Array:
    return np.stack([value.real, value.imag], -1)


def number(value: int) -> Array:
    return np.array(value, np.int64)


def dft(x: Array, length: int | None, axis: int | None, opset: int, **flags: Any) -> ModelProto:
    constants: dict[str, Any] = {} if length is None else {"length": number(length)}
    if opset >= 20:
        order = ["x", "" if length is None else "length"]
        if axis is not None:
            constants["axis"] = number(axis)
            order.append("axis")
        return one_node("DFT", {"x": x}, constants, opset=opset, order=order, **flags)
    if axis is not None:
        flags["axis"] = axis
    return one_node("DFT", {"x": x}, constants, opset=opset, **flags)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("parts", [1, 2])
def test_every_length(random: np.random.Generator, length: int, parts: int) -> None:
    x = random.standard_normal((2, length, parts))
    (forward,) = run(dft(x, None, None, 20), {"x": x})
    np.testing.assert_allclose(forward, taken_apart(np.fft.fft(whole(x), axis=1)), rtol=1e-9, atol=1e-9)
    (back,) = run(dft(x, None, 1, 17, inverse=1), {"x": x})
    np.testing.assert_allclose(back, taken_apart(np.fft.ifft(whole(x), axis=1)), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize("axis", [0, 1, 2, -2, -4])
@pytest.mark.parametrize("length", [None, 1, 3, 8])
def test_axes_and_lengths(random: np.random.Generator, opset: int, axis: int, length: int | None) -> None:
    x = random.standard_normal((3, 4, 5, 2)).astype(np.float32)
    place = axis % 4
    (found,) = run(dft(x, length, axis, opset), {"x": x})
    np.testing.assert_allclose(found, taken_apart(np.fft.fft(whole(x), length, place)), rtol=1e-4, atol=1e-5)
    real = x[..., :1]
    (half,) = run(dft(real, length, axis, opset, onesided=1), {"x": real})
    np.testing.assert_allclose(half, taken_apart(np.fft.rfft(whole(real), length, place)), rtol=1e-4, atol=1e-5)
    wanted = np.fft.irfft(whole(x), length, place)[..., None]
    (back,) = run(dft(x, length, axis, opset, onesided=1, inverse=1), {"x": x})
    np.testing.assert_allclose(back, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_compiled_with_free_dims(random: np.random.Generator, kind: Any) -> None:
    # of one more batch than elements, so that the symbols are different ones
    ways: list[tuple[int, dict[str, Any]]] = [
        (1, {"onesided": 1}), (2, {}), (2, {"inverse": 1}), (2, {"inverse": 1, "onesided": 1}),
    ]  # fmt: skip
    for parts, flags in ways:
        x = random.standard_normal((8, 7, parts)).astype(kind)
        proto = one_node("DFT", {"x": x}, symbolic=True, **flags)
        proto.graph.input[0].type.tensor_type.shape.dim[2].dim_value = parts
        compiled = tilework.compile(proto)
        for shape in ((8, 7), (3, 12), (1, 2), (0, 5)):
            y = random.standard_normal((*shape, parts)).astype(kind)
            value = whole(y)
            if flags.get("inverse"):
                wanted = (
                    np.fft.irfft(value, axis=1)[..., None]
                    if "onesided" in flags
                    else taken_apart(np.fft.ifft(value, axis=1))
                )
            else:
                wanted = taken_apart(np.fft.rfft(value, axis=1) if flags else np.fft.fft(value, axis=1))
            assert_close(compiled(y), [wanted.astype(kind)], {2: 2e-2, 4: 1e-4, 8: 1e-10}[y.dtype.itemsize])


def test_transforms_that_make_no_sense(random: np.random.Generator) -> None:
    two, one = random.standard_normal((3, 4, 2)), random.standard_normal((3, 4, 1))
    bad: list[tuple[Array, int | None, int, dict[str, Any]]] = [
        (two, None, 2, {}), (two, None, 5, {}), (two, 0, 1, {}), (two, None, 1, {"onesided": 1}),
        (one, None, 1, {"onesided": 1, "inverse": 1}), (random.standard_normal((3, 4, 3)), None, 1, {}),
    ]  # fmt: skip
    for x, length, axis, flags in bad:
        assert codes_of(dft(x, length, axis, 20, **flags)) <= {1108, 1119}


def stft(signal: Array, constants: Mapping[str, Any], **attributes: Any) -> ModelProto:
    order = ["x", "step", "window" if "window" in constants else "", "length" if "length" in constants else ""]
    return one_node("STFT", {"x": signal}, constants, order=order, **attributes)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("step", [1, 4, 9])
def test_short_time_transforms(random: np.random.Generator, parts: int, windowed: bool, step: int) -> None:
    x = random.standard_normal((2, 40, parts))
    window = random.standard_normal(11)
    for sided in (0, 1):
        if sided and parts == 2:
            assert codes_of(stft(x, {"step": number(step), "length": number(11)}, onesided=1)) == {1119}
            continue
        constants = {"step": number(step)} | ({"window": window} if windowed else {"length": number(11)})
        (found,) = run(stft(x, constants, onesided=sided), {"x": x})
        value = whole(x)
        frames = np.stack([value[:, s : s + 11] for s in range(0, 30, step)], 1) * (window if windowed else 1)
        wanted = np.fft.rfft(frames) if sided else np.fft.fft(frames)
        np.testing.assert_allclose(found, taken_apart(wanted), rtol=1e-9, atol=1e-10)
    assert codes_of(stft(x, {"step": number(0), "length": number(11)}, onesided=0)) == {1119}
    assert codes_of(stft(x, {"step": number(1), "length": number(41)}, onesided=0)) == {1119}


@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize("operator", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_windows(operator: str, periodic: int) -> None:
    factors = {"HannWindow": (0.5, -0.5), "HammingWindow": (25 / 46, -21 / 46), "BlackmanWindow": (0.42, -0.5, 0.08)}
    for size in (0, 1, 2, 3, 10):
        proto = one_node(operator, {}, {"n": number(size)}, periodic=periodic, output_datatype=TensorProto.DOUBLE)
        angles = 2 * np.pi * np.arange(size) / max(size if periodic else size - 1, 1)
        wanted = sum(f * np.cos(m * angles) for m, f in enumerate(factors[operator]))
        assert_close(run(proto, {}), [np.asarray(wanted)])
    # the size of an input's dimension
    from onnx import helper

    nodes = [
        helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Squeeze", ["s"], ["n"]),
        helper.make_node(operator, ["n"], ["y"], periodic=periodic),
    ]  # fmt: skip
    compiled = tilework.compile(model(nodes, {"x": (np.float32, ["n"])}, ["y"]))
    for size in (1, 2, 9):
        proto = one_node(operator, {}, {"n": number(size)}, periodic=periodic)
        assert_close(compiled(np.zeros(size, np.float32)), run(proto, {}))


@pytest.mark.parametrize("bands", [1, 8, 20])
@pytest.mark.parametrize("length", [16, 64, 200])
def test_the_mel_scale(bands: int, length: int) -> None:
    constants = {
        "bands": number(bands), "length": number(length), "rate": number(8192), "low": np.float32(0),
        "high": np.float32(4096),
    }  # fmt: skip
    check_against_reference(one_node("MelWeightMatrix", {}, constants), {})
    assert codes_of(one_node("MelWeightMatrix", {}, {**constants, "high": np.float32(-1)})) == {1119}
