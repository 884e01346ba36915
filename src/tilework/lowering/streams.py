"""Which buffers are worth writing past the caches, where they turn out to be larger than those."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tilework.dims import Bound, dim
from tilework.loops.program import Compute, Loop, LoopProgram, Node, path, walk
from tilework.lowering.aliases import read_buffers
from tilework.lowering.parallel import work
from tilework.lowering.whole_tiles import HEAVY

MEMORY_BOUND = 8 * HEAVY
"""Units of work of a statement up to which writing its results takes longer than computing them."""


def streamed(program: LoopProgram, last_level_bytes: int, values: Mapping[str, int] | None = None) -> frozenset[str]:
    """Arguments that one cheap vectorised statement writes whole and nothing reads, and that may exceed the last cache.

    Nests that compute for longer than they write are left out: there it gains nothing, and each would be made twice.
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
        if len(writers) == 1 and _cheap(program.body, writers[0], bounds):
            found.add(name)
    return frozenset(found)


def _cheap(root: Node, statement: Compute, bounds: Mapping[str, tuple[Bound, Bound]]) -> bool:
    """Whether writing takes longer than computing: the statement itself, and all of its nest for each of its vectors.

    A copy out of the accumulators of a long sum is cheap, its nest is not.
    """
    around = [n for n in path(root, statement) if isinstance(n, Loop)]
    vectorised = any(n.kind == "vectorized" for n in around)
    units = work(statement)
    if not vectorised or statement.reducer is not None or units.value is None or units.value >= MEMORY_BOUND:
        return False
    vectors = dim(1)
    for loop in reversed(around):
        if loop.kind != "vectorized":
            widest = loop.extent - 1 if loop.variable in vectors.names() else 0
            vectors = vectors.substitute({loop.variable: widest}) * loop.extent
    return (vectors * MEMORY_BOUND - work(around[0])).bounds(bounds)[0] >= 0
