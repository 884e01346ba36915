"""Counting by groups of variables against counting one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.cost.brute_force import Event, events, lines_missed, runs
from tests.schedule.programs import chain, load, matrix_product, row_maximum
from tilework import dtypes
from tilework.compute.nest import loop_program
from tilework.compute.notation import Axis, Computation, Stage
from tilework.cost.accesses import bound, domain_of, middle
from tilework.cost.counts import Footprints, Work, access_counts, loop_counts, statement_counts, work_of
from tilework.cost.domain import LIMIT, Count, Domain, distinct, line_set, points, touched
from tilework.cost.traffic import traffic
from tilework.dims import Dim, Symbol, dim, loaded
from tilework.dtypes import float32
from tilework.errors import LoopProgramError
from tilework.loops.expressions import Load, call, constant
from tilework.loops.program import Access, Argument, Compute, Loop, LoopProgram, Node, buffer, children, statements
from tilework.loops.reducers import reducer
from tilework.machine.cpu import Cache
from tilework.schedule.schedule import Schedule

LINE = 64


def tiled_product(rows: int, columns: int, depth: int) -> LoopProgram:
    """Tiles of 4 x 8 with masked tails, the result in registers."""
    schedule = Schedule(matrix_product(rows, columns, depth))
    schedule = schedule.split("i", 4, "i0", "i1", tail="mask").split("j", 8, "j0", "j1", tail="mask")
    schedule = schedule.reorder("i0", "j0", "k", "i1", "j1").unroll("i1").vectorize("j1")
    return schedule.cache_write("c", "j0", "acc").program


def padded_convolution(height: int, width: int, channels: int) -> LoopProgram:
    """A 3 x 3 convolution that skips taps outside the image."""
    x, w = buffer("x", float32, height, width, channels), buffer("w", float32, 3, 3, channels, 4)
    y = buffer("y", float32, height, width, 4)
    names = (("h", height, "parallel"), ("w_", width, "parallel"), ("f", 4, "parallel"), ("kh", 3, "reduction"),
             ("kw", 3, "reduction"), ("c", channels, "reduction"))  # fmt: skip
    axes = tuple(Axis(name, dim(size), kind) for name, size, kind in names)  # type: ignore[arg-type]
    row, column = dim("h") + "kh" - 1, dim("w_") + "kw" - 1
    guards = (row, height - 1 - row, column, width - 1 - column)
    value = Load("x", (row, column, dim("c")), float32) * load(w, "kh", "kw", "c", "f")
    stage = Stage("y", (y,), axes, (value,), None, reducer("sum", float32), (constant(0, float32),), guards)
    return loop_program(Computation("convolution", (x, w), (y,), (stage,)))


def triangle(size: int) -> LoopProgram:
    """y[i, j] = x[j, i] for j <= i: an extent that another loop decides."""
    x, y = buffer("x", float32, size, size), buffer("y", float32, size, size)
    i, j = dim("i"), dim("j")
    body = Compute("y", (Access("y", (i, j)),), (Load("x", (j, i), float32) * 2.0,))
    nest = Loop("i", dim(size), "serial", Loop("j", i + 1, "serial", body))
    return LoopProgram("triangle", (Argument(x, "read"), Argument(y, "write")), nest)


def strided(size: int) -> LoopProgram:
    """y[i] = x[3 i, i // 2] + x[3 i, i % 5]: quotients and remainders, two places of one buffer."""
    x, y = buffer("x", float32, 3 * size, size), buffer("y", float32, size)
    i = dim("i")
    value = Load("x", (i * 3, i // 2), float32) + Load("x", (i * 3, i % 5), float32)
    body = Compute("y", (Access("y", (i,)),), (value,))
    return LoopProgram("strided", (Argument(x, "read"), Argument(y, "write")), Loop("i", dim(size), "serial", body))


PROGRAMS = {
    "product": matrix_product(7, 9, 5),
    "tiled": tiled_product(10, 19, 6),
    "tiled evenly": tiled_product(8, 16, 4),
    "chain": chain(5, 18),
    "maximum": row_maximum(6, 11),
    "convolution": padded_convolution(5, 6, 3),
    "triangle": triangle(9),
    "strided": strided(11),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_statements(name: str) -> None:
    program = PROGRAMS[name]
    found = statement_counts(program)
    assert {one.name: one.runs for one in found} == runs(program)
    assert all(one.exact for one in found)
    for one, statement in zip(found, statements(program.body), strict=True):
        assert one.work.flops == work_of(statement).flops * one.runs


def key(one: Event) -> tuple[str, str, str, str]:
    return one.statement, one.buffer, ", ".join(map(str, one.index)), one.kind


@pytest.mark.parametrize("name", PROGRAMS)
def test_accesses(name: str) -> None:
    """Times, distinct elements, and what straight code loads."""
    program = PROGRAMS[name]
    loops = loops_of(program)
    times: dict[object, int] = {}
    elements: dict[object, set[int]] = {}
    issued: dict[object, set[object]] = {}
    for one in events(program):
        place = key(one)
        times[place] = times.get(place, 0) + 1
        elements.setdefault(place, set()).add(one.element)
        moved = {n for entry in one.index for n in entry.names()}
        around = [loop for loop in loops if loop.variable in one.at]
        while around and (around[-1].kind in ("unrolled", "vectorized") or around[-1].variable not in moved):
            around.pop()
        outer = tuple(one.at[loop.variable] for loop in around)
        issued.setdefault(place, set()).add((outer, one.element))
    found = {(a.statement, a.buffer, a.index.split("[")[1].rstrip("]"), a.kind): a for a in access_counts(program)}
    assert found.keys() == times.keys()
    for place, access in found.items():
        assert access.exact
        assert access.runs == times[place]
        assert access.useful_bytes == 4 * len(elements[place])
        both = 2 if access.kind == "update" else 1
        assert access.issued_bytes == (0 if access.scope == "register" else 4 * both * len(issued[place]))


def loops_of(program: LoopProgram) -> list[Loop]:
    found: list[Loop] = []

    def visit(node: Node) -> None:
        if isinstance(node, Loop):
            found.append(node)
        for child in children(node):
            visit(child)

    visit(program.body)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops(name: str) -> None:
    """Footprint, useful bytes and reuse of one run of each loop, at the middle of the loops around it."""
    program = PROGRAMS[name]
    found = {one.variable: one for one in loop_counts(program, Footprints(program, LINE))}

    def visit(node: Node, around: tuple[Loop, ...]) -> None:
        if isinstance(node, Loop):
            inside = [e for e in events(program, node, middle(around)) if program.buffers[e.buffer].scope != "register"]
            one = found[node.variable]
            assert one.exact
            assert one.footprint_bytes == LINE * len({(e.buffer, e.element * 4 // LINE) for e in inside})
            useful = len({(e.buffer, e.element) for e in inside})
            assert one.useful_bytes == 4 * useful
            assert one.reuse == pytest.approx(len(inside) / useful if useful else 0)
            starts = 1
            for outer in around:
                starts *= int(outer.extent) if outer.extent.value is not None else 0
            if all(outer.extent.value is not None for outer in around):
                assert one.runs == starts
        for child in children(node):
            visit(child, (*around, node) if isinstance(node, Loop) else around)

    visit(program.body, ())


@pytest.mark.parametrize(
    ("program", "cache"),
    [
        (matrix_product(24, 32, 24), 1 << 20),
        (matrix_product(24, 32, 24), 1024),
        (matrix_product(24, 32, 24), 64 * 8),
        (tiled_product(24, 32, 16), 2048),
        (tiled_product(24, 32, 16), 1024),
        (chain(16, 32), 512),
        (chain(16, 32), 1 << 14),
        (padded_convolution(10, 12, 16), 8192),
        (row_maximum(16, 64), 512),
    ],
)
def test_traffic_is_that_of_a_cache(program: LoopProgram, cache: int) -> None:
    """The model against a simulated cache: within a quarter in all, wherever loops reuse what they can hold."""
    footprints = Footprints(program, LINE)
    (_, found) = traffic(program, (Cache(1, cache, 8),), access_counts(program), footprints)
    simulated = lines_missed(program, cache, LINE)
    simulated.pop("acc", None)
    total = LINE * sum(simulated.values())
    assert found.source == "memory"
    assert 0.75 * total <= found.fetched_bytes <= 1.35 * total
    assert set(found.written) <= set(found.fetched)


def test_a_cache_that_holds_all_brings_each_line_once() -> None:
    program = matrix_product(16, 16, 16)
    caches = (Cache(1, 1 << 20, 8), Cache(2, 1 << 22, 8))
    first, second, third = traffic(program, caches, access_counts(program), Footprints(program, LINE))
    assert (first.source, second.source, third.source) == ("L1", "L2", "memory")
    assert second.fetched == third.fetched == {"a": 1024, "b": 1024, "c": 1024}
    assert second.written == {"c": 1024}
    assert first.fetched == {"a": 16**3 * 4, "b": 16**3 * 4, "c": 16**2 * 4}
    assert first.written == {"c": 16**2 * 4}


def test_streaming_stores_go_past_the_caches() -> None:
    program = chain(64, 64)
    caches = (Cache(1, 1024, 8), Cache(2, 4096, 8))
    footprints = Footprints(program, LINE)
    _, plain, _ = traffic(program, caches, access_counts(program), footprints)
    assert plain.fetched["out"] == plain.written["out"] == 64 * 64 * 4
    names = frozenset(("out", "t"))  # t is read as well, so it stays
    _, second, third = traffic(program, caches, access_counts(program), footprints, names)
    assert "out" not in second.fetched
    assert "out" not in second.written
    assert "out" not in third.fetched
    assert third.written["out"] == 64 * 64 * 4
    assert second.fetched["t"] == plain.fetched["t"]
    small = (Cache(1, 1 << 20, 8),)
    assert traffic(program, small, access_counts(program), footprints, names)[1].fetched["out"] == 64 * 64 * 4


def test_work() -> None:
    x, out = buffer("x", float32, 8), buffer("out", float32, 8)
    shared = load(x, "i") * 2.0
    value = call("exp", shared) + call("fused_multiply_add", shared, shared, shared) / call("maximum", shared, 0.0)
    stage = Stage("out", (out,), (Axis("i", dim(8)),), (value,))
    program = loop_program(Computation("w", (x,), (out,), (stage,)))
    (found,) = statement_counts(program)
    assert found.work == Work(flops=8 * (1 + 1 + 2 + 1 + 1), transcendentals=8)
    (product,) = statement_counts(matrix_product(3, 4, 5))
    assert product.work == Work(flops=2 * 3 * 4 * 5)
    y, z = buffer("y", dtypes.int32, 4), buffer("z", dtypes.int32, 4)
    whole = Stage("z", (z,), (Axis("i", dim(4)),), (load(y, "i") + load(y, "i"),))
    (integers,) = statement_counts(loop_program(Computation("n", (y,), (z,), (whole,))))
    assert integers.work == Work(integer_operations=4)


def test_symbols() -> None:
    program = matrix_product("M", 8, "K")
    program = LoopProgram(program.name, program.arguments, program.body, (Symbol("M"), Symbol("K")))
    found = bound(program, {"M": 5, "K": 3})
    assert not found.symbols
    assert runs(found) == {"c.init": 5 * 8, "c": 5 * 8 * 3}  # K may be zero, so the start stands apart
    with pytest.raises(LoopProgramError, match="TW1310"):
        bound(program, {"M": 5})
    for empty in ({"M": 0, "K": 3}, {"M": 5, "K": 0}):
        none = bound(program, empty)
        assert sum(one.work.flops for one in statement_counts(none)) == 0
        assert all(one.useful_bytes == 0 for one in access_counts(none) if one.statement == "c")


def test_large_products_are_counted_at_once() -> None:
    program = matrix_product(4096, 4096, 4096)
    (found,) = statement_counts(program)
    assert (found.runs, found.exact) == (4096**3, True)
    assert all(access.exact and access.useful_bytes == 4 * 4096**2 for access in access_counts(program))
    outer, *_ = loop_counts(program, Footprints(program, LINE))
    assert outer.footprint_bytes == 3 * 4 * 4096**2


def test_what_depends_on_data_is_an_upper_bound() -> None:
    x, at, y = buffer("x", float32, 6), buffer("at", dtypes.int64, 64), buffer("y", float32, 64)
    guard = dim(loaded("at", ("i",)))
    body = Compute(
        "y", (Access("y", (dim("i"),)),), (Load("x", (loaded("at", (dim("i"),)),), float32),), guards=(guard,)
    )
    program = LoopProgram(
        "g", (Argument(x, "read"), Argument(at, "read"), Argument(y, "write")), Loop("i", dim(64), "serial", body)
    )
    found = {access.buffer: access for access in access_counts(program)}
    assert not found["x"].exact
    assert (found["x"].useful_bytes, found["at"].useful_bytes, found["y"].useful_bytes) == (24, 512, 256)
    assert not statement_counts(program)[0].exact


# -- domains -----------------------------------------------------------------------------------------------------------
def test_random_domains() -> None:
    """Boxes with random guards and indices, against plain enumeration."""
    random = np.random.default_rng(11)
    names: list[str] = ["a", "b", "c", "d"]
    for _ in range(150):
        extents = {name: int(random.integers(0 if random.random() < 0.05 else 1, 6)) for name in names}

        def affine() -> Dim:
            total = dim(int(random.integers(-3, 4)))
            for name in random.choice(names, int(random.integers(1, 3)), replace=False):
                total = total + dim(str(name)) * int(random.integers(-2, 4))
            return total

        guards = tuple(affine() for _ in range(int(random.integers(0, 3))))
        domain = Domain(extents, guards)
        found = [
            dict(zip(names, (int(v) for v in place), strict=True))
            for place in np.ndindex(*extents.values())
            if all(g.evaluate(dict(zip(names, (int(v) for v in place), strict=True))) >= 0 for g in guards)
        ]
        assert points(domain) == Count(len(found))
        dims = tuple(affine() for _ in range(2))
        assert distinct(domain, dims) == Count(len({tuple(int(d.evaluate(at)) for d in dims) for at in found}))
        index = (dim("a") + dim("b"), dim("c") * 3 + 1)
        shape = (16, 17)
        reached = touched(domain, index, shape)
        places = {int(index[0].evaluate(at)) * 17 + int(index[1].evaluate(at)) for at in found}
        assert reached.elements == len(places)
        for itemsize in (1, 4, 8):
            lines = line_set(reached, itemsize, LINE)
            assert not isinstance(lines, Count)
            assert set(lines.tolist()) == {place * itemsize // LINE for place in places}


def test_lines_of_large_sets() -> None:
    domain = Domain({"i": 1 << 20, "j": 1 << 10})
    reached = touched(domain, (dim("i"), dim("j")), (1 << 20, 1 << 10))
    assert reached.elements == 1 << 30
    assert line_set(reached, 4, LINE) == Count(1 << 26)
    slanted = Domain({"i": 1 << 12, "j": 1 << 12})
    assert touched(slanted, (dim("i") + "j",), (1 << 13,)).elements == min(1 << 24, 1 << 13)
    assert not touched(slanted, (dim("i") + "j",), (1 << 13,)).exact
    assert points(Domain({"i": LIMIT, "j": 4}, (dim("i") - dim("j"),))).exact is False
    assert math.isclose(points(Domain({"i": 1 << 12, "j": 1 << 9}, (dim("i") - dim("j"),))).value, 1 << 21, rel_tol=0.1)


def test_extents_that_other_loops_decide() -> None:
    inner = Loop("j", dim("i") + 1, "serial", Compute("s", (), ()))
    outer = Loop("i", dim(6), "serial", inner)
    assert points(domain_of((outer, inner), ())) == Count(21)
    assert points(domain_of((outer, inner), (), {"i": 3})) == Count(4)
    assert middle((outer, inner)) == {"i": 3, "j": 2}
