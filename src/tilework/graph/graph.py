"""The graph itself: values, constants, nodes, subgraphs and the signature. Immutable; passes build new graphs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from tilework.dims import Dim, Symbol
from tilework.dtypes import DType, dtype_of
from tilework.fast_dataclass import dataclass, field
from tilework.graph.types import TensorType, ValueType, tensor

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

Attribute: TypeAlias = "int | float | bool | str | DType | Dim | tuple[Attribute, ...]"
"""What a node's attribute may be. Shapes are tuples of `Dim`; arrays are constants, not attributes."""


@dataclass(frozen=True)
class Value:
    """One value, defined once: by a graph input, a constant, or a node's output. The name is unique in its graph."""

    name: str
    type: ValueType

    @property
    def tensor(self) -> TensorType:
        """Its tensor type (tokens and opaque values have none: `TypeError`)."""
        if not isinstance(self.type, TensorType):
            raise TypeError(f"{self.name} is no tensor: {self.type}")
        return self.type


@dataclass(frozen=True, eq=False)
class Constant:
    """An array known at compile time. Printed by its hash; small ones can be printed inline."""

    name: str
    array: Array

    @property
    def type(self) -> TensorType:
        return tensor(dtype_of(self.array), *self.array.shape)

    @property
    def value(self) -> Value:
        return Value(self.name, self.type)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of type, shape and bytes, in hex."""
        found = hashlib.sha256(f"{self.type}|".encode())
        found.update(np.ascontiguousarray(self.array).reshape(-1).view(np.uint8).data)  # no copy: they may be large
        return found.hexdigest()


@dataclass(frozen=True, eq=False)
class Node:
    """One operation. `operator` is a name in `ops/`, or a black box's name when `black_box` says who provides it.

    `inputs` are value names. `subgraphs` are bodies of control flow: they see the enclosing graph's values by name.
    `location` is the user's own name for it (an ONNX node name, a line), used in messages only.
    """

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[Value, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=lambda: MappingProxyType({}))
    subgraphs: tuple[Graph, ...] = ()
    location: str = ""
    black_box: str = ""

    @property
    def output(self) -> Value:
        """The only output of a node that has one."""
        (only,) = self.outputs
        return only


@dataclass(frozen=True)
class InputPolicy:
    """How a caller's array is treated: `read` only, `donated` (its memory may be reused), or `mutated` by an output."""

    access: Literal["read", "donated", "mutated"] = "read"
    mutated_by: int | None = None
    """Position of the output that holds its new contents, when mutated."""
    noncontiguous: Literal["copy", "specialise", "refuse"] = "copy"


@dataclass(frozen=True)
class OutputPolicy:
    """What an output is: a `fresh` array, an `alias` of input `of`, or a strided `view` of input `of`."""

    kind: Literal["fresh", "alias", "view"] = "fresh"
    of: int | None = None
    strides: tuple[Dim, ...] | None = None
    """Element strides of a view."""
    offset: Dim | None = None
    """Element offset of a view."""


@dataclass(frozen=True)
class GraphSignature:
    """One policy per graph input and output, in order."""

    inputs: tuple[InputPolicy, ...]
    outputs: tuple[OutputPolicy, ...]


@dataclass(frozen=True, eq=False)
class Graph:
    """A program of tensor operations in single-assignment form, nodes in an order in which they can run.

    `outputs` are value names (an input or constant may be an output; one value may appear twice).
    """

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    constants: tuple[Constant, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    signature: GraphSignature | None = None

    @cached_property
    def values(self) -> Mapping[str, Value]:
        """Every value of this graph (not of subgraphs) by name."""
        found: dict[str, Value] = {value.name: value for value in self.inputs}
        found.update((constant.name, constant.value) for constant in self.constants)
        found.update((value.name, value) for node in self.nodes for value in node.outputs)
        return MappingProxyType(found)

    @cached_property
    def producers(self) -> Mapping[str, Node]:
        """The node that defines each value that a node defines."""
        return MappingProxyType({value.name: node for node in self.nodes for value in node.outputs})

    @cached_property
    def consumers(self) -> Mapping[str, tuple[Node, ...]]:
        """The nodes (of this graph) that read each value, subgraph reads included."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys((*node.inputs, *(n for sub in node.subgraphs for n in captured(sub)))):
                found.setdefault(name, []).append(node)
        return MappingProxyType({name: tuple(nodes) for name, nodes in found.items()})

    @cached_property
    def constant_arrays(self) -> Mapping[str, Array]:
        return MappingProxyType({constant.name: constant.array for constant in self.constants})

    def signature_or_default(self) -> GraphSignature:
        """The signature; read-only inputs and fresh outputs where none was given."""
        if self.signature is not None:
            return self.signature
        return GraphSignature(tuple(InputPolicy() for _ in self.inputs), tuple(OutputPolicy() for _ in self.outputs))

    def replace(self, **changes: Any) -> Graph:
        """A copy with some fields changed."""
        return replace(self, **changes)


MAXIMUM_NESTING = 100
"""How deep subgraphs may be nested. Deeper graphs are refused (1211) before anything recurses into them."""


def definition_names(graph: Graph) -> Iterator[str]:
    """The name of every value that a graph (not its subgraphs) defines, in order, as often as it is defined."""
    yield from (value.name for value in graph.inputs)
    yield from (constant.name for constant in graph.constants)
    yield from (value.name for node in graph.nodes for value in node.outputs)


def captured(graph: Graph) -> tuple[str, ...]:
    """Names that a subgraph reads but does not define: values of the graphs around it."""
    found: dict[str, None] = {}
    defined: Counter[str] = Counter()
    # A stack of what is left to do, and no recursion: graphs may be nested deeper than Python's own stack. A graph is
    # entered (its names hide those outside), its nodes follow, and it is left.
    stack: list[tuple[Graph | Node, bool]] = [(graph, False)]
    while stack:
        top, leave = stack.pop()
        if isinstance(top, Node):
            found.update((name, None) for name in top.inputs if not defined[name])
            stack.extend((subgraph, False) for subgraph in reversed(top.subgraphs))
        elif leave:
            found.update((name, None) for name in top.outputs if not defined[name])
            defined.subtract(definition_names(top))
        else:
            defined.update(definition_names(top))
            stack.append((top, True))
            stack.extend((node, False) for node in reversed(top.nodes))
    return tuple(found)


def walk(graph: Graph) -> Iterator[Node]:
    """Every node, those of subgraphs included, outer before inner."""
    stack = [iter(graph.nodes)]
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
            continue
        yield node
        stack.extend(iter(subgraph.nodes) for subgraph in reversed(node.subgraphs))


def subgraphs(graph: Graph) -> Iterator[tuple[Graph, int]]:
    """The graph (depth 0) and every subgraph with its depth, outer before inner."""
    stack = [(graph, 0)]
    while stack:
        top, depth = stack.pop()
        yield top, depth
        inner = [(found, depth + 1) for node in top.nodes for found in node.subgraphs]
        stack.extend(reversed(inner))


def nesting(graph: Graph) -> int:
    """How deep its subgraphs are nested; 0 without any. Linear also where one subgraph is shared by many nodes."""
    depth, layer = 0, {id(graph): graph}
    while True:
        layer = {id(inner): inner for top in layer.values() for node in top.nodes for inner in node.subgraphs}
        if not layer:
            return depth
        depth += 1


def node_location(node: Node) -> str:
    """How messages name a node: the user's own name where there is one."""
    return f"{node.location} ({node.operator})" if node.location else f"{node.name} ({node.operator})"
