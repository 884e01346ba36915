"""Indices of the largest in windows, diagonals in Einstein sums, remainders of floats, batches in training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

import tilework
from tests.frontends.onnx.models import assert_close, model, one_node, run
from tilework.errors import FrontendError, RunError
from tilework.frontends.onnx.importer import import_model


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(31)


def largest(x: Any, size: tuple[int, ...], strides: tuple[int, ...], pads: tuple[int, ...], columns: bool) -> Any:
    """Values and flat places by brute force; windows over the last two dimensions."""
    height, width = x.shape[2:]
    low, high = pads[:2], pads[2:]
    out = [(e + a + b - k) // s + 1 for e, a, b, k, s in zip((height, width), low, high, size, strides, strict=True)]
    values = np.zeros((*x.shape[:2], *out), x.dtype)
    places = np.zeros(values.shape, np.int64)
    for n, c, i, j in np.ndindex(*values.shape):
        best: tuple[Any, int] | None = None
        for p, q in np.ndindex(*size):
            row, column = i * strides[0] - low[0] + p, j * strides[1] - low[1] + q
            if 0 <= row < height and 0 <= column < width:
                found = x[n, c, row, column]
                better = best is None or found > best[0] or (np.isnan(found) and not np.isnan(best[0]))
                if better:
                    inner = column * height + row if columns else row * width + column
                    best = found, (n * x.shape[1] + c) * height * width + inner
        assert best is not None
        values[n, c, i, j], places[n, c, i, j] = best
    return values, places


@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "free"])
@pytest.mark.parametrize("columns", [False, True])
def test_places_of_the_largest(random: np.random.Generator, columns: bool, symbolic: bool) -> None:
    x = random.integers(-4, 5, (2, 3, 7, 5)).astype(np.float32)
    x[0, 0, 3, 3] = np.nan
    x[1, 2] = -np.inf
    attributes: dict[str, Any] = {
        "kernel_shape": [3, 2],
        "strides": [2, 1],
        "pads": [1, 0, 1, 1],
        "storage_order": int(columns),
    }
    nodes = [helper.make_node("MaxPool", ["x"], ["y", "i"], **attributes)]
    shape: list[Any] = ["n", 3, "h", "w"] if symbolic else list(x.shape)
    proto = model(nodes, {"x": (np.float32, shape)}, ["y", "i"], {}, 12)
    assert_close(run(proto, {"x": x}), list(largest(x, (3, 2), (2, 1), (1, 0, 1, 1), columns)))


@pytest.mark.parametrize("equation", ["ii->i", "ii", "...ii->...i", "iij,jk->ik", "iii->i"])
def test_diagonals(random: np.random.Generator, equation: str) -> None:
    ranks = {"ii->i": [(4, 4)], "ii": [(4, 4)], "...ii->...i": [(2, 3, 3)], "iij,jk->ik": [(3, 3, 2), (2, 5)],
             "iii->i": [(3, 3, 3)]}[equation]  # fmt: skip
    given = {f"x{n}": random.integers(-3, 4, shape).astype(np.float32) for n, shape in enumerate(ranks)}
    given["x0"].reshape(-1)[1] = np.inf  # not on the diagonal, and no part of the sum
    nodes = [helper.make_node("Einsum", list(given), ["y"], equation=equation)]
    proto = model(nodes, {name: (np.float32, list(a.shape)) for name, a in given.items()}, ["y"], {}, 13)
    assert_close(run(proto, given), [np.einsum(equation, *given.values())])


def test_remainders_of_floats_take_the_divisors_sign(random: np.random.Generator) -> None:
    x = random.uniform(-9, 9, 40).astype(np.float32)
    y = random.uniform(-3, 3, 40).astype(np.float32)
    proto = model(
        [helper.make_node("Mod", ["x", "y"], ["z"])], {"x": (np.float32, [40]), "y": (np.float32, [40])}, ["z"], {}, 28
    )
    assert_close(run(proto, {"x": x, "y": y}), [np.mod(x, y)])


@pytest.mark.parametrize(("opset", "results"), [(9, 5), (15, 3)])
def test_batches_in_training(random: np.random.Generator, opset: int, results: int) -> None:
    x = random.standard_normal((4, 3, 5)).astype(np.float32)
    scale, bias, mean = (random.standard_normal(3).astype(np.float32) for _ in range(3))
    variance = random.random(3).astype(np.float32)
    names = ["y", "m", "v", "sm", "sv"][:results]
    extra: dict[str, Any] = {"training_mode": 1} if opset >= 14 else {}
    node = helper.make_node("BatchNormalization", ["x", "s", "b", "mean", "var"], names, momentum=0.8, **extra)
    constants = {"s": scale, "b": bias, "mean": mean, "var": variance}
    proto = model([node], {"x": (np.float32, list(x.shape))}, names, constants, opset)
    own, spread = x.mean((0, 2)), x.var((0, 2))
    normal = (x - own[:, None]) / np.sqrt(spread[:, None] + 1e-5)
    moved = [mean * 0.8 + own * 0.2, variance * 0.8 + spread * 0.2]
    wanted = [normal * scale[:, None] + bias[:, None], *moved, own, spread]
    assert_close(run(proto, {"x": x}), wanted[:results], 1e-4)


@pytest.mark.parametrize("steps", [0, 7])
@pytest.mark.parametrize("operator", ["Adagrad", "Adam", "Momentum"])
def test_steps_of_optimisers(random: np.random.Generator, operator: str, steps: int) -> None:
    from onnx.reference import ReferenceEvaluator

    moments = {"Adagrad": 1, "Adam": 2, "Momentum": 1}[operator]
    attributes: dict[str, Any] = {"norm_coefficient": 0.1}
    attributes |= {"alpha": 0.9, "beta": 0.7, "mode": "nesterov"} if operator == "Momentum" else {"epsilon": 1e-3}
    attributes |= {"norm_coefficient_post": 0.2} if operator == "Adam" else {}
    names = [f"{kind}{n}" for kind in ("x", "g", *(f"m{k}_" for k in range(moments))) for n in range(2)]
    shapes = [(3,), (2, 2)]
    given: dict[str, Any] = {name: random.random(shapes[int(name[-1])]).astype(np.float32) for name in names}
    given = {"r": np.array(0.1, np.float32), "t": np.array(steps), **given}
    results = [f"{kind}{n}" for kind in ("y", *(f"n{k}_" for k in range(moments))) for n in range(2)]
    node = helper.make_node(operator, list(given), results, domain="ai.onnx.preview.training", **attributes)
    types = {name: (a.dtype.type, list(a.shape)) for name, a in given.items()}
    proto = model([node], types, results, {}, 18)
    proto.opset_import.add(domain="ai.onnx.preview.training", version=1)
    evaluator: Any = ReferenceEvaluator(proto)
    assert_close(run(proto, given), evaluator.run(None, given), 1e-4)


@pytest.mark.parametrize("ratio", [0.3, 1.0])
def test_dropout_in_training_drops_a_share_and_lets_the_rest_grow(random: np.random.Generator, ratio: float) -> None:
    x = random.uniform(1, 2, 4000).astype(np.float32)
    constants = {"r": np.array(ratio, np.float32), "t": np.array(True)}
    proto = one_node("Dropout", {"x": x}, constants, opset=13, outputs=2, seed=5)
    found, kept = run(proto, {"x": x})
    assert abs(kept.mean() - (1 - ratio)) < 0.05
    assert_close([found], [np.where(kept, x / np.float32(max(1 - ratio, 1e-9)), 0).astype(np.float32)])
    assert_close(run(proto, {"x": x}), [found, kept])


@pytest.mark.parametrize("ratio", [float("nan"), float("inf"), -0.5, 1.5])
def test_a_share_to_drop_is_from_0_to_1(ratio: float) -> None:
    held = {"r": np.float32(ratio), "t": np.array(True)}
    node = helper.make_node("Dropout", ["x", "r", "t"], ["y"])
    x = np.ones(9, np.float32)
    with pytest.raises(FrontendError, match="the ratio is"):
        import_model(model([node], {"x": (np.float32, [9])}, ["y"], held))
    proto = model([node], {"x": (np.float32, [9]), "r": (np.float32, [])}, ["y"], {"t": held["t"]})
    with pytest.raises(RunError, match=r"TW1801.*Dropout -> y: there is no ratio from 0 to 1"):
        tilework.compile(proto)(x, held["r"])


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("shape", [(4, 3), (2, 1, 5), (0, 3), (3, 0)])
def test_triangles_of_diagonals_however_far_out(
    random: np.random.Generator, shape: tuple[int, ...], upper: int
) -> None:
    x = random.standard_normal(shape).astype(np.float32)
    node = helper.make_node("Trilu", ["x", "k"], ["y"], upper=upper)
    executable = tilework.compile(model([node], {"x": (np.float32, shape), "k": (np.int64, [])}, ["y"]))
    far = (2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, 2**32)
    for k in (*range(-5, 6), *far):
        near = max(min(k, 9), -9)
        wanted = np.triu(x, near) if upper else np.tril(x, near)
        np.testing.assert_array_equal(executable(x, np.array(k))[0], wanted)
