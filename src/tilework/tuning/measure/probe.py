"""The roofline of this machine, measured: loop programs that do nothing but multiply-adds, or nothing but loads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilework.cost.roofline import Roofline, assumed, scaled
from tilework.dims import Dim, dim
from tilework.dtypes import float32
from tilework.errors import RunError
from tilework.loops.expressions import Load
from tilework.loops.program import (
    Access,
    Argument,
    Buffer,
    Compute,
    Loop,
    LoopProgram,
    Node,
    Storage,
    buffer,
    sequence,
)  # fmt: skip
from tilework.loops.reducers import reducer
from tilework.machine.cpu import CpuMachine
from tilework.machine.finder import machine
from tilework.numerics import numerics
from tilework.schedule.schedule import Schedule
from tilework.tuning.measure.job import Settings
from tilework.tuning.measure.measurer import Measurer

_ACCUMULATORS = 12
_TRIPS = 20000
_MEMORY_BYTES = 256 << 20
"""Most bytes that the probe of memory reads."""


def probe(measurer: Measurer | None = None, *, threads: int = 1, seconds: float = 0.1) -> Roofline:
    """What one thread of this machine does, measured in some two seconds; several are taken for so many times that.

    The peak is that of 12 independent vector multiply-adds in float32; the rate of a level is that of reading an array
    of half its size (memory: four times the last cache, 256 MiB at most). Raises `RunError` 1761 where no worker
    starts, 1765 where a probe does not run.
    """
    if measurer is None:
        with Measurer() as own:
            return probe(own, threads=threads, seconds=seconds)
    host = machine("host")
    lanes = host.lanes(32)
    settings = Settings(threads=1, seconds=seconds)
    flops = 2 * _ACCUMULATORS * lanes * _TRIPS / _seconds(measurer, multiply_adds(lanes, _TRIPS), host, settings)
    rates: dict[str, float] = {}
    for source, size in probed_sizes(host).items():
        vectors = max(8, size // (4 * lanes) // 8 * 8)
        passes = max(1, (1 << 20) // (vectors * lanes * 4))
        spent = _seconds(measurer, reads(vectors, lanes, passes), host, settings)
        rates[source] = vectors * lanes * 4 * passes / spent
    found = replace(assumed(host), flops_per_second=flops, bytes_per_second=rates, origin="probed")
    return scaled(found, threads) if threads > 1 else found


def probed_sizes(target: CpuMachine) -> Mapping[str, int]:
    """Bytes that the probe of each level reads."""
    sizes = {f"L{cache.level}": cache.bytes // 2 for cache in target.caches}
    return {**sizes, "memory": min(4 * target.last_level_bytes, _MEMORY_BYTES)}


def _seconds(measurer: Measurer, program: LoopProgram, host: CpuMachine, settings: Settings) -> float:
    found = measurer.measure(Schedule(program, host, numerics("default")), settings=settings)
    if not found.ok:
        raise RunError(1765, f"the probe {program.name} did not run: {found}")
    return min(found.seconds)  # what nothing disturbed


def multiply_adds(lanes: int, trips: int) -> LoopProgram:
    """Twelve accumulators, each combined with one product in each trip; operands stay in registers."""
    a, b = buffer("a", float32, lanes), buffer("b", float32, lanes)
    c = buffer("c", float32, _ACCUMULATORS, lanes)
    value = Load("a", (dim("l"),), float32) * Load("b", (dim("l"),), float32)
    update = Compute("update", (Access("held", (dim("v"), dim("l"))),), (value,), reducer("sum", float32))
    body = Loop("k", dim(trips), "serial", _tile("v", "l", lanes, update, _ACCUMULATORS))
    return _around("multiply_adds", (a, b), c, body, lanes, _ACCUMULATORS)


def reads(vectors: int, lanes: int, passes: int) -> LoopProgram:
    """Sums of an array of so many vectors (a multiple of 8) into eight accumulators, several times over."""
    x = buffer("x", float32, vectors * lanes)
    c = buffer("c", float32, 8, lanes)
    place = (dim("i") * 8 + "v") * lanes + "l"
    update = Compute(
        "update", (Access("held", (dim("v"), dim("l"))),), (Load("x", (place,), float32),), reducer("sum", float32)
    )
    inner = Loop("i", dim(vectors // 8), "serial", _tile("v", "l", lanes, update, 8))
    return _around("reads", (x,), c, Loop("p", dim(passes), "serial", inner), lanes, 8)


def _tile(row: str, lane: str, lanes: int, node: Node, rows: int) -> Node:
    return Loop(row, dim(rows), "unrolled", Loop(lane, dim(lanes), "vectorized", node))


def _around(name: str, inputs: tuple[Buffer, ...], result: Buffer, body: Node, lanes: int, rows: int) -> LoopProgram:
    """The body between loading accumulators from the result and storing them there."""
    held = Buffer("held", result.shape, float32, "register")

    def at(suffix: str) -> tuple[Dim, Dim]:
        return dim(f"v.{suffix}"), dim(f"l.{suffix}")

    start = Compute("start", (Access("held", at("start")),), (Load("c", at("start"), float32),))
    end = Compute("end", (Access("c", at("end")),), (Load("held", at("end"), float32),))
    node = sequence(
        _tile("v.start", "l.start", lanes, start, rows), body, _tile("v.end", "l.end", lanes, end, rows)
    )  # fmt: skip
    arguments = (*(Argument(one, "read") for one in inputs), Argument(result, "accumulate"))
    return LoopProgram(name, arguments, Storage(held, node))
