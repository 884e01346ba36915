"""How a parallel loop is cut into chunks, and what may not run in parallel.

The number of chunks depends on extents alone, never on threads, so that a result never depends on who computed it.
"""

from __future__ import annotations

from tilework.dims import Dim, dim, total
from tilework.errors import CodegenError
from tilework.loops.expressions import Call, Load
from tilework.loops.expressions import walk as walk_expression
from tilework.loops.functions import FUNCTIONS
from tilework.loops.program import Compute, Loop, Node, Storage, children, walk
from tilework.lowering.cells import unrolls
from tilework.lowering.indices import Indices
from tilework.lowering.registers import Value
from tilework.lowering.state import State

MAX_CHUNKS = 64
"""Chunks of a parallel loop at most."""
CHUNK_WORK = 65536
"""Units of work (about one vector instruction each, some ten microseconds together) that a chunk has at least:
waking a worker takes longer than that.
"""
_FUNCTION_WORK = 12
_MOVE_WORK = 16
"""A statement that only moves elements waits for the caches: what a copy reads and writes is seldom near."""


def work(node: Node) -> Dim:
    """Estimated vector instructions of one run of a node and what it waits for besides, as an expression over symbols
    and loops around it.
    """
    return _total(node, _MOVE_WORK)


def instructions(node: Node) -> Dim:
    """Estimated vector instructions of one run of a node, as an expression over symbols and loops around it."""
    return _total(node, 2)


def _total(node: Node, move: int) -> Dim:
    if isinstance(node, Compute):
        if all(isinstance(value, Load) for value in node.values):
            return dim(move)
        units = 1
        for value in node.values:
            for part in walk_expression(value):
                if isinstance(part, Call):
                    function = FUNCTIONS.get(part.function)
                    units += _FUNCTION_WORK if function is not None and function.transcendental else 1
                elif isinstance(part, Load):
                    units += 1
        return dim(units)
    found = total([_total(child, move) for child in children(node)])
    if isinstance(node, Loop) and node.kind != "vectorized":
        if node.variable in found.names():  # a triangular nest counts with its widest row
            found = found.substitute({node.variable: node.extent - 1})
        found = found * node.extent
    return found


def outlined(node: Node) -> bool:
    """Whether a node holds a parallel loop (of more than one iteration)."""
    return any(isinstance(n, Loop) and n.kind == "parallel" and not unrolls(n) for n in walk(node))


def check_independent(loop: Loop) -> None:
    """Refuse a parallel loop whose iterations write the same element: `CodegenError` 1607 names the statement."""
    if loop.extent.value is not None and loop.extent.value <= 1:
        return
    own = {n.buffer.name for n in walk(loop.body) if isinstance(n, Storage)}
    for node in walk(loop.body):
        if not isinstance(node, Compute):
            continue
        for access in node.targets:
            apart = any(loop.variable in i.names() and not i.loads() for i in access.index)
            if access.buffer not in own and not apart:
                raise CodegenError(
                    1607,
                    f"iterations of the parallel loop {loop.variable} may write the same element of {access.buffer}",
                    where=f"statement {node.name}",
                    hint="make the loop serial, or give each iteration elements of its own",
                )


def known_chunks(state: State, loop: Loop) -> int | None:
    """How many chunks the loop is cut into where its extent and work are numbers; None where they are not."""
    units, extent = work(loop.body).substitute(state.environment).value, loop.extent.substitute(state.environment).value
    if units is None or extent is None:
        return None
    least = max(1, CHUNK_WORK // max(1, units))
    return min(max(extent // least, 1), MAX_CHUNKS) if extent > 0 else 0


def chunk_count(state: State, indices: Indices, loop: Loop, extent: Value) -> Value:
    """How many chunks the loop is cut into, as an i32: none for an empty loop."""
    builder = state.builder
    chunks = known_chunks(state, loop)
    if chunks is not None:
        return builder.constant("i32", chunks)
    units = work(loop.body).substitute(state.environment)
    known = units.names() - set(state.symbols)
    if any(name not in state.function.variables for name in known) or units.loads():
        units = Dim((), CHUNK_WORK)
    if units.value is not None:
        least = builder.integer(max(1, CHUNK_WORK // max(1, units.value)))
    else:
        each = builder.op("smax", "i64", indices.value(units), builder.integer(1))
        least = builder.op("udiv", "i64", builder.integer(CHUNK_WORK), each)
        least = builder.op("smax", "i64", least, builder.integer(1))
    count = builder.op("sdiv", "i64", extent, least)
    count = builder.op("smin", "i64", builder.op("smax", "i64", count, builder.integer(1)), builder.integer(MAX_CHUNKS))
    some = builder.compare("sgt", extent, builder.integer(0))
    return builder.op("itrunc", "i32", builder.select(some, count, builder.integer(0)))


def chunk_bounds(state: State, extent: Value) -> tuple[Value, Value]:
    """First iteration of the current chunk and the one after its last: contiguous ranges of nearly equal length."""
    builder = state.builder
    function = state.function
    assert function.chunk is not None
    assert function.chunks is not None
    chunk = builder.op("sext", "i64", function.chunk)
    chunks = builder.op("sext", "i64", function.chunks)
    # extent = q chunks + r: the first r chunks have one more. No product of extents, so nothing overflows.
    quotient = builder.op("udiv", "i64", extent, chunks)
    rest = builder.op("urem", "i64", extent, chunks)
    start = builder.add(builder.mul(chunk, quotient), builder.op("smin", "i64", chunk, rest))
    longer = builder.op("zext", "i64", builder.compare("slt", chunk, rest))
    return start, builder.add(start, builder.add(quotient, longer))
