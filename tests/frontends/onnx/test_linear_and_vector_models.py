"""Linear models, scaling and support vector machines of ai.onnx.ml, against numpy in float64 and onnx.reference."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tests.frontends.onnx.ml_models import compiled, interpreted, ml_model
from tests.frontends.onnx.models import faults_of, reference

KINDS = [np.float32, np.float64, np.int32, np.int64]


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(5)


def numbers(random: np.random.Generator, *shape: int, kind: Any = np.float32) -> Any:
    return random.integers(-3, 4, shape).astype(kind)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regressors(random: np.random.Generator, kind: Any, targets: int) -> None:
    x, matrix, bias = numbers(random, 5, 4, kind=kind), numbers(random, targets, 4), numbers(random, targets)
    attributes: dict[str, Any] = {
        "coefficients": matrix.reshape(-1).tolist(),
        "intercepts": bias.tolist(),
        "targets": targets,
    }
    proto = ml_model("LinearRegressor", {"x": x}, symbolic=True, **attributes)
    wanted = (x.astype(np.float64) @ matrix.T + bias).astype(np.float32)
    for (found,) in (interpreted(proto, {"x": x}), compiled(proto, {"x": x}, checked=True)):
        np.testing.assert_array_equal(found, wanted)
    (found,) = compiled(proto, {"x": x[:0]})
    assert found.shape == (0, targets)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize(("targets", "labels"), [(1, 2), (2, 2), (4, 4)])
def test_linear_classifiers(random: np.random.Generator, transform: str, targets: int, labels: int) -> None:
    x, matrix, bias = numbers(random, 6, 3), numbers(random, targets, 3), numbers(random, targets)
    names = [f"class {place}" for place in range(labels)]
    proto = ml_model(
        "LinearClassifier", {"x": x}, 2, symbolic=True, coefficients=matrix.reshape(-1).tolist(),
        intercepts=bias.tolist(), classlabels_strings=names, post_transform=transform,
    )  # fmt: skip
    raw = (x @ matrix.T + bias).astype(np.float64)
    places = (raw[:, 0] > 0).astype(int) if targets == 1 else raw.argmax(1)
    if targets == 1:  # ONNX Runtime's rule: the first class gets what the second leaves
        second = 1 / (1 + np.exp(-raw)) if transform == "LOGISTIC" else raw
        wanted = np.concatenate([1 - second, second], 1)
    else:
        wanted = {"NONE": raw, "LOGISTIC": 1 / (1 + np.exp(-raw)), "SOFTMAX": softmax(raw)}[transform]
    for label, scores in (interpreted(proto, {"x": x}), compiled(proto, {"x": x})):
        assert label.tolist() == [names[place] for place in places]
        np.testing.assert_allclose(scores, wanted, rtol=1e-5, atol=1e-6)


def test_probit_is_the_reference_s(random: np.random.Generator) -> None:
    x = random.random((5, 1)).astype(np.float32)
    x[:2, 0] = [0.0, 1.0]
    (found,) = compiled(
        ml_model("LinearRegressor", {"x": x}, coefficients=[1.0], targets=1, post_transform="PROBIT"), {"x": x}
    )
    assert found[:2, 0].tolist() == [-np.inf, np.inf]
    proto = ml_model(
        "LinearClassifier", {"x": x}, 2, coefficients=[1.0], intercepts=[0.0], classlabels_ints=[1],
        post_transform="PROBIT",
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, wanted = reference(proto, {"x": x})
    np.testing.assert_allclose(found[2:], wanted[2:], rtol=2e-4, atol=2e-5)


def test_coefficients_that_do_not_serve_the_features() -> None:
    x = np.zeros((2, 4), np.float32)
    found = faults_of(ml_model("LinearRegressor", {"x": x}, coefficients=[1.0, 2.0], targets=1))
    assert [code for code, _ in found] == [1108]
    found = faults_of(ml_model("LinearClassifier", {"x": x}, 2, coefficients=[1.0] * 4))
    assert "classlabels" in found[0][1]


@pytest.mark.parametrize("kind", KINDS)
def test_features(random: np.random.Generator, kind: Any) -> None:
    x = numbers(random, 4, 3, kind=kind)
    x[1] = 0
    wide = x.astype(np.float32)
    (scaled,) = compiled(ml_model("Scaler", {"x": x}, scale=[1.0, 2.0, 0.5], offset=[1.0, 0.0, -1.0]), {"x": x})
    np.testing.assert_array_equal(scaled, (wide - np.array([1, 0, -1], np.float32)) * np.array([1, 2, 0.5], np.float32))
    (scaled,) = compiled(ml_model("Scaler", {"x": x}, scale=[3.0], offset=[2.0]), {"x": x})
    np.testing.assert_array_equal(scaled, (wide - 2) * 3)
    (cut,) = compiled(ml_model("Binarizer", {"x": x}, threshold=0.5), {"x": x})
    np.testing.assert_array_equal(cut, (x > 0.5).astype(kind))
    assert cut.dtype == kind
    for norm in ("MAX", "L1", "L2"):
        by = {"MAX": wide.max(1), "L1": abs(wide).sum(1), "L2": np.sqrt((wide * wide).sum(1))}[norm][:, None]
        (found,) = compiled(ml_model("Normalizer", {"x": x}, symbolic=True, norm=norm), {"x": x})
        np.testing.assert_allclose(found, wide / np.where(by == 0, 1, by), rtol=1e-6)
    (found,) = compiled(
        ml_model("FeatureVectorizer", {"a": x, "b": x[:, :1]}, inputdimensions=[2, 3]), {"a": x, "b": x[:, :1]}
    )
    np.testing.assert_array_equal(found, np.concatenate([wide[:, :2], wide[:, :1], np.zeros((4, 2))], 1))


# -- support vectors ---------------------------------------------------------------------------------------------------
def machine(random: np.random.Generator, kernel: str, classes: int) -> dict[str, Any]:
    per_class = random.integers(1, 4, classes).tolist()
    count, pairs = sum(per_class), classes * (classes - 1) // 2
    return {
        "kernel_type": kernel, "kernel_params": [0.25, 0.5, 3.0], "vectors_per_class": per_class,
        "support_vectors": random.standard_normal(count * 3).tolist(), "rho": random.standard_normal(pairs).tolist(),
        "coefficients": random.standard_normal(count * (classes - 1)).tolist(),
        "classlabels_ints": [7 * place for place in range(classes)],
    }  # fmt: skip


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("probabilities", [False, True])
def test_svm_classifiers(random: np.random.Generator, kernel: str, classes: int, probabilities: bool) -> None:
    attributes = machine(random, kernel, classes)
    pairs = classes * (classes - 1) // 2
    if probabilities:
        attributes["prob_a"] = (-np.abs(random.standard_normal(pairs))).tolist()
        attributes["prob_b"] = random.standard_normal(pairs).tolist()
    x = random.standard_normal((6, 3)).astype(np.float32)
    proto = ml_model("SVMClassifier", {"x": x}, 2, symbolic=True, **attributes)
    label, scores = compiled(proto, {"x": x})
    plain = {name: value for name, value in attributes.items() if not name.startswith("prob")}
    wanted, values = reference(ml_model("SVMClassifier", {"x": x}, 2, post_transform="NONE", **plain), {"x": x})
    if probabilities:
        sides = values[:, 1:] if classes == 2 else values
        first = 1 / (1 + np.exp(sides * np.array(attributes["prob_a"]) + np.array(attributes["prob_b"])))
        values = np.stack([coupled(row.clip(1e-7, 1 - 1e-7), classes) for row in first.astype(np.float64)])
    np.testing.assert_array_equal(label, wanted)
    np.testing.assert_allclose(scores, values, rtol=2e-4, atol=2e-5)


def coupled(pairwise: Any, classes: int) -> Any:
    """Probabilities of classes as libsvm couples those of pairs. (onnx.reference is wrong from 3 classes on.)"""
    against = np.zeros((classes, classes))
    for value, (one, other) in zip(pairwise, combinations(range(classes), 2), strict=True):
        against[one, other], against[other, one] = value, 1 - value
    system = -against.T * against
    np.fill_diagonal(system, (against.T**2).sum(1))
    p = np.full(classes, 1 / classes)
    for _ in range(100):
        product = system @ p
        value = p @ product
        if abs(product - value).max() < 0.005 / classes:
            break
        for place in range(classes):
            step = (value - product[place]) / system[place, place]
            p[place] += step
            value = (value + step * (step * system[place, place] + 2 * product[place])) / (1 + step) ** 2
            product = (product + step * system[place]) / (1 + step)
            p /= 1 + step
    return p


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("vectors", [0, 5])
@pytest.mark.parametrize("one_class", [0, 1])
def test_svm_regressors(random: np.random.Generator, kernel: str, vectors: int, one_class: int) -> None:
    attributes: dict[str, Any] = {
        "kernel_type": kernel, "kernel_params": [0.25, 0.5, 2.0], "n_supports": vectors, "rho": [0.25],
        "coefficients": random.standard_normal(vectors or 3).tolist(), "one_class": one_class,
    }  # fmt: skip
    if vectors:
        attributes["support_vectors"] = random.standard_normal(vectors * 3).tolist()
    x = random.standard_normal((6, 3)).astype(np.float32)
    proto = ml_model("SVMRegressor", {"x": x}, symbolic=True, **attributes)
    wanted = reference(ml_model("SVMRegressor", {"x": x}, post_transform="NONE", **attributes), {"x": x})
    for found in (interpreted(proto, {"x": x}), compiled(proto, {"x": x}, checked=True)):
        np.testing.assert_allclose(found[0], wanted[0], rtol=2e-5, atol=2e-5)


def test_broken_machines_are_refused(random: np.random.Generator) -> None:
    x = np.zeros((2, 3), np.float32)
    whole = machine(random, "RBF", 3)
    changes: dict[str, list[Any]] = {
        "rho": [0.0], "kernel_params": [1.0], "support_vectors": [1.0], "coefficients": [1.0, 2.0],
        "vectors_per_class": [2, 2], "prob_a": [1.0],
    }  # fmt: skip
    for name, value in changes.items():
        broken: dict[str, Any] = {**whole, name: value}
        ((code, text),) = faults_of(ml_model("SVMClassifier", {"x": x}, 2, **broken))
        assert code == 1108
        assert name in text
