# ruff: noqa: ARG001 - every body is given all operands
"""One schedule of the matrix product with other bodies: max-plus, squared differences, a third factor, an epilogue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.gemm import percent, rate, seconds, share_of_peak
from benchmarks.harness.engine import Engine, Prepared
from benchmarks.harness.findings import Findings
from benchmarks.harness.onnx_engines import TILEWORK
from benchmarks.harness.paired import QUICK_ROUNDS, ROUNDS
from benchmarks.harness.peak import BODIES, peak
from benchmarks.harness.result import Bar, Options, Result, check_figure, ratio_figure
from benchmarks.harness.scheduled import scheduled
from benchmarks.operations.engines import WrongValuesError
from benchmarks.operations.operation import UNIT, worst
from tilework import dtypes
from tilework.compute import builder as compute

if TYPE_CHECKING:
    from tilework.compute.builder import Tensor
    from tilework.machine.cpu import CpuMachine
    from tilework.schedule.schedule import Schedule

Array = np.ndarray[Any, Any]
SIZE = 512
SHARE = 0.80
HERE = "benchmarks.changed_computation"


@dataclass(frozen=True)
class Changed:
    """What each point of (i, j) reduces over k, the probe of its instructions, and its value in float64.

    `exact(a, b, c)` returns the result and the sum of the magnitudes that were added, for the bound
    `(SIZE + 8) * 2^-24` of it.
    """

    body: str
    define: Callable[[Tensor, Tensor, Tensor, int], Tensor]
    exact: Callable[[Array, Array, Array], tuple[Array, Array]]
    epilogue: bool = False


def _product(a: Tensor, b: Tensor, c: Tensor, size: int) -> Tensor:
    k = compute.reduce_axis(size, "k")
    return compute.compute("y", (size, size), lambda i, j: compute.sum(a[i, k] * b[k, j], k))


def _max_plus(a: Tensor, b: Tensor, c: Tensor, size: int) -> Tensor:
    k = compute.reduce_axis(size, "k")
    return compute.compute("y", (size, size), lambda i, j: compute.max(a[i, k] + b[k, j], k))


def _squared(a: Tensor, b: Tensor, c: Tensor, size: int) -> Tensor:
    k = compute.reduce_axis(size, "k")

    def element(i: Any, j: Any) -> compute.Reduction:
        difference = a[i, k] - b[k, j]
        return compute.sum(difference * difference, k)

    return compute.compute("y", (size, size), element)


def _three(a: Tensor, b: Tensor, c: Tensor, size: int) -> Tensor:
    k = compute.reduce_axis(size, "k")
    return compute.compute("y", (size, size), lambda i, j: compute.sum(a[i, k] * b[k, j] * c[k], k))


def _epilogue(a: Tensor, b: Tensor, c: Tensor, size: int) -> Tensor:
    y = _product(a, b, c, size)
    # something that no library has: a bent line of the sum, shifted by the column
    return compute.compute(
        "z",
        (size, size),
        lambda row, column: compute.select(
            compute.greater(y[row, column], 0.0), y[row, column] * 1.5 + c[column], y[row, column] * 0.25 - c[column]
        ),
    )


def _dense(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    return a @ b, np.abs(a) @ np.abs(b)


def _exact_max_plus(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    result = np.stack([(row[:, None] + b).max(0) for row in a])
    return result, np.abs(result)


def _exact_squared(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    result = np.stack([((row[:, None] - b) ** 2).sum(0) for row in a])
    return result, result


def _exact_three(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    return _dense(a * c, b, c)


def _exact_epilogue(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    y, size = _dense(a, b, c)
    return np.where(y > 0, y * 1.5 + c, y * 0.25 - c), 1.5 * size + np.abs(c)


CHANGED: dict[str, Changed] = {
    "product": Changed("multiply-add", _product, _dense),
    "max-plus": Changed("max-plus", _max_plus, _exact_max_plus),
    "squared differences": Changed("squared differences", _squared, _exact_squared),
    "three factors": Changed("three factors", _three, _exact_three),
    "user epilogue": Changed("multiply-add", _epilogue, _exact_epilogue, epilogue=True),
}


def computation(name: str, size: int) -> compute.Computation:
    """The computation over a (size x size), b (size x size) and c (size)."""
    a, b = (compute.placeholder(each, dtypes.float32, size, size) for each in "ab")
    c = compute.placeholder("c", dtypes.float32, size)
    result = CHANGED[name].define(a, b, c, size)
    used = [tensor for tensor in (a, b, c) if any(source.name == tensor.name for source in result.sources)]
    return compute.computation("changed", used, [result])


def tile(machine: CpuMachine) -> tuple[int, int]:
    """Rows and columns of a tile: its sums, the operands' vectors and some that a body computes fit into registers."""
    lanes = machine.lanes(32)
    return (8, 2 * lanes) if machine.vector_registers >= 32 else (5, 2 * lanes)


def product_schedule(schedule: Schedule, rows: int, columns: int, lanes: int) -> Schedule:
    """The schedule of the matrix product: tiles of sums in registers, over panels of b that are copied so that their
    rows lie one after another; threads share the panels.
    """
    return (
        schedule.split("i", rows, "i.tile", "i.row")
        .split("j", columns, "j.tile", "j.column")
        .split("j.column", lanes, "j.vector", "j.lane")
        .reorder("j.tile", "i.tile", "k", "i.row", "j.vector", "j.lane")
        .cache_read("b", "j.tile", "panel")
        .split("panel.1", lanes, "panel.vector", "panel.lane")
        .unroll("panel.vector")
        .vectorize("panel.lane")
        .unroll("i.row")
        .unroll("j.vector")
        .vectorize("j.lane")
        .cache_write("y", "i.tile", "sums")
        .parallel("j.tile")
    )


def made(name: str, size: int, machine: CpuMachine) -> Schedule:
    """The computation scheduled by the trace of the plain product, replayed; an epilogue gets lanes of its own."""
    from tilework.compute.nest import loop_program
    from tilework.schedule.schedule import Schedule
    from tilework.schedule.trace import trace_from_json, trace_to_json

    rows, columns = tile(machine)
    lanes = machine.lanes(32)
    plain = product_schedule(Schedule(loop_program(computation("product", size)), machine), rows, columns, lanes)
    trace = trace_from_json(trace_to_json(plain.trace))
    schedule = Schedule(loop_program(computation(name, size)), machine).replay(trace)
    if CHANGED[name].epilogue:
        schedule = schedule.split("column", lanes, "column.vector", "column.lane").vectorize("column.lane")
        schedule = schedule.parallel("row")
    return schedule


def engine(name: str, size: int, threads: int, seed: int) -> Prepared:
    """One changed product, checked against float64."""
    from tilework.machine.finder import machine

    schedule = made(name, size, machine("host"))
    random = np.random.default_rng(seed)
    arrays = {each: random.standard_normal((size, size), np.float32) for each in "ab"}
    arrays["c"] = random.standard_normal(size, np.float32)
    kernel = scheduled(schedule.program, arrays, threads=threads)
    kernel.run()
    result = kernel.arrays["z" if CHANGED[name].epilogue else "y"]
    exact, magnitude = CHANGED[name].exact(*(array.astype(np.float64) for array in arrays.values()))
    share = worst(np.abs(result - exact), (size + 8) * UNIT * magnitude)
    if not share <= 1:
        raise WrongValuesError(f"{name} is off by {share:.3g} times what it may be")
    facts = {"of bound": share, "threads": threads, "trace": "; ".join(map(str, schedule.trace))}
    return Prepared(kernel.run, facts, close=kernel.context.close)


def run(options: Options) -> Result:
    """Every body under the one trace, beside a probe of its instructions."""
    threads = options.threads or 1
    found = Findings(options, ["computation", "us", "Gop/s", "of its instructions", "bar"])
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    chosen = options.share(list(CHANGED), lambda _: seconds(2 * SIZE**3, threads, 2, rounds))
    for name in chosen:
        body = CHANGED[name].body
        ours = Engine(
            TILEWORK, f"{HERE}:engine", {"name": name, "size": SIZE, "threads": threads, "seed": options.seed}
        )
        taken = found.measure(name, [ours, peak(threads, body)])
        if taken is None:
            continue
        operations = BODIES[body].operations * SIZE**3
        share = share_of_peak(taken, operations)
        if name != "product":
            found.figures.append(ratio_figure(name, share, Bar(">=", SHARE)))
        time = taken.median(TILEWORK)
        bar = "" if name == "product" else f"{SHARE:.0%}"
        found.rows.append([name, f"{time * 1e6:,.1f}", rate(operations, time), percent(share), bar])
    found.notes.append(f"rows: {chosen}; {SIZE}^3; the trace is the product's, through JSON")
    traces = {
        str(each["engines"][TILEWORK]["trace"])
        for key, each in found.facts.items()
        if key != "user epilogue" and "engines" in each
    }
    return found.result(check_figure("one trace", len(traces) <= 1))
