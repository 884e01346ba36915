"""States of a repetition whose sizes change from trip to trip: their extents are symbols of the body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilework.dims import Dim
from tilework.graph.graph import Graph
from tilework.graph.types import TensorType, ValueType


def changing_symbols(body: Graph) -> tuple[str, ...]:
    """The measured symbols of a body that its inputs' shapes name, in order."""
    named = {name for v in body.inputs if isinstance(v.type, TensorType) for e in v.type.shape for name in e.names()}
    return tuple(symbol.name for symbol in body.symbols if symbol.name in named)


def extents_of(found: Sequence[ValueType], state: Sequence[ValueType], symbols: Sequence[str]) -> dict[str, Dim]:
    """The value of each symbol with which the state's types are those found, as far as extents are plain symbols."""
    values: dict[str, Dim] = {}
    for one, other in zip(found, state, strict=False):
        if not isinstance(one, TensorType) or not isinstance(other, TensorType):
            continue
        for extent, formal in zip(one.shape, other.shape, strict=False):
            if str(formal) in symbols:
                values.setdefault(str(formal), extent)
    return values


def substituted(kind: ValueType, values: Mapping[str, Dim]) -> ValueType:
    """The type with symbols replaced."""
    if not isinstance(kind, TensorType) or not values:
        return kind
    return TensorType(tuple(extent.substitute(values) for extent in kind.shape), kind.dtype)
