"""Small plans for tests: kernels of one statement, and a chain of them."""

from __future__ import annotations

from tilework.dims import Dim, IntLike, Symbol, dim
from tilework.dtypes import DType, boolean, float32
from tilework.graph.types import tensor
from tilework.loops.expressions import Expression, Load
from tilework.loops.program import Access, Argument, Buffer, Compute, Loop, LoopProgram, buffer
from tilework.plan.buffers import Arena, ArenaPlace, ConstantPlace, InputPlace, OutputPlace, Place, PlanBuffer
from tilework.plan.plan import Plan, PlanInput, PlanOutput, Segment, input_bindings
from tilework.plan.signature import KernelBuffer, KernelSignature
from tilework.plan.steps import KernelStep, Step

N = Symbol("n", 0, 64)


def load(source: Buffer, *index: IntLike) -> Expression:
    return Load(source.name, tuple(dim(i) for i in index), source.dtype)


def combine(
    name: str, count: int, scale: int = 1, *, length: IntLike = "n", dtype: DType = float32, in_place: bool = True
) -> tuple[KernelSignature, LoopProgram]:
    """A kernel y[i] = scale * (x0[i] + x1[i] + ...) + 1 over `length` elements."""
    inputs = [buffer(f"x{k}", dtype, length) for k in range(count)]
    target = buffer("y", dtype, length)
    value: Expression = load(inputs[0], "i")
    for other in inputs[1:]:
        value = value + load(other, "i")
    value = value * scale + 1
    body = Loop("i", dim(length), "serial", Compute("s", (Access("y", (dim("i"),)),), (value,)))
    symbols = tuple(Symbol(found) for found in sorted(dim(length).names()))
    meaning = LoopProgram(name, (*(Argument(b, "read") for b in inputs), Argument(target, "write")), body, symbols)
    formals = (
        *(KernelBuffer(b.name, b.shape, dtype, "read", dtype.itemsize) for b in inputs),
        KernelBuffer("y", target.shape, dtype, "write", dtype.itemsize),
    )
    pairs = tuple((b.name, "y") for b in inputs) if in_place else ()
    return KernelSignature(name, formals, symbols, pairs), meaning


def step(
    name: str,
    inputs: list[str],
    output: str,
    *,
    scale: int = 1,
    length: IntLike = "n",
    queue: str = "main",
    waits: tuple[int, ...] = (),
    signals: tuple[int, ...] = (),
    in_place: bool = True,
) -> KernelStep:
    """A step of `combine`: output = scale * sum(inputs) + 1."""
    kernel, meaning = combine(f"k_{name}", len(inputs), scale, length=length, in_place=in_place)
    values = tuple(dim(symbol.name) for symbol in kernel.symbols)
    return KernelStep(name, kernel, (*inputs, output), values, meaning, queue, waits, signals, f"user {name}")


def at(name: str, place: Place, length: IntLike = "n", *, alias_set: str = "", dtype: DType = float32) -> PlanBuffer:
    alignment = dtype.itemsize if isinstance(place, InputPlace) else 64
    return PlanBuffer(name, (dim(length),), dtype, "host", place, alignment, alias_set)


def slot(offset: IntLike, arena: str = "scratch") -> ArenaPlace:
    return ArenaPlace(arena, dim(offset))


def aligned(length: IntLike) -> Dim:
    return (dim(length) * 4 + 63) // 64 * 64


def plan_of(
    steps: tuple[Step, ...],
    buffers: tuple[PlanBuffer, ...],
    *,
    outputs: tuple[str, ...] = ("y",),
    arena: IntLike | None = None,
    symbols: tuple[Symbol, ...] = (N,),
) -> Plan:
    """A plan with one input `x` of n elements, and fresh outputs of n elements."""
    inputs = (PlanInput("x", tensor(float32, "n")),)
    given = tuple(PlanOutput(f"out_{name}", tensor(float32, "n"), name) for name in outputs)
    places = tuple(at(name, OutputPlace(k)) for k, name in enumerate(outputs))
    return Plan(
        "small",
        inputs,
        given,
        (at("x", InputPlace(0)), *places, *buffers),
        (Segment("captured", steps),),
        symbols,
        input_bindings(inputs),
        (),
        (Arena("scratch", "host", dim(arena if arena is not None else 0)),),
    )


def chain() -> Plan:
    """x -> a -> b -> y, a and b in the arena one after another."""
    size = aligned("n")
    return plan_of(
        (step("one", ["x"], "a", scale=2), step("two", ["a"], "b", scale=3), step("three", ["b"], "y")),
        (at("a", slot(0)), at("b", slot(size))),
        arena=size * 2,
    )


def flag(name: str) -> PlanBuffer:
    """A constant boolean."""
    return PlanBuffer(name, (), boolean, "host", ConstantPlace("f00d" + name))
