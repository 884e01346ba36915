"""The text form of a graph: what people read and `graph.parse` reads back.

    graph mlp {
      symbol N in 1..
      input x: float32[N, 4] donated
      constant w: float32[4, 2] = sha256 "5d0c..."
      constant b: float32[2] = [0.5, -1.0]
      y: float32[N, 2] = dot_general(x, w) {lhs_contracting_dimensions: (1,), rhs_contracting_dimensions: (0,)} at "fc"
      z: float32[N, 2] = add(y, b) named add.0
      output z
    }

A node named as its first result does not say `named`. Symbolic attributes stand in angle brackets (`<N + 1>`), plain
integers as they are. A name that is no identifier (dots allowed) or is a word of the form stands in quotes. Subgraphs
follow their node, each after `with`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import numpy as np

from tilework.dims import Dim, Symbol
from tilework.dtypes import DType
from tilework.errors import GraphError
from tilework.graph.graph import (
    MAXIMUM_NESTING,
    Array,
    Attribute,
    Constant,
    Graph,
    InputPolicy,
    Node,
    OutputPolicy,
    Value,
    nesting,
    subgraphs,
)  # fmt: skip

WORDS = frozenset((
    "graph", "symbol", "input", "constant", "output", "measured", "in", "step", "sha256", "bytes", "named", "at", "by",
    "with", "true", "false", "inf", "nan", "token", "donated", "mutated", "noncontiguous", "alias", "view", "strides",
    "offset", "signature",
))  # fmt: skip
"""Words of the form: a name that is one of them is quoted."""


def to_text(graph: Graph, inline_up_to: int = 0) -> str:
    """Print a graph. Constants of at most `inline_up_to` elements are printed with their values, others by their hash.

    Raises `GraphError` 1211 for a graph or an attribute that is nested too deep.
    """
    if nesting(graph) > MAXIMUM_NESTING:
        raise GraphError(1211, f"graph {graph.name} is nested deeper than {MAXIMUM_NESTING} subgraphs")
    return "\n".join(_graph(graph, inline_up_to, "")) + "\n"


def constants_by_digest(graph: Graph) -> dict[str, Array]:
    """Every array of the graph and its subgraphs by hash: what `parse` wants beside the text."""
    return {constant.digest: constant.array for inner, _ in subgraphs(graph) for constant in inner.constants}


def quoted(name: str) -> str:
    """A name as the text form has it."""
    plain = name.isascii() and all(part.isidentifier() for part in name.split(".")) and name not in WORDS
    return name if plain else json.dumps(name)


def _graph(graph: Graph, inline_up_to: int, indent: str) -> Iterator[str]:
    yield f"{indent}graph {quoted(graph.name)} {{"
    inner = indent + "  "
    for symbol in graph.symbols:
        yield f"{inner}symbol {_symbol(symbol)}"
    signature = graph.signature
    for place, value in enumerate(graph.inputs):
        policies = () if signature is None else signature.inputs
        policy = _input_policy(policies[place]) if place < len(policies) else ""
        yield f"{inner}input {_value(value)}{policy}"
    for constant in graph.constants:
        yield f"{inner}constant {_constant(constant, inline_up_to)}"
    for node in graph.nodes:
        yield inner + _node(node)
        for subgraph in node.subgraphs:
            lines = list(_graph(subgraph, inline_up_to, inner + "  "))
            lines[0] = f"{inner}  with {lines[0].lstrip()}"
            yield from lines
    for place, name in enumerate(graph.outputs):
        policy = (
            "" if signature is None or place >= len(signature.outputs) else _output_policy(signature.outputs[place])
        )
        yield f"{inner}output {quoted(name)}{policy}"
    if signature is not None:
        yield f"{inner}signature"
    yield f"{indent}}}"


def _symbol(symbol: Symbol) -> str:
    upper = "" if symbol.upper is None else str(symbol.upper)
    text = f"{'measured ' if symbol.measured else ''}{quoted(symbol.name)} in {symbol.lower}..{upper}"
    return f"{text} step {symbol.multiple}" if symbol.multiple != 1 else text


def _value(value: Value) -> str:
    return f"{quoted(value.name)}: {value.type}"


def _input_policy(policy: InputPolicy) -> str:
    text = "" if policy.access == "read" else f" {policy.access}"
    if policy.mutated_by is not None:
        text += f" by {policy.mutated_by}"
    return text if policy.noncontiguous == "copy" else f"{text} noncontiguous {json.dumps(policy.noncontiguous)}"


def _output_policy(policy: OutputPolicy) -> str:
    text = "" if policy.kind == "fresh" else f" {policy.kind}"
    if policy.of is not None:
        text += f" {policy.of}"
    if policy.strides is not None:
        text += f" strides [{', '.join(map(str, policy.strides))}]"
    return text if policy.offset is None else f"{text} offset [{policy.offset}]"


def _constant(constant: Constant, inline_up_to: int) -> str:
    head = f"{quoted(constant.name)}: {constant.type}"
    if constant.array.size > inline_up_to:
        return f'{head} = sha256 "{constant.digest}"'
    numbers = _numbers(constant)
    if numbers is not None:
        return f"{head} = [{', '.join(numbers)}]"
    return f'{head} = bytes "{np.ascontiguousarray(constant.array).tobytes().hex()}"'


def _numbers(constant: Constant) -> list[str] | None:
    """The elements as numbers; None where numbers do not say every bit (NaN) or there are two in one (complex)."""
    dtype = constant.type.dtype
    flat = constant.array.reshape(-1)
    if dtype.kind == "boolean" or dtype.is_integer:
        return [_number(bool(entry) if dtype.kind == "boolean" else int(entry)) for entry in flat]
    if dtype.kind == "complex":
        return None
    numbers = [float(entry) for entry in flat]
    return None if any(map(math.isnan, numbers)) else [_number(number) for number in numbers]


def _number(value: float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else repr(value)


def _node(node: Node) -> str:
    results = ", ".join(map(_value, node.outputs))
    text = f"{results} = {quoted(node.operator)}({', '.join(map(quoted, node.inputs))})"
    if node.attributes:
        text += f" {{{', '.join(f'{quoted(name)}: {_attribute(value)}' for name, value in node.attributes.items())}}}"
    if not node.outputs or node.name != node.outputs[0].name:
        text += f" named {quoted(node.name)}"
    if node.location:
        text += f" at {json.dumps(node.location)}"
    return f"{text} by {json.dumps(node.black_box)}" if node.black_box else text


def _attribute(value: Attribute, depth: int = 0) -> str:
    if isinstance(value, tuple):
        if depth >= MAXIMUM_NESTING:
            raise GraphError(1211, f"an attribute is nested deeper than {MAXIMUM_NESTING} tuples")
        entries = [_attribute(entry, depth + 1) for entry in value]
        return f"({entries[0]},)" if len(entries) == 1 else f"({', '.join(entries)})"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, DType):
        return value.name
    if isinstance(value, Dim):
        return str(value) if value.is_constant else f"<{value}>"
    return _number(value)
