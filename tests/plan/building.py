"""Small plans for tests: kernels of one statement, and a chain of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilework.dims import Dim, IntLike, Symbol, dim
from tilework.dtypes import DType, boolean, float32
from tilework.graph.types import tensor
from tilework.loops.expressions import Expression, Index, Load
from tilework.loops.program import Access, Argument, Buffer, Compute, Loop, LoopProgram, buffer
from tilework.plan.buffers import Arena, ArenaPlace, ConstantPlace, InputPlace, OutputPlace, Place, PlanBuffer, Queue
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


def draft(steps: tuple[Step, ...], *names: str, outputs: tuple[str, ...] = ("y",)) -> Plan:
    return plan_of(steps, tuple(at(name, slot(0)) for name in names), outputs=outputs)


def names_of(step: Step) -> tuple[str, ...]:
    return step.arguments if isinstance(step, KernelStep) else ()


def random_plan(generator: np.random.Generator, count: int = 14, queues: int = 3) -> Plan:
    """Steps that each read one to three earlier values, on random queues, with the waits that the reads need."""
    names = [f"v{k}" for k in range(count)]
    producer: dict[str, int] = {}
    queue_of: dict[int, str] = {}
    steps: list[Step] = []
    for k, name in enumerate((*names, "y")):
        known = ["x", *names[:k]]
        number = int(generator.integers(1, 4))
        inputs = list(dict.fromkeys(known[-1 - int(d)] for d in generator.integers(0, min(len(known), 6), number)))
        if name == "y":
            inputs = list(
                dict.fromkeys([*inputs, *(n for n in names if not any(n in names_of(s)[:-1] for s in steps))])
            )
        queue = f"q{int(generator.integers(0, queues))}"
        waits = tuple(sorted({producer[n] for n in inputs if n in producer and queue_of[producer[n]] != queue}))
        length = "n" if generator.random() < 0.7 else dim("n")
        made = step(f"s{k}", inputs, name, scale=int(generator.integers(1, 4)), length=length, queue=queue)
        steps.append(replace(made, waits=waits, signals=(k,)))
        producer[name], queue_of[k] = k, queue
    plan = draft(tuple(steps), *names)
    return plan.replace(queues=tuple(Queue(f"q{k}", "cpu") for k in range(queues)))


def numbers(output: str, length: IntLike) -> KernelStep:
    """A step output[i] = i."""
    target = buffer("y", float32, length)
    body = Loop("i", dim(length), "serial", Compute("s", (Access("y", (dim("i"),)),), (Index(dim("i"), float32),)))
    symbols = tuple(Symbol(found) for found in sorted(dim(length).names()))
    kernel = KernelSignature("numbers", (KernelBuffer("y", target.shape, float32, "write", 4),), symbols)
    meaning = LoopProgram("numbers", (Argument(target, "write"),), body, symbols)
    return KernelStep("numbers", kernel, (output,), tuple(dim(s.name) for s in symbols), meaning)
