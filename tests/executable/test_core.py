"""The entry beneath all callers: addresses, dims and strides in; an allocator of the caller's for what comes out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.executable.building import F32, N
from tilework import dtypes
from tilework.compiler.compile import compile_graph
from tilework.compiler.options import CompileOptions
from tilework.dims import Symbol, dim
from tilework.errors import CallError, OutOfMemoryError, RunError
from tilework.graph.graph import GraphSignature, InputPolicy, OutputPolicy
from tilework.ops.builder import GraphBuilder
from tilework.plan.protocols import Allocator
from tilework.runtime.executable import Executable
from tilework.runtime.ports import CoreResult


class Heap:
    """An `Allocator` that knows what it gave."""

    def __init__(self, most: int = 1 << 40) -> None:
        self.blocks: dict[int, np.ndarray[Any, Any]] = {}
        self.given = 0
        self.asked: list[tuple[int, int, str]] = []
        self.left = most

    def allocate(self, size: int, alignment: int, space: str) -> int:
        self.asked.append((size, alignment, space))
        if size > self.left:
            raise OutOfMemoryError(1710, f"{size} bytes are too many")
        self.left -= size
        block = np.full(size + alignment, 0xA5, np.uint8)
        address = -(-block.ctypes.data // alignment) * alignment
        self.blocks[address] = block
        self.given += 1
        return address

    def release(self, address: int) -> None:
        del self.blocks[address]

    def read(self, result: CoreResult, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
        block = self.blocks[result.address]
        start = result.address - block.ctypes.data
        size = int(np.prod(result.shape)) * np.dtype(dtype).itemsize
        return block[start : start + size].view(dtype).reshape(result.shape)


def pair() -> Executable:
    builder = GraphBuilder("g", [N, Symbol("K", 1, 100, 2)])
    x, y = builder.input("x", F32, "N", 3), builder.input("y", dtypes.int64, "K")
    total = builder.apply_one("cumulative", x, dimension=0, reducer="sum")
    return compile_graph(builder.build([total, builder.apply_one("add", y, y)]))


def test_bare_memory_in_and_out() -> None:
    f = pair()
    heap = Heap()
    allocator: Allocator = heap
    for rows in (4, 0, 1000):
        x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
        y = np.arange(6, dtype=np.int64)
        results = f.run_core([x.ctypes.data, y.ctypes.data], [x.shape, y.shape], [None, (1,)], allocator)
        assert [result.shape for result in results] == [(rows, 3), (6,)]
        np.testing.assert_array_equal(heap.read(results[0]), np.cumsum(x, 0, dtype=np.float32))
        np.testing.assert_array_equal(heap.read(results[1], np.int64), y * 2)
        assert results[0].address % 64 == 0
        assert [space for _, _, space in heap.asked] == ["host"] * len(heap.asked)
    assert heap.given == 6


@pytest.mark.parametrize(
    ("dims", "strides", "code"),
    [
        ([(4, 3)], [None], 1701),
        ([(4, 3, 1), (6,)], [None, None], 1704),
        ([(4, 3), ()], [None, None], 1704),
        ([(4, 2), (6,)], [None, None], 1705),
        ([(4, 3), (5,)], [None, None], 1705),  # not even
        ([(4, 3), (102,)], [None, None], 1705),  # beyond its bound
        ([(4, 3), (6,)], [(1, 4), None], 1712),
    ],
)
def test_refusals(dims: list[tuple[int, ...]], strides: list[tuple[int, ...] | None], code: int) -> None:
    f = pair()
    heap = Heap()
    x, y = np.zeros((4, 3), np.float32), np.zeros(6, np.int64)
    with pytest.raises(CallError) as caught:
        f.run_core([x.ctypes.data, y.ctypes.data][: len(dims)], dims, strides, heap)
    assert caught.value.code == code
    assert heap.blocks == {}
    with pytest.raises(CallError) as caught:
        f.run_core([x.ctypes.data + 1, y.ctypes.data], [(4, 3), (6,)], [None, None], heap)
    assert caught.value.code == 1712


def test_what_was_allocated_goes_back_when_the_call_fails() -> None:
    f = pair()
    x, y = np.zeros((4, 3), np.float32), np.zeros(6, np.int64)
    heap = Heap(most=60)
    with pytest.raises(OutOfMemoryError):
        f.run_core([x.ctypes.data, y.ctypes.data], [x.shape, y.shape], [None, None], heap)
    assert heap.given == 1
    assert heap.blocks == {}
    builder = GraphBuilder("g", [N])
    table, at = builder.input("table", F32, "N"), builder.input("at", dtypes.int64, 2)
    taking = compile_graph(builder.build([builder.apply_one("take", table, at, dimension=0)]))
    heap = Heap()
    positions = np.array([0, 9], np.int64)
    with pytest.raises(RunError):
        taking.run_core([x.ctypes.data, positions.ctypes.data], [(4,), (2,)], [None, None], heap)
    assert heap.blocks == {}


def test_memory_limit() -> None:
    builder = GraphBuilder("g", [N])
    x = builder.input("x", F32, "N")
    f = compile_graph(builder.build([builder.apply_one("negate", x)]), CompileOptions(memory_limit=100))
    data = np.arange(200, dtype=np.float32)
    heap = Heap()
    (result,) = f.run_core([data.ctypes.data], [(20,)], [None], heap)
    np.testing.assert_array_equal(heap.read(result), -data[:20])
    with pytest.raises(OutOfMemoryError):
        f.run_core([data.ctypes.data], [(200,)], [None], heap)
    assert heap.given == 1


def test_aliases_and_views_need_no_memory() -> None:
    builder = GraphBuilder("g", [N])
    x = builder.input("x", F32, "N")
    outputs = [builder.apply_one("add", x, x), builder.apply_one("reverse", x, dimensions=(0,))]
    signature = GraphSignature(
        (InputPolicy("mutated", 0),),
        (OutputPolicy("alias", 0), OutputPolicy("view", 0, (dim(-1),), dim("N") - 1)),
    )
    f = compile_graph(builder.build(outputs, signature))
    data = np.arange(5, dtype=np.float32)
    heap = Heap()
    changed, view = f.run_core([data.ctypes.data], [(5,)], [None], heap)
    assert heap.given == 0
    assert changed == CoreResult(data.ctypes.data, (5,))
    assert view == CoreResult(data.ctypes.data + 16, (5,))
    np.testing.assert_array_equal(data, np.arange(5) * 2)
