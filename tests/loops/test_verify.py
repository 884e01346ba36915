"""One program for each fault, and all faults at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.loops.random_programs import random_program
from tilework import dtypes
from tilework.dims import Dim, Symbol, dim, loaded, maximum, minimum
from tilework.errors import VerificationError
from tilework.loops.expressions import Call, Constant, Expression, Load, Parameter, call, constant, index
from tilework.loops.program import (
    Access,
    Argument,
    AsyncCopy,
    AsyncWait,
    Compute,
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
from tilework.loops.verify import faults_of, verify

F, INT = dtypes.float32, dtypes.int32
ROW, J, N = dim("i"), dim("j"), dim("N")
X, Y, T = buffer("x", F, "N"), buffer("y", F, "N"), buffer("t", INT, 4)
LOAD = Load("x", (ROW,), F)
ONE = constant(1, F)


def program(body: Node, *symbols: Symbol) -> LoopProgram:
    arguments = (Argument(X, "read"), Argument(Y, "accumulate"), Argument(T, "read"))
    return LoopProgram("p", arguments, body, (Symbol("N", 1), *symbols))


def statement(value: Expression = LOAD, at: Dim = ROW, target: str = "y", **rest: object) -> Compute:
    return replace(Compute("s", (Access(target, (at,)),), (value,)), **rest)  # type: ignore[arg-type]


def looped(body: Node, variable: str = "i", extent: Dim | int = N, kind: LoopKind = "serial") -> Node:
    return Loop(variable, dim(extent), kind, body)


def twice(body: Callable[[str], Node]) -> Node:
    return sequence(body("i"), body("j"))


SUM = reducer("sum", F)
LEFT, RIGHT = SUM.left, SUM.right
BAD: dict[str, tuple[int, LoopProgram]] = {
    "unknown buffer read": (1320, program(looped(statement(Load("z", (ROW,), F))))),
    "unknown buffer written": (1320, program(looped(statement(target="z")))),
    "unknown buffer in an index": (1320, program(looped(statement(at=loaded("z", (ROW,)))))),
    "unknown variable in an index": (1320, program(looped(statement(Load("x", (J,), F))))),
    "unknown variable in a guard": (1320, program(looped(statement(guards=(J,))))),
    "unknown symbol in an extent": (1320, program(looped(statement(), extent=dim("Q")))),
    "unknown symbol in a shape": (1320, program(Storage(buffer("u", F, "Q"), looped(statement())))),
    "variable of a loop that has ended": (1320, program(sequence(looped(statement()), statement(at=ROW)))),
    "storage that has ended": (
        1320, program(sequence(Storage(buffer("u", F, 4), looped(statement())), statement(ONE, dim(0), "u"))),
    ),
    "two loops of one name": (1321, program(sequence(looped(statement()), looped(statement())))),
    "a loop inside one of its name": (1321, program(looped(looped(statement())))),
    "a loop called like a symbol": (1321, program(looped(statement(ONE, at=N - N), variable="N"))),
    "two symbols of one name": (1321, program(looped(statement()), Symbol("N"))),
    "two arguments of one name": (
        1321,
        replace(program(looped(statement())), arguments=(Argument(X, "read"),) * 2 + (Argument(Y, "write"),)),
    ),
    "storage that hides an argument": (1321, program(Storage(buffer("y", F, "N"), looped(statement())))),
    "storage inside its like": (1321, program(Storage(T_ := buffer("u", F, 4), Storage(T_, looped(statement()))))),
    "two different storages of one name": (
        1321,
        program(twice(lambda v: Storage(buffer("u", F, 4 if v == "i" else 5), looped(statement(ONE, dim(v)), v)))),
    ),
    "two reducers of one name": (
        1321,
        program(twice(lambda v: looped(statement(ONE, dim(v), reducer=Reducer(
            "mine", LEFT, RIGHT, (call("add" if v == "i" else "multiply", LEFT[0], RIGHT[0]),), (ONE,))), v))),
    ),
    "too many indices": (1322, program(looped(statement(Load("x", (ROW, ROW), F))))),
    "too few indices": (1322, program(looped(Compute("s", (Access("y", ()),), (ONE,))))),
    "rank of a loaded index": (1322, program(looped(statement(at=loaded("t", ()))))),
    "value of another type": (1323, program(looped(statement(index(ROW))))),
    "load of another type": (1323, program(looped(statement(Load("x", (ROW,), dtypes.float64) + 1)))),
    "init of another type": (1323, program(looped(statement(reducer=SUM, init=(constant(1, INT),))))),
    "reducer of another type": (1323, program(looped(statement(reducer=reducer("sum", INT))))),
    "accumulation of another type": (1323, program(looped(statement(reducer=SUM, accumulate=dtypes.float64)))),
    "operands that do not fit": (1323, program(looped(statement(Call("add", (LOAD, index(ROW)), F))))),
    "a call of the wrong type": (1323, program(looped(statement(Call("add", (LOAD, LOAD), INT))))),
    "a bitcast of another width": (1323, program(looped(statement(Call("bitcast", (index(ROW),), F))))),
    "more values than targets": (1323, program(looped(statement(values=(LOAD, LOAD))))),
    "a copy between types": (
        1323, program(looped(AsyncCopy("c", Access("y", (ROW,)), Access("t", (dim(0),)), "g"))),
    ),
    "a product of variables": (1324, program(looped(looped(statement(at=ROW * J), "j")))),
    "a quotient by a variable": (1324, program(looped(looped(statement(at=ROW // (J + 1)), "j")))),
    "a guard with a product": (1324, program(looped(looped(statement(guards=(ROW * J,)), "j")))),
    "an index loaded from floats": (1324, program(looped(statement(at=loaded("x", (ROW,)))))),
    "past the end": (1325, program(looped(statement(Load("x", (ROW + 1,), F))))),
    "before the start": (1325, program(looped(statement(at=ROW - 1)))),
    "past the end of a constant": (1325, program(looped(statement(Load("t", (ROW,), INT)), extent=5))),
    "a reduction variable that is no loop": (1326, program(looped(statement(reducer=SUM, reduction=("k",))))),
    "an init without a reducer": (1326, program(looped(statement(init=(ONE,))))),
    "reduction variables without a reducer": (1326, program(looped(statement(reduction=("i",))))),
    "accumulation without a reducer": (1326, program(looped(statement(accumulate=F)))),
    "more inits than targets": (1326, program(looped(statement(reducer=SUM, init=(ONE, ONE))))),
    "vectorized in vectorized": (
        1327, program(looped(looped(statement(), kind="vectorized"), "j", kind="vectorized")),
    ),
    "read-only written": (1328, program(looped(statement(ONE, target="x")))),
    "read-only copied to": (1328, program(looped(AsyncCopy("c", Access("x", (ROW,)), Access("y", (ROW,)), "g")))),
    "a negative extent": (1329, program(looped(statement(), extent=-2))),
    "a negative shape": (1329, program(Storage(buffer("u", F, -N), looped(statement())))),
    "arity": (1330, program(looped(Compute("s", (Access("y", (ROW,)),) * 2, (LOAD, LOAD), SUM)))),
    "a reducer of uneven parts": (1330, program(looped(statement(reducer=Reducer("m", LEFT, RIGHT, (), (ONE,)))))),
    "a reducer over one name": (1330, program(looped(statement(reducer=Reducer("m", LEFT, LEFT, LEFT, (ONE,)))))),
    "a reducer of two types": (
        1330, program(looped(statement(reducer=Reducer("m", LEFT, RIGHT, LEFT, (constant(1, INT),))))),
    ),
    "a parameter outside a reducer": (1330, program(looped(statement(Parameter("left", F))))),
    "a foreign parameter": (
        1330, program(looped(statement(reducer=Reducer("m", LEFT, RIGHT, (Parameter("z", F),), (ONE,))))),
    ),
    "a built-in reducer redefined": (1330, program(looped(statement(reducer=replace(SUM, relaxable=False))))),
    "a wait for nothing": (1331, program(sequence(looped(statement()), AsyncWait("g")))),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_each_fault(what: str) -> None:
    code, found = BAD[what]
    with pytest.raises(VerificationError) as caught:
        verify(found)
    assert code in {fault.code for fault in caught.value.faults}, str(caught.value)
    assert {fault.code for fault in caught.value.faults} <= {code, 1323}


def test_all_faults_at_once() -> None:
    bad = sequence(
        looped(statement(Load("z", (ROW,), F))),
        looped(statement(ONE, J), "k"),
        looped(statement(ONE, dim("m"), "x"), "m"),
    )
    with pytest.raises(VerificationError) as caught:
        verify(program(bad))
    assert {fault.code for fault in caught.value.faults} == {1320, 1328}
    assert len(caught.value.faults) == 3
    assert all(str(fault) in str(caught.value) for fault in caught.value.faults)


GOOD: dict[str, LoopProgram] = {
    "plain": program(looped(statement())),
    "extent zero": program(looped(statement(Load("x", (ROW + 7,), F)), extent=0)),
    "an unused symbol": program(looped(statement()), Symbol("unused")),
    "clamped": program(looped(statement(Load("x", (minimum(maximum(ROW - 1, 0), N - 1),), F)))),
    "guarded": program(looped(statement(Load("x", (ROW + 1,), F), guards=(N - ROW - 2,)))),
    "loaded": program(looped(statement(Load("x", (loaded("t", (ROW,)),), F)), extent=4)),
    "strided by symbols": program(
        Storage(buffer("u", F, N * 3), looped(looped(statement(ONE, ROW * 3 + J, "u"), "j", 3))), Symbol("M", 1)
    ),
    "divided by symbols": program(looped(statement(Load("x", (ROW // N,), F)))),
    "prefetch past the end": program(looped(sequence(Prefetch("p", Access("x", (ROW + 64,))), statement()))),
    "one storage twice": program(twice(lambda v: Storage(buffer("u", F, 4), looped(statement(ONE, dim(v)), v)))),
    "other symbols may be enough": program(looped(statement(), extent=dim("M")), Symbol("M", 1)),
    "unrolled in vectorized": program(looped(looped(statement(), "j", 2, "unrolled"), kind="vectorized")),
}


@pytest.mark.parametrize("what", GOOD)
def test_what_is_allowed(what: str) -> None:
    assert faults_of(GOOD[what]) == []


def test_random_programs_have_no_faults() -> None:
    for seed in range(40):
        assert faults_of(random_program(np.random.default_rng(seed)).program) == []


def test_unknown_expressions_are_refused() -> None:
    class Strange(Expression):
        dtype = F

    assert {fault.code for fault in faults_of(program(looped(statement(Strange()))))} == {1323}
    assert faults_of(program(looped(statement(Constant(1.0, F))))) == []
