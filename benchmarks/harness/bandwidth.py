"""The yardstick of memory-bound kernels: reading two arrays and writing a third, in generated code of our own.

What is added is trivial (y = a + b), so the time is that of the memory. Stores are plain ones, which first read the
line they write, or non-temporal ones, which go past the caches.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness.engine import Engine, Prepared

PLAIN, NON_TEMPORAL = "plain stores", "non-temporal stores"

LANES = 16
UNROLL = 1
STEP = LANES * UNROLL
"""Elements of one trip of the loop."""

CHUNKS = 256
"""Pieces that the threads of the pool share out among themselves."""


@dataclass(frozen=True)
class Streams:
    """Code and memory of the yardstick: `run()` makes y = a + b once."""

    context: Any
    code: Any
    function: int
    block: Any
    a: np.ndarray[Any, Any]
    b: np.ndarray[Any, Any]
    y: np.ndarray[Any, Any]

    def run(self) -> None:
        """One pass over the memory."""
        self.context.pool.run(self.function, ctypes.addressof(self.block), CHUNKS)


def text(non_temporal: bool, fence: str | None) -> str:
    """Return the LLVM text of `read_write(context, chunk, chunks)`.

    The context holds four 64-bit words: the addresses of a, b and y (multiples of 64) and the number of trips. `fence`
    is the instruction that ends non-temporal stores.
    """
    vector = f"<{LANES} x float>"
    hint = ", !nontemporal !0" if non_temporal else ""
    lines: list[str] = []
    for place in range(UNROLL):
        lines += [
            f"  %at{place} = add nuw nsw i64 %start, {place * LANES}",
            *(f"  %{name}p{place} = getelementptr float, ptr %{name}, i64 %at{place}" for name in "aby"),
            *(f"  %{name}v{place} = load {vector}, ptr %{name}p{place}, align 64" for name in "ab"),
        ]
    for place in range(UNROLL):
        lines += [
            f"  %s{place} = fadd {vector} %av{place}, %bv{place}",
            f"  store {vector} %s{place}, ptr %yp{place}, align 64{hint}",
        ]
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
  %this = zext i32 %chunk to i64
  %next = add i64 %this, 1
  %all = zext i32 %chunks to i64
  %before = mul i64 %trips, %this
  %from = udiv i64 %before, %all
  %after = mul i64 %trips, %next
  %to = udiv i64 %after, %all
  %any = icmp ult i64 %from, %to
  br i1 %any, label %loop, label %done
loop:
  %trip = phi i64 [ %from, %entry ], [ %following, %loop ]
  %start = mul i64 %trip, {STEP}
{body}
  %following = add i64 %trip, 1
  %more = icmp ult i64 %following, %to
  br i1 %more, label %loop, label %done
done:
{last}  ret void
}}
{declared}!0 = !{{i32 1}}
"""


def streams(elements: int, threads: int, non_temporal: bool) -> Streams:
    """Compile the yardstick and lay out its memory: three float32 arrays of `elements`, a multiple of `STEP`.

    The arrays are in blocks as the runtime's outputs are (huge pages), written once so that no page is missing.
    """
    from tilework.runtime.context import Context, ContextOptions

    if elements % STEP:
        raise ValueError(f"{elements} is no multiple of {STEP}")
    context = Context(ContextOptions(threads=threads))
    x86 = context.jit.target.triple.startswith("x86_64")
    code = context.jit.load(
        context.jit.compile_object(text(non_temporal, "@llvm.x86.sse.sfence" if x86 else None)), ["read_write"]
    )
    a, b, y = (context.blocks.array((elements,), np.dtype(np.float32)) for _ in range(3))
    random = np.random.default_rng(0)
    for array in (a, b):
        array[:] = random.integers(-99, 99, elements)
    y[:] = 0
    words = [array.ctypes.data for array in (a, b, y)]
    block = (ctypes.c_int64 * 4)(*words, elements // STEP)
    return Streams(context, code, code["read_write"], block, a, b, y)


def engine(elements: int, threads: int, non_temporal: bool) -> Prepared:
    """The yardstick as an engine; its result is checked once."""
    made = streams(elements, threads, non_temporal)
    made.run()
    if not np.array_equal(made.y, made.a + made.b):
        raise RuntimeError("the yardstick computes something else")
    return Prepared(made.run, {"threads": threads, "bytes": 12 * elements}, close=made.context.close)


def engines(elements: int, threads: int) -> list[Engine]:
    """Return the yardstick with plain and with non-temporal stores, each in a process of its own."""
    return [
        Engine(name, f"{__name__}:engine", {"elements": elements, "threads": threads, "non_temporal": hinted})
        for name, hinted in ((PLAIN, False), (NON_TEMPORAL, True))
    ]
