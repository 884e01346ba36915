"""Black boxes around a graph: those that run before what is compiled, and those that run after it.

A black box whose operands are there before anything compiled has run comes before; one whose results nothing compiled
reads comes after. One in between is not compiled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilework.errors import CodegenError
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Graph, Node, Value, captured
from tilework.graph.types import TensorType, TokenType
from tilework.ops.interpret import BlackBoxFunction
from tilework.plan.explanation import BlackBoxExplanation
from tilework.runtime.boxed import Around, BoxCall
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


def explanations(around: Around) -> tuple[BlackBoxExplanation, ...]:
    """Every black box, in the order in which they run."""
    return tuple(
        BlackBoxExplanation(call.origin, call.box.operator, call.box.provider, call.box.reason)
        for call in (*around.before, *around.after)
    )


def split(graph: Graph, functions: Mapping[str, BlackBoxFunction]) -> tuple[Graph, Around | None]:
    """The graph without its black boxes, and these; the graph itself where it has none that can stand around it.

    Raises `CodegenError` 1652 for a black box between compiled operations, or one that no function is given for.
    """
    if not any(node.black_box for node in graph.nodes):
        return graph, None
    ready = {value.name for value in graph.inputs} | {constant.name for constant in graph.constants}
    before: list[Node] = []
    rest: list[Node] = []
    for node in graph.nodes:
        if node.black_box and ready.issuperset(node.inputs):
            before.append(node)
            ready.update(value.name for value in node.outputs)
        else:
            rest.append(node)
    after = [node for node in rest if node.black_box]
    inner = [node for node in rest if not node.black_box]
    late = {value.name: node for node in after for value in node.outputs}
    for node in inner:
        for name in _reads(node):
            if name in late:
                box = late[name]
                text = f"{box.operator} is a black box between operations that are compiled, which is not possible yet"
                raise CodegenError(1652, text, where=box.location or box.name)
    held = {name for node in (*before, *after) for name in node.inputs} | set(graph.outputs)
    around = Around(
        tuple(_port(value) for value in graph.inputs),
        tuple(_port(graph.values[name]) for name in graph.outputs),
        {name: array for name, array in graph.constant_arrays.items() if name in held},
        tuple(_call(node, functions) for node in before),
        tuple(_call(node, functions) for node in after),
    )
    return _core(graph, before, inner, after), around


def _port(value: Value) -> Port:
    if isinstance(value.type, TokenType):
        raise CodegenError(1652, "an input that is a token is not compiled yet", where=value.name)
    return Port(value.name, value.type)


def _call(node: Node, functions: Mapping[str, BlackBoxFunction]) -> BoxCall:
    origin = node.location or node.name
    if node.operator not in functions:
        text = f"{node.operator} is a black box of {node.black_box}, and no function is given for it"
        raise CodegenError(1652, text, where=origin)
    made = tuple(value.name for value in node.outputs)
    return BoxCall(NodeBox(node, functions[node.operator]), node.inputs, made, origin)


def _reads(node: Node) -> tuple[str, ...]:
    return (*node.inputs, *(name for subgraph in node.subgraphs for name in captured(subgraph)))


def _core(graph: Graph, before: Sequence[Node], inner: Sequence[Node], after: Sequence[Node]) -> Graph:
    """What is compiled: its inputs are the graph's tensors and those that black boxes make, its outputs those that
    black boxes or the caller want of it.
    """
    read = {name for node in inner for name in _reads(node)}
    made = [value for node in before for value in node.outputs if value.name in read]
    inputs = [value for value in graph.inputs if isinstance(value.type, TensorType)] + made
    wanted = [*graph.outputs, *(name for node in after for name in node.inputs)]
    own = {value.name for node in inner for value in node.outputs}
    outputs = tuple(dict.fromkeys(name for name in wanted if name in own))
    kinds = [value.type for value in (*inputs, *(value for node in inner for value in node.outputs))]
    named = {name for kind in kinds if isinstance(kind, TensorType) for extent in kind.shape for name in extent.names()}
    return graph.replace(
        inputs=tuple(inputs), outputs=outputs, nodes=tuple(inner), signature=None,
        constants=tuple(constant for constant in graph.constants if constant.name in read),
        symbols=tuple(symbol for symbol in graph.symbols if symbol.name in named),
    )  # fmt: skip
