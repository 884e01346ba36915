"""Whether lanes that a mask leaves out of a cell may hold anything.

Sums of a partial vector of columns are kept in whole vectors. Where whoever reads them leaves out the same lanes,
nobody sees what is in those, so nothing has to be kept there: a multiply-add needs no selection after it.

    s: cells[row, lanes] += x[row, k] * w[k, lanes]    where 9 - lanes >= 0
    t: y[row', lanes'] = cells[row', lanes']           where 9 - lanes' >= 0
"""

from __future__ import annotations

from tilework.dims import Dim, dim
from tilework.loops.expressions import loads
from tilework.loops.program import Compute, Loop, Storage, walk


def spare_lanes(storage: Storage) -> bool:
    """Whether every statement that reads the buffer does so under the guards of every statement that writes it.

    Guards are compared as what they say of the buffer's own indices, which have to be different loops' variables. One
    that says something of another loop inside the storage is met in one iteration and not in the next.
    """
    name = storage.buffer.name
    inside = {node.variable for node in walk(storage.body) if isinstance(node, Loop)}
    written: set[Dim] = set()
    reads: list[frozenset[Dim]] = []
    for node in walk(storage.body):
        if not isinstance(node, Compute):
            continue
        places = [load.index for value in node.values for load in loads(value) if load.buffer == name]
        targets = [target.index for target in node.targets if target.buffer == name]
        for index in (*places, *targets):
            found = _said_of(index, node.guards, inside)
            if found is None:
                return False
            if index in targets:
                written |= found
            if index in places:
                reads.append(found)
    return all(written <= guards for guards in reads)


def _said_of(index: tuple[Dim, ...], guards: tuple[Dim, ...], inside: set[str]) -> frozenset[Dim] | None:
    """The guards with the dimensions of the buffer in place of the variables that index it; None where they are no
    different variables.
    """
    dimensions: dict[str, Dim] = {}
    for position, value in enumerate(index):
        (variable, *more) = value.names() or {""}
        if more or not variable or value != dim(variable) or variable in dimensions:
            return None
        dimensions[variable] = dim(f"#{position}")
    found: set[Dim] = set()
    for guard in guards:
        if guard.loads() or guard.names() & inside - dimensions.keys():
            return None
        found.add(guard.substitute(dimensions))
    return frozenset(found)
