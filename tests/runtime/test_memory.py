"""Blocks: handed out once at a time, used again, limited, trimmed."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest

from tilework.errors import OutOfMemoryError
from tilework.plan.protocols import Allocator
from tilework.runtime.memory import Block, BlockAllocator, BlockPool, size_class

MIB = 1 << 20
F32 = np.dtype(np.float32)


def test_an_array_comes_back_when_its_last_view_dies():
    pool = BlockPool()
    array = pool.array((512, 1024), F32)
    address = array.ctypes.data
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert address % 4096 == 0
    view = array[3:, ::2].T
    del array
    shown = view.data
    del view
    gc.collect()
    assert pool.kept_bytes == 0
    other = pool.array((512, 1024), F32)
    assert other.ctypes.data != address
    del shown
    assert pool.kept_bytes == 2 * MIB
    assert pool.array((512, 1024), F32).ctypes.data == address
    assert (pool.mapped, pool.reused) == (2, 1)


def test_arrays_in_use_never_overlap():
    rng = np.random.default_rng(5)
    pool = BlockPool()
    live: list[tuple[np.ndarray, float]] = []
    for step in range(300):
        if live and rng.random() < 0.5:
            array, value = live.pop(int(rng.integers(len(live))))
            assert (array == value).all()
            del array
        else:
            array = pool.array((int(rng.integers(1, 400_000)),), F32)
            array[...] = step
            live.append((array, step))
            del array
    assert all((array == value).all() for array, value in live)
    assert pool.mapped < 150


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 5), (1,), (7, 11, 13)])
def test_odd_shapes(shape: tuple[int, ...]):
    array = BlockPool().array(shape, F32)
    assert array.shape == shape
    array[...] = 3
    assert (array == 3).all()


def test_small_floats():
    import ml_dtypes

    array = BlockPool().array((1000,), np.dtype(ml_dtypes.bfloat16))
    array[...] = 1.5
    assert array.dtype == ml_dtypes.bfloat16
    assert (array == 1.5).all()


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, MIB - 1, MIB, MIB + 1, 3 * MIB + 5, 10**9 + 7])
def test_size_classes(size: int):
    rounded = size_class(size)
    assert rounded % 4096 == 0
    assert size <= rounded <= max(size * 1.13, size + 4096)
    assert size_class(rounded) == rounded


def test_kept_bytes_have_a_limit():
    pool = BlockPool(keep_bytes=4 * MIB)
    arrays = [pool.array((MIB // 4,), F32) for _ in range(10)]
    arrays.clear()
    assert pool.kept_bytes == 4 * MIB
    assert pool.trim() == 4 * MIB
    assert pool.kept_bytes == 0


def test_a_block_serves_sizes_down_to_its_half():
    pool = BlockPool()
    pool.give(pool.take(8 * MIB))
    block = pool.take(5 * MIB)
    assert block.size == 8 * MIB
    pool.give(block)
    assert pool.take(3 * MIB).size == 3 * MIB


def test_limits_and_sizes_beyond_any_machine():
    with pytest.raises(OutOfMemoryError) as caught:
        BlockPool(limit_bytes=MIB).take(MIB + 1)
    assert caught.value.code == 1710
    assert isinstance(caught.value, MemoryError)
    for size in (1 << 60, 1 << 70):
        with pytest.raises(OutOfMemoryError) as caught:
            BlockPool().take(size)
        assert caught.value.code == 1710


def test_allocator():
    pool = BlockPool()
    allocator: Allocator = BlockAllocator(pool)
    address = allocator.allocate(1000, 64, "host")
    assert address % 64 == 0
    allocator.release(address)
    assert pool.kept_bytes == 4096
    for size, alignment, space in [(1000, 8192, "host"), (1000, 64, "gpu")]:
        with pytest.raises(MemoryError):
            allocator.allocate(size, alignment, space)


def test_large_blocks_start_at_huge_pages():
    for _ in range(3):
        assert Block(4 * MIB).address % (2 * MIB) == 0


def test_steady_use_takes_no_page_faults():
    pool = BlockPool()
    shape = (4 * MIB,)
    for _ in range(3):
        pool.array(shape, F32)[...] = 1
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for value in range(20):
        pool.array(shape, F32)[...] = value
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 100  # of 81,920 pages


def test_several_threads():
    pool = BlockPool()
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(300):
            array = pool.array((70_000,), F32)
            array[...] = number
            if not (array == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert pool.mapped <= 12  # two a thread, while the old array still has its name


def test_blocks_are_private_to_a_child():
    script = """
import os
import numpy as np
from tilework.runtime.memory import BlockPool
pool = BlockPool()
array = pool.array((1 << 20,), np.dtype(np.float32))
array[...] = 1
child = os.fork()
if not child:
    array[...] = 2
    pool.array((1 << 20,), np.dtype(np.float32))[...] = 3
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert (array == 1).all()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_memory_is_lost_over_many_arrays():
    pool = BlockPool(keep_bytes=0)

    def mapped() -> int:
        with open("/proc/self/statm") as file:  # noqa: PTH123
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(20):
        pool.array((MIB,), F32)
    before = mapped()
    for _ in range(300):
        pool.array((MIB,), F32)
    assert mapped() - before < 16 * MIB
