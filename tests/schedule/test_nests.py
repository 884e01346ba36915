"""Nests scheduled apart: the same program and trace as on the whole, at a cost that grows with the number of nests."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from tests.schedule.random_schedules import PROGRAMS, case, compare
from tilework.dims import dim
from tilework.loops import program as trees
from tilework.loops.equal import same_program
from tilework.loops.parse import parse_program
from tilework.loops.program import Loop, statements, walk
from tilework.loops.text import program_text
from tilework.loops.verify import verify
from tilework.machine.finder import machine
from tilework.numerics import numerics
from tilework.recipes.cpu.vector_nest import vectorised
from tilework.schedule.nests import Treatment, each_nest
from tilework.schedule.outside import BeyondNest
from tilework.schedule.primitive import Primitive
from tilework.schedule.primitives.cache_write import CacheWrite
from tilework.schedule.primitives.compute_at import ComputeAt
from tilework.schedule.primitives.compute_inline import ComputeInline
from tilework.schedule.primitives.fission import Fission
from tilework.schedule.primitives.fuse import Fuse
from tilework.schedule.primitives.parallel import Parallel
from tilework.schedule.primitives.prefetch import Prefetch
from tilework.schedule.primitives.reorder import Reorder
from tilework.schedule.primitives.split import Split
from tilework.schedule.primitives.transform_layout import TransformLayout
from tilework.schedule.primitives.unroll import Unroll
from tilework.schedule.primitives.vectorize import Vectorize
from tilework.schedule.schedule import Schedule

NAMES = ("i.outer", "x.new", "cells", "part", "")
"""Names for new loops and buffers, so few that nests take them from each other."""


def on_the_whole(schedule: Schedule, treat: Treatment) -> Schedule:
    """What `each_nest` promises to equal."""
    loops = trees.children(schedule.program.body)
    tops = [tuple(s.name for s in statements(loop)) for loop in _outermost(schedule.program.body)]
    assert loops
    for names in tops:
        schedule = treat(schedule, names)
    return schedule


def _outermost(node: Any) -> list[Loop]:
    if isinstance(node, Loop):
        return [node]
    return [loop for child in trees.children(node) for loop in _outermost(child)]


def random_treatment(seed: int) -> Treatment:
    """Random steps on a nest, drawn from its statements' names: the same wherever it stands."""

    def treat(schedule: Schedule, names: tuple[str, ...]) -> Schedule:
        rng = np.random.default_rng([seed, crc32(" ".join(names).encode())])

        def pick(values: Any) -> Any:
            return values[int(rng.integers(len(values)))] if len(values) else "none"

        for _ in range(8):
            present = [s.name for s in statements(schedule.program.body)]
            mine = [name for name in names if name in present]
            if not mine:
                return schedule
            statement = schedule.setting.statement(pick(mine))
            around = [loop.variable for loop in schedule.setting.enclosing(statement)]
            loop, other = pick(around), pick(around)
            read = sorted({load.buffer for load in statement.loads}) or ["none"]
            step: Primitive = pick(
                [
                    Split(loop, int(rng.integers(1, 5)), pick(NAMES), pick(NAMES)),
                    Fuse(loop, other, pick(NAMES)),
                    Reorder(*[str(v) for v in rng.permutation(around)]),
                    Vectorize(loop),
                    Parallel(loop),
                    Unroll(loop),
                    Fission(loop),
                    CacheWrite(statement.name, loop, pick(NAMES) or "more"),
                    CacheWrite(statement.name, loop, pick(NAMES) or "more", (), "register", "target"),
                    TransformLayout(pick(read), "layout(1, 0)"),
                    ComputeInline(statement.name),
                    ComputeAt(statement.name, loop),
                    Prefetch(statement.name, loop),
                    Prefetch(statement.name, loop, pick(read), int(rng.integers(0, 3))),
                ]
            )
            schedule = schedule.attempt(step) or schedule
        return schedule

    return treat


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_as_on_the_whole(name: str) -> None:
    """Program and trace are those that steps on the whole program give; the trace replays there; values stay."""
    for seed in range(12):
        found = case(name, np.random.default_rng(seed), symbolic=bool(seed % 2))
        start = Schedule(found.program, None, numerics("default"))
        apart = each_nest(start, random_treatment(seed))
        whole = on_the_whole(start, random_treatment(seed))
        assert apart.trace == whole.trace
        assert program_text(apart.program) == program_text(whole.program)
        assert apart.forwards == whole.forwards
        assert apart.outside is None
        assert same_program(start.replay(apart.trace).program, apart.program)
        verify(apart.program)
        compare(found, apart, seed)


TWO = """
program two
  read a: float32[6, 8]
  read b: float32[6, 8]
  write x: float32[6, 8]
  write y: float32[6, 8]

  serial i < 6
    serial j < 8
      x: x[i, j] = a[i, j] + b[i, j]
  serial k < 6
    serial l < 8
      y: y[k, l] = b[k, l]
"""


def _parts(treat: Treatment) -> tuple[Schedule, list[bool]]:
    """The schedule, and of each call of the treatment whether it had one nest only."""
    alone: list[bool] = []

    def watched(schedule: Schedule, names: tuple[str, ...]) -> Schedule:
        alone.append(schedule.outside is not None)
        return treat(schedule, names)

    return each_nest(Schedule(parse_program(TWO)), watched), alone


def test_a_nest_is_alone() -> None:
    """Each nest is a program of its own with what it touches, and knows what others touch too."""

    def treat(schedule: Schedule, names: tuple[str, ...]) -> Schedule:
        assert schedule.outside is not None
        assert len([n for n in walk(schedule.program.body) if isinstance(n, Loop)]) == 2
        wanted = {"x": {"a", "b", "x"}, "y": {"b", "y"}}[names[0]]
        assert set(schedule.program.buffers) == wanted
        assert schedule.outside.shared == {"b"}
        return schedule.split({"x": "i", "y": "k"}[names[0]], 2)

    done, alone = _parts(treat)
    assert alone == [True, True]
    assert [str(step) for step in done.trace] == ["split(loop='i', factor=2)", "split(loop='k', factor=2)"]
    assert done.at(Schedule(parse_program(TWO)).handle("k")) == ("k.outer", "k.inner")


def test_a_name_of_another_nest() -> None:
    """A loop may not take a name that another nest has, or had when it was treated: the whole program decides."""

    def treat(schedule: Schedule, names: tuple[str, ...]) -> Schedule:
        wanted = Split("i" if names == ("x",) else "k", 2, "l" if names == ("x",) else "o", "n")
        return schedule.attempt(wanted) or schedule.parallel("i" if names == ("x",) else "k")

    done, alone = _parts(treat)
    assert alone == [True, False, True]
    assert [step.name for step in done.trace] == ["parallel", "split"]


def test_layouts() -> None:
    """A buffer that one nest alone reads is transformed there, one that two read on the whole program."""

    def treat(buffer: str) -> Treatment:
        return lambda schedule, names: (
            schedule.transform_layout(buffer, "layout(1, 0)") if names == ("x",) else schedule.parallel("k")
        )

    own, alone = _parts(treat("a"))
    assert alone == [True, True]
    assert own.program.buffers["a"].shape == (dim(8), dim(6))
    both, alone = _parts(treat("b"))
    assert alone == [True, False, True]
    assert program_text(both.program) == program_text(on_the_whole(Schedule(parse_program(TWO)), treat("b")).program)


def test_beyond_is_said() -> None:
    """A step that looks at the whole program gets no verdict from a nest alone."""
    seen: list[str] = []

    def treat(schedule: Schedule, names: tuple[str, ...]) -> Schedule:
        if schedule.outside is not None:
            for call in (schedule.check, schedule.attempt, schedule.apply):
                with pytest.raises(BeyondNest):
                    call(ComputeInline(names[0]))
                seen.append(names[0])
        return schedule

    _parts(treat)
    assert seen == ["x"] * 3 + ["y"] * 3


# -- growth ------------------------------------------------------------------------------------------------------------
def wide(count: int) -> str:
    """A concatenation of `count` blocks of one buffer: a nest each."""
    nests = "\n".join(
        f"  serial i{n} < N\n    serial j{n} < 8\n      part{n}: out[i{n}, j{n} + {8 * n}] = x[i{n}, j{n}]"
        for n in range(count)
    )
    return (
        f"program wide\n  symbol N in 0..\n  read x: float32[N, 8]\n  write out: float32[N, {8 * count}]\n\n{nests}\n"
    )


def _nodes_walked(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    schedule = Schedule(parse_program(wide(count)), machine("host"))
    walked = 0
    below = trees._below  # pyright: ignore[reportPrivateUsage]

    def counted(node: Any) -> Any:
        nonlocal walked
        found = below(node)
        walked += len(found)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(trees, "_below", counted)
        vectorised(schedule)
    return walked


def _calls(count: int) -> int:
    schedule = Schedule(parse_program(wide(count)), machine("host"))
    calls = 0

    def profile(_frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        if event == "call":
            calls += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        vectorised(schedule)
    finally:
        sys.setprofile(before)
    return calls


def test_work_grows_with_the_nests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the nests: about four times the calls and nodes looked at (all of them at each step would be 16)."""
    _nodes_walked(4, monkeypatch)  # what is made on first use is made
    assert _calls(96) < 4.4 * _calls(24)
    assert _nodes_walked(96, monkeypatch) < 4.4 * _nodes_walked(24, monkeypatch)
