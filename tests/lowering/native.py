"""Runs a loop program as machine code on numpy arrays, and beside it through the interpreter."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tilework.codegen.cpu.jit import Jit, LoadedCode
from tilework.codegen.cpu.kernel import KernelText, emit_kernel
from tilework.codegen.cpu.threads import EXPORTS, pool_text
from tilework.loops.interpret import bind_symbols, interpret
from tilework.loops.program import LoopProgram
from tilework.machine.cpu import CpuMachine
from tilework.machine.finder import machine
from tilework.numerics import numerics

Array = "np.ndarray[Any, np.dtype[Any]]"
GUARD = 128
"""Bytes of canary around every buffer."""
CANARY = 0xA5


@cache
def jit() -> tuple[Jit, LoadedCode]:
    found = Jit()
    return found, found.load(found.compile_object(pool_text(found.target.triple)), EXPORTS)


class Fenced:
    """A copy of an array between canaries, so that a write outside it is seen."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], offset: int = 0) -> None:
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self.raw = np.full(size + 2 * GUARD + 128, CANARY, np.uint8)
        start = GUARD + (-(self.raw.ctypes.data + GUARD)) % 64 + offset
        self.start, self.end = start, start + size
        self.array = self.raw[start : self.end].view(dtype).reshape(shape)

    @property
    def intact(self) -> bool:
        return bool((self.raw[: self.start] == CANARY).all() and (self.raw[self.end :] == CANARY).all())


@dataclass
class Outcome:
    status: int
    error: int
    arrays: dict[str, Any]


class Native:
    """A loop program compiled for this machine."""

    def __init__(self, program: LoopProgram, level: str = "default", *, checked: bool = False, on: CpuMachine | None =
    None,
                 streaming: frozenset[str] = frozenset()) -> None:  # fmt: skip
        self.program = program
        self.text: KernelText = emit_kernel(
            program, on or machine("host"), numerics(level), checked=checked, streaming=streaming
        )
        context, pool = jit()
        self.code = context.load(context.compile_object(self.text.ir), self.text.exports, uses=[pool])
        self.entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(self.code[self.text.name])

    def run(
        self,
        arrays: Mapping[str, Any],
        symbols: Mapping[str, int] = {},
        offset: int = 0,
        through: Callable[[Any], int] | None = None,
    ) -> Outcome:
        """Run it on copies of arrays; `through` calls it with the argument block in another way, or with other error,
        pool and poll words.
        """
        signature = self.text.signature
        given = {a.buffer.name: arrays[a.buffer.name] for a in self.program.arguments}
        values = bind_symbols(self.program, {n: a.shape for n, a in given.items()}, symbols)
        error = np.zeros(3, np.int64)
        slots = [error.ctypes.data]
        fenced: dict[str, Fenced] = {}
        for buffer in signature.buffers:
            shape = tuple(int(d.evaluate(values)) for d in buffer.shape)
            fence = fenced[buffer.name] = Fenced(
                shape, buffer.dtype.numpy, offset if buffer.access != "workspace" else 0
            )
            if buffer.name in given:
                assert shape == given[buffer.name].shape
                fence.array[...] = given[buffer.name]
            slots.append(fence.raw.ctypes.data + fence.start)
        slots += [values[s.name] for s in signature.symbols]
        block = (ctypes.c_int64 * len(slots))(*slots)
        status = through(block) if through is not None else int(self.entry(ctypes.addressof(block), None))
        for name, fence in fenced.items():
            assert fence.intact, f"memory around {name} was written"
        for argument in self.program.arguments:
            if argument.access == "read":
                np.testing.assert_array_equal(
                    fenced[argument.buffer.name].array.view(np.uint8),
                    np.ascontiguousarray(given[argument.buffer.name]).view(np.uint8),
                ) if given[argument.buffer.name].ndim else None
        return Outcome(status, int(error[0]), {n: fenced[n].array.copy() for n in given})


def assert_same(
    program: LoopProgram,
    arrays: Mapping[str, Any],
    symbols: Mapping[str, int] = {},
    *,
    level: str = "default",
    checked: bool = False,
    ulp: int = 0,
    native: Native | None = None,
    offset: int = 0,
) -> dict[str, Any]:
    """Machine code and interpreter agree on every element of every argument (within `ulp` for floats)."""
    expected = {name: array.copy() for name, array in arrays.items()}
    interpret(program, expected, symbols)
    kernel = native or Native(program, level, checked=checked)
    outcome = kernel.run(arrays, symbols, offset)
    assert outcome.status == 0
    assert outcome.error == 0
    for argument in program.arguments:
        name = argument.buffer.name
        want, have = expected[name], outcome.arrays[name]
        assert want.dtype == have.dtype
        if ulp and argument.buffer.dtype.is_floating:
            np.testing.assert_array_max_ulp(have, want, ulp)
        else:
            if have.dtype.name == "bfloat16":
                have, want = have.astype(np.float32), want.astype(np.float32)
            np.testing.assert_array_equal(have, want, err_msg=name)
            if argument.buffer.dtype.is_floating and level == "strict":
                np.testing.assert_array_equal(np.signbit(have), np.signbit(want), err_msg=f"signs of {name}")
    return outcome.arrays
