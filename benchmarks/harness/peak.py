"""The yardstick of arithmetic: what the machine's own instructions reach, in generated code of our own.

A probe repeats the vector instructions of one inner body on enough independent accumulators that none waits for the one
before, and does nothing else: a multiply-add, a dot product of 16- or 8-bit numbers, or the body of a changed
computation. A body that could be computed once for all trips gets its operands from memory on every trip, as a tile of
rows and columns does; the loads are few beside the arithmetic.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.harness.engine import Engine, Prepared
from benchmarks.harness.result import MissingPeerError

PEAK = "peak"

CHUNKS = 64
"""Pieces that the threads of the pool share out among themselves."""
TRIPS = 4096
"""Trips of the loop of a piece: few enough that sums of small integers stay exact in float32."""
TILE_ROWS = 4
LINE = 64


@dataclass(frozen=True)
class Body:
    """What one accumulator does in one trip.

    `text(accumulator, a, b, result, vector)` is its LLVM text; `operations` counts those of one 32-bit lane.
    `in_registers`: the operands are loaded once, before the loop. `needs` are features of the processor.
    """

    text: Callable[[str, str, str, str, str], str]
    operations: int
    declared: str
    in_registers: bool = True
    element: str = "float"
    needs: tuple[str, ...] = ()
    bits: int | None = None
    """Width of the vectors, where the instruction has one only."""
    start: Callable[[Any, Any], Any] = field(default=lambda a, b: a * b)
    """What one trip adds to an accumulator, for the check (see `repeats`)."""
    repeats: bool = True
    """Whether every trip adds the same again; else the first trip's value stays."""


BODIES: dict[str, Body] = {
    "multiply-add": Body(
        lambda acc, a, b, to, v: f"  {to} = call {v} @llvm.fma.VT({v} {a}, {v} {b}, {v} {acc})\n",
        2,
        "declare V @llvm.fma.VT(V, V, V)\n",
    ),
    "bf16 dot product": Body(
        lambda acc, a, b, to, v: (
            f"  {to}.a = bitcast {v} {a} to <32 x bfloat>\n  {to}.b = bitcast {v} {b} to <32 x bfloat>\n"
            f"  {to} = call {v} @llvm.x86.avx512bf16.dpbf16ps.512({v} {acc}, <32 x bfloat> {to}.a,"
            f" <32 x bfloat> {to}.b)\n"
        ),
        4,
        "declare V @llvm.x86.avx512bf16.dpbf16ps.512(V, <32 x bfloat>, <32 x bfloat>)\n",
        needs=("avx512bf16",),
        bits=512,
    ),
    "u8s8 dot product": Body(
        lambda acc, a, b, to, v: f"  {to} = call {v} @llvm.x86.avx512.vpdpbusd.512({v} {acc}, {v} {a}, {v} {b})\n",
        8,
        "declare V @llvm.x86.avx512.vpdpbusd.512(V, V, V)\n",
        element="i32",
        needs=("avx512vnni",),
        bits=512,
    ),
    "s16 dot product": Body(
        lambda acc, a, b, to, v: (
            f"  {to}.a = bitcast {v} {a} to <16 x i16>\n  {to}.b = bitcast {v} {b} to <16 x i16>\n"
            f"  {to}.t = call {v} @llvm.x86.avx2.pmadd.wd(<16 x i16> {to}.a, <16 x i16> {to}.b)\n"
            f"  {to} = add {v} {acc}, {to}.t\n"
        ),
        4,
        "declare V @llvm.x86.avx2.pmadd.wd(<16 x i16>, <16 x i16>)\n",
        in_registers=False,
        element="i32",
        needs=("avx2",),
        bits=256,
    ),
    "max-plus": Body(
        lambda acc, a, b, to, v: (
            f"  {to}.t = fadd {v} {a}, {b}\n  {to} = call nsz {v} @llvm.maximum.VT({v} {acc}, {v} {to}.t)\n"
        ),
        2,
        "declare V @llvm.maximum.VT(V, V)\n",
        in_registers=False,
        start=lambda a, b: a + b,
        repeats=False,
    ),
    "squared differences": Body(
        lambda acc, a, b, to, v: (
            f"  {to}.t = fsub {v} {a}, {b}\n  {to} = call {v} @llvm.fma.VT({v} {to}.t, {v} {to}.t, {v} {acc})\n"
        ),
        3,
        "declare V @llvm.fma.VT(V, V, V)\n",
        in_registers=False,
        start=lambda a, b: (a - b) ** 2,
    ),
    "three factors": Body(
        lambda acc, a, b, to, v: (
            f"  {to}.t = fmul {v} {a}, {b}\n  {to} = call {v} @llvm.fma.VT({v} {to}.t, {v} %third, {v} {acc})\n"
        ),
        3,
        "declare V @llvm.fma.VT(V, V, V)\n",
        in_registers=False,
        start=lambda a, b: a * b * 3,
    ),
}
"""Bodies by name; `max-plus` has the instructions of a maximum that keeps NaN, as every maximum here does."""


@dataclass(frozen=True)
class Probe:
    """Code and memory of a probe; `run()` makes one pass of `operations` operations."""

    context: Any
    code: Any
    block: Any
    operands: np.ndarray[Any, Any]
    sums: np.ndarray[Any, Any]
    operations: int

    def run(self) -> None:
        """One pass."""
        self.context.pool.run(self.code["probe"], ctypes.addressof(self.block), CHUNKS)


def columns(body: Body, bits: int) -> int:
    """Vectors beside each other: 4 x 6 accumulators where there are 32 registers, 4 x 3 where there are 16.

    A body that loads its operands keeps some of the registers for them.
    """
    if body.in_registers:
        return 6 if bits == 512 else 3
    return 4 if bits == 512 else 2


def text(body: Body, bits: int) -> str:
    """Return the LLVM text of `probe(context, chunk, chunks)`.

    The context holds the address of the operands (a line of scalars `a` and the third factor, then a line a vector) and
    of the sums (a line a vector, so many for each chunk).
    """
    lanes, wide = bits // 32, columns(body, bits)
    vector = f"<{lanes} x {body.element}>"
    element = {"float": "f32", "i32": "i32"}[body.element]
    rows, count = TILE_ROWS, TILE_ROWS * wide
    zero = "zeroinitializer"
    loads: list[str] = []
    hint = "" if body.in_registers else "volatile "
    for row in range(rows):
        loads += [
            f"  %ap{row} = getelementptr {body.element}, ptr %operands, i64 {row}\n",
            f"  %as{row} = load {hint}{body.element}, ptr %ap{row}, align 4\n",
            f"  %ai{row} = insertelement {vector} poison, {body.element} %as{row}, i64 0\n",
            f"  %a{row} = shufflevector {vector} %ai{row}, {vector} poison, <{lanes} x i32> zeroinitializer\n",
        ]
        if body.in_registers:
            break
    for column in range(1 if body.in_registers else wide):
        loads += [
            f"  %bp{column} = getelementptr i8, ptr %operands, i64 {LINE * (1 + column)}\n",
            f"  %b{column} = load {hint}{vector}, ptr %bp{column}, align {LINE}\n",
        ]
    third = [
        f"  %tp = getelementptr {body.element}, ptr %operands, i64 {rows}\n",
        f"  %ts = load {body.element}, ptr %tp, align 4\n",
        f"  %ti = insertelement {vector} poison, {body.element} %ts, i64 0\n",
        f"  %third = shufflevector {vector} %ti, {vector} poison, <{lanes} x i32> zeroinitializer\n",
    ]
    before, inside = ("".join(loads), "") if body.in_registers else ("".join(third), "".join(loads))
    phis = "".join(f"  %x{n} = phi {vector} [ {zero}, %entry ], [ %y{n}, %loop ]\n" for n in range(count))
    steps = "".join(
        body.text(
            f"%x{row * wide + column}",
            "%a0" if body.in_registers else f"%a{row}",
            "%b0" if body.in_registers else f"%b{column}",
            f"%y{row * wide + column}",
            vector,
        )
        for row in range(rows)
        for column in range(wide)
    )
    stores = "".join(
        f"  %sp{n} = getelementptr i8, ptr %own, i64 {LINE * n}\n  store {vector} %y{n}, ptr %sp{n}, align {LINE}\n"
        for n in range(count)
    )
    whole = f"""
define void @probe(ptr %context, i32 %chunk, i32 %chunks) "prefer-vector-width"="{bits}" {{
entry:
  %operands = load ptr, ptr %context
  %sums.at = getelementptr i64, ptr %context, i64 1
  %sums = load ptr, ptr %sums.at
  %this = zext i32 %chunk to i64
  %offset = mul i64 %this, {LINE * count}
  %own = getelementptr i8, ptr %sums, i64 %offset
{before}  br label %loop
loop:
  %trip = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}{inside}{steps}  %next = add i64 %trip, 1
  %more = icmp ult i64 %next, {TRIPS}
  br i1 %more, label %loop, label %done
done:
{stores}  ret void
}}
{body.declared}"""
    return (
        whole.replace("VT(", f"v{lanes}{element}(")
        .replace("V @", f"{vector} @")
        .replace("V,", f"{vector},")
        .replace("V)", f"{vector})")
    )


def probe(name: str, threads: int, machine: str = "host") -> Probe:
    """Compile a probe for a machine's vectors and check once that it computes what it says.

    Raises `MissingPeerError` where the processor has no such instruction.
    """
    from tilework.machine.finder import machine as machine_named
    from tilework.runtime.context import Context, ContextOptions

    body, target = BODIES[name], machine_named(machine)
    if not target.has(*body.needs):
        raise MissingPeerError(f"{name} instructions ({', '.join(body.needs)})", "use a processor that has them")
    bits = body.bits or target.vector_bits
    lanes, count = bits // 32, TILE_ROWS * columns(body, bits)
    context = Context(ContextOptions(threads=threads))
    source = text(body, bits)
    code = context.jit.load(context.jit.compile_object(source, target), ["probe"])
    kind = np.dtype(np.float32 if body.element == "float" else np.int32)
    operands = context.blocks.array(((1 + columns(body, bits)) * LINE // 4,), kind)
    sums = context.blocks.array((CHUNKS, count, LINE // 4), kind)
    sums[...] = 0
    _fill(name, operands)
    block = (ctypes.c_int64 * 2)(operands.ctypes.data, sums.ctypes.data)
    made = Probe(context, code, block, operands, sums, CHUNKS * TRIPS * count * lanes * body.operations)
    context.pool.ensure()
    made.run()
    if not np.array_equal(
        sums[:, :, :lanes], np.broadcast_to(expected(name, operands, lanes), sums[:, :, :lanes].shape)
    ):
        raise RuntimeError(f"the probe of {name} computes something else")
    return made


def _fill(name: str, operands: np.ndarray[Any, Any]) -> None:
    """Small numbers: ones for dot products, integers else; the third factor is 3."""
    if name == "bf16 dot product":
        operands.view(np.uint16)[...] = 0x3F80
    elif name == "u8s8 dot product":
        operands.view(np.uint8)[...] = 1
    elif name == "s16 dot product":
        operands.view(np.int16)[...] = 1
    else:
        operands[...] = np.arange(operands.size) % 7 + 1
        operands[TILE_ROWS] = 3


def expected(name: str, operands: np.ndarray[Any, Any], lanes: int) -> np.ndarray[Any, Any]:
    """What the accumulators hold at the end, a row each."""
    body = BODIES[name]
    wide = operands.size * 4 // LINE - 1
    lines = operands.reshape(-1, LINE // 4)
    if body.needs:
        return np.full((TILE_ROWS * wide, lanes), TRIPS * body.operations // 2, operands.dtype)
    rows, vectors = lines[0, :TILE_ROWS], lines[1:, :lanes]
    if body.in_registers:
        rows, vectors = np.repeat(rows[:1], TILE_ROWS), np.repeat(vectors[:1], wide, axis=0)
    once = body.start(rows[:, None, None], vectors[None, :, :])
    return (once * (TRIPS if body.repeats else 1)).reshape(-1, lanes)


def engine(name: str, threads: int, machine: str) -> Prepared:
    """A probe as an engine; its facts tell the operations of a pass."""
    made = probe(name, threads, machine)
    facts = {"threads": threads, "operations": made.operations, "instructions": name, "machine": machine}
    return Prepared(made.run, facts, close=made.context.close)


def peak(threads: int, name: str = "multiply-add", machine: str = "host") -> Engine:
    """The engine of a probe, in a process of its own."""
    return Engine(PEAK, f"{__name__}:engine", {"name": name, "threads": threads, "machine": machine})
