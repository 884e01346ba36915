"""Iterator kinds against brute force: enumerate accesses, see whether iterations really touch different elements."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tilework.dims import Dim, dim
from tilework.dtypes import float32
from tilework.loops.expressions import Load, call
from tilework.loops.program import (
    Access,
    Argument,
    Compute,
    Loop,
    LoopProgram,
    Node,
    buffer,
    statements,
    walk,
)
from tilework.loops.reducers import reducer
from tilework.schedule.iterators import determines, kind
from tilework.schedule.rewriting import nest


def program(index: tuple[Dim, ...], loops: list[tuple[str, int]], *, reduce: bool = False) -> LoopProgram:
    """One statement that writes `out` at an index inside some loops."""
    value = Load("x", (dim(0),), float32)
    reduction = tuple(v for v, _ in loops if v not in {n for e in index for n in e.names()})
    statement: Node = Compute(
        "s",
        (Access("out", index),),
        (value,),
        reducer("sum", float32) if reduce else None,
        None,
        reduction if reduce else (),
    )
    body = nest(tuple((v, dim(n), "serial") for v, n in loops), statement)
    arguments = (
        Argument(buffer("x", float32, 1), "read"),
        Argument(buffer("out", float32, *([1000] * len(index))), "accumulate"),
    )
    return LoopProgram("p", arguments, body)


def really_determined(index: tuple[Dim, ...], variable: str, extents: dict[str, int]) -> bool:
    """Whether equal index values always come with equal values of the variable."""
    seen: dict[tuple[int, ...], int] = {}
    for point in itertools.product(*(range(n) for n in extents.values())):
        values = dict(zip(extents, point, strict=True))
        key = tuple(int(e.evaluate(values)) for e in index)
        if seen.setdefault(key, values[variable]) != values[variable]:
            return False
    return True


@pytest.mark.parametrize("seed", range(400))
def test_determines_is_sound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = ["i", "j", "k"][: rng.integers(1, 4)]
    extents = {name: int(rng.integers(1, 6)) for name in names}
    index: list[Dim] = []
    for _ in range(rng.integers(1, 4)):
        total = dim(int(rng.integers(0, 3)))
        for name in names:
            form = rng.integers(0, 5)
            k = int(rng.integers(1, 5))
            term = [dim(0), dim(name), dim(name) * k, dim(name) // k, dim(name) % k][form]
            total = total + term * int(rng.choice([1, 1, 2, 5, -1]))
        index.append(total)
    for name in names:
        if determines(index, name, {n: dim(e) for n, e in extents.items()}):
            assert really_determined(tuple(index), name, extents), (list(map(str, index)), name, extents)


@pytest.mark.parametrize(
    ("index", "variable", "expected"),
    [
        ((dim("i"), dim("j")), "i", True),
        ((dim("i") * 8 + dim("j"),), "i", True),
        ((dim("i") * 8 + dim("j"),), "j", True),
        ((dim("i") * 7 + dim("j"),), "j", False),
        ((dim("j") // 4, dim("j") % 4), "j", True),
        ((dim("j") // 4,), "j", False),
        ((dim("i") + dim("j"),), "i", False),
    ],
)
def test_determines_known_cases(index: tuple[Dim, ...], variable: str, expected: bool) -> None:
    assert determines(index, variable, {"i": dim("N"), "j": dim(8)}) is expected


def loop_of(found: LoopProgram, variable: str) -> Loop:
    return next(n for n in walk(found.body) if isinstance(n, Loop) and n.variable == variable)


def test_kinds_of_a_matrix_product() -> None:
    found = program((dim("i"), dim("j")), [("i", 4), ("j", 5), ("k", 6)], reduce=True)
    assert [kind(found, loop_of(found, v)) for v in "ijk"] == ["independent", "independent", "reduction"]


def test_a_plain_overwrite_is_ordered() -> None:
    found = program((dim("i"),), [("i", 4), ("k", 6)])
    assert kind(found, loop_of(found, "k")) == "ordered"


def test_a_scan_is_ordered() -> None:
    value = call("add", Load("out", (dim("i"),), float32), Load("x", (dim(0),), float32))
    statement = Compute("s", (Access("out", (dim("i") + 1,)),), (value,))
    body = Loop("i", dim(7), "serial", statement)
    found = LoopProgram(
        "p", (Argument(buffer("x", float32, 1), "read"), Argument(buffer("out", float32, 8), "accumulate")), body
    )
    assert kind(found, loop_of(found, "i")) == "ordered"


def test_reading_a_partial_sum_makes_a_reduction_ordered() -> None:
    total = Compute(
        "t", (Access("sum", (dim(0),)),), (Load("x", (dim("k"),), float32),), reducer("sum", float32), None, ("k",)
    )
    copy = Compute("c", (Access("out", (dim("k"),)),), (Load("sum", (dim(0),), float32),))
    from tilework.loops.program import sequence

    body = Loop("k", dim(8), "serial", sequence(total, copy))
    arguments = (
        Argument(buffer("x", float32, 8), "read"),
        Argument(buffer("sum", float32, 1), "accumulate"),
        Argument(buffer("out", float32, 8), "write"),
    )
    found = LoopProgram("p", arguments, body)
    assert len(list(statements(body))) == 2
    assert kind(found, loop_of(found, "k")) == "ordered"
