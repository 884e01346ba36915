"""Models in which every extent is free, though operators need some of them: calls with extents that fit run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator

import tilework
from tests.frontends.onnx.models import model
from tilework.errors import CallError
from tilework.runtime.executable import Executable

F32, I64 = np.float32, np.int64


def draw(g: np.random.Generator, *shape: int) -> Any:
    return g.standard_normal(shape).astype(F32)


def all_free(operator: str, feed: dict[str, Any], outputs: list[str], named: bool, **attributes: Any) -> ModelProto:
    """A node whose inputs' extents are all free: named, each otherwise, or without names."""
    inputs = {
        name: (value.dtype, [f"{name}_{place}" if named else None for place in range(value.ndim)])
        for name, value in feed.items()
    }
    return model([helper.make_node(operator, list(feed), outputs, **attributes)], inputs, outputs, {}, 20)


def recurrent(gates: int) -> Callable[[np.random.Generator], dict[str, Any]]:
    def feed(g: np.random.Generator) -> dict[str, Any]:
        steps, batch, size = (int(n) for n in g.integers(1, 6, 3))
        w, r, b = draw(g, 1, gates * 3, size), draw(g, 1, gates * 3, 3), draw(g, 1, 2 * gates * 3)
        return {"x": draw(g, steps, batch, size), "w": w, "r": r, "b": b}

    return feed


def boxes(g: np.random.Generator) -> dict[str, Any]:
    count = int(g.integers(0, 9))
    corners = g.uniform(0, 4, (2, count, 4)).astype(F32)
    scores = g.permuted(np.linspace(0, 1, 6 * count, dtype=F32)).reshape(2, 3, count)
    return {"boxes": corners, "scores": scores, "most": np.array([3]), "overlap": np.array([0.3], F32)}


def scattered(g: np.random.Generator) -> dict[str, Any]:
    rows, columns = (int(n) for n in g.integers(3, 7, 2))
    count = int(g.integers(1, columns))
    places = np.stack([g.permutation(columns)[:count] for _ in range(rows - 1)])
    return {"x": draw(g, rows, columns), "places": places, "updates": draw(g, rows - 1, count)}


def first(g: np.random.Generator) -> dict[str, Any]:
    columns = int(g.integers(1, 40))
    return {"x": draw(g, 3, columns), "k": np.array([int(g.integers(0, columns + 1))])}


CASES: list[tuple[str, Callable[[np.random.Generator], dict[str, Any]], list[str], dict[str, Any]]] = [
    ("RNN", recurrent(1), ["y", "last"], {"hidden_size": 3}),
    ("GRU", recurrent(3), ["y", "last"], {"hidden_size": 3}),
    ("LSTM", recurrent(4), ["y", "last", "cell"], {"hidden_size": 3}),
    ("NonMaxSuppression", boxes, ["chosen"], {}),
    ("ScatterElements", scattered, ["y"], {"axis": 1}),
    ("TopK", first, ["values", "places"], {}),
]


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(("operator", "feed", "outputs", "attributes"), CASES, ids=[case[0] for case in CASES])
def test_one_executable_serves_all_that_fits(
    operator: str, feed: Any, outputs: list[str], attributes: dict[str, Any], named: bool
) -> None:
    g = np.random.default_rng(len(operator) + named)
    proto = all_free(operator, feed(g), outputs, named, **attributes)
    executable = tilework.compile(proto, checked=named)
    assert isinstance(executable, Executable)
    for _ in range(6):
        given = feed(g)
        expected: Any = ReferenceEvaluator(proto).run(None, given)  # pyright: ignore[reportUnknownMemberType]
        for got, wanted in zip(executable(**given), expected, strict=True):
            assert got.shape == np.shape(wanted)
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6)
    assert executable.variants is not None
    assert not executable.variants.shapes


def test_extents_that_no_call_may_have() -> None:
    g = np.random.default_rng(3)
    given = scattered(g)
    executable = tilework.compile(all_free("ScatterElements", given, ["y"], True, axis=1))
    for name in ("places", "updates"):  # more rows than there are; another shape than the positions
        wrong = {**given, name: np.concatenate([given[name]] * 3)}
        if name == "places":
            wrong["updates"] = np.concatenate([given["updates"]] * 3)
        with pytest.raises(CallError, match="ScatterElements" if name == "places" else "dimension 0") as caught:
            executable(**wrong)
        assert caught.value.code in (1706, 1707)
    chosen = boxes(g)
    executable = tilework.compile(all_free("NonMaxSuppression", chosen, ["chosen"], True))
    with pytest.raises(CallError, match="dimension 2") as caught:
        executable(**{**chosen, "boxes": chosen["boxes"][:, :, :3]})
    assert caught.value.code == 1705


def test_what_is_taken_to_be_a_number_may_be_one() -> None:
    """x[n] beside 3 elements: n is 3, or a call has n = 1, for which other code is made."""
    proto = model(
        [helper.make_node("Add", ["x", "three"], ["y"])], {"x": (F32, ["n"])}, ["y"], {"three": np.arange(3, dtype=F32)}
    )
    executable = tilework.compile(proto)
    for n in (3, 1):
        np.testing.assert_array_equal(executable(np.ones(n, F32))[0], np.arange(1, 4))
    with pytest.raises(CallError) as caught:
        executable(np.ones(2, F32))
    assert caught.value.code == 1705
    fixed = tilework.compile(proto, shapes={"x": (3,)})
    assert isinstance(fixed, Executable)
    assert fixed.variants is None


def test_an_extent_and_a_multiple_of_it_meet() -> None:
    """n and 4 n elements: never equal but for n = 0; one of them is 1 in the calls that make sense."""
    nodes = [
        helper.make_node("Shape", ["x"], ["n"]), helper.make_node("Mul", ["n", "four"], ["wide"]),
        helper.make_node("Expand", ["x", "wide"], ["y"]),
    ]  # fmt: skip
    executable = tilework.compile(model(nodes, {"x": (F32, ["n"])}, ["y"], {"four": np.array([4])}))
    np.testing.assert_array_equal(executable(np.ones(1, F32))[0], np.ones(4))
