"""What a plan asks of sizes: guards before a call for those of the inputs, checks inside it for those it measures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from tilework.compiler.origins import origin_of
from tilework.dims import Dim, dim, symbol_bounds
from tilework.graph.graph import Graph, Node, node_location
from tilework.ops.registry import operator
from tilework.plan.guard import Guard
from tilework.plan.steps import Check


def guards(graph: Graph, graphs: Iterable[Graph], measured: AbstractSet[str]) -> tuple[Guard, ...]:
    """Conditions on the symbols of a graph: what divides them, and what each operator of it and of the graphs inside it
    needs for its indices to stay inside. Those on symbols that the call measures are checked when they have values.
    """
    found: list[Guard] = []
    bounds = symbol_bounds(graph.symbols)
    for symbol in graph.symbols:
        if symbol.multiple != 1 and not symbol.measured:
            rest = dim(symbol.name) % symbol.multiple
            found.append(Guard(rest, "zero", f"{symbol.name} must be a multiple of {symbol.multiple}"))
    for inner in graphs:
        for node in inner.nodes:
            operands = [inner.values[name].type for name in node.inputs]
            asked = operator(node.operator).requirements(operands, node.attributes)
            for needed in asked:
                # what names the number of a trip holds by construction
                free = needed.names() <= bounds.keys() and not needed.names() & measured
                if free and needed.bounds(bounds)[0] < 0:
                    found.append(Guard(needed, "nonnegative", _sentence(node, needed, asked)))
    return tuple(found)


def checks(nodes: Iterable[Node], graph: Graph, fixed: AbstractSet[str], measured: AbstractSet[str]) -> list[Check]:
    """Steps that end the call where nodes of a graph cannot run: with sizes that it measured, or ever.

    `fixed` are the symbols that have their values before the call.
    """
    bounds = symbol_bounds(graph.symbols)
    steps: list[Check] = []
    for node in nodes:
        if node.subgraphs:
            continue
        refusal = operator(node.operator).refusal(node.attributes)
        if refusal:
            never = Guard(dim(-1), "nonnegative", refusal)
            steps.append(Check(f"refuse {node.name}", (never,), 1804, origin=origin_of(node)))
        operands = [graph.values[name].type for name in node.inputs]
        asked = operator(node.operator).requirements(operands, node.attributes)
        found: list[Guard] = []
        for needed in asked:
            names = needed.names()
            if names & measured and names <= fixed | measured and needed.bounds(bounds)[0] < 0:
                found.append(Guard(needed, "nonnegative", _sentence(node, needed, asked)))
        if found:
            steps.append(Check(f"check {node.name}", tuple(found), origin=_where(node)))
    return steps


def _where(node: Node) -> str:
    """The user's own name for a node; one without has its operator."""
    return node.location or node_location(node)


def _sentence(node: Node, needed: Dim, asked: Sequence[Dim]) -> str:
    """What a node needs, without differences: what is asked for both ways is an equality."""
    own = operator(node.operator).sentence(needed, node.attributes)
    if own:
        return f"{_where(node)} needs {own}"
    positive = Dim(tuple(term for term in needed.terms if term[1] > 0), max(needed.constant, 0))
    negative = positive - needed
    return f"{_where(node)} needs {positive} {'=' if -needed in asked else '>='} {negative}"
