"""The yardstick of memory-bound kernels: one or two arrays read and another written, in generated code of our own.

What is done is trivial (y = a, or y = a + b), so the time is that of the memory. Stores are plain ones, which first
read the line they write, or non-temporal ones, which go past the caches.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness.engine import Engine, Prepared

PLAIN, NON_TEMPORAL = "plain stores", "non-temporal stores"
PLAIN_COPY, NON_TEMPORAL_COPY = "plain copy", "non-temporal copy"

LANES = 16
UNROLL = 1
STEP = LANES * UNROLL
"""Elements of one trip of the loop."""

CHUNKS = 256
"""Pieces that the threads of the pool share out among themselves."""


@dataclass(frozen=True)
class Streams:
    """Code and memory of the yardstick: `run()` makes y = a + b, or y = a, once (or `passes` times)."""

    context: Any
    code: Any
    function: int
    block: Any
    a: np.ndarray[Any, Any]
    b: np.ndarray[Any, Any]
    y: np.ndarray[Any, Any]
    chunks: int = CHUNKS

    def run(self) -> None:
        """One pass over the memory (or `passes` of them, one after the other in each chunk)."""
        self.context.pool.run(self.function, ctypes.addressof(self.block), self.chunks)


def text(non_temporal: bool, fence: str | None, reads: int = 2) -> str:
    """Return the LLVM text of `read_write(context, chunk, chunks)`.

    The context holds five 64-bit words: the addresses of a, b and y (multiples of 64), the number of trips, and how
    often to go over them. `fence` is the instruction that ends non-temporal stores. With one read, b is left alone.
    """
    vector = f"<{LANES} x float>"
    hint = ", !nontemporal !0" if non_temporal else ""
    lines: list[str] = []
    for place in range(UNROLL):
        lines += [
            f"  %at{place} = add nuw nsw i64 %start, {place * LANES}",
            *(f"  %{name}p{place} = getelementptr float, ptr %{name}, i64 %at{place}" for name in "aby"),
            *(f"  %{name}v{place} = load {vector}, ptr %{name}p{place}, align 64" for name in "ab"[:reads]),
        ]
    for place in range(UNROLL):
        value = f"%s{place}" if reads > 1 else f"%av{place}"
        lines += [f"  %s{place} = fadd {vector} %av{place}, %bv{place}"] if reads > 1 else []
        lines += [f"  store {vector} {value}, ptr %yp{place}, align 64{hint}"]
    body = "\n".join(lines)
    last = f"  call void {fence}()\n" if non_temporal and fence else ""
    declared = f"declare void {fence}()\n" if non_temporal and fence else ""
    return f"""
define void @read_write(ptr %context, i32 %chunk, i32 %chunks) {{
entry:
  %a = load ptr, ptr %context
  %bp = getelementptr i64, ptr %context, i64 1
  %b = load ptr, ptr %bp
  %yp = getelementptr i64, ptr %context, i64 2
  %y = load ptr, ptr %yp
  %np = getelementptr i64, ptr %context, i64 3
  %trips = load i64, ptr %np
  %pp = getelementptr i64, ptr %context, i64 4
  %passes = load i64, ptr %pp
  %this = zext i32 %chunk to i64
  %next = add i64 %this, 1
  %all = zext i32 %chunks to i64
  %before = mul i64 %trips, %this
  %from = udiv i64 %before, %all
  %after = mul i64 %trips, %next
  %to = udiv i64 %after, %all
  %any = icmp ult i64 %from, %to
  br i1 %any, label %pass, label %done
pass:
  %turn = phi i64 [ 0, %entry ], [ %turned, %again ]
  br label %loop
loop:
  %trip = phi i64 [ %from, %pass ], [ %following, %loop ]
  %start = mul i64 %trip, {STEP}
{body}
  %following = add i64 %trip, 1
  %more = icmp ult i64 %following, %to
  br i1 %more, label %loop, label %again
again:
  %turned = add i64 %turn, 1
  %another = icmp ult i64 %turned, %passes
  br i1 %another, label %pass, label %done
done:
{last}  ret void
}}
{declared}!0 = !{{i32 1}}
"""


def streams(
    elements: int, threads: int, non_temporal: bool, reads: int = 2, passes: int = 1, chunks: int = CHUNKS
) -> Streams:
    """Compile the yardstick and lay out its memory: two or three float32 arrays of `elements`, a multiple of `STEP`.

    The arrays are in blocks as the runtime's outputs are (huge pages), written once so that no page is missing.
    """
    from tilework.runtime.context import Context, ContextOptions

    if elements % STEP:
        raise ValueError(f"{elements} is no multiple of {STEP}")
    context = Context(ContextOptions(threads=threads))
    x86 = context.jit.target.triple.startswith("x86_64")
    code = context.jit.load(
        context.jit.compile_object(text(non_temporal, "@llvm.x86.sse.sfence" if x86 else None, reads)), ["read_write"]
    )
    a, y = (context.blocks.array((elements,), np.dtype(np.float32)) for _ in range(2))
    b = context.blocks.array((elements if reads > 1 else 0,), np.dtype(np.float32))
    random = np.random.default_rng(0)
    for array in (a, b):
        array[:] = random.integers(-99, 99, array.size)
    y[:] = 0
    words = [array.ctypes.data for array in (a, b, y)]
    block = (ctypes.c_int64 * 5)(*words, elements // STEP, passes)
    return Streams(context, code, code["read_write"], block, a, b, y, chunks)


def engine(elements: int, threads: int, non_temporal: bool) -> Prepared:
    """The yardstick as an engine; its result is checked once."""
    made = streams(elements, threads, non_temporal)
    made.run()
    if not np.array_equal(made.y, made.a + made.b):
        raise RuntimeError("the yardstick computes something else")
    return Prepared(made.run, {"threads": threads, "bytes": 12 * elements}, close=made.context.close)


def copying(elements: int, threads: int, non_temporal: bool, passes: int, chunks: int) -> Prepared:
    """The yardstick that reads one array, as an engine; its facts tell the bytes of a call."""
    made = streams(elements, threads, non_temporal, 1, passes, chunks)
    made.run()
    if not np.array_equal(made.y, made.a):
        raise RuntimeError("the yardstick copies something else")
    return Prepared(made.run, {"threads": threads, "bytes": 8 * elements * passes}, close=made.context.close)


def copies(moved: int, threads: int, passes: int = 1, chunks: int = CHUNKS) -> list[Engine]:
    """Return a copy that reads and writes so many bytes together, with plain and with non-temporal stores."""
    elements = max(1, round(moved / 8 / STEP)) * STEP
    given = {"elements": elements, "threads": threads, "passes": passes, "chunks": chunks}
    return [
        Engine(name, f"{__name__}:copying", {**given, "non_temporal": hinted})
        for name, hinted in ((PLAIN_COPY, False), (NON_TEMPORAL_COPY, True))
    ]


def engines(elements: int, threads: int) -> list[Engine]:
    """Return the yardstick with plain and with non-temporal stores, each in a process of its own."""
    return [
        Engine(name, f"{__name__}:engine", {"elements": elements, "threads": threads, "non_temporal": hinted})
        for name, hinted in ((PLAIN, False), (NON_TEMPORAL, True))
    ]
