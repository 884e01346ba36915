"""The text form: what it looks like, that it reads back, and what the parser says of the rest."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.loops.random_programs import random_program
from tilework import dtypes
from tilework.dims import Dim, Symbol, dim, loaded, maximum, minimum, parse_dim
from tilework.errors import ParseError
from tilework.loops.equal import difference, same_expression, same_node, same_program
from tilework.loops.expressions import (
    Call,
    Constant,
    Expression,
    Index,
    Load,
    Parameter,
    bitcast,
    call,
    cast,
    constant,
    index,
    walk,
)  # fmt: skip
from tilework.loops.parse import parse_program
from tilework.loops.parse_expressions import parse_dim_at
from tilework.loops.program import (
    EMPTY,
    Access,
    Argument,
    AsyncCopy,
    AsyncWait,
    Barrier,
    Buffer,
    Compute,
    Intrinsic,
    Loop,
    LoopProgram,
    Node,
    Prefetch,
    Reducer,
    Sequence,
    Storage,
    buffer,
    sequence,
)  # fmt: skip
from tilework.loops.reducers import BUILT_IN, reducer
from tilework.loops.text import program_text
from tilework.loops.tokens import Cursor, tokens_of

F = dtypes.float32
ROW, J = dim("i"), dim("j")


def holding(body: Node, *arguments: Argument, symbols: tuple[Symbol, ...] = ()) -> LoopProgram:
    return LoopProgram("p", arguments or (Argument(buffer("y", F, 8), "accumulate"),), body, symbols)


def assigned(value: Expression, target: Buffer | None = None) -> LoopProgram:
    found = target or Buffer("y", (dim(8),), value.dtype)
    return holding(Compute("s", (Access(found.name, (dim(0),)),), (value,)), Argument(found, "write"))


def round_trip(program: LoopProgram) -> LoopProgram:
    text = program_text(program)
    back = parse_program(text)
    assert difference(program, back) is None, text
    assert program_text(back) == text
    return back


MATMUL = """\
program matmul
  symbol M in 1..
  read a: float32[M, 64]
  read b: float32[64, 16]
  write c: float32[M, 16]

  parallel i < M
    vectorized j < 16
      serial k < 64
        c: c[i, j] += a[i, k] * b[k, j]  init 0.0 over k  where M - i - 1 >= 0
"""


def test_matmul_looks_like_this() -> None:
    found = parse_program(MATMUL)
    assert program_text(found) == MATMUL
    assert found.arguments[0].buffer == buffer("a", F, "M", 64)
    (loop, *_) = [found.body]
    assert isinstance(loop, Loop)
    assert (loop.variable, loop.kind, loop.extent) == ("i", "parallel", dim("M"))


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, -2.5e-300, 1e16, 3.0e38, 0.1, math.inf, -math.inf, math.nan, 5e-324])
@pytest.mark.parametrize("dtype", [F, dtypes.float64, dtypes.bfloat16], ids=str)
def test_floats_read_back_exactly(value: float, dtype: dtypes.DType) -> None:
    (statement,) = [round_trip(assigned(Constant(value, dtype))).body]
    assert isinstance(statement, Compute)
    (literal,) = statement.values
    assert isinstance(literal, Constant)
    assert repr(literal.value) == repr(value)
    round_trip(assigned(Load("y", (dim(0),), dtype) * Constant(value, dtype) - Constant(value, dtype)))
    round_trip(assigned(call("add", Constant(value, dtype), Constant(-1.0, dtype))))


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_literals_of_every_type(dtype: dtypes.DType) -> None:
    if dtype.kind == "complex":
        return
    values = [0, 1]
    if dtype.bits > 2 and dtype.kind != "boolean":
        values += [7] if dtype.kind == "unsigned" else [7, -7]
    for value in values:
        literal = constant(value, dtype)
        round_trip(assigned(literal))
        mixed = call("select", call("equal", literal, literal), literal, Load("y", (dim(0),), dtype))
        round_trip(assigned(mixed))


NAMES = [
    "i.0",
    "/layer/MatMul:0",
    "with space",
    "`",
    "back\\slash",
    "ünïcode",
    "where",
    "max",
    "1x",
    "",
    "a\nb",
    "inf",
    "c.i",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_every_kind(name: str) -> None:
    x = buffer(name, dtypes.int32, name + "N", 4)
    place = (dim(name + "v"), loaded(name, (0, minimum(name + "v", 3))) + 1)
    group = Compute(name, (Access(name, place),), (Load(name, place, x.dtype) + index(dim(name + "v"), x.dtype),))
    body = Loop(name + "v", dim(name + "N"), "serial", sequence(group, AsyncWait(name, 2), Intrinsic(name, group)))
    round_trip(replace(holding(body, Argument(x, "accumulate"), symbols=(Symbol(name + "N", 1),)), name=name or "p"))


def test_every_node_reads_back() -> None:
    y, t = buffer("y", F, 8), buffer("t", F, 4, scope="register")
    target, source = Access("t", (dim(0),)), Access("y", (ROW + 1,))
    inner = sequence(
        AsyncCopy("copy", target, source, "g", (6 - ROW,)),
        AsyncWait("g", 3),
        Barrier("block"),
        Barrier("warp"),
        Prefetch("ahead", source, (ROW, 5 - ROW), True),
        Prefetch("ahead", source),
        Prefetch("ahead", source, (ROW,), once=True),
        Intrinsic("unit.mul", Loop("q", dim(0), "unrolled", EMPTY)),
        Storage(t, Compute("a", (target,), (constant(1, F),))),
        Storage(replace(t, name="u", scope="shared"), Barrier("grid")),
    )
    kinds = ("serial", "parallel", "vectorized", "unrolled", "block.x", "thread.z", "warp")
    for kind in kinds:
        round_trip(holding(Loop("i", dim(8), kind, Storage(replace(t, name="w"), inner)), Argument(y, "accumulate")))
    round_trip(holding(EMPTY))
    round_trip(holding(Sequence((EMPTY, Barrier("block"), Sequence((Barrier("grid"),))))))


def test_storage_that_ends_before_its_block_does() -> None:
    t = buffer("t", F, 4)
    use = Compute("t", (Access("t", (dim(0),)),), (constant(1, F),))
    after = Compute("y", (Access("y", (dim(0),)),), (constant(1, F),))
    both = sequence(Storage(t, use), after)
    inside = Storage(t, sequence(use, after))
    assert not same_node(both, inside)
    round_trip(holding(both))
    round_trip(holding(inside))
    round_trip(holding(sequence(Storage(t, use), Storage(t, use))))


def test_statements_with_everything() -> None:
    half = dtypes.bfloat16
    y = buffer("y", half, 8)
    found = reducer("maximum", F)
    everything = Compute(
        "s",
        (Access("y", (ROW,)),),
        (constant(2, F),),
        found,
        (constant(-1, F),),
        ("i", "j"),
        (ROW - 1, loaded("y", (ROW,))),
        F,
    )
    body = Loop("i", dim(8), "serial", Loop("j", dim(2), "serial", everything))
    round_trip(holding(body, Argument(y, "accumulate")))
    for name in BUILT_IN:
        dtype = dtypes.int32
        add = Compute("s", (Access("z", (dim(0),)),), (constant(2, dtype),), reducer(name, dtype))
        round_trip(holding(add, Argument(buffer("z", dtype, 1), "accumulate")))


def test_user_reducers_read_back() -> None:
    left = (Parameter("a", F), Parameter("n", dtypes.int32))
    right = (Parameter("b", F), Parameter("m", dtypes.int32))
    both = left[0] + right[0]
    welford = Reducer(
        "my welford",
        left,
        right,
        (both * both, left[1] + right[1] + 1),
        (constant(0, F), constant(-1, dtypes.int32)),
        False,
    )
    y, z = buffer("y", F, 8), buffer("z", dtypes.int32, 8)
    statement = Compute(
        "s",
        (Access("y", (ROW,)), Access("z", (ROW,))),
        (constant(1, F), constant(2, dtypes.int32)),
        welford,
        welford.identity,
    )
    program = holding(Loop("i", dim(8), "serial", statement), Argument(y, "write"), Argument(z, "write"))
    back = round_trip(program)
    assert back.reducers["my welford"].relaxable is False
    assert "let %1 = a + b" in program_text(program)


def test_what_is_shared_stays_shared_and_is_written_once() -> None:
    value: Expression = Load("y", (dim(0),), F)
    for _ in range(60):
        value = value * value + 1  # 2**60 multiplications if it were written out
    program = assigned(value)
    text = program_text(program)
    assert len(text) < 5000
    (statement,) = [round_trip(program).body]
    assert isinstance(statement, Compute)
    assert sum(isinstance(n, Call) for n in walk(statement.values[0])) == 120


def test_deep_expressions_need_no_stack() -> None:
    left: Expression = Load("y", (dim(0),), F)
    right: Expression = Load("y", (dim(0),), F)
    for n in range(3000):
        left = call("subtract", left, float(n))
        right = call("subtract", constant(float(n), F), right)
    round_trip(assigned(left))
    round_trip(assigned(right))
    assert not same_expression(left, right)


def test_deep_nests() -> None:
    body: Node = Compute("s", (Access("y", (dim(0),)),), (constant(1, F),))
    for n in reversed(range(150)):
        body = Loop(f"v{n}", dim(1), "serial", body) if n % 2 else Storage(buffer(f"t{n}", F, 1), body)
    round_trip(holding(body))


DIMS = [
    ROW, -ROW, ROW * 2 - J * 3 + 5, -(ROW // 2), (-ROW) // 2, (ROW + J) // 3 % 4, ROW % 5 * 2,
    maximum(ROW, 3) - minimum(J, ROW, 2), dim("N") * ROW + J, (ROW + 1) // dim("N"), -(ROW % dim("N")),
    loaded("y", (ROW,)) * 2 - 1, loaded("y", (loaded("y", (ROW,)),)),
    dim(0), dim(-7), -(ROW // 2) * dim("N"), (ROW // 2) // 3 - (J % 2) * (dim("N") // 2),
]  # fmt: skip


@pytest.mark.parametrize("value", DIMS, ids=str)
def test_indices_read_back(value: Dim) -> None:
    assert parse_dim(str(value)) == value
    round_trip(holding(Compute("s", (Access("y", (value,)),), (index(value) * 2,), guards=(value, -value))))


def test_casts_and_functions() -> None:
    x = Load("y", (dim(0),), F)
    parts: list[Expression] = [
        cast(x, dtypes.int8), bitcast(x, dtypes.uint32), cast(constant(1, F), dtypes.float64), Index(ROW, F),
        call("select", call("less", x, 1.0), 2.0, x), call("negate", constant(1, F)), -(x + 1), (-x) * 2,
        call("negate", -x),
        call("less", call("equal", cast(x, dtypes.int32), 1), constant(True, dtypes.boolean)), x / (x / (x * x)),
        (x - x) - (x - x), x * (x + 1) * x, call("fused_multiply_add", x, 2.0, x), call("power", x, 0.5),
        call("maximum", constant(1, F), constant(2, F)),
    ]  # fmt: skip
    for part in parts:
        target = Buffer("z", (dim(8),), part.dtype)
        program = holding(
            Compute("s", (Access("z", (dim(0),)),), (part,)),
            Argument(buffer("y", F, 8), "read"),
            Argument(target, "write"),
        )
        round_trip(program)


def test_symbols_and_scopes_read_back() -> None:
    symbols = (
        Symbol("A"), Symbol("B", 3), Symbol("C", 2, 64, 2), Symbol("D", -4, -2), Symbol("nnz", 0, None, 1, True)
    )  # fmt: skip
    x = buffer("x", dtypes.int4, "A", "B", scope="shared")
    assert round_trip(holding(EMPTY, Argument(x, "read"), symbols=symbols)).symbols == symbols


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_random_programs_read_back(seed: int) -> None:
    round_trip(random_program(np.random.default_rng(seed)).program)


def test_equality_tells_programs_apart() -> None:
    base = random_program(np.random.default_rng(3)).program
    assert same_program(base, parse_program(program_text(base)))
    first = base.arguments[0]
    changed = [
        replace(base, name="other"),
        replace(base, arguments=(*base.arguments, Argument(buffer("zz", F, 1), "read"))),
        replace(base, symbols=(*base.symbols, Symbol("Z"))),
        base.with_body(sequence(base.body, Barrier("block"))),
        base.with_body(Loop("extra", dim(1), "serial", base.body)),
        replace(base, arguments=(replace(first, access="accumulate"), *base.arguments[1:])),
    ]
    for other in changed:
        assert difference(base, other)
    one, zero = (assigned(Constant(v, F)) for v in (0.0, -0.0))
    assert "values" in (difference(one, zero) or "")
    assert same_program(assigned(Constant(math.nan, F)), assigned(Constant(math.nan, F)))
    assert not same_program(assigned(Constant(1.0, F)), holding(EMPTY))


# -- what the parser refuses -------------------------------------------------------------------------------------------
BODY = "program p\n  write y: float32[8]\n\n  "
BAD: dict[str, tuple[str, str]] = {
    "nothing": ("", "line 1, column 1"),
    "no program": ("loop i < 3", "line 1, column 1"),
    "a strange character": ("program p\n  write y: float32[8] $\n", "line 2, column 23"),
    "an unknown type": ("program p\n  write y: real[8]\n", "line 2, column 12"),
    "an unknown buffer": (BODY + "s: y[0] = x[0]\n", "line 4, column 14"),
    "an unknown target": (BODY + "s: x[0] = 1.0\n", "line 4"),
    "an unknown function": (BODY + "s: y[0] = square(y[0])\n", "line 4"),
    "operands that do not fit": (BODY + "s: y[0] = y[0] + cast(y[0], int8)\n", "line 4"),
    "too few operands": (BODY + "s: y[0] = maximum(y[0])\n", "line 4"),
    "an unclosed bracket": (BODY + "s: y[0 = 1.0\n", "line 4, column 10"),
    "a literal without a type": (BODY + "s: y[0] = cast(1.0, float32)\n", "line 4"),
    "a literal of no such type": (BODY + "s: y[0] = int8(300)\n", "line 4"),
    "an unknown reducer": (BODY + "s: y[0] median= 1.0\n", "line 4"),
    "a guard against 1": (BODY + "s: y[0] = 1.0 where i >= 1\n", "line 4"),
    "more on the line": (BODY + "s: y[0] = 1.0 1.0\n", "line 4, column 17"),
    "a loop without a body": (BODY + "serial i < 3\n", "line 5"),
    "no deeper indentation": (BODY + "serial i < 3\n  s: y[0] = 1.0\n", "line 5"),
    "indentation of no block": (BODY + "serial i < 3\n      s: y[0] = 1.0\n    s: y[0] = 1.0\n", "line 6"),
    "a let at the end": (BODY + "let %1 = y[0] + y[0]\n", "line"),
    "a let before a loop": (BODY + "let %1 = y[0] + y[0]\n  serial i < 3\n", "line 5"),
    "an undefined let": (BODY + "s: y[0] = %1\n", "line 4"),
    "a huge number": (BODY + "s: y[0] = 1e999\n", "line 4"),
    "a long number": (BODY + f"s: y[{'9' * 5000}] = 1.0\n", "line 4"),
    "a division by zero": (BODY + "s: y[i // 0] = 1.0\n", "line 4"),
    "a bad quoted name": ("program `\\q`\n", "line 1, column 9"),
    "chained comparisons": (BODY + "s: y[0] = 1.0 where i >= 0 >= 0\n", "line 4"),
    "absurd parentheses": (BODY + f"s: y[0] = {'(' * 3000}\n", "line 4"),
    "absurd negations": (BODY + f"s: y[0] = {'-' * 3000}y[0]\n", "line 4"),
    "absurd indices": (BODY + f"s: y[{'(' * 3000}] = 1.0\n", "line 4"),
    "absurd calls": (BODY + f"s: y[0] = {'absolute(' * 3000}\n", "line 4"),
    "absurd loads": (BODY + f"s: {'y[' * 3000}\n", "line 4"),
    "absurd casts": (BODY + f"s: y[0] = {'cast(' * 3000}\n", "line 4"),
    "absurd nesting": (
        BODY + "\n".join(" " * (n + 2) + f"serial v{n} < 1" for n in range(5000)), "line",
    ),
    "absurd storage": (BODY + "\n".join(f"  global t{n}: float32[1]" for n in range(5000)), "line"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_faults_have_a_place(what: str) -> None:
    text, where = BAD[what]
    with pytest.raises(ParseError) as caught:
        parse_program(text)
    assert caught.value.code == 1303
    assert caught.value.where.startswith(where)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_damaged_text_is_read_or_refused(seed: int, damage: int) -> None:
    """Whatever is cut out, doubled or swapped, the answer is a program or a `ParseError`."""
    random = np.random.default_rng(damage)
    text = program_text(random_program(np.random.default_rng(seed % 50)).program)
    for _ in range(int(random.integers(1, 4))):
        a, b = sorted(int(v) for v in random.integers(0, len(text) + 1, 2))
        b = min(b, a + 12)
        text = [text[:a] + text[b:], text[:a] + text[a:b] * 2 + text[b:], text[:b] + text[a:]][int(random.integers(3))]
    try:
        found = parse_program(text)
    except ParseError:
        return
    round_trip(found)


def size_of(text: str, sizes: dict[str, Dim]) -> Dim:
    cursor = Cursor(tokens_of(text, 1), 1, sizes)
    found = parse_dim_at(cursor)
    cursor.end()
    return found


def test_sizes_in_parentheses_are_read_once_and_mean_the_same() -> None:
    inner = "(N + 1) // 2"
    text = f"max(3*({inner} + 1), ({inner} + 1)*(N - ({inner} + 1)), (`N` + 1) // 2)"
    half = (dim("N") + 1) // 2
    sizes: dict[str, Dim] = {}
    for _ in range(2):
        assert size_of(text, sizes) == maximum(3 * (half + 1), (half + 1) * (dim("N") - (half + 1)), half)
    assert sizes["( N + 1 )"] == dim("N") + 1
    for wrong in ("(N + 1", "(N + (N + 1)", "((N + 1) +)", "()", "(N + 1))"):
        with pytest.raises(ParseError):
            size_of(wrong, sizes)


@pytest.mark.parametrize("text", ["N ? 1", "?", "N `a"])
def test_unknown_characters_have_their_column(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        tokens_of(text, 3)
    assert caught.value.where == f"line 3, column {next(n for n, c in enumerate(text, 1) if c in '?`')}"
