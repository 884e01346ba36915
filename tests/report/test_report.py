"""Reports: their numbers against plain counting, and their text."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

import tilework
from tests.cost.brute_force import events, runs
from tests.schedule.programs import chain, matrix_product
from tests.schedule.test_pressure import tiled
from tilework import dtypes
from tilework.candidates.candidate import Candidate
from tilework.cost.roofline import Roofline
from tilework.dims import Symbol, dim
from tilework.errors import LoopProgramError, TileworkError, UsageError
from tilework.loops.expressions import Load
from tilework.loops.program import Access, Argument, Compute, Loop, LoopProgram, buffer
from tilework.machine.finder import machine
from tilework.report.build import Report, report
from tilework.report.code import instruction_bytes
from tilework.report.text import duration, number, shortened, size
from tilework.report.tree import home_of
from tilework.schedule.schedule import Schedule

V4 = machine("x86-64-v4")


def product(rows: Any, columns: Any, depth: Any) -> LoopProgram:
    program = matrix_product(rows, columns, depth)
    names = {name for name in (rows, columns, depth) if isinstance(name, str)}
    return replace(program, symbols=tuple(Symbol(name, 1) for name in sorted(names)))


def test_a_tiled_product() -> None:
    schedule = tiled(matrix_product(16, 96, 12), "x86-64-v4", 8, 3)
    data = report(schedule).data
    assert data.exact
    assert data.work.flops == 2 * 16 * 96 * 12
    assert {one.name: one.runs for one in data.statements} == runs(schedule.program)
    useful = {one.buffer: one.useful_bytes for one in data.accesses}
    elements: dict[str, set[int]] = {}
    for one in events(schedule.program):
        elements.setdefault(one.buffer, set()).add(one.element)
    assert useful == {name: 4 * len(found) for name, found in elements.items()}
    (k,) = (one for one in data.pressure if one.loop == "k")
    assert (k.cells, k.operands, k.fits) == (24, 4, True)
    assert [level.traffic.source for level in data.levels] == ["L1", "L2", "L3", "memory"]
    # straight code loads a tile's 8 + 48 elements for every k of its 4 tiles, and stores the result once
    assert data.levels[0].traffic.fetched_bytes == 4 * 12 * (8 + 48) * 4
    assert data.levels[0].traffic.written_bytes == 16 * 96 * 4
    assert data.levels[-1].traffic.fetched_bytes == 4 * (16 * 12 + 12 * 96 + 16 * 96)
    assert data.levels[0].intensity == data.work.flops / data.levels[0].traffic.bytes
    assert data.code.bytes is not None
    assert 100 < data.code.bytes < 5000
    assert data.trace[-1].startswith("cache_write(")
    assert data.prediction.seconds > 0


def test_the_text(golden: Callable[[str, str], None]) -> None:
    found = report(tiled(matrix_product(64, 96, 128), "x86-64-v4", 8, 3))
    text = "\n".join(line for line in str(found).splitlines() if not line.startswith("  code")) + "\n"
    golden("tiled_product.txt", text)


@pytest.mark.parametrize("threads", [1, 2])
def test_text_is_narrow(threads: int) -> None:
    programs = [chain(7, 33), product("rows", "columns", 5), deep(30)]
    for program in programs:
        found = report(Schedule(program), symbols={"rows": 9, "columns": 70}, threads=threads) if program.symbols else (
            report(Schedule(program), threads=threads)
        )  # fmt: skip
        lines = str(found).splitlines()
        assert all(len(line) <= 120 and line == line.rstrip() for line in lines)
        assert lines[0].startswith(program.name)


def deep(depth: int) -> LoopProgram:
    """A nest of many loops with long names."""
    x, y = buffer("x", dtypes.float32, 2), buffer("y", dtypes.float32, 2)
    node: Any = Compute("y", (Access("y", (dim("loop_with_a_long_name_0"),)),), (Load("x", (dim(0),), dtypes.float32),))
    for number_ in range(depth):
        node = Loop(f"loop_with_a_long_name_{number_}", dim(2 if number_ == 0 else 1), "serial", node)
    return LoopProgram("a_deep_nest", (Argument(x, "read"), Argument(y, "write")), node)


def test_symbols() -> None:
    schedule = Schedule(product("M", 8, "K"), V4)
    data = report(schedule, symbols={"M": 6, "K": 5}).data
    assert data.work.flops == 2 * 6 * 8 * 5
    assert dict(data.symbols) == {"M": 6, "K": 5}
    assert "with M = 6, K = 5" in str(Report(data))
    with pytest.raises(LoopProgramError, match="TW1310"):
        report(schedule, symbols={"M": 6})


def test_rooflines() -> None:
    schedule = Schedule(chain(16, 32), V4)
    slow = Roofline(1e15, {"L1": 1e15, "L2": 1e15, "L3": 1e15, "memory": 1e6}, "probed")
    found = report(schedule, roofline=slow)
    assert found.data.prediction.bound == "memory"
    assert "bound      memory" in str(found)
    assert "probed" in str(found)
    with pytest.raises(UsageError, match="TW1771"):
        report(schedule, roofline="guessed")  # type: ignore[arg-type]


def test_spills_are_told() -> None:
    assert "do not fit: the code spills" in str(report(tiled(matrix_product(20, 96, 8), "x86-64-v4", 10, 3)))


def test_what_has_no_code_is_reported_all_the_same() -> None:
    program = matrix_product(4, 4, 4)
    assert isinstance(program.body, Loop)
    blocks = program.with_body(replace(program.body, kind="block.x"))
    found = report(Schedule(blocks, V4))
    assert found.data.code.bytes is None
    assert "TW1604" in str(found)
    assert found.data.work.flops == 128


def test_candidates_and_wrong_subjects() -> None:
    schedule = Schedule(matrix_product(4, 4, 4), V4)
    assert str(report(Candidate("direct", "test", lambda: schedule))) == str(report(schedule))
    with pytest.raises(UsageError, match="TW1770"):
        report("a schedule")  # type: ignore[arg-type]

    class Other:
        vector_bits = 128
        vector_registers = 8

    with pytest.raises(UsageError, match="TW1770"):
        report(replace(schedule, machine=Other()))


def test_empty_programs() -> None:
    found = report(Schedule(product("M", 4, 4), V4), symbols={"M": 1})
    assert found.data.work.flops == 32
    none = report(Schedule(replace(product("M", 4, 4), symbols=(Symbol("M"),)), V4), symbols={"M": 0})
    assert none.data.prediction.bound == "nothing"
    assert all(len(line) <= 120 for line in str(none).splitlines())


@pytest.mark.parametrize("first", ["import tilework.report.text", "from tilework.report import tree", "pass"])
def test_the_door_opens_whatever_was_imported_before(first: str) -> None:
    """The package's name and the function's are one: both can be called."""
    code = f"""
import tilework
{first}
from tests.schedule.programs import chain
print(tilework.report(tilework.Schedule(chain(2, 3))).data.work.flops)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(3 * 6)
    assert callable(tilework.report)


def test_units() -> None:
    assert [number(v) for v in (0, 12, 1234, 2.5e7, float("inf"))] == ["0", "12", "1.234 k", "25 M", "-"]
    assert [size(v) for v in (0, 1023, 1536, 3 << 30)] == ["0 B", "1023 B", "1.5 KiB", "3 GiB"]
    assert [duration(v) for v in (2e-9, 1.5e-5, 0.25, 3)] == ["2 ns", "15 us", "250 ms", "3 s"]
    assert shortened("abcdef", 4) == "abc…"
    assert [home_of(v, V4) for v in (0, 32 << 10, (32 << 10) + 1, 1 << 40)] == ["L1", "L1", "L2", "memory"]
    assert instruction_bytes(b"not elf") == 7


@pytest.mark.parametrize(
    ("code", "settings"),
    [
        (1002, {"threads": 0}), (1002, {"threads": -1}), (1002, {"threads": "x"}), (1310, {"symbols": {"N": "x"}}),
        (1310, {"symbols": {"N": 1.5}}), (1310, {"symbols": None}), (1310, {"symbols": {}}),
        (1002, {"symbols": {"N": 3, "Q": 1}}), (1310, {"symbols": {"N": 10**30}}),
    ],
)  # fmt: skip
def test_slips_are_refused_with_a_code(code: int, settings: dict[str, Any]) -> None:
    with pytest.raises(TileworkError) as caught:
        cast("Any", report)(Schedule(product("N", 4, 4)), **{"symbols": {"N": 4}, **settings})
    assert caught.value.code == code


def test_a_program_that_leaves_its_buffers_is_not_reported_on() -> None:
    x, y = buffer("x", dtypes.float32, 4), buffer("y", dtypes.float32, 4)
    body = Compute("y", (Access("y", (dim("i"),)),), (Load("x", (dim("i") + 1,), dtypes.float32),))
    program = LoopProgram("oob", (Argument(x, "read"), Argument(y, "write")), Loop("i", dim(4), "serial", body))
    with pytest.raises(TileworkError) as caught:
        report(Schedule(program))
    assert caught.value.code == 1325
