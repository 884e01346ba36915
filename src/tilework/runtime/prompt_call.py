"""The shortest way of a call: arguments checked, addresses noted and the plan run in one native step.

It serves plans whose every size was known when they were compiled and whose outputs are small new arrays; where an
argument does not fit as it stands nothing has run, and the gate's longer way converts it or says what is wrong with it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from tilework.plan.protocols import Array


class PromptCall:
    """What one call needs besides its frame and arguments.

    Use: `outputs = small_arrays(plain)`, then `run(way, frame, arguments, outputs)`, which answers the driver's status,
    or a negative number where the arguments do not fit.
    """

    __slots__ = ("_kept", "arena", "plain", "run", "way")

    def __init__(
        self,
        run: Callable[[int, int, tuple[object, ...], tuple[object, ...]], int],
        inputs: ctypes.Array[ctypes.c_int64],
        outputs: ctypes.Array[ctypes.c_int64],
        driver: int,
        plain: tuple[tuple[tuple[int, ...], np.dtype[np.generic]], ...],
        arena: int,
    ) -> None:
        """`run` is the builtin `call` of `tilework.codegen.cpu.gate`, `plain` the shape and type of each output.

        `arena` are the bytes that the call's state must have ready.
        """
        self.run = run
        self.plain = plain
        self.arena = arena
        words = words_of([ctypes.addressof(inputs), ctypes.addressof(outputs), driver])
        self._kept = (words, inputs, outputs)
        self.way = ctypes.addressof(words)


def small_arrays(plain: tuple[tuple[tuple[int, ...], np.dtype[np.generic]], ...]) -> tuple[Array, ...] | None:
    """Arrays of these shapes and types, with any contents; None where there is no memory for them."""
    empty = np.empty
    try:
        return tuple([empty(shape, dtype) for shape, dtype in plain])
    except MemoryError:
        return None


def words_of(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    """A table of int64 words for native code to read."""
    return (ctypes.c_int64 * len(values))(*values)
