"""Every file here is a schedule that is refused: its program, the step, and what the refusal says."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.schedule.random_schedules import Toy
from tilework.errors import ScheduleError
from tilework.loops.expressions import Load
from tilework.loops.expressions import walk as walk_expression
from tilework.loops.parse import parse_program
from tilework.loops.program import Compute, Loop, LoopProgram, path, statements
from tilework.loops.verify import verify
from tilework.numerics import numerics
from tilework.schedule.schedule import Schedule
from tilework.schedule.trace import primitive_names
from tilework.schedule.verdict import IllegalSchedule

FILES = sorted(p for p in Path(__file__).parent.glob("*.py") if not p.stem.startswith("test_"))


def load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"illegal_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def apply(schedule: Schedule, step: tuple[Any, ...]) -> Schedule:
    arguments = step[1] if step[0] == "reorder" else step[1:]
    return getattr(schedule, step[0])(*arguments)


@pytest.mark.parametrize("file", FILES, ids=[f.stem for f in FILES])
def test_refused(file: Path) -> None:
    found = load(file)
    program = parse_program(found.PROGRAM)
    verify(program)
    machine = Toy() if getattr(found, "MACHINE", "") == "toy" else None
    schedule = Schedule(program, machine, numerics(getattr(found, "NUMERICS", "default")))
    for step in getattr(found, "BEFORE", []):
        schedule = apply(schedule, step)
    with pytest.raises(ScheduleError) as refused:
        apply(schedule, found.STEP)
    error = refused.value
    assert error.code == found.CODE
    assert error.message == found.RENDERING.rstrip("\n")
    verdict = error.verdict if isinstance(error, IllegalSchedule) else None
    dependence = verdict.dependence if verdict is not None else None
    witness = verdict.witness if verdict is not None else None
    if hasattr(found, "DEPENDENCE"):
        assert dependence is not None
        assert (dependence.kind, dependence.buffer, dependence.loops, dependence.direction) == found.DEPENDENCE
    else:
        assert dependence is None
    if hasattr(found, "WITNESS"):
        assert witness is not None
        assert dependence is not None
        first, second = found.WITNESS
        symbols = getattr(found, "SYMBOLS", {})
        assert (witness.first, witness.second, witness.symbols) == (first, second, symbols)
        # after a reorder the witness speaks of the loops as they would be
        meet(schedule.program, dependence.buffer, {**first, **symbols}, {**second, **symbols})
    else:
        assert witness is None


def touched(statement: Compute, buffer: str) -> Iterator[tuple[Any, ...]]:
    yield from (t.index for t in statement.targets if t.buffer == buffer)
    for value in statement.values:
        yield from (n.index for n in walk_expression(value) if isinstance(n, Load) and n.buffer == buffer)


def meet(program: LoopProgram, buffer: str, first: Mapping[str, int], second: Mapping[str, int]) -> None:
    """Assert that the two iterations are different, and touch one element of the buffer."""
    assert first != second
    sides: list[set[tuple[int, ...]]] = []
    for point in (first, second):
        elements: set[tuple[int, ...]] = set()
        for statement in statements(program.body):
            around = {n.variable: 0 for n in path(program.body, statement) if isinstance(n, Loop)}
            values = {**around, **point}
            assert all(g.evaluate(values) >= 0 for g in statement.guards)
            for index in touched(statement, buffer):
                elements.add(tuple(int(entry.evaluate(values)) for entry in index))
        sides.append(elements)
    assert sides[0] & sides[1]


def test_every_primitive_is_refused_in_several_ways() -> None:
    counts = Counter(load(file).STEP[0] for file in FILES)
    assert {name: counts[name] for name in primitive_names() if counts[name] < 3} == {}


def test_refusals_have_many_reasons() -> None:
    codes = {load(file).CODE for file in FILES}
    assert len(FILES) >= 80
    assert len(codes) >= 18
