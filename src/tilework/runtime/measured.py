"""Memory that steps ask for while a plan runs: buffers and outputs whose sizes the run itself decides.

Compiled code calls back (`FrameLayout.allocator`), with the number of a memory; its size follows from the symbols in
the frame, and its address is written there. Memory between steps stays with the call's state and only grows, so a loop
or a second call seldom asks the operating system; outputs are new arrays.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from tilework.codegen.cpu.frame_layout import FrameLayout
from tilework.errors import OutOfMemoryError
from tilework.plan.buffers import MeasuredPlace, OutputPlace
from tilework.plan.plan import Plan, needs_allocation
from tilework.runtime.frame import Frame
from tilework.runtime.memory import Block, BlockPool
from tilework.runtime.shapes import Words, dim_function, shape_function

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)
_LARGEST = 2**62
"""Bytes that no machine has: beyond, sizes that compiled code computes may have wrapped around."""

OutputMaker = Callable[[int, tuple[int, ...]], int]
"""Makes the output at a position with a shape, and returns its address."""


class MeasuredSizes:
    """What a plan's measured memories are and how large, made into functions of a frame's slots once a plan."""

    def __init__(self, plan: Plan, layout: FrameLayout) -> None:
        self.layout = layout
        slots = layout.symbols
        self.sizes: list[tuple[Callable[[Words], int], ...]] = []
        """For each memory, the bytes up to the end of each buffer in it."""
        self.outputs: list[tuple[int, Callable[[Words], tuple[int, ...]]] | None] = []
        """For a memory that is an output, its position and shape."""
        members = {memory: [b for b in plan.buffers if b.memory == memory] for memory in layout.memories}
        for found in members.values():
            self.sizes.append(tuple(dim_function(b.offset + b.bytes, slots) for b in found))
            place = found[0].place
            if isinstance(place, OutputPlace):
                shape = shape_function(plan.outputs[place.position].type.shape, slots)
                self.outputs.append((place.position, shape))
            else:
                self.outputs.append(None)
        self.kept = {b.memory: layout.measured[b.memory] for b in plan.buffers if isinstance(b.place, MeasuredPlace)}
        self.positions = frozenset(
            b.place.position for b in plan.buffers if isinstance(b.place, OutputPlace) and needs_allocation(plan, b)
        )
        """Outputs that steps allocate."""


class MeasuredMemory:
    """The measured memories of one call at a time. `error` is why the last call stopped, where an allocation failed."""

    def __init__(self, sizes: MeasuredSizes, frame: Frame, blocks: BlockPool) -> None:
        self._sizes = sizes
        self._words = frame.words
        self._pool = blocks
        self._blocks: dict[int, Block] = {}
        self._make_output: OutputMaker | None = None
        self._limit: int | None = None
        self._used: dict[int, int] = {}
        self.error: BaseException | None = None

    def begin(self, make_output: OutputMaker, limit: int | None) -> None:
        """A call starts: how it makes outputs, and how many bytes it may take here (None: no limit)."""
        self._make_output, self._limit, self.error = make_output, limit, None
        self._used.clear()
        self._words[self._sizes.layout.answer] = 0

    def end(self) -> None:
        """A call is over: forget whom outputs are for."""
        self._make_output = None

    def release(self) -> None:
        """Give all blocks back. The state is not in use."""
        for block in self._blocks.values():
            self._pool.give(block)
        self._blocks.clear()

    def answer(self, number: int, keep: int) -> None:
        """What compiled code calls. A signal's exception may end it anywhere: without an answer the call stops."""
        self._words[self._sizes.layout.answer] = self.allocate(number, keep)

    @property
    def interrupted(self) -> bool:
        """Whether compiled code asked and had no answer: Python drops exceptions that end such a function."""
        return self.error is None and bool(self._words[self._sizes.layout.answer])

    def allocate(self, number: int, keep: int) -> int:
        """0, or 1 with the reason in `error`."""
        try:
            self._allocate(number, bool(keep))
        except BaseException as error:  # noqa: BLE001 - nothing may pass through compiled code; the caller raises it
            self.error = error
            return 1
        return 0

    def _allocate(self, number: int, keep: bool) -> None:
        sizes, words = self._sizes, self._words
        memory = sizes.layout.memories[number]
        needed = max(size(words) for size in sizes.sizes[number])
        if needed > _LARGEST:
            raise OutOfMemoryError(1710, f"{needed} bytes are needed for a size that the call computed")
        self._used[number] = needed
        if self._limit is not None and sum(self._used.values()) > self._limit:
            total = sum(self._used.values())
            raise OutOfMemoryError(
                1710, f"this call needs {total} bytes for sizes that it computes, {self._limit} are left of the limit",
                hint="use smaller dimensions, or compile with a larger memory_limit",
            )  # fmt: skip
        output = sizes.outputs[number]
        if output is not None:
            position, shape = output
            assert self._make_output is not None
            words[sizes.layout.outputs[position]] = self._make_output(position, shape(words))
            return
        held = self._blocks.get(number)
        if held is not None and held.size >= needed:
            return
        found = self._pool.take(max(needed, 1) if held is None or not keep else max(needed, 2 * held.size))
        if held is not None:
            if keep:
                ctypes.memmove(found.address, held.address, held.size)
            self._pool.give(held)
        self._blocks[number] = found
        words[sizes.kept[memory]] = found.address


class Allocations:
    """A state's measured memory, and the function that compiled code calls for it, kept alive together."""

    __slots__ = ("_callback", "memory")

    def __init__(self, sizes: MeasuredSizes, frame: Frame, blocks: BlockPool) -> None:
        self.memory = MeasuredMemory(sizes, frame, blocks)
        self._callback = _CALLBACK(self.memory.answer)
        frame.words[sizes.layout.allocator] = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
