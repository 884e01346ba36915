"""A signal ends a kernel soon, wherever it is; kernels that are not interrupted compute what they always do."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.lowering.native import Native, assert_same
from tests.lowering.random_programs import draw
from tilework import dtypes
from tilework.codegen.cpu.gate import POLL_BYTES, POLL_FUNCTION_OFFSET
from tilework.codegen.cpu.kernel import emit_kernel
from tilework.dims import Dim, Symbol, dim
from tilework.loops.expressions import Load
from tilework.loops.program import Access, Argument, Buffer, Compute, Loop, LoopProgram, Node
from tilework.loops.reducers import reducer
from tilework.lowering import polls
from tilework.machine.finder import machine
from tilework.numerics import numerics
from tilework.runtime.context import Context, ContextOptions
from tilework.runtime.frame import FIRST_SLOT, Frame

F = dtypes.float32
SOON = 20
"""Seconds that a busy machine may take between a signal and the exception; idle ones take thousandths."""
PROMISED = 0.2
"""Seconds between a signal and the exception, by the house's promise: of each processor's own time."""
FOREVER = 1 << 40
"""Iterations that take minutes at the very least: a loop of so many that ended soon was stopped."""
FEW = 16
X = Buffer("x", (dim(FEW),), F)


class Interrupted(Exception):  # noqa: N818
    pass


def loops(body: Node, *nest: tuple[str, int | Dim, str]) -> Node:
    for variable, extent, kind in reversed(nest):
        body = Loop(variable, dim(extent) if isinstance(extent, int) else extent, kind, body)  # pyright: ignore[reportArgumentType]
    return body


def total(place: Dim, nest: list[tuple[str, int | Dim, str]], rows: int = 1, at: Dim | None = None) -> LoopProgram:
    """y[at] += x[place] over a nest of loops whose extents may be the symbols n and m; x repeats."""
    target = Buffer("y", (dim(rows),), F)
    access = Access("y", (at if at is not None else Dim(),))
    one = Compute("y", (access,), (Load("x", (place % FEW,), F),), reducer("sum", F))
    body = loops(one, *nest)
    arguments = (Argument(X, "read"), Argument(target, "accumulate"))
    return LoopProgram("total", arguments, body, (Symbol("n"), Symbol("m")))


ROW, INNER, LANE = dim("i"), dim("j"), dim("l")
N, M = dim("n"), dim("m")
PROGRAMS: dict[str, tuple[LoopProgram, str]] = {
    "scalars in a register": (total(ROW, [("i", N, "serial")]), "strict"),
    "vectors in registers": (total(LANE, [("i", N, "serial"), ("l", FEW, "vectorized")]), "default"),
    "a constant extent": (total(ROW, [("i", FOREVER, "serial")]), "strict"),
    "short rows": (total(INNER, [("i", N, "serial"), ("j", M, "serial")]), "strict"),
    "long rows": (total(INNER, [("j", M, "serial"), ("i", N, "serial")]), "strict"),
    "chunks": (total(ROW, [("j", 8, "parallel"), ("i", N, "serial")], 8, INNER), "strict"),
    "rows of chunks": (total(LANE, [("j", 8, "parallel"), ("i", N, "serial"), ("k", M, "serial"),
                                 ("l", FEW, "vectorized")], 8, INNER), "default"),
    "regions again and again": (total(ROW, [("k", N, "serial"), ("j", 8, "parallel"), ("i", 1000, "serial")], 8, INNER),
                                "strict"),
}  # fmt: skip


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    with Context(ContextOptions(threads=3)) as found:
        found.pool.ensure()
        yield found


@pytest.fixture
def alarm() -> Iterator[Callable[[float], float]]:
    def handler(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, handler)

    def start(seconds: float) -> float:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        return time.monotonic() + seconds

    yield start
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def through(context: Context, entry: Any) -> Callable[[Any], int]:
    """Calls a kernel as a plan's driver does: with a pool and a poll state, through the gate."""
    frame = Frame(FIRST_SLOT + 2, context.pool.address)

    def run(block: Any) -> int:
        block[0] = frame.address
        frame.words[FIRST_SLOT] = ctypes.cast(entry, ctypes.c_void_p).value or 0
        frame.words[FIRST_SLOT + 1] = ctypes.addressof(block)
        native = context.native
        return native.run(native.code["tilework_gate_step"], frame.address)

    return run


def data(program: LoopProgram) -> dict[str, Any]:
    x = np.random.default_rng(5).integers(-3, 4, FEW).astype(np.float32)
    shape = tuple(int(extent) for extent in program.arguments[1].buffer.shape)
    return {"x": x, "y": np.zeros(shape, np.float32)}


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_every_long_loop_ends_soon(name: str, context: Context, alarm: Callable[[float], float]) -> None:
    program, level = PROGRAMS[name]
    native = Native(program, level)
    arrays = data(program)
    enter = through(context, native.entry)
    for seconds in (0.05, 0.083):
        end = alarm(seconds)
        with pytest.raises(Interrupted):
            native.run(arrays, {"n": FOREVER, "m": 3}, through=enter)
        assert time.monotonic() - end < SOON
    if name == "a constant extent":
        return
    # the same kernel, frame and pool afterwards; several pieces, as the count is large
    n, m = (300, 3) if name == "regions again and again" else (400_000, 3)
    have = native.run(arrays, {"n": n, "m": m}, through=enter).arrays["y"]
    plain = native.run(arrays, {"n": n, "m": m}).arrays["y"]
    np.testing.assert_array_equal(have, plain)
    x = arrays["x"].astype(np.float64)
    if name == "regions again and again":
        want = n * np.resize(x, 1000).sum()
    elif name == "vectors in registers":
        want = n * x.sum()
    elif name == "rows of chunks":
        want = n * m * x.sum()
    elif "rows" in name:
        want = n * x[:m].sum()
    else:
        want = np.resize(x, n).sum()
    assert abs(want) < 2**24
    np.testing.assert_array_equal(have, np.full(have.shape, want))


def counting(answer: Callable[[int], int]) -> tuple[Any, list[int], Any]:
    """Error, pool and poll words whose poll counts the looks and answers as told."""
    looks: list[int] = []

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
    def poll(_state: int) -> int:
        looks.append(threading.get_native_id())
        return answer(len(looks))

    state = (ctypes.c_int64 * (POLL_BYTES // 8))()
    state[POLL_FUNCTION_OFFSET // 8] = ctypes.cast(poll, ctypes.c_void_p).value or 0
    words = (ctypes.c_int64 * 3)(0, 0, ctypes.addressof(state))
    return words, looks, (poll, state)


def with_words(native: Native, words: Any) -> Callable[[Any], int]:
    def run(block: Any) -> int:
        block[0] = ctypes.addressof(words)
        return int(native.entry(ctypes.addressof(block), None))

    return run


def test_looks_are_as_many_as_there_are_pieces() -> None:
    program, level = PROGRAMS["scalars in a register"]
    native = Native(program, level)
    for n in (0, 1, 1000, 100_000, 3_000_000):
        words, looks, kept = counting(lambda _: 0)
        native.run(data(program), {"n": n, "m": 1}, through=with_words(native, words))
        del kept
        assert n // polls.PIECE <= len(looks) <= 16 * n // polls.PIECE


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "a constant extent"])
def test_what_follows_a_stop_is_short(name: str) -> None:
    """Also where the call never comes back to the loop that looked: every loop around it and after it stops."""
    program, level = PROGRAMS[name]
    native = Native(program, level)
    words, looks, kept = counting(lambda count: count >= 3)
    start = time.perf_counter()
    outcome = native.run(data(program), {"n": FOREVER, "m": 3}, through=with_words(native, words))
    assert time.perf_counter() - start < SOON
    assert (outcome.status, int(words[0])) == (0, 0)
    del kept
    assert 3 <= len(looks) < 100


def test_short_loops_have_no_looks() -> None:
    for extent, looks in ((1000, False), (1 << 30, True)):
        text = emit_kernel(
            total(ROW, [("i", extent, "serial")]), machine("x86-64-v3"), numerics("strict"), name="kernel"
        ).ir
        assert ("tilework.stop" in text) == looks
    # a symbol with an upper bound is as good as a number
    program = total(ROW, [("i", N, "serial")])
    bounded = LoopProgram(program.name, program.arguments, program.body, (Symbol("n", upper=500), Symbol("m")))
    assert "tilework.stop" not in emit_kernel(bounded, machine("x86-64-v3"), numerics("strict")).ir


def test_nothing_is_called_where_the_time_is_spent() -> None:
    """The loop over single iterations has no call in it: the look is between its pieces."""
    text = emit_kernel(PROGRAMS["vectors in registers"][0], machine("x86-64-v3"), numerics("default"), name="kernel").ir
    spans = re.findall(r"^(loop\d+):\n(.*?)label %\1,", text, re.DOTALL | re.MULTILINE)
    assert len(spans) == 1
    assert "fadd" in spans[0][1]
    assert "tilework.stop" not in spans[0][1]
    assert "tilework.stop" in text


@pytest.mark.parametrize("seed", range(40))
def test_tiny_pieces_change_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polls, "SHORT", 0)
    monkeypatch.setattr(polls, "PIECE", (1, 7, 40)[seed % 3])
    monkeypatch.setattr(polls, "_UNKNOWN_PIECE", 2)
    found = draw(5000 + seed)
    native = Native(found.program)
    expected = assert_same(found.program, found.arrays, found.symbols, native=native)
    words, _, kept = counting(lambda _: 0)
    have = native.run(found.arrays, found.symbols, through=with_words(native, words)).arrays
    del kept
    for name, want in expected.items():
        assert have[name].tobytes() == want.tobytes(), name


@pytest.mark.parametrize("seed", range(20))
def test_a_stop_anywhere_writes_nothing_outside(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fences around every buffer hold when a random program stops at its k-th look."""
    monkeypatch.setattr(polls, "SHORT", 0)
    monkeypatch.setattr(polls, "PIECE", 5)
    found = draw(6000 + seed)
    native = Native(found.program)
    for stop in (1, 2, 5, 13):
        words, _, kept = counting(lambda count, stop=stop: count >= stop)
        native.run(found.arrays, found.symbols, through=with_words(native, words))
        del kept


def test_calls_in_other_threads_run_to_their_end(context: Context, alarm: Callable[[float], float]) -> None:
    """A signal reaches the main thread's call alone, though all share one pool."""
    program, level = PROGRAMS["chunks"]
    native = Native(program, level)
    arrays = data(program)
    count = 10_000_000
    results: list[Any] = []

    def work() -> None:
        enter = through(context, native.entry)
        results.append(native.run(arrays, {"n": count, "m": 1}, through=enter).arrays["y"])

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    end = alarm(0.05)
    with pytest.raises(Interrupted):
        native.run(arrays, {"n": FOREVER, "m": 1}, through=through(context, native.entry))
    assert time.monotonic() - end < SOON
    for thread in threads:
        thread.join()
    want = native.run(arrays, {"n": count, "m": 1}).arrays["y"]
    assert len(results) == 2
    for have in results:
        np.testing.assert_array_equal(have, want)


def test_a_handler_may_call(context: Context) -> None:
    """A handler that runs a kernel on the same pool, and does not raise, in the middle of a region."""
    program, level = PROGRAMS["chunks"]
    native = Native(program, level)
    arrays = data(program)
    inner: list[Any] = []

    def handler(*_: object) -> None:
        enter = through(context, native.entry)
        inner.append(native.run(arrays, {"n": 200_000, "m": 1}, through=enter).arrays["y"])

    want = native.run(arrays, {"n": 200_000, "m": 1}).arrays["y"]
    long = native.run(arrays, {"n": 30_000_000, "m": 1}).arrays["y"]
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.03)
    try:
        have = native.run(arrays, {"n": 30_000_000, "m": 1}, through=through(context, native.entry)).arrays["y"]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(inner) == 1
    np.testing.assert_array_equal(inner[0], want)
    np.testing.assert_array_equal(have, long)


WATCHED = """
declare void @tilework_pool_run_watched(ptr, ptr, ptr, i32)

define void @enter(ptr %pool, ptr %function, ptr %context, i32 %chunks) {
  call void @tilework_pool_run_watched(ptr %pool, ptr %function, ptr %context, i32 %chunks)
  ret void
}
"""


def test_a_caller_that_waits_looks_for_signals(context: Context) -> None:
    """A worker's chunk that ends only when the waiting caller was asked to look, five times."""
    code = context.jit.load(context.jit.compile_object(WATCHED), ["enter"], uses=[context.pool.code])
    enter = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)(code["enter"])
    caller = threading.get_native_id()
    taken = threading.Event()
    looked: list[float] = []
    ran: list[int] = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)
    def body(_context: int, chunk: int, _chunks: int) -> None:
        if chunk < 0:
            looked.append(time.monotonic())
            assert threading.get_native_id() == caller
            return
        ran.append(chunk)
        if threading.get_native_id() == caller:
            assert taken.wait(10)  # a worker has a chunk too
            return
        taken.set()
        while len(looked) < 5:
            time.sleep(0.001)

    enter(context.pool.address, ctypes.cast(body, ctypes.c_void_p), None, 2)
    assert sorted(ran) == [0, 1]
    assert len(looked) >= 5
    assert looked[4] - looked[0] < SOON


SCRIPT = """
import time, numpy as np, tilework
from tests.codegen.cpu.test_signals import ENDLESS, INTERRUPTS, models
for name, (f, long, short, want) in models().items():
    if name not in ENDLESS:
        f(*long)
    start = time.process_time()
    if name not in ENDLESS:
        f(*long)
    print(name, time.process_time() - start, flush=True)
    for _ in range(INTERRUPTS):
        try:
            print("running", flush=True)
            while True:
                f(*long)
        except KeyboardInterrupt:
            print(time.process_time(), flush=True)
        (have,) = f(*short)
        np.testing.assert_array_equal(have, want)
        print("usable", flush=True)
"""
INTERRUPTS = 5
ENDLESS = ("sum",)
"""Models whose call with the long arguments takes minutes at the very least."""


def models() -> dict[str, tuple[Any, list[Any], list[Any], Any]]:
    """Executables, arguments that keep them busy, others, and what these give."""
    from tilework.compiler.compile import compile_graph
    from tilework.compiler.options import CompileOptions
    from tilework.ops.builder import GraphBuilder

    rng = np.random.default_rng(2)

    def whole(*shape: int) -> Any:
        return rng.integers(-3, 4, shape).astype(np.float32)

    found: dict[str, tuple[Any, list[Any], list[Any], Any]] = {}
    builder = GraphBuilder("product", [Symbol("n"), Symbol("k"), Symbol("m")])
    a, b = builder.input("a", F, "n", "k"), builder.input("b", F, "k", "m")
    f = compile_graph(
        builder.build(
            [builder.apply_one("dot_general", a, b, lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,))]
        )
    )
    small = [whole(37, 53), whole(53, 41)]
    found["product"] = (f, [whole(3000, 3000), whole(3000, 3000)], small, small[0] @ small[1])
    builder = GraphBuilder("scans", [Symbol("n")])
    a = builder.input("a", F, "n")
    few = whole(7)
    want = few
    for _ in range(8):  # one alone is over too soon
        a = builder.apply_one("cumulative", a, dimension=0, reducer="sum")
        want = np.cumsum(want)
    found["scan"] = (compile_graph(builder.build([a])), [np.ones(50_000_000, np.float32)], [few], want)
    builder = GraphBuilder("sum", [Symbol("n"), Symbol("times")])
    a, _ = builder.input("a", F, "n"), builder.input("nothing", F, "times", 0)
    shape = (dim("times"), dim("n"))
    again = builder.apply_one("broadcast_in_dim", a, shape=shape, broadcast_dimensions=(1,))
    graph = builder.build([builder.apply_one("reduce", again, dimensions=(0, 1), reducer="sum")])
    f = compile_graph(graph, CompileOptions(numerics="strict"))
    many = [np.ones(1000, np.float32), np.empty((1 << 32, 0), np.float32)]
    found["sum"] = (f, many, [few, np.empty((11, 0), np.float32)], 11 * few.sum())
    return found


def interrupt(process: subprocess.Popen[str]) -> float:
    """Send SIGINT to a process; the seconds of processor time that it had used by then, all threads together."""
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime and stime, proc(5)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processor times of another process are read there")
def test_control_c() -> None:
    """A call ends long before it would have: in processor time, so that other processes hardly count."""
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        limit = threading.Timer(300, process.kill)  # a call that is not interrupted may take an hour
        limit.start()
        try:
            for name in ("product", "scan", "sum"):
                called, whole = process.stdout.readline().split()
                assert called == name
                for trial in range(INTERRUPTS):
                    assert process.stdout.readline() == "running\n"
                    time.sleep(0.05 + 0.03 * trial)
                    used = interrupt(process)
                    after = float(process.stdout.readline()) - used
                    assert after < PROMISED * (os.cpu_count() or 1)
                    assert name in ENDLESS or after < float(whole) / 2
                    assert process.stdout.readline() == "usable\n"
            assert process.wait(60) == 0
        finally:
            limit.cancel()
            process.kill()
