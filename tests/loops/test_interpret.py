"""The interpreter: values against numpy, and every check it makes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest

from tests.loops.random_programs import integers, zeroed
from tilework import dtypes
from tilework.dims import Dim, Symbol, dim, loaded
from tilework.dtypes import DType
from tilework.errors import LoopProgramError, RunError
from tilework.loops import interpret_source
from tilework.loops.expressions import (
    Constant,
    Expression,
    Load,
    Parameter,
    bitcast,
    call,
    cast,
    constant,
    index,
)  # fmt: skip
from tilework.loops.interpret import interpret
from tilework.loops.program import (
    Access,
    Argument,
    AsyncCopy,
    AsyncWait,
    Barrier,
    Buffer,
    BufferAccess,
    Compute,
    Intrinsic,
    Loop,
    LoopKind,
    LoopProgram,
    Node,
    Prefetch,
    Reducer,
    Storage,
    buffer,
    sequence,
)  # fmt: skip
from tilework.loops.reducers import reducer

F = dtypes.float32
ROW, J, K = dim("i"), dim("j"), dim("k")


def program(*nodes: Node, symbols: tuple[str, ...] = (), **buffers: tuple[BufferAccess, Buffer]) -> LoopProgram:
    arguments = tuple(Argument(b, access) for access, b in buffers.values())
    return LoopProgram("test", arguments, sequence(*nodes), tuple(Symbol(s) for s in symbols))


def loops(body: Node, *bounds: tuple[str, int | str] | tuple[str, int | str, LoopKind]) -> Node:
    for variable, extent, *kind in reversed(bounds):
        body = Loop(variable, dim(extent), kind[0] if kind else "serial", body)  # type: ignore[arg-type]
    return body


def store(target: str, at: tuple[Dim | int, ...], value: Expression, *guards: Dim, name: str = "s") -> Compute:
    return Compute(name, (Access(target, tuple(map(dim, at))),), (value,), guards=guards)


def fails(code: int, run: Callable[[], None]) -> str:
    with pytest.raises((LoopProgramError, RunError)) as caught:
        run()
    assert caught.value.code == code
    return str(caught.value)


def matrix_product(dtype: DType, kinds: tuple[LoopKind, ...] = ("serial",) * 3) -> LoopProgram:
    a, b, c = buffer("a", dtype, "M", "K"), buffer("b", dtype, "K", "N"), buffer("c", dtype, "M", "N")
    value = Load("a", (ROW, K), dtype) * Load("b", (K, J), dtype)
    zero = constant(0, dtype)
    statement = Compute("c", (Access("c", (ROW, J)),), (value,), reducer("sum", dtype), (zero,), ("k",))
    body = loops(statement, ("i", "M", kinds[0]), ("j", "N", kinds[1]), ("k", "K", kinds[2]))
    return program(body, symbols=("M", "N", "K"), a=("read", a), b=("read", b), c=("write", c))


@pytest.mark.parametrize(
    "dtype", [F, dtypes.float64, dtypes.int8, dtypes.bfloat16, dtypes.int64, dtypes.float16], ids=str
)
def test_matrix_product(dtype: DType) -> None:
    random = np.random.default_rng(1)
    a, b = integers(random, [3, 5], dtype, 0, 3), integers(random, [5, 4], dtype, 0, 3)
    for kinds in (
        ("serial", "serial", "serial"),
        ("parallel", "vectorized", "unrolled"),
        ("block.x", "thread.x", "serial"),
    ):
        c = np.zeros((3, 4), dtype.numpy)
        interpret(matrix_product(dtype, kinds), {"a": a, "b": b, "c": c})  # type: ignore[arg-type]
        np.testing.assert_array_equal(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64))


def test_narrow_integers_wrap() -> None:
    a, b = np.full((1, 4), 100, np.int8), np.full((4, 1), 3, np.int8)
    c = np.zeros((1, 1), np.int8)
    interpret(matrix_product(dtypes.int8), {"a": a, "b": b, "c": c})
    assert c[0, 0] == np.int8(((1200 + 128) % 256) - 128)


def test_precise_runs_in_float64() -> None:
    random = np.random.default_rng(2)
    a, b = (random.standard_normal(s).astype(np.float32) for s in ((3, 50), (50, 2)))
    narrow, wide = np.zeros((3, 2), np.float32), np.zeros((3, 2))
    interpret(matrix_product(F), {"a": a, "b": b, "c": narrow})
    interpret(matrix_product(F), {"a": a, "b": b, "c": wide}, precise=True)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(wide, exact, rtol=1e-14)
    assert 0 < np.abs(narrow - exact).max() < 1e-4
    rounded = np.zeros((3, 2), np.float32)
    interpret(matrix_product(F), {"a": a, "b": b, "c": rounded}, precise=True)
    np.testing.assert_array_equal(rounded, wide.astype(np.float32))


def test_layout_of_arrays_does_not_matter() -> None:
    random = np.random.default_rng(3)
    a, b = integers(random, [5, 3], F).T, integers(random, [10, 8], F)[::2, ::2]
    c = np.zeros((8, 6), np.float32)[::2, 1:5]
    c = np.zeros((6, 4), np.float32)[::2]
    interpret(matrix_product(F), {"a": a, "b": b, "c": c})
    np.testing.assert_array_equal(c, a @ b)


def test_init_runs_whatever_guards_on_reduction_variables_say() -> None:
    c = buffer("c", F, 3)
    for guard, expected in ((K - 1, [5, 5, 5]), (K - 9, [3, 3, 3]), (ROW - 1, [7, 6, 6])):
        add = Compute(
            "c", (Access("c", (ROW,)),), (constant(1, F),), reducer("sum", F), (constant(3, F),), ("k",), (guard,)
        )
        out = np.zeros(3, np.float32)
        interpret(program(zeroed(c), loops(add, ("i", 3), ("k", 3)), c=("write", c)), {"c": out})
        np.testing.assert_array_equal(out, expected)


def test_several_components_and_user_reducers() -> None:
    x, v, p = buffer("x", F, 4, 6), buffer("v", F, 4), buffer("p", dtypes.int64, 4)
    left = (Parameter("a", F), Parameter("i", dtypes.int64))
    right = (Parameter("b", F), Parameter("j", dtypes.int64))
    wins = call("greater", right[0], left[0])
    best = Reducer(
        "best", left, right, (call("select", wins, right[0], left[0]), call("select", wins, right[1], left[1])),
        (constant(-math.inf, F), constant(-1, dtypes.int64)),
    )  # fmt: skip
    targets = (Access("v", (ROW,)), Access("p", (ROW,)))
    statement = Compute("best", targets, (Load("x", (ROW, J), F), index("j")), best, best.identity, ("j",))
    data = integers(np.random.default_rng(4), [4, 6], F)
    value, place = np.zeros(4, np.float32), np.zeros(4, np.int64)
    body = loops(statement, ("i", 4), ("j", 6))
    found = program(body, x=("read", x), v=("write", v), p=("write", p))
    interpret(found, {"x": data, "v": value, "p": place})
    np.testing.assert_array_equal(value, data.max(1))
    np.testing.assert_array_equal(place, data.argmax(1))


def test_scatter_adds_to_old_contents_and_checks_its_indices() -> None:
    t, x, y = buffer("t", dtypes.int32, 6), buffer("x", F, 6), buffer("y", F, 4)
    place = loaded("t", (ROW,))
    add = Compute("y", (Access("y", (place,)),), (Load("x", (ROW,), F),), reducer("sum", F), None, ("i",))
    found = program(loops(add, ("i", 6)), t=("read", t), x=("read", x), y=("accumulate", y))
    where, data = np.array([0, 3, 3, 1, 0, 3], np.int32), np.arange(6, dtype=np.float32)
    out = np.full(4, 10, np.float32)
    interpret(found, {"t": where, "x": data, "y": out})
    expected = np.full(4, 10, np.float32)
    np.add.at(expected, where, data)
    np.testing.assert_array_equal(out, expected)
    where[2] = 4
    text = fails(1801, lambda: interpret(found, {"t": where, "x": data, "y": out}))
    assert "y[4]" in text
    assert "i = 2" in text
    np.testing.assert_array_equal(out, expected)  # a failed run changes nothing


def test_guards_with_loaded_elements_come_after_the_others() -> None:
    t, y = buffer("t", dtypes.int32, 3), buffer("y", F, 5)
    # t[i - 1] exists only where i >= 1 and i <= 3: the plain guards protect it, though listed last
    statement = store("y", (ROW,), constant(1, F), loaded("t", (ROW - 1,)), ROW - 1, 3 - ROW)
    found = program(zeroed(y), loops(statement, ("i", 5)), t=("read", t), y=("write", y))
    out = np.zeros(5, np.float32)
    interpret(found, {"t": np.array([1, -1, 0], np.int32), "y": out})
    np.testing.assert_array_equal(out, [7, 1, 7, 1, 7])


def test_accumulation_in_a_wider_type() -> None:
    half = dtypes.bfloat16
    x, y = buffer("x", half, "N"), buffer("y", half, 1)
    add = Compute(
        "y", (Access("y", (dim(0),)),), (cast(Load("x", (ROW,), half), F),), reducer("sum", F), (constant(0, F),),
        ("i",),
        (), F,
    )  # fmt: skip
    found = program(loops(add, ("i", "N")), symbols=("N",), x=("read", x), y=("write", y))
    ones, out = np.ones(1000, half.numpy), np.zeros(1, half.numpy)
    interpret(found, {"x": ones, "y": out})
    assert float(out[0]) == 1000.0  # in bfloat16 alone the sum stops at 256
    # another statement's write is what the next partial result starts from
    more = Compute("y", add.targets, (constant(1, F),), add.reducer, None, (), (), F)
    again = sequence(loops(add, ("i", "N")), store("y", (0,), constant(1, half)), more)
    interpret(program(again, symbols=("N",), x=("read", x), y=("write", y)), {"x": ones, "y": out})
    assert float(out[0]) == 2


def test_casts_bitcasts_and_indices() -> None:
    x, y = buffer("x", F, 5), buffer("y", dtypes.int32, 5)
    value = cast(Load("x", (ROW,), F), dtypes.int32) + bitcast(Load("x", (ROW,), F), dtypes.int32) * 0
    value = value + index(ROW * 100 - 7, dtypes.int32)
    data = np.array([1.9, -1.9, math.nan, 1e20, -1e20], np.float32)
    for precise in (False, True):
        out = np.zeros(5, np.int32)
        interpret(program(loops(store("y", (ROW,), value), ("i", 5)), x=("read", x), y=("write", y)),
                  {"x": data, "y": out}, precise=precise)  # fmt: skip
        expected = np.array([1, -1, 0, 2**31 - 1, -(2**31)]) + np.arange(5) * 100 - 7
        np.testing.assert_array_equal(out, (expected + 2**31) % 2**32 - 2**31)


def test_many_loops_within_each_other() -> None:
    depth = 40
    y = buffer("y", F, 2)
    total = sum((dim(f"v{n}") for n in range(depth)), dim(0))
    body = loops(store("y", (total,), constant(3, F)), *((f"v{n}", 2 if n == 7 else 1) for n in range(depth)))
    out = np.zeros(2, np.float32)
    interpret(program(body, y=("write", y)), {"y": out})
    np.testing.assert_array_equal(out, [3, 3])


# -- what is refused ---------------------------------------------------------------------------------------------------
def test_out_of_bounds_reads_and_writes() -> None:
    x, y = buffer("x", F, 3), buffer("y", F, 3)
    arrays = {"x": np.zeros(3, np.float32), "y": np.zeros(3, np.float32)}
    for statement in (store("y", (ROW,), Load("x", (ROW + 1,), F)), store("y", (ROW - 1,), Load("x", (ROW,), F))):
        found = program(loops(statement, ("i", 3)), x=("read", x), y=("write", y))
        text = fails(1311, lambda found=found: interpret(found, arrays))
        assert "statement s at i =" in text


def test_select_evaluates_both_branches() -> None:
    x, y = buffer("x", F, 3), buffer("y", F, 3)
    inside = call("greater_equal", index(ROW - 1), 0)
    statement = store("y", (ROW,), call("select", inside, Load("x", (ROW - 1,), F), 0.0))
    found = program(loops(statement, ("i", 3)), x=("read", x), y=("write", y))
    fails(1311, lambda: interpret(found, {"x": np.zeros(3, np.float32), "y": np.zeros(3, np.float32)}))


def test_reading_what_nobody_wrote() -> None:
    y, t = buffer("y", F, 3), buffer("t", F, 3)
    copy = store("y", (ROW,), Load("t", (ROW,), F))
    fill = store("t", (ROW,), constant(1, F), ROW - 1, name="fill")
    late = Storage(t, loops(sequence(fill, copy), ("i", 3)))
    fails(1312, lambda: interpret(program(late, y=("write", y)), {"y": np.zeros(3, np.float32)}))
    # contents end with a life: the second round reads what the first wrote
    lives = loops(Storage(t, sequence(loops(store("t", (ROW,), constant(1, F), -dim("r")), ("i", 3)),
                                      loops(store("y", (J,), Load("t", (J,), F)), ("j", 3)))), ("r", 2))  # fmt: skip
    fails(1312, lambda: interpret(program(lives, y=("write", y)), {"y": np.zeros(3, np.float32)}))
    # an output's old contents are nobody's, unless it is declared as accumulated
    add = Compute("y", (Access("y", (ROW,)),), (constant(1, F),), reducer("sum", F))
    out = np.full(3, 4, np.float32)
    fails(1312, lambda: interpret(program(loops(add, ("i", 3)), y=("write", y)), {"y": out}))
    interpret(program(loops(add, ("i", 3)), y=("accumulate", y)), {"y": out})
    np.testing.assert_array_equal(out, [5, 5, 5])


@pytest.mark.parametrize("kind", ["parallel", "block.x", "thread.x"])
def test_races(kind: LoopKind) -> None:
    y, z = buffer("y", F, 4), buffer("z", F, 1)
    arrays = {"y": np.zeros(4, np.float32), "z": np.zeros(1, np.float32)}
    both_write = store("z", (0,), constant(1, F))
    add = Compute("add", (Access("z", (dim(0),)),), (constant(1, F),), reducer("sum", F))
    neighbour = store("y", (ROW,), Load("y", ((ROW + 1) % 4,), F))
    for statement in (both_write, add, neighbour):
        found = program(loops(statement, ("i", 4, kind)), y=("accumulate", y), z=("accumulate", z))
        for seed in range(3):
            fails(1313, lambda found=found, seed=seed: interpret(found, arrays, seed=seed))
    single = program(loops(both_write, ("i", 1, kind)), y=("accumulate", y), z=("accumulate", z))
    interpret(single, arrays)
    # private storage is no race
    t = buffer("t", F, 1)
    private = Storage(t, sequence(store("t", (0,), index_as_float(ROW)), store("y", (ROW,), Load("t", (dim(0),), F))))
    interpret(program(loops(private, ("i", 4, kind)), y=("accumulate", y), z=("accumulate", z)), arrays)
    np.testing.assert_array_equal(arrays["y"], [0, 1, 2, 3])


def index_as_float(value: Dim) -> Expression:
    return cast(index(value), F)


def test_barriers_order_threads() -> None:
    y, t = buffer("y", F, 8), buffer("t", F, 8, scope="shared")
    write = store("t", (ROW,), index_as_float(ROW * ROW), name="write")
    read = store("y", (ROW,), Load("t", (7 - ROW,), F), name="read")
    for nodes, legal in (((write, Barrier("block"), read), True), ((write, read), False)):
        body = Storage(t, sequence(zeroed(t), loops(sequence(*nodes), ("i", 8, "thread.x"))))
        found = program(loops(body, ("b", 1, "block.x")), y=("write", y))
        out = np.zeros(8, np.float32)
        if legal:
            interpret(found, {"y": out})
            np.testing.assert_array_equal(out, (7 - np.arange(8)) ** 2)
        else:
            fails(1313, lambda found=found, out=out: interpret(found, {"y": out}))


def test_barriers_reach_two_dimensions_of_threads_and_loops_around_them() -> None:
    y, t = buffer("y", F, 2, 3), buffer("t", F, 2, 3, scope="shared")
    write = store("t", (ROW, J), index_as_float(ROW * 3 + J + K), name="write")
    read = store("y", (ROW, J), Load("t", (1 - ROW, 2 - J), F), name="read")
    rounds = loops(sequence(write, Barrier("block"), read, Barrier("block")), ("k", 2))
    body = Storage(t, loops(rounds, ("i", 2, "thread.y"), ("j", 3, "thread.x")))
    out = np.zeros((2, 3), np.float32)
    interpret(program(body, y=("write", y)), {"y": out})
    np.testing.assert_array_equal(out, np.arange(6).reshape(2, 3)[::-1, ::-1] + 1)
    # without the second barrier the next round overwrites what a neighbour still reads
    rounds = loops(sequence(write, Barrier("block"), read), ("k", 2))
    body = Storage(t, loops(rounds, ("i", 2, "thread.y"), ("j", 3, "thread.x")))
    fails(1313, lambda: interpret(program(body, y=("write", y)), {"y": out}))


def test_a_barrier_that_some_threads_miss() -> None:
    y = buffer("y", F, 4)
    body = loops(loops(Barrier("block"), ("k", "i")), ("i", 4, "thread.x"))
    body = sequence(zeroed(y), body)
    fails(1314, lambda: interpret(program(body, y=("write", y)), {"y": np.zeros(4, np.float32)}))


def test_async_copies_arrive_at_their_wait() -> None:
    x, y, t = buffer("x", F, 4), buffer("y", F, 4), buffer("t", F, 4)
    copy = AsyncCopy("load", Access("t", (ROW,)), Access("x", (ROW,)), "g")
    use = store("y", (J,), Load("t", (J,), F))
    data, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)

    def run(*nodes: Node) -> None:
        interpret(program(Storage(t, sequence(*nodes)), x=("read", x), y=("write", y)), {"x": data, "y": out})

    run(loops(copy, ("i", 4)), AsyncWait("g"), loops(use, ("j", 4)))
    np.testing.assert_array_equal(out, data)
    fails(1312, lambda: run(loops(copy, ("i", 4)), loops(use, ("j", 4))))
    fails(1312, lambda: run(loops(copy, ("i", 4)), AsyncWait("g", 1), loops(use, ("j", 4))))
    run(loops(copy, ("i", 4)), AsyncWait("g", 1), loops(use, ("j", 3)))
    fails(1313, lambda: run(loops(copy, ("i", 4)), loops(store("t", (J,), constant(1, F)), ("j", 4)), AsyncWait("g")))


def test_intrinsics_mean_their_body_and_prefetches_nothing() -> None:
    y = buffer("y", F, 3)
    body = loops(sequence(Prefetch("p", Access("y", (ROW + 100,))), store("y", (ROW,), constant(2, F))), ("i", 3))
    out = np.zeros(3, np.float32)
    interpret(program(Intrinsic("machine.fill", body), y=("write", y)), {"y": out})
    np.testing.assert_array_equal(out, [2, 2, 2])


def test_divisors_of_zero() -> None:
    y = buffer("y", F, 4)
    found = program(loops(store("y", (ROW // dim("N"),), constant(1, F)), ("i", 4)), symbols=("N",), y=("write", y))
    fails(1315, lambda: interpret(found, {"y": np.zeros(4, np.float32)}, {"N": 0}))


def test_arguments_that_do_not_fit() -> None:
    found = matrix_product(F)
    a, b, c = np.zeros((2, 3), np.float32), np.zeros((3, 4), np.float32), np.zeros((2, 4), np.float32)
    fails(1310, lambda: interpret(found, {"a": a, "b": b}))
    fails(1310, lambda: interpret(found, {"a": a, "b": b, "c": c.astype(np.int32)}))
    fails(1310, lambda: interpret(found, {"a": a, "b": b[:2], "c": c}))
    fails(1310, lambda: interpret(found, {"a": a, "b": b, "c": c}, {"M": 7}))
    overlapping = np.zeros((4, 4), np.float32)
    fails(1310, lambda: interpret(found, {"a": overlapping[:2, :3], "b": b, "c": overlapping[1:3]}))


def test_one_array_for_two_arguments() -> None:
    x, y = buffer("x", F, 4), buffer("y", F, 4)
    found = program(loops(store("y", (ROW,), Load("x", (ROW,), F) + 1), ("i", 4)), x=("read", x), y=("write", y))
    both = np.arange(4, dtype=np.float32)
    interpret(found, {"x": both, "y": both})
    np.testing.assert_array_equal(both, [1, 2, 3, 4])


# -- planted bugs: the tests above would notice ------------------------------------------------------------------------
PLANTED: dict[str, tuple[str, str]] = {
    "multiplies when it should add": (r"= (t\d+) \+ (t\d+)\n", r"= \1 * \2\n"),
    "guards let zero out": (">= 0", "> 0"),
    "init on every iteration": (r"if v\d+ == 0:", "if True:"),
    "transposes an operand": (r"(v\d+)\*4 \+ (v\d+)\n", r"\2*4 + \1\n"),
    "the first element for all": (r"= b1\[t\d+\]", "= b1[0]"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_shows(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = PLANTED[bug]
    random = np.random.default_rng(6)
    a, b = integers(random, [3, 5], F, 1, 4), integers(random, [5, 4], F, 1, 4)
    found = matrix_product(F)
    guarded = Compute(
        "c", (Access("c", (ROW, J)),), (Load("a", (ROW, K), F) * Load("b", (K, J), F),), reducer("sum", F),
        (constant(0, F),), ("k",), (K, ROW),
    )  # fmt: skip
    found = found.with_body(loops(guarded, ("i", "M"), ("j", "N"), ("k", "K")))
    c = np.zeros((3, 4), np.float32)
    interpret(found, {"a": a, "b": b, "c": c})
    np.testing.assert_array_equal(c, a @ b)
    compiled = interpret_source.Source.compiled

    def spoilt(self: interpret_source.Source, monitor: object) -> Callable[..., None]:
        self._text, count = re.subn(old, new, self._text)
        assert count
        return compiled(self, monitor)

    monkeypatch.setattr(interpret_source.Source, "compiled", spoilt)
    wrong = np.zeros((3, 4), np.float32)
    try:
        interpret(found, {"a": a, "b": b, "c": wrong})
    except (LoopProgramError, IndexError):
        return
    assert not np.array_equal(wrong, a @ b)


def test_constants_keep_their_own_rounding() -> None:
    y = buffer("y", F, 1)
    found = program(store("y", (0,), Constant(0.1, F)), y=("write", y))
    out = np.zeros(1)
    interpret(found, {"y": out}, precise=True)
    assert out[0] == np.float64(np.float32(0.1))
