"""Structural equality of graphs: the same names, types, operations, attributes, constants and signature."""

from __future__ import annotations

from tilework.dims import Dim
from tilework.dtypes import DType
from tilework.errors import GraphError
from tilework.graph.graph import MAXIMUM_NESTING, Attribute, Graph, Node, nesting


def equal(first: Graph, second: Graph) -> bool:
    """Whether two graphs are the same, part by part and name by name; constants by their bytes."""
    return difference(first, second) is None


def difference(first: Graph, second: Graph) -> str | None:
    """Where two graphs first differ, in words; None where they do not. Raises `GraphError` 1211 (nested too deep)."""
    for graph in (first, second):
        if nesting(graph) > MAXIMUM_NESTING:
            raise GraphError(1211, f"graph {graph.name} is nested deeper than {MAXIMUM_NESTING} subgraphs")
    return _graphs(first, second)


def _graphs(first: Graph, second: Graph) -> str | None:
    where = f"graph {first.name}"
    for what, a, b in (
        ("name", first.name, second.name),
        ("symbols", first.symbols, second.symbols),
        ("inputs", first.inputs, second.inputs),
        ("outputs", first.outputs, second.outputs),
        ("signature", first.signature, second.signature),
        ("constants", _constants(first), _constants(second)),
        ("number of nodes", len(first.nodes), len(second.nodes)),
    ):
        if a != b:
            return f"{where}: {what}: {a} and {b}"
    for one, other in zip(first.nodes, second.nodes, strict=True):
        found = _nodes(one, other)
        if found is not None:
            return f"{where}: node {one.name}: {found}"
    return None


def _constants(graph: Graph) -> list[tuple[str, str]]:
    return [(constant.name, constant.digest) for constant in graph.constants]


def _nodes(first: Node, second: Node) -> str | None:
    for what, a, b in (
        ("name", first.name, second.name),
        ("operator", first.operator, second.operator),
        ("inputs", first.inputs, second.inputs),
        ("outputs", first.outputs, second.outputs),
        ("location", first.location, second.location),
        ("black box", first.black_box, second.black_box),
        ("attribute names", list(first.attributes), list(second.attributes)),
        ("number of subgraphs", len(first.subgraphs), len(second.subgraphs)),
    ):
        if a != b:
            return f"{what}: {a} and {b}"
    for name, value in first.attributes.items():
        if not same_attribute(value, second.attributes[name]):
            return f"attribute {name}: {value!r} and {second.attributes[name]!r}"
    for one, other in zip(first.subgraphs, second.subgraphs, strict=True):
        found = _graphs(one, other)
        if found is not None:
            return found
    return None


def same_attribute(first: Attribute, second: Attribute) -> bool:
    """Whether two attributes are the same: 1, 1.0 and true differ, an integer and a constant dim do not, NaN is NaN."""
    stack: list[tuple[Attribute, Attribute]] = [(first, second)]
    while stack:
        a, b = stack.pop()
        if isinstance(a, tuple) and isinstance(b, tuple):
            if len(a) != len(b):
                return False
            stack.extend(zip(a, b, strict=True))
        elif isinstance(a, float) and isinstance(b, float):
            if a.hex() != b.hex():  # tells -0.0 from 0.0, and finds NaN equal to itself
                return False
        elif _kind(a) != _kind(b) or a != b:
            return False
    return True


def _kind(value: Attribute) -> type:
    if isinstance(value, bool):
        return bool
    if isinstance(value, (int, Dim)):
        return Dim
    return DType if isinstance(value, DType) else type(value)
