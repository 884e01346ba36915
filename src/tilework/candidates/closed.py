"""A region over symbols of its own: what its kernel is made for, and what the plan computes for each call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import MappingProxyType

from tilework.candidates.own_symbols import own_symbols
from tilework.candidates.region import Region, Within
from tilework.dims import Dim
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Attribute, Value
from tilework.graph.types import TensorType
from tilework.memory.placement import typical


@dataclass(frozen=True, eq=False)
class ClosedRegion:
    """A region whose shapes and attributes name its own symbols alone, and the value of each in the graph's symbols."""

    region: Region
    values: tuple[Dim, ...] = ()


def closed(region: Region) -> ClosedRegion:
    """The region over symbols of its own (see `own_symbols`): equal regions in different places come out equal."""
    if not region.symbols:
        return ClosedRegion(region)
    given = [extent for value in region.inputs for extent in value.tensor.shape]
    derived = [extent for node in region.nodes for value in node.outputs for extent in value.tensor.shape]
    derived += [size for node in region.nodes for entry in node.attributes.values() for size in _sizes(entry)]
    derived += [extent for value in region.there.values() for extent in value.tensor.shape]
    derived += [size for box in region.within.values() for size in (*box.shape, *box.corner)]
    found = own_symbols(given, derived, region.symbols)
    move = found.sizes.__getitem__

    def moved(value: Value) -> Value:
        kind = value.tensor
        return replace(value, type=TensorType(tuple(map(move, kind.shape)), kind.dtype))

    nodes = tuple(
        replace(
            node,
            outputs=tuple(map(moved, node.outputs)),
            attributes=MappingProxyType({key: _moved(entry, move) for key, entry in node.attributes.items()}),
        )
        for node in region.nodes
    )
    at = {symbol.name: typical(symbol) for symbol in region.symbols}
    usual = {
        symbol.name: max(symbol.lower, int(value.evaluate(at)))
        for symbol, value in zip(found.symbols, found.values, strict=True)
    }
    made = {value.name: value for node in nodes for value in node.outputs}
    own = replace(
        region, nodes=nodes, inputs=tuple(map(moved, region.inputs)),
        outputs=tuple(made[value.name] for value in region.outputs), symbols=found.symbols,
        usual=MappingProxyType(usual), there=MappingProxyType({p: moved(v) for p, v in region.there.items()}),
        within=MappingProxyType(
            {n: Within(tuple(map(move, b.shape)), tuple(map(move, b.corner))) for n, b in region.within.items()}
        ),
    )  # fmt: skip
    return ClosedRegion(own, found.values)


def _sizes(entry: Attribute) -> Iterator[Dim]:
    """The symbolic integers of an attribute."""
    if isinstance(entry, Dim):
        yield entry
    elif isinstance(entry, tuple):
        for one in entry:
            yield from _sizes(one)


def _moved(entry: Attribute, move: Callable[[Dim], Dim]) -> Attribute:
    if isinstance(entry, Dim):
        return move(entry)
    return tuple(_moved(one, move) for one in entry) if isinstance(entry, tuple) else entry
