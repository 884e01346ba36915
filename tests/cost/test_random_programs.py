"""Counting on the scheduled kernels of random graphs: equal to counting one by one, wherever data decide nothing."""

from __future__ import annotations

import pytest

from tests.compiler.drawing import Numbers, Unsuitable
from tests.compiler.random_graphs import random_graph
from tests.cost.brute_force import events
from tilework.compiler.kernels import region_kernels
from tilework.compiler.options import CompileOptions
from tilework.cost.accesses import accesses_in, bound
from tilework.cost.counts import access_counts, statement_counts
from tilework.decisions.fusion import regions
from tilework.errors import TileworkError, UsageError
from tilework.loops.program import LoopProgram
from tilework.machine.finder import machine

LARGEST = 4000
"""Runs of statements that plain counting is given."""


def programs(seed: int) -> list[LoopProgram]:
    """The kernels of one random graph, symbols near 5."""
    try:
        graph, _ = random_graph(Numbers(seed), 5, special=False)
        kernels = region_kernels(regions(graph), machine("x86-64-v4"), CompileOptions(), graph.constant_arrays)
    except (TileworkError, Unsuitable):
        return []
    found: list[LoopProgram] = []
    for kernel in kernels:
        program = kernel.schedule.program
        values = {
            s.name: -(-max(s.lower, min(5, s.upper if s.upper is not None else 5)) // s.multiple) * s.multiple
            for s in program.symbols
        }
        found.append(bound(program, values))
    return found


@pytest.mark.parametrize("first", [0, 20, 40])
def test_random_programs(first: int) -> None:
    compared = 0
    for program in (program for seed in range(first, first + 20) for program in programs(seed)):
        if sum(one.runs for one in statement_counts(program)) > LARGEST:
            continue
        times: dict[object, int] = {}
        elements: dict[object, set[int]] = {}
        try:
            for one in events(program):
                place = (one.statement, one.buffer, one.index, one.kind)
                times[place] = times.get(place, 0) + 1
                elements.setdefault(place, set()).add(one.element)
        except UsageError:  # an index or a guard that data decide
            continue
        for access, count in zip(accesses_in(program.body), access_counts(program), strict=True):
            place = (access.statement, access.buffer, access.index, access.kind)
            size = program.buffers[access.buffer].dtype.itemsize
            assert count.exact
            assert (count.runs, count.useful_bytes) == (times.get(place, 0), size * len(elements.get(place, ())))
            assert count.useful_bytes <= count.issued_bytes or count.scope in ("register", "fragment")
            compared += 1
    assert compared > 50
