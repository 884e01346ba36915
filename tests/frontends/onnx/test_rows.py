"""ReverseSequence and TensorScatter against loops, determinants against numpy, n-grams against counting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import tilework
from tests.frontends.onnx.models import codes_of, model, one_node, run
from tilework.graph.graph import Array


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(5)


def reversed_rows(x: Array, lengths: Array, batch: int) -> Array:
    found = x.copy()
    for place, length in enumerate(lengths):
        row = found[place] if batch == 0 else found[:, place]
        row[:length] = row[:length][::-1].copy()
    return found


@pytest.mark.parametrize("shape", [(4, 5, 3), (1, 1), (3, 0, 2), (6, 2)])
@pytest.mark.parametrize("batch", [0, 1])
def test_reversed_sequences(random: np.random.Generator, shape: tuple[int, ...], batch: int) -> None:
    for kind in (np.float32, np.int8, np.bool_):
        x = random.integers(0, 2, shape).astype(kind)
        lengths = random.integers(0, shape[1 - batch] + 1, shape[batch])
        proto = one_node("ReverseSequence", {"x": x, "n": lengths}, batch_axis=batch, time_axis=1 - batch)
        wanted = reversed_rows(x, lengths, batch)
        np.testing.assert_array_equal(run(proto, {"x": x, "n": lengths})[0], wanted)
        np.testing.assert_array_equal(tilework.compile(proto)(x, lengths)[0], wanted)


def test_sequences_that_cannot_be_reversed(random: np.random.Generator) -> None:
    x, lengths = random.standard_normal((4, 5)), np.ones(4, np.int64)
    inputs = {"x": x, "n": lengths}
    assert codes_of(one_node("ReverseSequence", inputs, batch_axis=0, time_axis=0)) == {1108}
    assert codes_of(one_node("ReverseSequence", inputs, batch_axis=0, time_axis=2)) == {1108}
    assert codes_of(one_node("ReverseSequence", inputs)) == {1119}
    assert codes_of(one_node("ReverseSequence", {"x": x[0], "n": lengths})) == {1119}


def scattered(cache: Array, update: Array, starts: Array | None, axis: int, circular: bool) -> Array:
    found = cache.copy()
    extent = cache.shape[axis]
    for prefix in np.ndindex(cache.shape[:axis]):
        for row in range(update.shape[axis]):
            place = row + (0 if starts is None else int(starts[prefix[0]]))
            found[(*prefix, place % extent if circular else place)] = update[(*prefix, row)]
    return found


@pytest.mark.parametrize(("shape", "axis"), [((3, 2, 6, 4), 2), ((3, 2, 6, 4), -1), ((3, 6), 1), ((2, 5, 3), 1)])
@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_scattered_tensors(
    random: np.random.Generator, shape: tuple[int, ...], axis: int, rows: int, mode: str
) -> None:
    place = axis % len(shape)
    cache = random.standard_normal(shape).astype(np.float32)
    update = random.standard_normal([rows if a == place else e for a, e in enumerate(shape)]).astype(np.float32)
    most = shape[place] - rows if mode == "linear" else 3 * shape[place]
    starts = random.integers(0, most + 1, shape[0])
    for given in (starts, None):
        feeds = {"c": cache, "u": update} | ({} if given is None else {"w": given})
        proto = one_node("TensorScatter", feeds, opset=24, axis=axis, mode=mode)
        wanted = scattered(cache, update, given, place, mode == "circular")
        np.testing.assert_array_equal(run(proto, feeds)[0], wanted)
        np.testing.assert_array_equal(tilework.compile(proto)(*feeds.values())[0], wanted)


def test_tensors_that_cannot_be_scattered(random: np.random.Generator) -> None:
    cache = random.standard_normal((2, 5, 3))
    for update, attributes in (
        (cache[:, :2], {"axis": 0}), (cache[:, :2], {"axis": 3}), (cache[:, :2, 0], {"axis": 1}),
        (cache[:1], {"axis": 1}), (np.zeros((2, 6, 3)), {"axis": 1}), (cache, {"mode": "round"}),
    ):  # fmt: skip
        attributes_: dict[str, Any] = dict(attributes)
        proto = one_node("TensorScatter", {"c": cache, "u": np.ascontiguousarray(update)}, opset=24, **attributes_)
        assert codes_of(proto) <= {1108, 1119, 1123}


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 4, 4), (2, 3, 5, 5), (0, 0), (4, 0, 0), (0, 3, 3), (12, 12)])
def test_determinants(random: np.random.Generator, shape: tuple[int, ...]) -> None:
    for opset in (11, 22):
        x = random.standard_normal(shape)
        (found,) = run(one_node("Det", {"x": x}, opset=opset), {"x": x})
        np.testing.assert_allclose(found, np.linalg.det(x), rtol=1e-10, atol=1e-12)
        assert found.shape == shape[:-2]
    whole = random.integers(-1, 2, shape).astype(np.float32)  # many are singular
    (found,) = tilework.compile(one_node("Det", {"x": whole}))(whole)
    np.testing.assert_allclose(found, np.linalg.det(whole.astype(np.float64)), rtol=1e-3, atol=1e-3)


def test_determinants_of_odd_matrices(random: np.random.Generator) -> None:
    x = random.standard_normal((4, 3, 3))
    x[0, 1, 2] = np.nan
    x[1] = 0
    x[2, :, 1] = x[2, :, 0]
    (found,) = run(one_node("Det", {"x": x}), {"x": x})
    assert np.isnan(found[0])
    assert found[1] == 0
    assert abs(found[2]) < 1e-12
    compiled = tilework.compile(one_node("Det", {"x": np.zeros((7, 3, 3))}, symbolic=True))
    np.testing.assert_array_equal(np.isnan(compiled(x)[0]), np.isnan(found))
    for shape in ((3,), (2, 3)):
        assert codes_of(one_node("Det", {"x": np.zeros(shape)})) == {1119}


def counted(row: Array, grams: list[tuple[int, ...]], shortest: int, longest: int, skips: int) -> list[int]:
    found: list[int] = []
    for gram in grams:
        total = 0
        for distance in range(1, 2 if len(gram) == 1 else skips + 2):
            last = len(row) - (len(gram) - 1) * distance
            total += sum(all(row[s + k * distance] == v for k, v in enumerate(gram)) for s in range(last))
        found.append(total if shortest <= len(gram) <= longest else 0)
    return found


@pytest.mark.parametrize("trial", range(12))
def test_ngrams(trial: int) -> None:
    random = np.random.default_rng(trial)
    grams: list[tuple[int, ...]] = []
    starts: list[int] = []
    for length in (1, 2, 3):
        starts.append(sum(map(len, grams)))
        drawn = {tuple(int(v) for v in random.integers(0, 3, length)) for _ in range(random.integers(0, 4))}
        grams += sorted(drawn)
    grams = grams or [(1,)]
    # columns in any order with gaps, or shared
    columns = random.integers(0, 3, len(grams)) if trial % 4 == 3 else random.permutation(len(grams) + 2)[: len(grams)]
    shortest = int(random.integers(1, 3))
    longest, skips = int(random.integers(shortest, 4)), int(random.integers(0, 3))
    if grams == [(1,)]:
        starts = [0]
    attributes: dict[str, Any] = {
        "ngram_indexes": [int(c) for c in columns], "ngram_counts": starts,
        "pool_int64s": [v for g in grams for v in g],
        "min_gram_length": shortest, "max_gram_length": longest, "max_skip_count": skips,
    }  # fmt: skip
    for x in (random.integers(0, 3, (3, 7)), random.integers(0, 3, 2).astype(np.int32)):
        rows = x if x.ndim == 2 else x[None]
        wanted = np.zeros((len(rows), max(attributes["ngram_indexes"]) + 1), np.float32)
        for number, row in enumerate(rows):
            for column, count in zip(columns, counted(row, grams, shortest, longest, skips), strict=True):
                wanted[number, column] += count
        wanted = wanted.reshape((*x.shape[:-1], -1))
        proto = one_node("TfIdfVectorizer", {"x": x}, mode="TF", **attributes)
        np.testing.assert_array_equal(run(proto, {"x": x})[0], wanted)
        proto = one_node("TfIdfVectorizer", {"x": x}, mode="IDF", symbolic=True, **attributes)
        np.testing.assert_array_equal(run(proto, {"x": x})[0], wanted > 0)
        weights = [float(w) for w in random.integers(1, 5, len(grams))]
        proto = one_node("TfIdfVectorizer", {"x": x}, mode="TFIDF", weights=weights, **attributes)
        by_column = np.zeros(wanted.shape[-1], np.float32)
        by_column[: len(weights)] = weights[: len(by_column)]
        np.testing.assert_array_equal(run(proto, {"x": x})[0], wanted * by_column)


def test_ngrams_that_make_no_sense() -> None:
    x = np.zeros((2, 4), np.int64)
    good: dict[str, Any] = {
        "mode": "TF", "ngram_indexes": [0, 1], "ngram_counts": [0, 1], "pool_int64s": [1, 1, 2], "min_gram_length": 1,
        "max_gram_length": 2, "max_skip_count": 0,
    }  # fmt: skip
    assert run(one_node("TfIdfVectorizer", {"x": x}, **good), {"x": x})[0].shape == (2, 2)
    changes: list[dict[str, Any]] = [
        {"mode": "no"}, {"ngram_indexes": [0, -1]}, {"ngram_indexes": [0]}, {"ngram_counts": [0, 2]},
        {"ngram_counts": [3, 1]}, {"min_gram_length": 0}, {"max_skip_count": -1}, {"weights": [1.0]},
        {"pool_int64s": [1, 1, 2, 1, 2], "ngram_indexes": [0, 1, 2]},
    ]  # fmt: skip
    for change in changes:
        assert codes_of(one_node("TfIdfVectorizer", {"x": x}, **(good | change))) <= {1108, 1123}
    without: dict[str, Any] = {name: held for name, held in good.items() if name != "pool_int64s"}
    assert codes_of(one_node("TfIdfVectorizer", {"x": x}, **without)) == {1108}
    assert codes_of(one_node("TfIdfVectorizer", {"x": x}, pool_strings=["a", "b", "c"], **without)) == {1119}


def test_ngrams_of_words() -> None:
    node = helper.make_node(
        "TfIdfVectorizer", ["x"], ["y"], mode="TF", ngram_indexes=[1, 0, 2], ngram_counts=[0, 1],
        pool_strings=["a", "b", "a", "a", "a"], min_gram_length=1, max_gram_length=2, max_skip_count=1,
    )  # fmt: skip
    proto = model([node], {"x": (TensorProto.STRING, [2, 4])}, ["y"])
    x = np.array([["b", "a", "c", "a"], ["b", "b", "a", "zz"]], object)
    np.testing.assert_array_equal(tilework.compile(proto)(x)[0], [[1, 2, 1], [2, 1, 0]])
