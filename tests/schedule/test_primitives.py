"""Each primitive on programs where it is legal: the values stay, and the tree is what the primitive promises."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from tests.schedule.programs import chain, matrix_product, row_maximum, same_values
from tests.schedule.random_schedules import arrays_for
from tilework.errors import ParseError, ScheduleError
from tilework.layout import packed
from tilework.loops.interpret import interpret
from tilework.loops.parse import parse_program
from tilework.loops.program import Loop, LoopProgram, statements, walk
from tilework.loops.text import program_text
from tilework.loops.verify import verify
from tilework.numerics import numerics
from tilework.schedule.primitives.transform_layout import argument_layouts
from tilework.schedule.schedule import Schedule
from tilework.schedule.trace import primitive_names, trace_from_json, trace_to_json
from tilework.schedule.verdict import IllegalSchedule


def loops(program: LoopProgram) -> list[tuple[str, str]]:
    return [(n.variable, n.kind) for n in walk(program.body) if isinstance(n, Loop)]


@pytest.mark.parametrize("extent", [1, 7, 8, 9, 16, 0])
@pytest.mark.parametrize("loop", ["i", "j", "k"])
@pytest.mark.parametrize("tail", ["guard", "mask"])
def test_split_keeps_values(extent: int, loop: str, tail: str) -> None:
    extents = {"i": 3, "j": 3, "k": 3, loop: extent or "N"}
    program = matrix_product(extents["i"], extents["j"], extents["k"])
    schedule = Schedule(program).split(loop, 8, tail=tail)
    same_values(program, schedule.program, extent, N=extent)
    assert (f"{loop}.outer", "serial") in loops(schedule.program)


def test_split_of_a_symbolic_loop() -> None:
    program = matrix_product("N", 3, "K")
    schedule = Schedule(program).split("i", 4).split("k", 3).reorder("k.inner", "k.outer").reorder("j", "i.outer")
    for n, k in ((0, 2), (1, 1), (4, 3), (9, 7), (3, 0)):
        same_values(program, schedule.program, n, N=n, K=k)


def test_split_by_a_divisor_adds_no_guard() -> None:
    schedule = Schedule(matrix_product(4, 6, 2)).split("j", 3)
    assert all(not s.guards for s in statements(schedule.program.body))


def test_layouts_of_layouts_that_are_no_single_one() -> None:
    """A block outside what it was cut from, and a block of blocks that do not divide: packed one after the other."""
    program = matrix_product(3, 10, 6)
    for second in ("layout(2, 0, 1)", "layout(0, 1, 2, 2:3)", "layout(1, 0, 2, 1:2)"):
        schedule = Schedule(program).transform_layout("b", "layout(0, 1, 1:4)").transform_layout("b", second)
        layouts = argument_layouts(schedule.trace, ("a", "b"))
        assert [str(layout) for layout in layouts["b"]] == ["layout(0, 1, 1:4)", second]
        assert "a" not in layouts
        given, expected = arrays_for(program, {}, 1), arrays_for(program, {}, 1)
        given["b"] = packed(given["b"], layouts["b"])
        interpret(program, expected, {})
        interpret(schedule.program, given, {})
        np.testing.assert_array_equal(given["c"], expected["c"])


def test_reorder_and_forwarding_of_handles() -> None:
    schedule = Schedule(matrix_product(4, 6, 5))
    handle = schedule.handle("j")
    after = schedule.split("j", 2, "a", "b").reorder("a", "k", "i", "b").split("a", 2)
    assert [v for v, _ in loops(after.program)] == ["a.outer", "a.inner", "k", "i", "b"]
    assert after.at(handle) == ("a.outer", "a.inner", "b")
    assert after.at(after.handle("k")) == ("k",)
    same_values(schedule.program, after.program, 1)


def test_fuse_then_split_again() -> None:
    program = chain(5, 7)
    schedule = (
        Schedule(program)
        .fuse("p0", "p1")
        .split("p0_p1", 4)
        .fuse("q0", "q1", "q")
        .vectorize("p0_p1.inner")
        .parallel("q")
    )
    same_values(program, schedule.program, 2)


def test_fuse_with_a_symbolic_inner_extent() -> None:
    program = chain("N", "M")
    schedule = Schedule(program).fuse("r0", "r1")
    for n, m in ((0, 3), (3, 1), (2, 5)):
        same_values(program, schedule.program, n, N=n, M=m)


def test_fused_reductions_of_symbolic_extent_still_start() -> None:
    text = """
program total
  symbol N in 1..
  symbol M in 1..
  read x: float32[3, N, M]
  write out: float32[3]

  serial i < 3
    serial k < N
      serial l < M
        out: out[i] += x[i, k, l]  init 0.0 over k, l
"""
    program = parse_program(text.lstrip())
    schedule = Schedule(program).fuse("k", "l")
    (statement,) = statements(schedule.program.body)
    assert statement.reduction == ("k_l",)
    for n, m in ((1, 1), (2, 3), (4, 1)):
        same_values(program, schedule.program, n, N=n, M=m)


def test_inline_of_a_chain() -> None:
    program = chain(3, 4)
    schedule = Schedule(program).compute_inline("t").compute_inline("u")
    assert [s.name for s in statements(schedule.program.body)] == ["out"]
    assert set(schedule.program.buffers) == {"x", "y", "out"}
    same_values(program, schedule.program, 3)


def test_marks_keep_values() -> None:
    program = matrix_product(6, 8, 5)
    schedule = (
        Schedule(program)
        .split("j", 4)
        .reorder("i", "j.outer", "k", "j.inner")
        .vectorize("j.inner")
        .unroll("k")
        .parallel("i")
    )
    assert dict(loops(schedule.program)) == {
        "i": "parallel",
        "j.outer": "serial",
        "k": "unrolled",
        "j.inner": "vectorized",
    }
    same_values(program, schedule.program, 4)


def test_vectorised_reduction_needs_reassociation() -> None:
    program = row_maximum(3, 8)
    same_values(program, Schedule(program).vectorize("k").program, 5)
    with pytest.raises(IllegalSchedule) as refused:
        Schedule(program, numerics=numerics("strict")).vectorize("k")
    assert refused.value.verdict.witness is not None


def test_strict_numerics_keep_the_order_of_reductions_but_move_independent_loops() -> None:
    program = matrix_product(3, 4, 6)
    strict = Schedule(program, numerics=numerics("strict"))
    split = strict.split("k", 2)
    assert split.reorder("k.outer", "i", "k.inner", "j").program is not None
    with pytest.raises(IllegalSchedule):
        split.reorder("k.inner", "k.outer")
    assert Schedule(program).split("k", 2).reorder("k.inner", "k.outer").program is not None


def test_trace_round_trip_and_replay_on_another_shape() -> None:
    schedule = (
        Schedule(matrix_product(6, 8, 5)).split("j", 4).reorder("i", "j.outer", "k", "j.inner").vectorize("j.inner")
    )
    trace = trace_from_json(trace_to_json(schedule.trace))
    assert trace == schedule.trace
    other = matrix_product(3, 10, 2)
    same_values(other, Schedule(other).replay(trace).program, 6)


def test_replay_says_which_step_does_not_apply() -> None:
    trace = Schedule(chain(4, 8)).vectorize("p1").trace
    with pytest.raises(ScheduleError, match="step 0") as refused:
        Schedule(matrix_product(2, 2, 2)).replay(trace)
    assert refused.value.code == 1504


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[1]", '[{"loop": "i"}]', '[{"primitive": "no_such"}]', '[{"primitive": "split"}]', "[" * 100000,
     '[{"primitive": "split", "loop": "i", "wrong": 1}]', '[{"primitive": "split", "loop": "i", "factor": "8"}]'],
)  # fmt: skip
def test_bad_traces_have_a_code(text: str) -> None:
    with pytest.raises(ParseError) as refused:
        trace_from_json(text)
    assert refused.value.code == 1503


def test_every_primitive_is_found_by_its_file() -> None:
    assert set(primitive_names()) >= {"split", "reorder", "fuse", "unroll", "vectorize", "parallel", "compute_inline"}


def test_a_schedule_is_a_value() -> None:
    schedule = Schedule(matrix_product(4, 4, 4))
    schedule.split("i", 2)
    assert schedule.trace == ()
    assert ("i", "serial") in loops(schedule.program)
    with pytest.raises(AttributeError, match="primitives:"):
        _ = schedule.no_such_primitive


@pytest.mark.parametrize("seed", range(120))
def test_random_legal_schedules_keep_values(seed: int) -> None:
    """Whatever a check lets through leaves every bit as it was."""
    rng = np.random.default_rng(seed)
    extents = [int(n) for n in rng.integers(1, 7, 3)]
    program = [matrix_product(*extents), chain(*extents[:2]), row_maximum(*extents[:2])][seed % 3]
    schedule = Schedule(program, numerics=numerics(str(rng.choice(["strict", "default"]))))
    applied = 0
    for _ in range(14):
        names = [variable for variable, _ in loops(schedule.program)]
        stages = [s.name for s in statements(schedule.program.body)]
        pick = str(rng.choice(names))
        step = int(rng.integers(0, 7))
        try:
            match step:
                case 0:
                    schedule = schedule.split(pick, int(rng.integers(1, 5)))
                case 1:
                    schedule = schedule.reorder(*map(str, rng.permutation(names)[: rng.integers(2, 5)]))
                case 2:
                    schedule = schedule.fuse(pick, str(rng.choice(names)))
                case 3:
                    schedule = schedule.unroll(pick)
                case 4:
                    schedule = schedule.vectorize(pick)
                case 5:
                    schedule = schedule.parallel(pick)
                case _:
                    schedule = schedule.compute_inline(str(rng.choice(stages)))
            applied += 1
        except ScheduleError:
            continue
    same_values(program, schedule.program, seed)
    assert trace_from_json(trace_to_json(schedule.trace)) == schedule.trace


@pytest.mark.parametrize("depth", [1, 5, 8])
@pytest.mark.parametrize("columns", [4, 6, 8])
def test_cache_write_of_a_product_tile(columns: int, depth: int) -> None:
    program = matrix_product(5, columns, depth)
    schedule = Schedule(program).split("j", 4).reorder("i", "j.outer", "k", "j.inner").vectorize("j.inner")
    schedule = schedule.cache_write("c", "j.outer", "acc")
    assert schedule.program.buffers["acc"].scope == "register"
    assert schedule.at(schedule.handle("c")) == ("c",)
    same_values(program, schedule.program, columns)


@pytest.mark.parametrize("columns", [1, 7, 8, 17])
def test_cache_write_over_reduction_axes_is_rfactor(columns: int) -> None:
    program = row_maximum(3, columns)
    schedule = Schedule(program).split("k", 4).vectorize("k.inner").cache_write("out", "i", "part", axes=("k.inner",))
    same_values(program, schedule.program, columns)
    with pytest.raises(IllegalSchedule):
        Schedule(program, numerics=numerics("strict")).cache_write("out", "i", "part", axes=("k",))


def test_cache_write_with_reductions_left_outside() -> None:
    program = matrix_product(4, 6, 10)
    schedule = Schedule(program).split("k", 3).reorder("k.outer", "i", "k.inner", "j")
    schedule = schedule.cache_write("c", "i", "acc", scope="global")
    same_values(program, schedule.program, 9)


def test_cache_write_goes_on_with_what_is_there() -> None:
    """No sum is regrouped: legal under strict numerics too, and the same bits."""
    program = matrix_product(4, 6, 10)
    schedule = Schedule(program, numerics=numerics("strict")).split("k", 3).reorder("k.outer", "i", "j", "k.inner")
    with pytest.raises(IllegalSchedule):
        schedule.cache_write("c", "j", "acc")
    schedule = schedule.decompose_reduction("c").cache_write("c", "j", "acc", start="target")
    assert ": acc[] = c[i, j]" in program_text(schedule.program)
    given, expected = arrays_for(program, {}, 3), arrays_for(program, {}, 3)
    interpret(program, expected, {})
    interpret(schedule.program, given, {})
    assert given["c"].tobytes() == expected["c"].tobytes()


@pytest.mark.parametrize("seed", range(60))
def test_random_cache_writes_keep_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    extents = [int(n) for n in rng.integers(1, 7, 3)]
    program = [matrix_product(*extents), row_maximum(*extents[:2])][seed % 2]
    name = ["c", "out"][seed % 2]
    schedule = Schedule(program)
    for _ in range(int(rng.integers(0, 3))):
        names = [variable for variable, _ in loops(schedule.program)]
        try:
            schedule = schedule.split(str(rng.choice(names)), int(rng.integers(1, 4)))
        except ScheduleError:
            continue
    names = [variable for variable, _ in loops(schedule.program)]
    schedule = schedule.reorder(*map(str, rng.permutation(names)))
    names = [variable for variable, _ in loops(schedule.program)]
    axes = tuple(v for v in names if v.startswith("k") and rng.random() < 0.4)
    try:
        schedule = schedule.cache_write(name, str(rng.choice(["", *names])), "acc", axes, "global")
    except ScheduleError:
        return
    same_values(program, schedule.program, seed)


def test_partition_of_a_loop_whose_inner_extent_depends_on_it() -> None:
    """No cut names the loop that it cuts."""
    program = parse_program("""
program p
  read x: float32[6]
  write out: float32[6]

  global n8: float32[1]
  serial z < 6
    i: out[z] = 0.0
  serial a < 6
    serial l < min(-a + 6, 2)
      n: n8[0] = x[a + l]  where -a - l + 5 >= 0
      out: out[a] += n8[0]  over l
""")
    schedule = Schedule(program)
    after = schedule
    with contextlib.suppress(ScheduleError):
        after = schedule.partition("a", 2000)
    verify(after.program)
    same_values(program, after.program, 1)
