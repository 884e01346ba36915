"""Random programs under random legal schedules of all primitives: values stay to the bit, and planted bugs are seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tests.lowering.native import Native
from tests.schedule.random_schedules import Case, case, compare, packed, random_schedule, results
from tilework.dims import Dim, dim
from tilework.errors import TileworkError
from tilework.loops.parse import parse_program
from tilework.loops.program import EMPTY, Loop, Node
from tilework.schedule import iterators, moving, rewriting
from tilework.schedule.primitive import Primitive
from tilework.schedule.primitives import (
    cache_read,
    cache_write,
    compute_at,
    compute_inline,
    decompose_reduction,
    fuse,
    fuse_into_store,
    parallel,
    reorder,
    reverse_compute_at,
    split,
    store_at,
    transform_layout,
)
from tilework.schedule.primitives.cache_write import CacheWrite
from tilework.schedule.primitives.compute_at import ComputeAt
from tilework.schedule.primitives.decompose_reduction import DecomposeReduction
from tilework.schedule.primitives.fuse_into_store import FuseIntoStore
from tilework.schedule.primitives.parallel import Parallel
from tilework.schedule.primitives.reorder import Reorder
from tilework.schedule.primitives.reverse_compute_at import ReverseComputeAt
from tilework.schedule.primitives.set_scope import SetScope
from tilework.schedule.primitives.store_at import StoreAt
from tilework.schedule.schedule import Schedule
from tilework.schedule.trace import primitive_names, trace_from_json, trace_to_json
from tilework.schedule.verdict import LEGAL

SEEDS = 320
GROUP = 20


@dataclass(frozen=True)
class Drawn:
    found: Case
    schedule: Schedule


@pytest.fixture(scope="module")
def drawn() -> tuple[list[Drawn], Counter[tuple[str, bool]]]:
    counts: Counter[tuple[str, bool]] = Counter()
    return [Drawn(*random_schedule(seed, counts)) for seed in range(SEEDS)], counts


def test_every_primitive_is_met_both_ways(drawn: tuple[list[Drawn], Counter[tuple[str, bool]]]) -> None:
    counts = drawn[1]
    seldom = {name: (counts[name, True], counts[name, False]) for name in primitive_names()}
    assert {n: pair for n, pair in seldom.items() if pair[0] < 3 or pair[1] < 10} == {}


@pytest.mark.parametrize("group", range(SEEDS // GROUP))
def test_values_stay(drawn: tuple[list[Drawn], Counter[tuple[str, bool]]], group: int) -> None:
    for seed in range(group * GROUP, (group + 1) * GROUP):
        entry = drawn[0][seed]
        compare(entry.found, entry.schedule, seed)
        assert trace_from_json(trace_to_json(entry.schedule.trace)) == entry.schedule.trace
        again = Schedule(entry.found.program, entry.schedule.machine, entry.schedule.numerics).replay(
            entry.schedule.trace
        )
        assert str(again.program.name) == entry.found.program.name


@pytest.mark.parametrize("group", range(8))
def test_machine_code_has_the_same_values(drawn: tuple[list[Drawn], Counter[tuple[str, bool]]], group: int) -> None:
    for seed in range(group, SEEDS, 48):
        same_in_machine_code(drawn[0][seed].found, drawn[0][seed].schedule, seed)


def same_in_machine_code(found: Case, schedule: Schedule, seed: int) -> None:
    kernel = Native(schedule.program, schedule.numerics.level)
    for symbols in found.symbols:
        outcome = kernel.run(packed(found, schedule, symbols, seed), symbols)
        assert outcome.status == 0
        expected = results(found.program, symbols, seed)
        for argument in found.program.arguments:
            if argument.access != "read":
                name = argument.buffer.name
                np.testing.assert_array_equal(expected[name], outcome.arrays[name], err_msg=str(schedule.trace))


# -- planted bugs ------------------------------------------------------------------------------------------------------
Plant = Callable[[pytest.MonkeyPatch], None]


def legal(*_: Any, **__: Any) -> Any:
    return LEGAL


def always(value: Any) -> Callable[..., Any]:
    """A function that gives the same answer whatever it is asked."""

    def answer(*_: Any, **__: Any) -> Any:
        return value

    return answer


def unguarded(body: Node, *_: Dim) -> Node:
    return body


def guarded_too_early(body: Node, guard: Dim) -> Node:
    return rewriting.add_guard(body, guard - 1)


def two_loops(_step: Any, _found: Any, inside: Any) -> Any:
    return inside[:2]


def smaller_boxes(patch: pytest.MonkeyPatch) -> None:
    whole = moving.box_inside

    def cut(*arguments: Any) -> Any:
        sides = whole(*arguments)
        return sides and tuple(replace(s, size=s.size - 1) if (s.size.value or 0) > 1 else s for s in sides)

    patch.setattr(compute_at, "box_inside", cut)


def late_windows(patch: pytest.MonkeyPatch) -> None:
    shift = store_at.StoreAt._shift

    def wrong(*arguments: Any) -> Any:
        found = shift(*arguments)
        return found and (tuple(step + (step > 0) for step in found[0]), found[1])

    patch.setattr(store_at.StoreAt, "_shift", wrong)


def reduction_of_one_only(patch: pytest.MonkeyPatch) -> None:
    check = fuse.Fuse.check

    def lenient(step: fuse.Fuse, setting: Any) -> Any:
        verdict = check(step, setting)
        return LEGAL if verdict.code == 1509 else verdict

    patch.setattr(fuse.Fuse, "check", lenient)


def short_loops(patch: pytest.MonkeyPatch) -> None:
    bounds = rewriting.loop_bounds

    def wrong(program: Any) -> Any:
        return {name: (low, min(high, 1)) for name, (low, high) in bounds(program).items()}

    patch.setattr(transform_layout, "loop_bounds", wrong)


def set_in(module: Any, name: str, value: Any) -> Plant:
    return lambda patch: patch.setattr(module, name, value)


PLANTED: dict[str, Plant] = {
    "parallel: everything is legal": set_in(parallel.Parallel, "check", legal),
    "split: no guard": set_in(split, "add_guard", unguarded),
    "split: off by one": set_in(split, "add_guard", guarded_too_early),
    "fuse: partial reductions": reduction_of_one_only,
    "cache_write: write-back never combines": set_in(cache_write.CacheWrite, "_left", always(((), False))),
    "cache_read: written buffers": set_in(cache_read, "writes_of", always([])),
    "cache_read: unwritten elements": set_in(cache_read, "written_whole", always(True)),
    "transform_layout: loops taken for shorter": short_loops,
    "compute_inline: later writes": set_in(compute_inline, "runs_after", always([])),
    "compute_at: boxes too small": smaller_boxes,
    "compute_at: no guards": set_in(compute_at, "needed_guards", always(())),
    "compute_at: overwritten sources": set_in(compute_at, "read_buffers", always(set())),
    "store_at: windows too late": late_windows,
    "kinds: everything determines a loop": set_in(iterators, "determines", always(True)),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[bug](monkeypatch)
    counts: Counter[tuple[str, bool]] = Counter()
    primitive = bug.partition(":")[0]
    for seed in range(400):
        try:
            compare(*random_schedule(seed, counts, focus=primitive if primitive in primitive_names() else ""), seed)
        except (AssertionError, TileworkError):
            return
    pytest.fail(f"not seen: {bug}")


@dataclass(frozen=True)
class Directed:
    """A schedule whose last step is refused, and would go wrong if it were not."""

    plant: Plant
    program: str
    steps: tuple[Primitive, ...]


DIRECTED: dict[str, Directed] = {
    "reorder: everything is independent": Directed(
        set_in(reorder, "kind", always("independent")), "scatter_last", (Reorder("j", "i"),)
    ),
    "reorder: marks are not looked at again": Directed(
        set_in(reorder, "marks_after", legal), "skewed", (Reorder("j", "i"), Parallel("i"), Reorder("i", "j"))
    ),
    "decompose_reduction: starts that meet": Directed(
        set_in(decompose_reduction, "determines", always(True)), "restarted", (DecomposeReduction("c"),)
    ),
    "decompose_reduction: loops that may not run": Directed(
        set_in(decompose_reduction, "runs", always(True)), "empty", (DecomposeReduction("c"),)
    ),
    "cache_write: starts again": Directed(
        set_in(cache_write.CacheWrite, "_tile", two_loops), "restarted",
        (CacheWrite("c", "", "n", (), "global"),),
    ),
    "cache_write: loops that may not run": Directed(
        set_in(cache_write, "runs", always(True)), "empty", (CacheWrite("c", "", "n", (), "global"),)
    ),
    "compute_at: iterations need each other": Directed(
        set_in(compute_at, "kind", always("independent")), "carried", (ComputeAt("t", "i"),)
    ),
    "reverse_compute_at: used in between": Directed(
        set_in(reverse_compute_at, "clear_way", always((Loop("none", dim(1), "serial", EMPTY),))), "between",
        (ReverseComputeAt("d", "p"),),
    ),
    "fuse_into_store: stored twice": Directed(
        set_in(fuse_into_store, "clear_way", always((EMPTY,))), "between", (FuseIntoStore("d", "t"),)
    ),
    "set_scope: iterations share": Directed(
        set_in(moving, "separated", always(True)), "shared", (SetScope("t", "global", "i"),)
    ),
    "store_at: sources that change": Directed(
        set_in(store_at, "written_buffers", always(set())), "changing", (StoreAt("t", ""),)
    ),
}  # fmt: skip

SPECIAL: dict[str, str] = {
    "scatter_last": """
program scatter_last
  read x: float32[5, 5]
  accumulate out: float32[9]

  serial i < 5
    serial j < 5
      out: out[i + j] = x[i, j]
""",
    "restarted": """
program restarted
  read x: float32[3, 4, 5]
  write c: float32[4]

  serial i < 4
    serial k < 5
      serial p < 3
        c: c[i] += x[p, i, k]  init 0.0 over k
""",
    "empty": """
program empty
  symbol N in 0..
  read x: float32[4, N]
  accumulate c: float32[4]

  serial i < 4
    serial k < N
      c: c[i] += x[i, k]  init 0.0 over k
""",
    "carried": """
program carried
  read x: float32[6]
  write out: float32[6]

  global t: float32[6]
  block
    register c: float32[1]
    serial z < 6
      t.first: t[z] = 0.0
    c: c[0] = 0.0
    serial p < 6
      t.step: c[0] += x[p]  over p
      t: t[p] = c[0]
  serial i < 6
    out: out[i] = t[i] * 2.0
""",
    "between": """
program between
  read x: float32[6]
  write e: float32[6]
  accumulate d: float32[6]

  global t: float32[6]
  serial p < 6
    t: t[p] = x[p] * 2.0
  serial q < 6
    e: e[q] = d[q]
  serial r < 6
    d: d[r] = t[r] + 1.0
""",
    "shared": """
program between_iterations
  read x: float32[6]
  write out: float32[6]

  global t: float32[1]
  t: t[0] = 1.0
  serial i < 6
    u: t[0] = t[0] + x[i]
    out: out[i] = t[0]
""",
    "changing": """
program changing
  accumulate x: float32[8]
  write out: float32[6]

  serial i < 6
    global t: float32[3]
    serial p < 3
      t: t[p] = x[i + p] * 2.0
    x: x[i + 1] = x[i] + 5.0
    out: out[i] = t[0] + t[1] + t[2]
""",
}


@pytest.mark.parametrize("bug", DIRECTED)
def test_refused_steps_would_change_values(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = DIRECTED[bug]
    if planned.program in SPECIAL:
        program = parse_program(SPECIAL[planned.program].lstrip())
        found = Case(program, ({"N": 0},) if program.symbols else ({},))
    else:
        found = case(planned.program, np.random.default_rng(0))
    *before, last = planned.steps
    schedule = Schedule(found.program).replay(tuple(before))
    assert not schedule.check(last).legal
    planned.plant(monkeypatch)
    with pytest.raises((AssertionError, TileworkError)):
        compare_often(found, schedule.apply(last))


def compare_often(found: Case, schedule: Schedule) -> None:
    for seed in range(5):
        compare(found, schedule, seed)
