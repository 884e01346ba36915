"""Which buffers a stage reads."""

from __future__ import annotations

from tilework.compute.notation import Stage
from tilework.dims import Dim
from tilework.loops.expressions import Index, Load, walk


def reads_of(stage: Stage) -> set[str]:
    """Names of the buffers whose elements a stage reads (its own target's old contents under a reducer excluded)."""
    found: set[str] = set()
    dims: list[Dim] = [*stage.where, *stage.guards, *(axis.extent for axis in stage.axes)]
    for value in stage.values:
        for node in walk(value):
            if isinstance(node, Load):
                found.add(node.buffer)
                dims.extend(node.index)
            elif isinstance(node, Index):
                dims.append(node.value)
    return found | {loaded.buffer for one in dims for loaded in one.loads()}
