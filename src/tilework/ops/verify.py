"""The verifier of graphs: the rules of form (`graph.verify`), and every node's types by its operator's rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilework.dims import Bounds, Dim, symbol_bounds
from tilework.errors import Fault, UsageError, VerificationError
from tilework.graph.graph import Graph, Node, node_location
from tilework.graph.types import TensorType, ValueType
from tilework.graph.verify import structure_faults
from tilework.ops.operator import TypeFaults
from tilework.ops.registry import operator


def verify(graph: Graph) -> None:
    """Raise `VerificationError` with every fault of form and of types, if there is one."""
    found = faults(graph)
    if found:
        raise VerificationError(f"graph {graph.name}", found)


def faults(graph: Graph) -> list[Fault]:
    """Every fault of a graph and its subgraphs. Types are not looked at where constants or nesting are at fault."""
    found = structure_faults(graph)
    if not any(fault.code in (1211, 1212) for fault in found):
        found.extend(_type_faults(graph, {}, {}, ""))
    return found


def _type_faults(graph: Graph, visible: Mapping[str, ValueType], around: Bounds, inside: str) -> Iterator[Fault]:
    bounds = {**around, **symbol_bounds(graph.symbols)}
    types = {**visible, **{name: value.type for name, value in graph.values.items()}}
    for node in graph.nodes:
        where = f"{inside}{node_location(node)}"
        for subgraph in node.subgraphs:
            yield from _type_faults(subgraph, types, bounds, f"{where} > ")
        operands = [types[name] for name in node.inputs if name in types]
        if not node.black_box and len(operands) == len(node.inputs):
            yield from _node_faults(node, operands, bounds, where)


def _node_faults(node: Node, operands: list[ValueType], bounds: Bounds, where: str) -> Iterator[Fault]:
    try:
        inferred = operator(node.operator).infer_node(operands, node.attributes, node.subgraphs)
    except UsageError as error:
        text = f"{error.message} ({error.hint}), and no one provides it as a black box"
        yield Fault(1227, where, text)
        return
    except TypeFaults as error:
        yield from (Fault(f.code, f"{where} {f.where}".rstrip(), f.message) for f in error.faults)
        return
    if len(inferred) != len(node.outputs):
        yield Fault(1220, where, f"{node.operator} gives {len(inferred)} results, the node has {len(node.outputs)}")
        return
    for value, kind in zip(node.outputs, inferred, strict=True):
        if not same_type(value.type, kind, bounds):
            yield Fault(1226, where, f"result {value.name} is recorded as {value.type}, it is {kind}")


def same_type(first: ValueType, second: ValueType, bounds: Bounds) -> bool:
    """Whether two types are the same when every dim is simplified by the bounds of the symbols."""
    if not isinstance(first, TensorType) or not isinstance(second, TensorType):
        return first == second
    return first == second or (
        first.dtype == second.dtype
        and first.rank == second.rank
        and all(_same(a, b, bounds) for a, b in zip(first.shape, second.shape, strict=True))
    )


def _same(first: Dim, second: Dim, bounds: Bounds) -> bool:
    return first == second or first.simplify(bounds) == second.simplify(bounds)
