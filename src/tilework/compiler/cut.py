"""A graph cut at its black boxes: parts that are compiled, and the boxes that run between them.

Boxes and parts take turns. A box runs once all parts that it reads from are through, a compiled node belongs to the
first part before which its operands and the sizes that it needs are known. Sizes that are measured before a cut are
free dimensions after it. What follows from constants and sizes alone is computed again in each part that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilework.dims import Dim
from tilework.errors import CodegenError
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Attribute, Graph, Node, Value, captured, walk
from tilework.graph.types import OpaqueType, TensorType, TokenType, ValueType
from tilework.graph.verify import verify as verify_graph
from tilework.ops.interpret import BlackBoxFunction
from tilework.plan.plan import PlanInput, input_bindings
from tilework.runtime.boxed import BoxCall
from tilework.runtime.ports import Port

REASON = "strings and maps are no tensors, and fresh random keys come from outside"
"""Why the operations that are black boxes today are not compiled."""


@dataclass(frozen=True, eq=False)
class NodeBox:
    """A graph's black-box node with the function that runs it."""

    node: Node
    function: BlackBoxFunction

    @property
    def identity(self) -> str:
        attributes = ", ".join(f"{name}: {value}" for name, value in sorted(self.node.attributes.items()))
        return f"{self.provider}:{self.operator} {{{attributes}}}"

    @property
    def operator(self) -> str:
        return self.node.operator

    @property
    def provider(self) -> str:
        return self.node.black_box

    @property
    def reason(self) -> str:
        return REASON

    def run(self, inputs: Sequence[Any]) -> Sequence[Any]:
        return self.function(self.node, inputs)


@dataclass(frozen=True, eq=False)
class Cut:
    """Boxes and parts in the order in which they run, on values by name. `constants` are those that boxes read or the
    caller wants. The first part takes every tensor that the caller gives, and so checks it.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    constants: Mapping[str, Any]
    steps: tuple[BoxCall | Graph, ...]


def cut_at_boxes(graph: Graph, functions: Mapping[str, BlackBoxFunction]) -> Cut | None:
    """None for a graph without black boxes and what only those take: the plan has no place for that.

    Raises `CodegenError` 1652 for a box in the body of control flow or without a function, and for tokens; 1653 where a
    box needs a size that only itself tells.
    """
    boxed = any(node.black_box for node in graph.nodes)
    if not boxed and not any(isinstance(value.type, OpaqueType) for value in graph.inputs):
        return None  # what leaves then and is no tensor comes from nowhere, as verifying tells
    verify_graph(graph)
    refuse_what_is_not_compiled(graph, inside_only=True)
    cutter = _Cutter(graph)
    read = {name for node in graph.nodes if node.black_box for name in node.inputs} | set(graph.outputs)
    steps: list[BoxCall | Graph] = []
    for number in range(cutter.count):
        steps += (_call(node, functions) for node in graph.nodes if node.black_box and cutter.turn(node) == number)
        part = cutter.part(number)
        if number == 0 or part.outputs:
            steps.append(part)
    return Cut(
        tuple(_port(value) for value in graph.inputs),
        tuple(_port(graph.values[name]) for name in graph.outputs),
        {name: array for name, array in graph.constant_arrays.items() if name in read},
        tuple(steps),
    )


def refuse_what_is_not_compiled(graph: Graph, *, inside_only: bool = False) -> None:
    """Raise `CodegenError` 1652 for black boxes (those in bodies of control flow only where asked so) and tokens."""
    outermost = set(map(id, graph.nodes))
    for node in walk(graph):
        origin = node.location or node.name
        inside = id(node) not in outermost
        if node.black_box and (inside or not inside_only):
            place = " in the body of an if or a loop" if inside else ""
            raise CodegenError(1652, f"a black box ({node.operator}){place} is not compiled yet", where=origin)
        if any(isinstance(value.type, TokenType) for value in node.outputs):
            raise CodegenError(1652, f"an effect ({node.operator}) is not compiled yet", where=origin)
    for value in graph.inputs:
        if isinstance(value.type, TokenType):
            raise CodegenError(1652, "an input that is a token is not compiled yet", where=value.name)


def _port(value: Value) -> Port:
    assert not isinstance(value.type, TokenType)
    return Port(value.name, value.type)


def _call(node: Node, functions: Mapping[str, BlackBoxFunction]) -> BoxCall:
    origin = node.location or node.name
    if node.operator not in functions:
        text = f"{node.operator} is a black box of {node.black_box}, and no function is given for it"
        raise CodegenError(1652, text, where=origin)
    return BoxCall(NodeBox(node, functions[node.operator]), node.inputs, tuple(map(_port, node.outputs)), origin)


class _Cutter:
    """Which turn each node of a graph has. Turn n of boxes comes before part n."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._symbols = {symbol.name: symbol for symbol in graph.symbols}
        self._reads = {node.name: _reads(node) for node in graph.nodes}
        self._sizes = {node.name: _sizes(node) & self._symbols.keys() for node in graph.nodes}
        self._turns = dict.fromkeys(self._reads, 0)
        self._given = _named([value.type for value in graph.inputs]) & self._symbols.keys()
        self._known: dict[str, int] = dict.fromkeys(self._given, 0)
        """The turn at which each size is known: the graph's inputs, a box, or a measuring node tells it."""
        self._measured: dict[str, int] = {}
        """The part that measures a size."""
        self._boxes = sum(bool(node.black_box) for node in graph.nodes)
        self._again = self._from_sizes_alone()
        while self._settle():
            pass
        self.count = 1 + max(self._turns.values(), default=0)
        self._nodes = [
            [n for n in graph.nodes if not n.black_box and self.turn(n) == number and n.name not in self._again]
            for number in range(self.count)
        ]
        self._wanted = self._wanted_of_each()

    def turn(self, node: Node) -> int:
        return self._turns[node.name]

    def _from_sizes_alone(self) -> set[str]:
        """Names of the nodes whose results follow from constants and sizes."""
        constants = {constant.name for constant in self._graph.constants}
        measuring = {name for name, symbol in self._symbols.items() if symbol.measured}
        found: set[str] = set()
        for node in self._graph.nodes:
            plain = not node.black_box and not node.subgraphs
            if plain and constants.issuperset(node.inputs) and not (node.inputs and self._sizes[node.name] & measuring):
                found.add(node.name)
                constants.update(value.name for value in node.outputs)
        return found

    def _settle(self) -> bool:
        """Go through the nodes once; whether a turn has changed. Turns only grow, so this ends."""
        changed = False
        before, known, measured = self._known, dict.fromkeys(self._given, 0), dict[str, int]()
        boxes = dict.fromkeys((*(v.name for v in self._graph.inputs), *self._graph.constant_arrays), 0)
        parts = dict(boxes)
        """The first turn at which boxes, and at which parts, may read each value."""
        for node in self._graph.nodes:
            sizes = self._sizes[node.name]
            if node.black_box:
                turn = max((boxes[name] for name in node.inputs), default=0)
            else:
                turn = max((parts[name] for name in self._reads[node.name]), default=0)
                turn = max(turn, *(known.get(name, before.get(name, 0)) for name in sizes), 0)
            turn = max(turn, self._turns[node.name])
            if turn > self._boxes:
                text = f"it needs sizes ({', '.join(sorted(sizes))}) that only black boxes tell which need it"
                raise CodegenError(1653, text, where=node.location or node.name)
            for name in sizes - known.keys():
                if node.black_box:
                    known[name] = turn
                elif self._symbols[name].measured and node.inputs:
                    known[name] = measured[name] = turn
            for value in node.outputs:
                boxes[value.name], parts[value.name] = turn + (not node.black_box), turn
            changed = changed or turn != self._turns[node.name]
            self._turns[node.name] = turn
        changed = changed or known != before
        self._known, self._measured = known, measured
        return changed

    # -- parts ---------------------------------------------------------------------------------------------------------
    def part(self, number: int) -> Graph:
        """What is compiled for one turn."""
        graph, nodes = self._graph, self._members[number]
        read = {name for node in nodes for name in self._reads[node.name]} | set(self._carriers[number])
        own = {value.name for node in nodes for value in node.outputs}
        inputs = [v for v in graph.inputs if isinstance(v.type, TensorType) and (number == 0 or v.name in read)]
        inputs += [v for node in graph.nodes for v in node.outputs if v.name in read and v.name not in own]
        named = set[str]().union(*(self._sizes[node.name] for node in nodes), _named([v.type for v in inputs]))
        return graph.replace(
            name=graph.name if self.count == 1 else f"{graph.name}.{number}", inputs=tuple(inputs),
            outputs=tuple(self._wanted[number]), nodes=tuple(nodes), signature=None,
            constants=tuple(constant for constant in graph.constants if constant.name in read),
            symbols=tuple(
                replace(symbol, measured=symbol.measured and self._measured.get(symbol.name) == number)
                for symbol in graph.symbols if symbol.name in named
            ),
        )  # fmt: skip

    def _wanted_of_each(self) -> list[list[str]]:
        """What each part has to return; makes up `_members` and `_carriers` on the way, the last part first."""
        graph = self._graph
        maker = {value.name: node for node in graph.nodes for value in node.outputs if not node.black_box}
        wanted = {name for node in graph.nodes if node.black_box for name in node.inputs} | set(graph.outputs)
        self._members: list[list[Node]] = [[] for _ in range(self.count)]
        self._carriers: list[list[str]] = [[] for _ in range(self.count)]
        found: list[list[str]] = [[] for _ in range(self.count)]
        for number in reversed(range(self.count)):
            own = {v.name for n in self._nodes[number] for v in n.outputs}
            own |= {v for v in wanted if v in maker and maker[v].name in self._again and self.turn(maker[v]) == number}
            members = {node.name for node in self._nodes[number]}
            stack = [maker[name].name for name in own] + list(members)
            while stack:  # what follows from sizes and constants comes along
                top = stack.pop()
                members.add(top)
                nodes = (maker[name] for name in self._reads[top] if name in maker)
                stack += (node.name for node in nodes if node.name in self._again and node.name not in members)
            listed = self._members[number] = [node for node in graph.nodes if node.name in members]
            found[number] = [v.name for n in listed for v in n.outputs if v.name in wanted and v.name in own]
            made = {value.name for node in listed for value in node.outputs}
            read = {name for node in listed for name in self._reads[node.name]} - made
            self._carriers[number] = self._carriers_of(number, listed, read)
            wanted |= read | set(self._carriers[number])
        return found

    def _carriers_of(self, number: int, nodes: Sequence[Node], read: set[str]) -> list[str]:
        """Values to be read for their sizes alone, which nothing else that a part reads tells."""
        graph = self._graph
        given = [v for v in graph.inputs if number == 0 or v.name in read]
        given += [v for node in graph.nodes for v in node.outputs if v.name in read]
        sizes = set[str]().union(*(self._sizes[node.name] for node in nodes), _named([v.type for v in given]))
        sizes -= {name for name, part in self._measured.items() if part == number}
        missing = sorted((sizes & self._symbols.keys()) - _told_by(given))
        before = [
            *graph.inputs,
            *(v for node in graph.nodes for v in node.outputs
            if node.name not in self._again and self.turn(node) < number + bool(node.black_box)),
        ]  # fmt: skip
        return [
            v.name for v in (next((v for v in before if n in _told_by([v])), None) for n in missing) if v is not None
        ]


def _told_by(values: Sequence[Value]) -> set[str]:
    """The sizes that the shapes of some values tell."""
    given = tuple(PlanInput(v.name, v.type) for v in values if isinstance(v.type, TensorType))
    return {binding.symbol for binding in input_bindings(given)}


def _reads(node: Node) -> tuple[str, ...]:
    return (*node.inputs, *(name for subgraph in node.subgraphs for name in captured(subgraph)))


def _sizes(node: Node) -> set[str]:
    """The symbols that a node names, those of its subgraphs included."""
    found = set(_attribute_names(tuple(node.attributes.values()))) | _named([value.type for value in node.outputs])
    for subgraph in node.subgraphs:
        inside = _named([value.type for value in subgraph.inputs]).union(*map(_sizes, subgraph.nodes))
        found |= inside - {symbol.name for symbol in subgraph.symbols}
    return found


def _named(types: Sequence[ValueType]) -> set[str]:
    return {name for t in types if isinstance(t, TensorType) for extent in t.shape for name in extent.names()}


def _attribute_names(attribute: Attribute) -> Iterator[str]:
    if isinstance(attribute, Dim):
        yield from attribute.names()
    elif isinstance(attribute, tuple):
        for one in attribute:
            yield from _attribute_names(one)
