"""Time this schedule: a scheduled loop program as a kernel on prepared, aligned buffers, with a pool of threads."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tilework.codegen.cpu.kernel import KernelText
    from tilework.loops.program import LoopProgram
    from tilework.machine.cpu import CpuMachine
    from tilework.numerics import Numerics
    from tilework.runtime.context import Context

Array = np.ndarray[Any, Any]


class KernelFaultError(Exception):
    """A kernel ended with its error word set."""


@dataclass(frozen=True)
class ScheduledKernel:
    """A kernel with everything it needs; `run()` is one call.

    `arrays` are its buffers by name: aligned to 64 bytes, in blocks as the runtime's outputs are. Results lie there.
    """

    text: KernelText
    code: bytes
    arrays: Mapping[str, Array]
    context: Context
    entry: Any
    block: Any
    error: Array
    held: object
    """The loaded code, which lives as long as this."""

    def run(self) -> None:
        """One call. Raises `KernelFaultError` where the kernel says that it failed."""
        if self.entry(ctypes.addressof(self.block), self.context.pool.address):
            raise KernelFaultError(f"{self.text.name} failed with {int(self.error[0]):#x}")


def scheduled(
    program: LoopProgram,
    arrays: Mapping[str, Array],
    *,
    threads: int = 1,
    machine: CpuMachine | None = None,
    numerics: Numerics | None = None,
    symbols: Mapping[str, int] | None = None,
) -> ScheduledKernel:
    """Generate, load and prepare the kernel of a program.

    Args:
        program: the loop program of a schedule (`schedule.program`).
        arrays: contents of arguments by name, in the layout that the program wants; those left out start as zeros.
        threads: of the pool, this one included.
        machine: what to generate code for; it has to run here.
        numerics: by default those of `"default"`.
        symbols: values of the program's symbols.

    Raises:
        CodegenError: no code can be generated for the program.
        ValueError: an array does not fit its argument.
    """
    from tilework.codegen.cpu.kernel import emit_kernel
    from tilework.machine.finder import machine as machine_named
    from tilework.numerics import numerics as numerics_level
    from tilework.runtime.context import Context, ContextOptions

    target = machine if machine is not None else machine_named("host")
    values = dict(symbols or {})
    context = Context(ContextOptions(threads=threads))
    text = emit_kernel(program, target, numerics if numerics is not None else numerics_level("default"))
    code = context.jit.compile_object(text.ir, target)
    loaded = context.jit.load(code, text.exports, uses=[context.pool.code])
    held: dict[str, Array] = {}
    error = np.zeros(3, np.int64)
    words = [error.ctypes.data]
    for buffer in text.signature.buffers:
        shape = tuple(int(extent.evaluate(values)) for extent in buffer.shape)
        array = context.blocks.array(shape, buffer.dtype.numpy)
        array[...] = 0
        given = arrays.get(buffer.name)
        if given is not None:
            if given.shape != shape or given.dtype != buffer.dtype.numpy:
                raise ValueError(f"{buffer.name} is {given.dtype} {given.shape}, not {buffer.dtype} {shape}")
            array[...] = given
        if array.ctypes.data % buffer.alignment:
            raise ValueError(f"{buffer.name} is not aligned to {buffer.alignment} bytes")
        held[buffer.name] = array
        words.append(array.ctypes.data)
    words += [values[symbol.name] for symbol in text.signature.symbols]
    entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(loaded[text.name])
    context.pool.ensure()
    return ScheduledKernel(text, code, held, context, entry, (ctypes.c_int64 * len(words))(*words), error, loaded)
