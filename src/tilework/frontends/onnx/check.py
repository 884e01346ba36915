"""The structure of a model, checked in full before anything is imported: every fault found is reported.

Native checkers may crash on a damaged file and cost start-up time; these checks read the parsed message only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from tilework.errors import Fault
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.schema import STANDARD_DOMAINS, schema_of
from tilework.frontends.onnx.source import DEEPEST

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto

OLDEST_OPSET = 1
NEWEST_OPSET = 28
"""Versions of the operator set ai.onnx whose operators are known here."""


def node_called(node: NodeProto, position: int | None = None) -> str:
    """How messages name a node: its own name, else its first result."""
    name = node.name or next((f"-> {output}" for output in node.output if output), "")
    place = "" if position is None else f"node {position}"
    return f"{node.op_type or 'operator without a name'} {name or place}".strip()


@dataclass(frozen=True)
class Scope:
    """A graph of the model with the names that the graphs around it define."""

    graph: GraphProto
    outer: frozenset[str]
    depth: int
    called: str


def scopes(model: ModelProto) -> Iterator[Scope]:
    """Every graph of a model, outer before inner, down to one level below the limit."""
    left = [Scope(model.graph, frozenset(), 1, "graph")]
    while left:
        scope = left.pop()
        yield scope
        if scope.depth > DEEPEST:
            continue
        inside = [(node, graph) for node in scope.graph.node for graph in _subgraphs(node)]
        if inside:
            outer = scope.outer | _defined(scope.graph)
            left.extend(Scope(g, outer, scope.depth + 1, f"subgraph of {node_called(n)}") for n, g in inside)


def _subgraphs(node: NodeProto) -> list[GraphProto]:
    found: list[GraphProto] = []
    for attribute in node.attribute:
        if attribute.HasField("g"):
            found.append(attribute.g)
        found.extend(attribute.graphs)
    return found


def _defined(graph: GraphProto) -> frozenset[str]:
    names = {value.name for value in graph.input}
    names.update(tensor.name for tensor in graph.initializer)
    names.update(output for node in graph.node for output in node.output)
    return frozenset(names - {""})


# -- the whole ---------------------------------------------------------------------------------------------------------
def opsets(model: ModelProto) -> dict[str, int]:
    """The version of each operator set that the model imports; the standard one under the empty name."""
    return {"" if o.domain in STANDARD_DOMAINS else o.domain: o.version for o in model.opset_import}


def structural_faults(model: ModelProto) -> list[Fault]:
    """Everything that is wrong with the form of a model: names, order, depth, versions, operands, attributes."""
    if not model.HasField("graph"):
        return [Fault(1103, "model", "it has no graph")]
    faults = list(_text_faults(model))
    if faults:
        return faults
    faults = list(_version_faults(model))
    versions = opsets(model)
    for scope in scopes(model):
        if scope.depth > DEEPEST:
            faults.append(Fault(1104, scope.called, f"subgraphs lie more than {DEEPEST} deep"))
            break
        faults.extend(_name_faults(scope))
        for position, node in enumerate(scope.graph.node):
            faults.extend(node_faults(node, position, versions))
        if isinstance(found := sorted_nodes(scope.graph.node), Fault):
            faults.append(found)
    if not model.graph.output:
        faults.append(Fault(1114, "graph", "it has no output"))
    return faults


def _text_faults(model: ModelProto) -> Iterator[Fault]:
    """Names that are no text: protobuf hands out the bytes of a string that is not UTF-8."""
    outside: list[object] = [model.graph.name, *(entry.domain for entry in model.opset_import)]
    if any(isinstance(text, bytes) for text in outside):
        yield Fault(1103, "model", "the name of the graph or of an operator set is no UTF-8 text")
    for scope in scopes(model):
        for kind, texts in _texts(scope.graph):
            if any(isinstance(text, bytes) for text in texts):
                yield Fault(1103, scope.called, f"a name of {kind} is no UTF-8 text")
    for function in model.functions:
        names: list[object] = [function.name, function.domain, *function.input, *function.output, *function.attribute]
        names += [entry.domain for entry in function.opset_import]
        names += [text for node in function.node for text in (*_node_texts(node), *_attribute_texts(node))]
        if any(isinstance(text, bytes) for text in names):
            yield Fault(1103, "function", "a name in it is no UTF-8 text")


def _node_texts(node: NodeProto) -> tuple[str, ...]:
    return (node.op_type, node.name, node.domain, *node.input, *node.output)


def _attribute_texts(node: NodeProto) -> list[str]:
    return [text for attribute in node.attribute for text in (attribute.name, attribute.ref_attr_name)]


def _texts(graph: GraphProto) -> Iterator[tuple[str, Iterable[object]]]:
    for node in graph.node:
        yield "a node", _node_texts(node)
        yield "an attribute", _attribute_texts(node)
    for value in (*graph.input, *graph.output):
        dims = (d.dim_param for d in value.type.tensor_type.shape.dim)
        yield "an input, an output or a dimension", (value.name, *dims)
    for tensor in graph.initializer:
        yield "a stored tensor", (tensor.name, *(t for entry in tensor.external_data for t in (entry.key, entry.value)))
    for tensor in graph.sparse_initializer:
        yield "a stored tensor", (tensor.values.name,)


def _version_faults(model: ModelProto) -> Iterator[Fault]:
    yield from _import_faults("model", model.opset_import)
    for function in model.functions:
        yield from _import_faults(f"function {function.name}", function.opset_import)
    if any(node.domain in STANDARD_DOMAINS for node in model.graph.node):
        version = opsets(model).get("")
        if version is None:
            yield Fault(1105, "model", "it imports no version of the operator set ai.onnx")
        elif not OLDEST_OPSET <= version <= newest_opset():
            yield Fault(1106, "model", f"ai.onnx version {version}; supported: {OLDEST_OPSET} to {newest_opset()}")


def _import_faults(where: str, entries: Iterable[OperatorSetIdProto]) -> Iterator[Fault]:
    """Operator sets imported in two versions; the same version twice (also as '' and 'ai.onnx') is one import."""
    versions: dict[str, int] = {}
    for entry in entries:
        domain = "" if entry.domain in STANDARD_DOMAINS else entry.domain
        first = versions.setdefault(domain, entry.version)
        if first != entry.version:
            called = domain or "ai.onnx"
            yield Fault(1103, where, f"the operator set {called} is imported twice, as {first} and {entry.version}")


def newest_opset() -> int:
    """The newest version both known here and described by the installed package onnx."""
    from onnx import defs

    return min(NEWEST_OPSET, defs.onnx_opset_version())


# -- names -------------------------------------------------------------------------------------------------------------
def _name_faults(scope: Scope) -> Iterator[Fault]:
    graph, where = scope.graph, scope.called
    inputs: set[str] = set()
    for value in graph.input:
        if not value.name:
            yield Fault(1114, where, "an input has no name")
        elif value.name in inputs:
            yield Fault(1112, where, f"two inputs are called {value.name!r}")
        inputs.add(value.name)
    tensors: set[str] = set()
    for name in (tensor.name for tensor in graph.initializer):
        if not name:
            yield Fault(1103, where, "an initialiser has no name")
        elif name in tensors:
            yield Fault(1112, where, f"two initialisers are called {name!r}")
        tensors.add(name)
    for tensor in graph.sparse_initializer:
        yield Fault(1115, where, f"the initialiser {tensor.values.name!r} is sparse")
    defined = inputs | tensors
    for node in graph.node:
        for output in node.output:
            if output and output in defined:
                yield Fault(1112, node_called(node), f"it defines {output!r}, which is defined already")
            defined.add(output)
    defined.discard("")
    for position, node in enumerate(graph.node):
        for name in node.input:
            if name and name not in defined and name not in scope.outer:
                yield Fault(1113, node_called(node, position), f"it reads {name!r}, which nothing defines")
    for output in graph.output:
        if not output.name:
            yield Fault(1114, where, "an output has no name")
        elif output.name not in defined and output.name not in scope.outer:
            yield Fault(1113, where, f"nothing defines the output {output.name!r}")


def sorted_nodes(graph_nodes: Iterable[NodeProto]) -> list[NodeProto] | Fault:
    """The nodes in an order in which they can run (their own order where it is one), or the cycle that forbids it."""
    nodes = list(graph_nodes)
    makers: dict[str, int] = {}
    for position, node in enumerate(nodes):
        for output in node.output:
            makers.setdefault(output, position)
    makers.pop("", None)
    needs = [sorted({makers[name] for name in _reads(node) if name in makers}) for node in nodes]
    if all(need < position for position, wanted in enumerate(needs) for need in wanted):
        return nodes
    order: list[int] = []
    state = [0] * len(nodes)  # 0 not seen, 1 being visited, 2 done
    for root in range(len(nodes)):
        stack = [(root, iter(needs[root]))] if not state[root] else []
        state[root] = state[root] or 1
        while stack:
            place, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                state[place] = 2
                order.append(place)
                stack.pop()
            elif state[following] == 1:
                places = [p for p, _ in stack]
                cycle = [*places[places.index(following) :], following]
                text = " needs ".join(node_called(nodes[p], p) for p in cycle[:8])
                return Fault(1113, "graph", f"nodes need each other's results: {text}")
            elif state[following] == 0:
                state[following] = 1
                stack.append((following, iter(needs[following])))
    return [nodes[place] for place in order]


def _reads(node: NodeProto) -> Iterator[str]:
    """Names that a node reads from around it, those read inside its subgraphs included.

    What a subgraph defines hides what has its name outside, and may well be called as the node's own results are.
    """
    left: list[tuple[NodeProto, frozenset[str], int]] = [(node, frozenset(), 0)]
    while left:
        current, hidden, depth = left.pop()
        yield from (name for name in current.input if name and name not in hidden)
        if depth < DEEPEST:
            for graph in _subgraphs(current):
                inside = hidden | _defined(graph)
                left.extend((inner, inside, depth + 1) for inner in graph.node)
                yield from (output.name for output in graph.output if output.name not in inside)


# -- one node against its schema ---------------------------------------------------------------------------------------
def node_faults(node: NodeProto, position: int, versions: Mapping[str, int]) -> Iterator[Fault]:
    """What is wrong with a node's operands and attributes, by its operator's schema."""
    where = node_called(node, position)
    if not node.op_type:
        yield Fault(1103, where, "it names no operator")
        return
    schema = schema_of(node, versions)
    if schema is None:
        return  # reported with the other unsupported operators
    if not schema.inputs[0] <= len(node.input) <= schema.inputs[1]:
        yield Fault(1117, where, f"it has {len(node.input)} inputs; {_range(*schema.inputs)} are wanted")
    if not schema.outputs[0] <= len(node.output) <= schema.outputs[1]:
        yield Fault(1117, where, f"it has {len(node.output)} outputs; {_range(*schema.outputs)} are wanted")
    for place, (name, parameter) in enumerate(zip(node.input, schema.parameters, strict=False)):
        if not name and parameter.required:
            yield Fault(1117, where, f"input {place} ({parameter.name}) is left out and must be given")
    seen: set[str] = set()
    for attribute in node.attribute:
        if attribute.name in seen:
            yield Fault(1108, where, f"attribute {attribute.name!r} is given twice")
        seen.add(attribute.name)
        if attribute.name not in schema.attributes:
            yield Fault(1108, where, f"the operator has no attribute {attribute.name!r}")
            continue
        try:
            check_attribute(attribute, schema.attributes[attribute.name][0])
        except NodeFault as fault:
            yield fault.at(where)
    for name, (_, required) in schema.attributes.items():
        if required and name not in seen:
            yield Fault(1108, where, f"attribute {name!r} is missing")


def _range(least: int, most: int) -> str:
    return f"{least}" if least == most else f"{least} or more" if most > 2**30 else f"{least} to {most}"


_FIELDS: Mapping[str, Literal["f", "i", "s", "t", "g", "tp"]] = {
    "FLOAT": "f", "INT": "i", "STRING": "s", "TENSOR": "t", "GRAPH": "g", "TYPE_PROTO": "tp",
}  # fmt: skip
"""The field of an `AttributeProto` by its type, of the types that hold one value."""


_TYPE_NUMBERS = {
    "FLOAT": 1, "INT": 2, "STRING": 3, "TENSOR": 4, "GRAPH": 5, "FLOATS": 6, "INTS": 7, "STRINGS": 8, "TENSORS": 9,
    "GRAPHS": 10, "SPARSE_TENSOR": 11, "SPARSE_TENSORS": 12, "TYPE_PROTO": 13, "TYPE_PROTOS": 14,
}  # fmt: skip


def check_attribute(attribute: AttributeProto, wanted: str) -> None:
    """Raise `NodeFault` 1108 unless an attribute holds a value of the type that the operator's schema names."""
    if attribute.ref_attr_name:
        raise NodeFault(1108, f"attribute {attribute.name!r} refers to an attribute of a function around the node")
    if attribute.type != _TYPE_NUMBERS.get(wanted):
        got = next((name for name, number in _TYPE_NUMBERS.items() if number == attribute.type), "of no known type")
        raise NodeFault(1108, f"attribute {attribute.name!r} is {got}, it must be {wanted}")
    field = _FIELDS.get(wanted)
    if field is not None and not attribute.HasField(field):
        raise NodeFault(1108, f"attribute {attribute.name!r} has no value")


def listed(names: Iterable[str], most: int = 8) -> str:
    """Some names in one line, the rest counted."""
    found = list(names)
    rest = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + rest
