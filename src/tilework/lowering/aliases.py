"""Which buffers of a program may be the same memory: each element is read before it is written, in one iteration."""

from __future__ import annotations

from tilework.dims import Dim
from tilework.loops.expressions import Index, Load, walk
from tilework.loops.program import Access, AsyncCopy, Compute, Loop, LoopProgram, Node, Prefetch, path
from tilework.loops.program import walk as walk_nodes


def may_alias(program: LoopProgram) -> tuple[tuple[str, str], ...]:
    """Pairs (read, written) of arguments that may share memory.

    One statement alone reads the first and writes the second, both at the same place of equal extents and element
    sizes, without a reducer, and no two iterations at the same place.
    """
    statements = [n for n in walk_nodes(program.body) if isinstance(n, Compute)]
    if any(isinstance(n, AsyncCopy) for n in walk_nodes(program.body)):
        return ()
    readers: dict[str, set[int]] = {}
    writers: dict[str, set[int]] = {}
    loads: dict[int, list[Load]] = {}
    inner: set[str] = set()
    for position, statement in enumerate(statements):
        loads[position] = [part for v in statement.values for part in walk(v) if isinstance(part, Load)]
        for load in loads[position]:
            readers.setdefault(load.buffer, set()).add(position)
        for target in statement.targets:
            writers.setdefault(target.buffer, set()).add(position)
    for node in walk_nodes(program.body):
        inner |= {element.buffer for d in _dims(node) if d.terms for element in d.loads()}
    arguments = {a.buffer.name: a for a in program.arguments}
    found: list[tuple[str, str]] = []
    for position, statement in enumerate(statements):
        if statement.reducer is not None or not all(t.buffer in arguments for t in statement.targets):
            continue
        for target in statement.targets:
            if writers[target.buffer] != {position} or target.buffer in readers or target.buffer in inner:
                continue
            written = arguments[target.buffer]
            if written.access != "write" or not _once(program.body, statement, target):
                continue
            for name in dict.fromkeys(load.buffer for load in loads[position]):
                read = arguments.get(name)
                if read is None or name in writers or name in inner or readers[name] != {position}:
                    continue
                alike = read.buffer.shape == written.buffer.shape
                if not alike or read.buffer.dtype.itemsize != written.buffer.dtype.itemsize:
                    continue
                if all(load.index == target.index for load in loads[position] if load.buffer == name):
                    found.append((name, target.buffer))
    return tuple(found)


def read_buffers(program: LoopProgram) -> set[str]:
    """Every buffer that something reads, loaded indices and the old values of reductions included."""
    found: set[str] = set()
    for node in walk_nodes(program.body):
        found |= {element.buffer for d in _dims(node) if d.terms for element in d.loads()}
        if isinstance(node, AsyncCopy):
            found.add(node.source.buffer)
        elif isinstance(node, Compute):
            found |= {part.buffer for v in node.values for part in walk(v) if isinstance(part, Load)}
            if node.reducer is not None:
                found |= {target.buffer for target in node.targets}
    return found


def _dims(node: Node) -> list[Dim]:
    if isinstance(node, Loop):
        return [node.extent]
    if isinstance(node, Prefetch):
        return [*node.guards, *node.target.index]
    if not isinstance(node, Compute):
        return []
    found = [*node.guards, *(i for t in node.targets for i in t.index)]
    for value in node.values:
        for part in walk(value):
            if isinstance(part, Load):
                found += part.index
            elif isinstance(part, Index):
                found.append(part.value)
    return found


def _once(root: Node, statement: Compute, target: Access) -> bool:
    """Whether different iterations write different elements: loops are digits of the indices, each in one dimension."""
    extents = {n.variable: n.extent for n in path(root, statement) if isinstance(n, Loop) and n.extent != 1}
    seen: set[str] = set()
    for i in target.index:
        inside = i.names() & extents.keys()
        if inside & seen or not i.affine_in(inside):
            return False
        seen |= inside
        reach: int | None = 1
        for step, extent in sorted(((abs(i.coefficient(n)), extents[n]) for n in inside), key=lambda pair: pair[0]):
            if reach is None or step < reach:
                return False
            reach = step * extent.constant if extent.value is not None else None
    return seen == extents.keys()
