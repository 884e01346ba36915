"""Compiling leaves nothing that only a search for cyclic garbage would free."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

from tilework import dtypes
from tilework.codegen.cpu.kernel import emit_kernel
from tilework.dims import dim
from tilework.garbage import no_collections
from tilework.loops.expressions import Load, call
from tilework.loops.expressions import walk as walk_expression
from tilework.loops.program import Access, Argument, Compute, Loop, LoopProgram, buffer, path, walk
from tilework.machine.finder import machine
from tilework.numerics import numerics


def _program() -> LoopProgram:
    x, y = buffer("x", dtypes.float32, 8), buffer("y", dtypes.float32, 8)
    value = call("exp", call("add", Load("x", (dim("i"),), dtypes.float32), 1.0))
    statement = Compute("s", (Access("y", (dim("i"),)),), (value,))
    return LoopProgram("p", (Argument(x, "read"), Argument(y, "write")), Loop("i", dim(8), "serial", statement))


def _walked(program: LoopProgram) -> None:
    (loop, statement) = walk(program.body)
    assert isinstance(statement, Compute)
    assert path(program.body, statement) == (loop, statement)
    assert list(walk_expression(statement.values[0]))[-1] is statement.values[0]


def _emitted(program: LoopProgram) -> None:
    emit_kernel(program, machine("x86-64-v3"), numerics("default"))


@pytest.mark.parametrize("use", [_walked, _emitted])
def test_programs_are_freed_by_their_counts(use: Callable[[LoopProgram], None]) -> None:
    program = _program()
    assert isinstance(program.body, Loop)
    assert isinstance(program.body.body, Compute)
    use(program)
    alive = [weakref.ref(program.body), weakref.ref(program.body.body), weakref.ref(program.body.body.values[0])]
    gc.disable()
    try:
        del program
        assert [found() for found in alive] == [None] * 3
    finally:
        gc.enable()


def test_collections_come_back() -> None:
    with no_collections():
        assert not gc.isenabled()
        with no_collections():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_others_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        with no_collections():
            pass
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()
