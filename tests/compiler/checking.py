"""Compiles a graph, runs it on data for several sizes, and compares every output with the graph's interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from tests.compiler.drawing import SYMBOL_VALUES, inputs_for
from tests.compiler.error_bounds import with_bounds
from tilework.compiler.compile import compile_graph
from tilework.compiler.options import CompileOptions
from tilework.errors import CallError, RunError
from tilework.graph.graph import Array, Graph
from tilework.graph.text import to_text
from tilework.numerics import Level
from tilework.ops.interpret import interpret
from tilework.ops.verify import verify as verify_graph
from tilework.plan.interpret import interpret_plan
from tilework.plan.verify import verify as verify_plan
from tilework.runtime.executable import Executable

INTERPRETED = 4000
"""Most elements of a plan's buffers that its interpreter, which is slow, is given."""


def compare(found: Array, wanted: Array, error: Array | None, what: str, *, signs: bool = False) -> None:
    """Bit for bit (NaN is NaN) where no error is allowed; within it elsewhere."""
    assert found.dtype == wanted.dtype, what
    assert found.shape == wanted.shape, what
    if found.dtype.kind in "biu" or found.dtype.name in ("int4", "uint4"):
        np.testing.assert_array_equal(found.astype(object), wanted.astype(object), err_msg=what)
        return
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    if error is None:
        np.testing.assert_array_equal(a, b, err_msg=what)
    else:
        odd = ~np.isfinite(b)
        np.testing.assert_array_equal(a[odd], b[odd], err_msg=what)
        off, allowed = np.abs(a[~odd] - b[~odd]), error[~odd]
        worst = np.max(off / np.maximum(allowed, 1e-320), initial=0)
        assert np.all(off <= allowed), f"{what}: {worst:.3g} times the error allowed"
    if signs:
        zero = b == 0
        np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]), err_msg=f"signs of zeros of {what}")


def run_both(
    graph: Graph, executable: Executable, symbols: Mapping[str, int], *, seed: int, special: bool, level: Level
) -> dict[str, Array]:
    """One call against the interpreter; returns the inputs."""
    inputs = inputs_for(graph, dict(symbols), seed, special=special)
    before = {name: array.copy() for name, array in inputs.items()}
    with np.errstate(all="ignore"):
        wanted = with_bounds(graph, inputs, symbols)
    found = executable(**inputs)
    for name, array in inputs.items():
        assert array.tobytes() == before[name].tobytes(), f"input {name} was changed"
    assert len(found) == len(graph.outputs)
    for position, (have, (want, error)) in enumerate(zip(found, wanted, strict=True)):
        what = f"output {position} ({graph.outputs[position]}) at {dict(symbols)}"
        compare(have, want, error, what, signs=level == "strict" and error is None)
    return inputs


def check_graph(
    graph: Graph,
    *,
    level: Level = "default",
    checked: bool = False,
    special: bool = False,
    seed: int = 0,
    sizes: Sequence[Mapping[str, int]] = SYMBOL_VALUES,
) -> Executable:
    """Compile once, then compare at each of `sizes`; the plan must verify, and mean the same to its interpreter."""
    verify_graph(graph)
    executable = compile_graph(graph, CompileOptions(level, checked=checked))
    plan = executable.plan
    verify_plan(plan)
    names = {name for value in graph.inputs for extent in value.tensor.shape for name in extent.names()}
    assert names >= {symbol.name for symbol in plan.symbols}
    tried: set[tuple[tuple[str, int], ...]] = set()
    for values in sizes:
        symbols = {name: values[name] for name in sorted(names)}
        if tuple(symbols.items()) in tried:
            continue
        tried.add(tuple(symbols.items()))
        if needs_more(graph, executable, symbols):
            continue
        inputs = run_both(graph, executable, symbols, seed=seed, special=special, level=level)
        if len(tried) == 1:
            check_steps(executable, inputs)
        work = sum(int(buffer.elements.evaluate(symbols)) for buffer in plan.buffers)
        if len(tried) == 1 and work <= INTERPRETED and level == "strict":
            check_plan(graph, executable, inputs, symbols)
    return executable


def needs_more(graph: Graph, executable: Executable, symbols: Mapping[str, int]) -> bool:
    """Whether an operator cannot run at these sizes; where the plan has that operator, the executable says so too."""
    inputs = {
        v.name: np.zeros([int(d.evaluate(symbols)) for d in v.tensor.shape], v.tensor.dtype.numpy) for v in graph.inputs
    }
    if not all(guard.holds(symbols) for guard in executable.plan.guards):
        with pytest.raises(CallError):
            executable(**inputs)
        return True
    try:
        interpret(graph, inputs)
    except RunError as error:
        return error.code == 1242  # of an operator whose result nobody wants
    return False


def check_steps(executable: Executable, inputs: Mapping[str, Array]) -> None:
    """Step by step, and called once more, it gives the same to the bit."""
    first, (stepped, times) = executable(**inputs), executable.step_times(**inputs)
    assert [time.name for time in times] == [step.name for _, step in executable.plan.walk()]
    for a, b, c in zip(first, stepped, executable(**inputs), strict=True):
        assert a.tobytes() == b.tobytes() == c.tobytes()


def check_plan(graph: Graph, executable: Executable, inputs: Mapping[str, Array], symbols: Mapping[str, int]) -> None:
    """The plan's interpreter, which follows the plan's bytes and loop programs, against the graph's."""
    constants = executable._constants  # pyright: ignore[reportPrivateUsage]
    given = [inputs[value.name] for value in graph.inputs]
    with np.errstate(all="ignore"):
        found = interpret_plan(executable.plan, given, constants)
        wanted = with_bounds(graph, inputs, symbols)
    for have, (want, error), name in zip(found, wanted, graph.outputs, strict=True):
        compare(have, want, error, f"{name} by the plan's interpreter")


def described(graph: Graph) -> str:
    """The graph as text, for a failure's message."""
    return to_text(graph, 64)
