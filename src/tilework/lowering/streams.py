"""Which buffers are worth writing past the caches, where they turn out to be larger than those."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tilework.loops.program import Compute, Loop, LoopProgram, Node, path, walk
from tilework.lowering.aliases import read_buffers
from tilework.lowering.parallel import work
from tilework.lowering.whole_tiles import HEAVY

MEMORY_BOUND = 8 * HEAVY
"""Units of work of a statement up to which writing its results takes longer than computing them."""


def streamed(program: LoopProgram, last_level_bytes: int, values: Mapping[str, int] | None = None) -> frozenset[str]:
    """Arguments that one cheap vectorised statement writes whole and nothing reads, and that may exceed the last cache.

    With `values` of the symbols: those that exceed it there. For `emit_kernel(..., streaming=...)`: each nest that
    writes one is generated twice, so this costs compile time where the size is a symbol's.
    """
    bounds = {symbol.name: symbol.bounds for symbol in program.symbols}
    read = read_buffers(program)
    found: set[str] = set()
    for argument in program.arguments:
        name = argument.buffer.name
        if argument.access != "write" or name in read:
            continue
        size = argument.buffer.bytes
        high = size.bounds(bounds)[1] if values is None else int(size.evaluate(values))
        if not math.isinf(high) and high < last_level_bytes:
            continue
        writers = [n for n in walk(program.body) if isinstance(n, Compute) and any(t.buffer == name for t in n.targets)]
        if len(writers) == 1 and _cheap(program.body, writers[0]):
            found.add(name)
    return frozenset(found)


def _cheap(root: Node, statement: Compute) -> bool:
    units = work(statement).value
    vectorised = any(isinstance(n, Loop) and n.kind == "vectorized" for n in path(root, statement))
    return vectorised and statement.reducer is None and units is not None and units < MEMORY_BOUND
