"""Memory for calls: large blocks that are used again, so that steady use takes no page faults.

A fresh large array costs a page fault for every page that is first written, which is slower than most kernels that
write it. Blocks here come from the operating system once and go round: an output's block returns when the last array
that shows it dies, an arena's when its call's state does.
"""

from __future__ import annotations

import mmap
import os
import threading
from collections import deque
from typing import Any

import numpy as np

from tilework.errors import OutOfMemoryError
from tilework.plan.protocols import Array
from tilework.runtime.forks import in_child

RECYCLE_FROM = 1 << 20
"""Outputs of this many bytes or more live in blocks; smaller ones are ordinary numpy arrays, which malloc recycles."""
KEEP_BYTES = 1 << 30
"""Most bytes of unused blocks that are kept (and a quarter of the machine's memory), unless options say otherwise."""

_PAGE = 4096
_HUGE_PAGE = 2 << 20


class Block:
    """A piece of private, page-aligned memory; from 2 MiB up it starts at a 2 MiB boundary and asks for huge pages."""

    __slots__ = ("_mapping", "address", "size")

    def __init__(self, size: int) -> None:
        """Map `size` bytes, a multiple of the page size. Raises `OSError` where there are none."""
        slack = _HUGE_PAGE if size >= _HUGE_PAGE else 0
        if hasattr(mmap, "MAP_PRIVATE"):
            # Private: a child after a fork must not share its parent's arenas.
            self._mapping = mmap.mmap(-1, size + slack, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        else:
            self._mapping = mmap.mmap(-1, size + slack)
        start = np.frombuffer(self._mapping, np.uint8).ctypes.data
        self.address = -(-start // _HUGE_PAGE) * _HUGE_PAGE if slack else start
        self.size = size
        if slack and hasattr(mmap, "MADV_HUGEPAGE"):
            try:
                self._mapping.madvise(mmap.MADV_HUGEPAGE)
            except OSError:
                return  # a kernel without huge pages: the block works as it is

    def unmap(self) -> None:
        """Give the memory back to the operating system."""
        self._mapping.close()


class BlockPool:
    """Blocks that are not in use, by size.

    `take` gives a block of at least the size asked for and at most twice it. Unused blocks beyond `keep_bytes` are
    unmapped. `limit_bytes` is the most that one `take` may ask for (None: no limit of ours).

    Threads: all methods may be called from any thread, and `give` also from finalizers, which may run in the middle of
    another method of the same thread: those blocks wait in a queue.
    """

    def __init__(self, keep_bytes: int | None = None, limit_bytes: int | None = None) -> None:
        self.keep_bytes = min(KEEP_BYTES, physical_bytes() // 4) if keep_bytes is None else keep_bytes
        self.limit_bytes = limit_bytes
        self.mapped = 0
        """Blocks that were asked from the operating system."""
        self.reused = 0
        """Blocks that were used again."""
        self.kept_bytes = 0
        """Bytes of unused blocks."""
        self._free: dict[int, list[Block]] = {}
        self._returned: deque[Block] = deque()
        self._lock = threading.Lock()
        in_child(self._after_fork)

    def take(self, size: int) -> Block:
        """A block of `size` bytes or more, its contents undefined.

        Raises:
            OutOfMemoryError: 1710 beyond the limit, or when the operating system has no more.
        """
        if self.limit_bytes is not None and size > self.limit_bytes:
            raise OutOfMemoryError(1710, f"{size} bytes are needed and the limit is {self.limit_bytes} bytes")
        rounded = size_class(size)
        with self._lock:
            self._sort_returned()
            sizes = [kept for kept, blocks in self._free.items() if rounded <= kept <= 2 * rounded and blocks]
            if sizes:
                fitting = min(sizes)
                block = self._free[fitting].pop()
                self.kept_bytes -= block.size
                self.reused += 1
                return block
        try:
            block = Block(rounded)
        except (OSError, OverflowError, ValueError, MemoryError):
            self.trim()
            try:
                block = Block(rounded)
            except (OSError, OverflowError, ValueError, MemoryError) as problem:
                raise OutOfMemoryError(1710, f"{size} bytes are needed and there are none: {problem}") from problem
        with self._lock:
            self.mapped += 1
        return block

    def give(self, block: Block) -> None:
        """Take a block back. Nobody may use it any more."""
        self._returned.append(block)
        if self._lock.acquire(blocking=False):  # else whoever holds the lock, or comes next, sorts it in
            try:
                self._sort_returned()
            finally:
                self._lock.release()

    def trim(self) -> int:
        """Give all unused blocks back to the operating system; returns their bytes."""
        with self._lock:
            self._sort_returned()
            freed = self.kept_bytes
            for blocks in self._free.values():
                for block in blocks:
                    block.unmap()
            self._free.clear()
            self.kept_bytes = 0
        return freed

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An uninitialised C-order array in a block of its own, which comes back when nothing shows it any more.

        Raises:
            OutOfMemoryError: as `take`.
        """
        size = dtype.itemsize
        for extent in shape:
            size *= extent
        if size == 0:
            return np.empty(shape, dtype)
        owner = np.asarray(_Lease(self, self.take(size), size))
        return np.ndarray(shape, dtype, buffer=owner.data)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self.kept_bytes = sum(block.size for blocks in self._free.values() for block in blocks)

    def _sort_returned(self) -> None:
        while self._returned:
            block = self._returned.popleft()
            if self.kept_bytes + block.size > self.keep_bytes:
                block.unmap()
            else:
                self._free.setdefault(block.size, []).append(block)
                self.kept_bytes += block.size


class BlockAllocator:
    """The `Allocator` protocol (see `tilework.plan.protocols`) on a block pool, for host memory."""

    def __init__(self, pool: BlockPool) -> None:
        self._pool = pool
        self._blocks: dict[int, Block] = {}

    def allocate(self, size: int, alignment: int, space: str) -> int:
        """The address of `size` bytes (> 0), a multiple of `alignment` (at most 4096).

        Raises:
            OutOfMemoryError: 1710 beyond the limit, without memory, or for a space or alignment that is not here.
        """
        if space != "host" or alignment > _PAGE:
            raise OutOfMemoryError(1710, f"no memory in space {space!r} at multiples of {alignment} bytes")
        block = self._pool.take(size)
        self._blocks[block.address] = block
        return block.address

    def release(self, address: int) -> None:
        """Give back what `allocate` returned."""
        self._pool.give(self._blocks.pop(address))


class _Lease:
    """Owns a block for as long as an array shows it; numpy keeps it as the array's base."""

    __slots__ = ("__array_interface__", "_block", "_pool")

    def __init__(self, pool: BlockPool, block: Block, size: int) -> None:
        self._pool, self._block = pool, block
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (block.address, False)}

    def __del__(self) -> None:
        self._pool.give(self._block)


def size_class(size: int) -> int:
    """The size of the block that serves `size` bytes: the next of eight steps between powers of two, whole pages."""
    step = max(_PAGE, 1 << max(0, (max(size, 1) - 1).bit_length() - 4))
    return max(_PAGE, -(-size // step) * step)


def physical_bytes() -> int:
    """Bytes of memory in this machine; 4 GiB where the operating system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 4 << 30
