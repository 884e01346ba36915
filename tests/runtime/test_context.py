"""Contexts: what they own, made late and once, and how they end."""

from __future__ import annotations

import asyncio
import copy
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from tests.runtime.conftest import make_regions
from tilework.errors import CodegenError, OutOfMemoryError, UsageError
from tilework.runtime.context import Context, ContextOptions, default_context


def test_parts_are_made_once_and_late():
    with Context(ContextOptions(threads=2)) as context:
        found: list[object] = []
        threads = [
            threading.Thread(target=lambda: found.append((context.jit, context.pool, context.native))) for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(found)) == 1
        assert context.pool.threads == 2
        assert context.pool.workers == 0


def test_a_region_in_a_context():
    with Context(ContextOptions(threads=3)) as context:
        regions = make_regions(context.jit, context.pool)
        assert (regions.counts("count", 5, 100) == 100).all()
        pool = context.pool
        assert pool.workers == 2
    assert pool.workers == 0
    assert (regions.counts("count", 5, 100) == 100).all()  # code that is held stays; its regions have no workers now


def test_use_after_closing():
    context = Context()
    jit = context.jit
    context.close()
    context.close()
    assert context.closed
    for part in ("jit", "pool", "native", "blocks"):
        with pytest.raises(UsageError) as caught:
            getattr(context, part)
        assert caught.value.code == 1752
    with pytest.raises(UsageError):
        context.__enter__()
    with pytest.raises(CodegenError) as refused:
        jit.load(jit.compile_object("define void @f() {\n  ret void\n}"), ["f"])
    assert refused.value.code == 1685


@pytest.mark.parametrize("name", ["threads", "memory_limit_bytes", "keep_bytes", "spin"])
@pytest.mark.parametrize("value", [-1, "2", "1G", 1.5, 1e9, True, [1], object(), pytest.param(-(10**5000), id="many")])
def test_settings_that_make_no_sense(name: str, value: Any):
    with pytest.raises(UsageError) as caught:
        ContextOptions(**{name: value})
    assert caught.value.code == 1002
    assert caught.value.where == name
    assert "whole number" in caught.value.hint


@pytest.mark.parametrize("settings", [{"threads": 0}, {"threads": 1025}, {"memory_limit_bytes": 0}])
def test_settings_out_of_range(settings: dict[str, int]):
    with pytest.raises(UsageError) as caught:
        ContextOptions(**settings)
    assert caught.value.code == 1002


@pytest.mark.parametrize("options", [5, "threads=2", {"threads": 2}])
def test_something_else_than_options(options: Any):
    with pytest.raises(UsageError) as caught:
        Context(options)
    assert caught.value.code == 1002


def test_whole_numbers_of_numpy_are_settings():
    with Context(ContextOptions(threads=np.int64(2), memory_limit_bytes=np.uint32(1 << 20), spin=0)) as context:  # pyright: ignore[reportArgumentType]
        assert context.pool.threads == 2


def test_a_limit_of_the_environment_that_makes_no_sense(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILEWORK_MEMORY_LIMIT", "much")
    with pytest.raises(UsageError, match="TILEWORK_MEMORY_LIMIT") as caught:
        Context()
    assert caught.value.code == 1002


@pytest.mark.parametrize("take", [copy.copy, copy.deepcopy, pickle.dumps])
def test_contexts_are_neither_copied_nor_pickled(take: Callable[[object], object]):
    with Context() as context, pytest.raises(TypeError, match="make a new one"):
        take(context)


def test_memory_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILEWORK_MEMORY_LIMIT", "1M")
    with Context() as context, pytest.raises(OutOfMemoryError) as caught:
        context.blocks.take(1 << 21)
    assert caught.value.code == 1710
    with Context(ContextOptions(memory_limit_bytes=1 << 30)) as context:
        context.allocator().allocate(1 << 21, 64, "host")


def test_threads_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILEWORK_NUM_THREADS", "5")
    with Context() as context:
        assert context.pool.threads == 5


def test_the_default_context():
    first = default_context()
    assert default_context() is first
    first.close()
    second = default_context()
    assert second is not first
    assert not second.closed


def test_children_of_forks_use_their_parents_context():
    script = """
import os, threading
from tests.runtime.conftest import make_regions
from tilework.runtime.context import Context, ContextOptions, default_context
context = default_context()
regions = make_regions(context.jit, context.pool)
regions.counts("count", 4, 10)
stop = False
def busy():  # makes contexts and compiles all the time, so that forks meet every lock
    while not stop:
        with Context(ContextOptions(threads=2)) as other:
            make_regions(other.jit, other.pool).counts("count", 4, 10)
thread = threading.Thread(target=busy)
thread.start()
for _ in range(6):
    child = os.fork()
    if not child:
        good = default_context() is context
        again = make_regions(context.jit, context.pool)
        good = good and (again.counts("count", 4, 10) == 10).all() and context.pool.workers == context.pool.threads - 1
        context.native, context.blocks.take(1 << 20)
        with Context(ContextOptions(threads=2)) as own:
            good = good and (make_regions(own.jit, own.pool).counts("count", 4, 10) == 10).all()
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop = True
thread.join()
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script],
        capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_parts_are_made_ahead():
    with Context(ContextOptions(threads=2)) as context:
        context.prepare()
        for thread in [t for t in threading.enumerate() if t.name == "tilework-parts"]:
            thread.join()
        assert context._pool is not None  # pyright: ignore[reportPrivateUsage]
        assert context._native is not None  # pyright: ignore[reportPrivateUsage]
        pool = context.pool
        context.prepare()  # nothing is left to make
        assert context.pool is pool


def test_what_goes_wrong_ahead_is_raised_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILEWORK_NUM_THREADS", "many")
    with Context() as context:
        context.prepare()
        for thread in [t for t in threading.enumerate() if t.name == "tilework-parts"]:
            thread.join()
        with pytest.raises(UsageError) as caught:
            _ = context.pool
        assert caught.value.code == 1002


def test_a_context_closed_meanwhile_is_no_trouble(capfd: pytest.CaptureFixture[str]):
    for _ in range(5):
        context = Context()
        context.prepare()
        context.close()
        for thread in [t for t in threading.enumerate() if t.name == "tilework-parts"]:
            thread.join()
    assert "Traceback" not in capfd.readouterr().err


def test_settings_by_name():
    with Context(threads=3, memory_limit="4G") as context:
        assert context.options == ContextOptions(threads=3, memory_limit_bytes=4 << 30)
        assert context.pool.threads == 3
        assert context.blocks.limit_bytes == 4 << 30
    with Context(ContextOptions(spin=7, threads=2), threads=1, memory_limit=1 << 20) as context:
        assert context.options == ContextOptions(threads=1, spin=7, memory_limit_bytes=1 << 20)
        with pytest.raises(OutOfMemoryError):
            context.blocks.take(1 << 21)


@pytest.mark.parametrize(
    "settings", [{"threads": 0}, {"threads": "2"}, {"memory_limit": 0}, {"memory_limit": "4X"}, {"memory_limit": 1.5},
                 {"memory_limit": ""}, {"memory_limit": "-1G"}, {"memory_limit": True}],
)  # fmt: skip
def test_settings_by_name_that_make_no_sense(settings: dict[str, Any]):
    with pytest.raises(UsageError) as caught:
        Context(**settings)
    assert caught.value.code == 1002
    assert next(iter(settings)) in str(caught.value)


def test_within_a_context_it_is_the_one_that_is_used():
    outside = default_context()
    with Context(threads=1) as outer:
        assert default_context() is outer
        with Context(threads=2) as inner:
            assert default_context() is inner
        assert default_context() is outer
        found: list[Context] = []
        thread = threading.Thread(target=lambda: found.append(default_context()))
        thread.start()
        thread.join()
        assert found == [outside]  # other threads are not in it
        outer.close()
        assert default_context() is outside
    assert default_context() is outside


def test_contexts_are_left_in_any_order():
    outside = default_context()
    with ExitStack() as stack:
        first, second = Context(), Context()
        for context in (first, second):
            context.__enter__()
            stack.push(context)
        first.__exit__(None, None, None)
        assert default_context() is second
        leaving = threading.Thread(target=second.__exit__, args=(None, None, None))  # where it was not entered
        leaving.start()
        leaving.join()
        assert default_context() is outside
    assert default_context() is outside


def test_tasks_have_contexts_of_their_own():
    outside = default_context()

    async def within() -> bool:
        with Context(threads=1) as context:
            await asyncio.sleep(0.01)
            return default_context() is context

    async def all_of_them() -> list[bool]:
        return await asyncio.gather(*(within() for _ in range(4)))

    assert asyncio.run(all_of_them()) == [True] * 4
    assert default_context() is outside


def test_what_is_compiled_within_runs_there():
    from tests.executable.building import affine, affine_wanted
    from tilework.compiler.compile import compile_graph

    x = np.ones((70_000, 4), np.float32)
    with Context(threads=1, memory_limit="1M") as context:
        f = compile_graph(affine(2))
        assert f.context is context
        np.testing.assert_array_equal(f(x[:9])[0], affine_wanted(x[:9], 2))
        with pytest.raises(OutOfMemoryError) as full:
            f(x)
        assert full.value.code == 1710
    with pytest.raises(UsageError) as closed:
        f(x[:9])
    assert closed.value.code == 1752
    assert compile_graph(affine(2)).context is default_context()
