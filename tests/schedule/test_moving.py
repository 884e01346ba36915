"""The primitives that move computations and storage: what the tree looks like, and that its values stay."""

from __future__ import annotations

import numpy as np
import pytest

from tests.schedule.random_schedules import PROGRAMS, Case, Toy, case, compare
from tilework.loops.parse import parse_program
from tilework.loops.program import Compute, Intrinsic, Loop, LoopProgram, Storage, statements, walk
from tilework.loops.text import program_text
from tilework.loops.verify import verify
from tilework.schedule.rewriting import derived, unique
from tilework.schedule.schedule import Schedule


def start(name: str, seed: int = 0, symbolic: bool = False) -> Case:
    return case(name, np.random.default_rng(seed), symbolic)


def kept(found: Case, schedule: Schedule) -> LoopProgram:
    verify(schedule.program)
    for seed in range(3):
        compare(found, schedule, seed)
    return schedule.program


def storage(program: LoopProgram, name: str) -> Storage:
    return next(n for n in walk(program.body) if isinstance(n, Storage) and n.buffer.name == name)


def runs(program: LoopProgram, name: str, symbols: dict[str, int] | None = None) -> int:
    """How often the statements of one name run."""
    total = 0

    def below(node: object, values: dict[str, int]) -> None:
        nonlocal total
        match node:
            case Loop():
                for value in range(int(node.extent.evaluate(values))):
                    below(node.body, {**values, node.variable: value})
            case Storage():
                below(node.body, values)
            case Compute():
                total += node.name == name and all(g.evaluate(values) >= 0 for g in node.guards)
            case _:
                for child in getattr(node, "children", ()):
                    below(child, values)

    below(program.body, symbols or {})
    return total


def lines(program: LoopProgram) -> list[str]:
    return [line.strip() for line in program_text(program).splitlines()]


STENCIL = """
program stencil
  read x: float32[20]
  write out: float32[16]

  global t: float32[18]
  serial p < 18
    t: t[p] = x[p] + x[p + 1] * x[p + 2]
  serial i < 16
    out: out[i] = t[i] - t[i + 1] + t[i + 2]
"""


def stencil() -> Case:
    return Case(parse_program(STENCIL.lstrip()), ({},))


def test_compute_at_computes_the_window_anew() -> None:
    found = stencil()
    program = kept(found, Schedule(found.program).compute_at("t", "i"))
    assert "global t: float32[3]" in lines(program)
    assert "t: t[p] = x[i + p] + x[i + p + 1] * x[i + p + 2]" in lines(program)
    assert "out: out[i] = t[0] - t[1] + t[2]" in lines(program)
    assert runs(program, "t") == 3 * 16


def test_store_at_keeps_the_window() -> None:
    found = stencil()
    schedule = Schedule(found.program).compute_at("t", "i").store_at("t", "")
    program = kept(found, schedule)
    assert "global t: float32[18]" in lines(program)
    assert "t: t[i + p] = x[i + p] + x[i + p + 1] * x[i + p + 2]  where max(-i, p - 2) >= 0" in lines(program)
    assert runs(program, "t") == 18


def test_a_window_inside_a_tile() -> None:
    """Computed per element, stored per tile: each tile computes its border again, and nothing else."""
    found = stencil()
    schedule = Schedule(found.program).split("i", 4).compute_at("t", "i.inner").store_at("t", "i.outer")
    program = kept(found, schedule)
    assert str(storage(program, "t").buffer.shape) == "(dim('6'),)"
    assert runs(program, "t") == 4 * 6
    parallel = schedule.parallel("i.outer")
    kept(found, parallel)


def test_windows_in_two_dimensions() -> None:
    found = start("stencil_2d", 3)
    schedule = Schedule(found.program).compute_at("t", "j").store_at("t", "")
    program = kept(found, schedule)
    rows, columns = (int(d) for d in found.program.buffers["t"].shape)
    assert runs(program, "t") == rows * columns
    assert storage(program, "t") is program.body


def test_compute_at_of_a_reduction_under_a_split_with_a_tail() -> None:
    found = start("blur", 4)
    schedule = (
        Schedule(found.program).split("i", 3).split("j", 4).reorder("i.outer", "j.outer", "i.inner", "j.inner", "l")
    )
    for at in ("i.outer", "j.outer", "i.inner", "j.inner"):
        kept(found, schedule.compute_at("h", at))


@pytest.mark.parametrize("seed", range(6))
def test_compute_at_with_symbolic_extents(seed: int) -> None:
    for name, statement, at in (
        ("stencil", "t", "i"),
        ("blur", "h", "i"),
        ("padded_stages", "t", "i"),
        ("group", "c", "y"),
    ):
        found = start(name, seed, symbolic=True)
        kept(found, Schedule(found.program).compute_at(statement, at))


def test_a_chain_moves_from_the_consumer_up() -> None:
    found = start("chain", 2)
    schedule = Schedule(found.program).split("w", 3).compute_at("u", "w.outer").compute_at("t", "w.outer")
    program = kept(found, schedule)
    assert [s.name for s in statements(program.body)] == ["t", "u", "out"]
    assert storage(program, "t").buffer.shape[0] == 1


def test_an_epilogue_on_a_tile_and_in_registers() -> None:
    found = start("epilogue", 6)
    schedule = (
        Schedule(found.program).split("i", 2).split("j", 4).reorder("i.outer", "j.outer", "k", "i.inner", "j.inner")
    )
    schedule = schedule.reverse_compute_at("d", "j.outer").set_scope("c", "register", "j.outer")
    program = kept(found, schedule)
    assert storage(program, "c").buffer.scope == "register"
    assert [str(d) for d in storage(program, "c").buffer.shape] == ["2", "4"]
    kept(found, schedule.parallel("i.outer").vectorize("j.inner").vectorize("x").unroll("y"))


def test_fuse_into_store_removes_the_temporary() -> None:
    found = start("chain", 3)
    program = kept(found, Schedule(found.program).fuse_into_store("u", "t").fuse_into_store("out", "u"))
    assert [s.name for s in statements(program.body)] == ["out"]
    assert set(program.buffers) == {"x", "y", "out"}


def test_fuse_into_store_keeps_what_others_read() -> None:
    text = """
program example
  read x: float32[6]
  write y: float32[6]
  write out: float32[6]

  serial i < 6
    y: y[i] = x[i] * 2.0
  serial q < 6
    out: out[q] = y[q] + 1.0
"""
    found = Case(parse_program(text.lstrip()), ({},))
    program = kept(found, Schedule(found.program).fuse_into_store("out", "y"))
    assert [s.name for s in statements(program.body)] == ["y", "out"]


def test_fuse_into_the_write_back_of_a_tile() -> None:
    found = start("epilogue", 6)
    schedule = Schedule(found.program).cache_write("c", "i", "acc", scope="global").fuse_into_store("d", "c.back")
    program = kept(found, schedule)
    assert "c" not in program.buffers


def test_partition_of_one_nest_leaves_the_others() -> None:
    found = Case(parse_program(PROGRAMS["chain"].format(A=2, B=7).lstrip()), ({},))
    schedule = Schedule(found.program).split("q", 3).split("w", 3)
    program = kept(found, schedule.partition("w.outer"))
    assert [s.name for s in statements(program.body) if s.guards] == ["t"]


def test_partition_forwards_loops_to_their_pieces() -> None:
    found = stencil()
    schedule = Schedule(found.program).split("i", 6)
    handle = schedule.handle("i.inner")
    after = schedule.partition()
    kept(found, after)
    assert len(after.at(handle)) == 2


def test_tensorize_marks_the_nest_and_shields_it() -> None:
    found = start("pieces", 1)
    schedule = Schedule(found.program, Toy()).tensorize("l", "multiply_add").tensorize("r", "copy")
    program = kept(found, schedule)
    assert [n.instruction for n in walk(program.body) if isinstance(n, Intrinsic)] == ["multiply_add", "copy"]
    kept(found, schedule.split("i", 1).parallel("p"))


def test_names_of_what_is_derived() -> None:
    taken = {"row", "row.back"}
    assert derived("row", "init", taken) == "row.init"
    assert derived("row", "back", taken) == "row.back.2"
    assert derived("row.init", "back", taken) == "row.back.3"
    assert derived("v0.m0.row", "back", set()) == "v0.m0.row.back"
    assert unique("copy", {"copy", "copy.2"}) == "copy.3"


def test_derived_loops_are_named_after_their_loop() -> None:
    found = start("product", 2)
    schedule = Schedule(found.program).split("j", 2).reorder("i", "j.outer", "k", "j.inner").vectorize("j.inner")
    schedule = schedule.cache_write("c", "j.outer", "c.cells")
    program = kept(found, schedule)
    names = [n.variable for n in walk(program.body) if isinstance(n, Loop)]
    assert names == ["i", "j.outer", "j.inner.init", "k", "j.inner", "j.inner.back"]
    assert [s.name for s in statements(program.body)] == ["c.init", "c", "c.back"]
