"""Cutting loops keeps values to the bit, drops what it should, and stays within its budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.loops.random_programs import random_program, zeroed
from tilework import dtypes
from tilework.dims import Dim, Symbol, dim, maximum
from tilework.errors import TileworkError
from tilework.loops import partition as module
from tilework.loops.expressions import Load, constant
from tilework.loops.interpret import interpret
from tilework.loops.parse import parse_program
from tilework.loops.partition import partition
from tilework.loops.program import Access, Argument, Compute, Loop, LoopProgram, Node, buffer, sequence, walk
from tilework.loops.ranges import extremes
from tilework.loops.reducers import reducer
from tilework.loops.text import program_text
from tilework.loops.verify import verify

F = dtypes.float32


def run(program: LoopProgram, arrays: Mapping[str, np.ndarray], symbols: Mapping[str, int]) -> dict[str, np.ndarray]:
    copies = {name: array.copy() for name, array in arrays.items()}
    interpret(program, copies, symbols)
    return copies


def check(seed: int) -> None:
    drawn = random_program(np.random.default_rng(seed))
    cut = partition(drawn.program)
    verify(cut)
    before, after = (run(p, drawn.arrays, drawn.symbols) for p in (drawn.program, cut))
    np.testing.assert_array_equal(before["y"], after["y"], err_msg=program_text(drawn.program))


@settings(max_examples=100)
@given(st.integers(0, 2**32))
def test_values_stay_the_same(seed: int) -> None:
    check(seed)


def guards(program: LoopProgram) -> list[Dim]:
    return [g for n in walk(program.body) if isinstance(n, Compute) for g in n.guards]


def matmul(rows: int | str, lanes: str = "vectorized") -> LoopProgram:
    where = f"{rows} - 4*io - ii - 1 >= 0 and 20 - 16*jo - ji >= 0"
    return parse_program(f"""
program matmul
  {"symbol M in 1.." if rows == "M" else "# integers only"}
  read a: float32[{rows}, 5]
  read b: float32[5, 21]
  write c: float32[{rows}, 21]

  serial io < ({rows} + 3) // 4
    serial jo < 2
      serial k < 5
        serial ii < 4
          {lanes} ji < 16
            c: c[4*io + ii, 16*jo + ji] += a[4*io + ii, k] * b[k, 16*jo + ji]  init 0.0 over k  where {where}
""")


def test_tails_of_a_matrix_product() -> None:
    program = matmul(11)
    cut = partition(program)
    # 11 rows are 4 + 4 + 3; 21 columns are 16 + 5, the five being a mask over lanes
    lanes = {n.variable for n in walk(cut.body) if isinstance(n, Loop) and n.kind == "vectorized"}
    assert all(g.names() <= lanes for g in guards(cut))
    assert sorted({str(n.extent) for n in walk(cut.body) if isinstance(n, Loop)}) == ["16", "2", "3", "4", "5"]
    random = np.random.default_rng(0)
    shapes = (("a", (11, 5)), ("b", (5, 21)), ("c", (11, 21)))
    arrays = {n: random.integers(-3, 4, s).astype(np.float32) for n, s in shapes}
    np.testing.assert_array_equal(run(cut, arrays, {})["c"], arrays["a"] @ arrays["b"])


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 8, 13])
def test_symbolic_tails(rows: int) -> None:
    program = matmul("M")
    cut = partition(program)
    main = next(n for n in walk(cut.body) if isinstance(n, Loop))
    assert main.variable == "io"
    assert main.extent == dim("M") // 4
    assert not any("M" in g.names() for n in walk(main) if isinstance(n, Compute) for g in n.guards)
    random = np.random.default_rng(rows)
    shapes = (("a", (rows, 5)), ("b", (5, 21)), ("c", (rows, 21)))
    arrays = {n: random.integers(-3, 4, s).astype(np.float32) for n, s in shapes}
    np.testing.assert_array_equal(run(cut, arrays, {"M": rows})["c"], arrays["a"] @ arrays["b"])


def padded(extent: int) -> LoopProgram:
    x, y = buffer("x", F, extent), buffer("y", F, extent)
    place = dim("i") + dim("k") - 1
    tap = Compute(
        "y", (Access("y", (dim("i"),)),), (Load("x", (place,), F),), reducer("sum", F), (constant(0, F),), ("k",),
        (place, dim(extent - 1) - place),
    )  # fmt: skip
    body = Loop("i", dim(extent), "serial", Loop("k", dim(3), "serial", tap))
    return LoopProgram("padded", (Argument(x, "read"), Argument(y, "write")), body)


def test_padding_taps_are_skipped() -> None:
    for extent in (1, 2, 3, 40):
        cut = partition(padded(extent))
        assert guards(cut) == []
        x = np.arange(extent, dtype=np.float32) + 1
        found = run(cut, {"x": x, "y": np.zeros(extent, np.float32)}, {})["y"]
        around = np.pad(x, 1)
        np.testing.assert_array_equal(found, around[:-2] + around[1:-1] + around[2:])
    assert len(list(walk(partition(padded(40)).body))) < 30


def test_a_mask_of_lanes_spares_cuts() -> None:
    """Taps that only lanes beyond the last would miss are one piece, and test nothing else."""
    program = parse_program("""\
program tail
  read x: float32[13]
  accumulate y: float32[6]

  serial k < 4
    vectorized j < 8
      y: y[j] = y[j] + x[2*j + k]  where 5 - j >= 0 and 12 - 2*j - k >= 0
""")
    cut = partition(program)
    assert [str(n.extent) for n in walk(cut.body) if isinstance(n, Loop)] == ["3", "8", "8"]
    first, last = (n for n in walk(cut.body) if isinstance(n, Compute))
    assert (len(first.guards), len(last.guards)) == (1, 2)
    x = np.arange(13, dtype=np.float32)
    wanted = np.array([sum(x[2 * j + k] for k in range(4) if 2 * j + k < 13) for j in range(6)], np.float32)
    np.testing.assert_array_equal(run(cut, {"x": x, "y": np.zeros(6, np.float32)}, {})["y"], wanted)


def test_masks_that_follow_from_each_other_are_not_both_dropped() -> None:
    program = parse_program("""\
program equal
  read x: float32[8]
  write y: float32[8]

  serial i < 8
    y: y[i] = x[i]  where 4 - i >= 0 and 9 - 2*i >= 0
""")
    cut = partition(program)
    x = np.arange(8, dtype=np.float32) + 1
    np.testing.assert_array_equal(
        run(cut, {"x": x, "y": np.zeros(8, np.float32)}, {})["y"], np.where(np.arange(8) < 5, x, 0)
    )


def test_only_the_outermost_loop_is_cut() -> None:
    program = padded(40)
    whole = partition(program, only=program.body, alone=True)
    assert sum(isinstance(n, Loop) and n.variable.startswith("k") for n in walk(whole.body)) == 3
    assert all(n.extent == dim(3) for n in walk(whole.body) if isinstance(n, Loop) and n.variable.startswith("k"))
    x = np.arange(40, dtype=np.float32)
    around = np.pad(x, 1)
    found = run(whole, {"x": x, "y": np.zeros(40, np.float32)}, {})["y"]
    np.testing.assert_array_equal(found, around[:-2] + around[1:-1] + around[2:])


def test_a_causal_mask_becomes_a_bound() -> None:
    x, y = buffer("x", F, "N", "N"), buffer("y", F, "N")
    add = Compute(
        "y", (Access("y", (dim("i"),)),), (Load("x", (dim("i"), dim("j")), F),), reducer("sum", F), (constant(0, F),),
        ("j",), (dim("i") - dim("j"),),
    )  # fmt: skip
    body = Loop("i", dim("N"), "parallel", Loop("j", dim("N"), "serial", add))
    program = LoopProgram("causal", (Argument(x, "read"), Argument(y, "write")), body, (Symbol("N", 1),))
    cut = partition(program)
    assert guards(cut) == []
    loops = [n for n in walk(cut.body) if isinstance(n, Loop)]
    assert [str(loop.extent) for loop in loops] == ["N", "i + 1"]
    data = np.random.default_rng(1).integers(-4, 5, (6, 6)).astype(np.float32)
    out = run(cut, {"x": data, "y": np.zeros(6, np.float32)}, {"N": 6})["y"]
    np.testing.assert_array_equal(out, np.tril(data).sum(1))


def test_guards_that_never_hold_leave_the_start() -> None:
    y = buffer("y", F, 4)
    add = Compute(
        "y", (Access("y", (dim("i"),)),), (constant(1, F),), reducer("sum", F), (constant(3, F),), ("k",),
        (dim("k") - 7, dim("i") - 1),
    )  # fmt: skip
    body = sequence(zeroed(y), Loop("k", dim(5), "serial", Loop("i", dim(4), "serial", add)))
    cut = partition(LoopProgram("never", (Argument(y, "write"),), body))
    np.testing.assert_array_equal(run(cut, {"y": np.zeros(4, np.float32)}, {})["y"], [7, 3, 3, 3])
    assert guards(cut) == []
    assert not any(isinstance(n, Loop) and n.variable.startswith("k") for n in walk(cut.body))


@pytest.mark.parametrize("taken", [0, 1, 3, 8, 9])
def test_a_symbolic_reduction_that_may_be_shorter_than_its_tile_starts_once(taken: int) -> None:
    program = parse_program("""
program total
  symbol K in 0..
  read x: float32[3, K]
  accumulate y: float32[3]

  serial ko < (K + 7) // 8
    serial i < 3
      serial ki < 8
        y: y[i] += x[i, 8*ko + ki]  init 2.0 over ko, ki  where K - 8*ko - ki - 1 >= 0
""")
    cut = partition(program)
    verify(cut)
    x = np.random.default_rng(taken).integers(-4, 5, (3, taken)).astype(np.float32)
    arrays = {"x": x, "y": np.full(3, 50, np.float32)}
    np.testing.assert_array_equal(run(cut, arrays, {"K": taken})["y"], x.sum(1) + 2 if taken else arrays["y"])
    main = next(n for n in walk(cut.body) if isinstance(n, Loop) and n.extent == dim("K") // 8)
    assert not any(n.guards for n in walk(main) if isinstance(n, Compute))


def test_the_budget_keeps_guards() -> None:
    program = padded(40)
    size = len(list(walk(program.body)))
    assert partition(program, size).body is program.body
    for limit in (size + 2, size + 10, 60):
        assert len(list(walk(partition(program, limit).body))) <= limit


def test_parallel_and_lane_loops_stay_whole() -> None:
    for kind in ("parallel", "vectorized", "unrolled", "block.x"):
        program = padded(9)
        body = program.body
        assert isinstance(body, Loop)
        cut = partition(program.with_body(replace(body, kind=kind)))
        found = [n for n in walk(cut.body) if isinstance(n, Loop) and n.variable == "i"]
        assert [(loop.kind, loop.extent) for loop in found] == [(kind, dim(9))]


def test_what_has_no_guards_is_untouched() -> None:
    program = partition(matmul(8, "serial"))
    assert partition(program).body is program.body


def test_storage_shaped_by_the_loop_keeps_it_whole() -> None:
    program = parse_program("""
program triangle
  accumulate y: float32[5]

  serial i < 5
    global t: float32[i + 1]
    t: t[i] = 1.0
    y: y[i] = t[i]  where i - 2 >= 0
""")
    cut = partition(program)
    verify(cut)
    assert cut.body is program.body
    np.testing.assert_array_equal(run(cut, {"y": np.zeros(5, np.float32)}, {})["y"], [0, 0, 1, 1, 1])


def test_empty_loops_go() -> None:
    y = buffer("y", F, 4)
    statement = Compute("y", (Access("y", (dim("i"),)),), (constant(1, F),), guards=(dim("i") - 1,))
    body = Loop("i", dim(0), "serial", statement)
    cut = partition(LoopProgram("none", (Argument(y, "write"),), body))
    assert not list(walk(cut.body))[1:]


def test_loaded_guards_and_extents_stay() -> None:
    program = parse_program("""
program ragged
  read n: int32[3]
  read t: int32[9]
  accumulate y: float32[3]

  serial i < 3
    serial k < n[i]
      y: y[i] += 1.0  over k  where t[k] >= 0 and 5 - k >= 0
""")
    cut = partition(program)
    verify(cut)
    arrays = {"n": np.array([9, 0, 4], np.int32), "t": np.arange(9, dtype=np.int32) - 2, "y": np.zeros(3, np.float32)}
    np.testing.assert_array_equal(run(cut, arrays, {})["y"], [4, 0, 2])


@pytest.mark.parametrize("bug", ["starts again", "drops a guard", "forgets the end", "loses the start"])
def test_a_planted_bug_shows(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The random programs find each of these."""
    original = module._Partition._guards

    def starting_again(node: Node, _variable: str, _origin: object = None) -> Node:
        return node

    def dropping(
        self: module._Partition, tested: tuple[Dim, ...], outer: tuple[Loop, ...], leaf: Compute | None = None
    ) -> tuple[Dim, ...] | None:
        return original(self, tested[1:], outer, leaf)

    def never_ending(_self: module._Partition, _a: Dim, _b: Dim, _outer: tuple[Loop, ...]) -> bool:
        return True

    def unstarted(_self: module._Partition, node: Node, _variable: str) -> Node:
        return node

    match bug:
        case "starts again":
            monkeypatch.setattr(module, "_without_start", starting_again)
        case "drops a guard":
            monkeypatch.setattr(module._Partition, "_guards", dropping)
        case "forgets the end":
            monkeypatch.setattr(module._Partition, "_at_most", never_ending)
        case _:
            monkeypatch.setattr(module._Partition, "_started_apart", unstarted)
    with pytest.raises((AssertionError, TileworkError)):
        check_many(400)


def check_many(count: int) -> None:
    for seed in range(count):
        check(seed)


def test_extremes() -> None:
    outer, inner = Loop("i", dim("N"), "serial", sequence()), Loop("j", dim("i") + 1, "serial", sequence())
    low, high = extremes(dim("i") - dim("j") * 2 + 3, (outer, inner))
    assert (str(low), str(high)) == ("-N + 4", "N + 2")
    assert extremes(dim("i") // 2, (outer,)) == (None, None)
    assert extremes(maximum(dim("N"), 3), (outer,)) == (maximum(dim("N"), 3),) * 2
