"""Buffers that kernels are measured on: aligned, filled with fresh data, the same for both sides of a pair."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from tilework.dims import Dim, Loaded
from tilework.loops.expressions import Index, Load, walk
from tilework.loops.program import AsyncCopy, Buffer, Compute, Loop, LoopProgram, Prefetch
from tilework.loops.program import walk as walk_nodes
from tilework.runtime.memory import BlockPool
from tilework.tuning.measure.job import Data

Array = np.ndarray[Any, np.dtype[Any]]

MAX_SETS = 1024
"""Most sets of buffers that cold calls rotate through."""


def loaded_bounds(program: LoopProgram, symbols: Mapping[str, int]) -> dict[str, int]:
    """For each buffer whose elements choose an index: so many values (0 upwards) are inside whatever they index."""
    bounds: dict[str, int] = {}
    buffers = program.buffers

    def note(buffer: str, index: tuple[Dim, ...]) -> None:
        for entry, extent in zip(index, buffers[buffer].shape, strict=False):
            for load in entry.loads():
                size = int(extent.evaluate(symbols)) if not extent.loads() and extent.names() <= symbols.keys() else 1
                bounds[load.buffer] = min(bounds.get(load.buffer, size), size)
                note_loads(load.index)

    def note_loads(dims: tuple[Dim, ...]) -> None:
        for load in sorted({found for entry in dims for found in entry.loads()}, key=str):
            _loaded(load)

    def _loaded(load: Loaded) -> None:
        bounds.setdefault(load.buffer, 8)
        note(load.buffer, load.index)

    for node in walk_nodes(program.body):
        match node:
            case Compute():
                for target in node.targets:
                    note(target.buffer, target.index)
                note_loads(node.guards)
                for value in node.values:
                    for part in walk(value):
                        if isinstance(part, Load):
                            note(part.buffer, part.index)
                        elif isinstance(part, Index):
                            note_loads((part.value,))
            case Prefetch():
                note(node.target.buffer, node.target.index)
            case AsyncCopy():
                note(node.target.buffer, node.target.index)
                note(node.source.buffer, node.source.index)
            case Loop():
                note_loads((node.extent,))
            case _:
                pass
    return bounds


def fill(array: Array, buffer: Buffer, data: Data, seed: int, bound: int | None) -> None:
    """Put data into an array: of a kind that depends on name and seed only, so that both sides of a pair get the same.

    Floats are whole numbers from -4 to 4 (`integers`) or normal; integers are from -4 to 4, unsigned ones from 0 to 8,
    and those that choose an index are inside its range.
    """
    if not array.size:
        return
    array[...] = _values(array.shape, buffer, data, seed, bound).astype(array.dtype)


def _values(shape: tuple[int, ...], buffer: Buffer, data: Data, seed: int, bound: int | None) -> Array:
    random = np.random.default_rng((seed, zlib.crc32(buffer.name.encode())))
    dtype = buffer.dtype
    if dtype.kind == "boolean":
        return random.integers(0, 2, shape, dtype=np.int8)
    if bound is not None:
        return random.integers(0, max(1, min(bound, 1 << 30)), shape, dtype=np.int64)
    if dtype.kind == "unsigned":
        return random.integers(0, 9, shape, dtype=np.int8)
    if data == "normal" and not dtype.is_integer:
        return random.standard_normal(shape, dtype=np.float32)
    return random.integers(-4, 5, shape, dtype=np.int8)


class Buffers:
    """Arrays by name, shape and type, so that both sides of a pair use the same memory where they can."""

    def __init__(self, pool: BlockPool, data: Data, seed: int) -> None:
        self._pool = pool
        self._data: Data = data
        self._seed = seed
        self._arrays: dict[tuple[str, tuple[int, ...], str, int], Array] = {}

    def array(self, buffer: Buffer, shape: tuple[int, ...], number: int, bound: int | None) -> Array:
        """The array of a buffer in one of the sets, filled when it is first asked for."""
        key = (buffer.name, shape, buffer.dtype.name, number)
        found = self._arrays.get(key)
        if found is None:
            found = self._arrays[key] = self.fresh(shape, buffer.dtype.numpy)
            fill(found, buffer, self._data, self._seed, bound)
        return found

    def fresh(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array of its own whose data start at a multiple of 64 bytes (large ones at a page)."""
        size = max(1, int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)
        raw = self._pool.array((size + 64,), np.dtype(np.uint8))
        start = -raw.ctypes.data % 64
        raw[start : start + size] = 0
        count = int(np.prod(shape, dtype=np.int64))
        return raw[start : start + count * dtype.itemsize].view(dtype).reshape(shape)


def sets_for(bytes_per_call: int, last_level_bytes: int, limit_bytes: int) -> int:
    """Sets of buffers after which the first is out of every cache: twice the last cache in all."""
    if bytes_per_call <= 0:
        return 1
    wanted = -(-2 * last_level_bytes // bytes_per_call) + 1
    return max(1, min(wanted, MAX_SETS, limit_bytes // bytes_per_call))
