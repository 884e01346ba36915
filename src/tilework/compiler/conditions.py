"""What a plan asks of sizes: guards before a call for those of the inputs, checks inside it for those it measures."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from tilework.compiler.origins import origin_of
from tilework.dims import dim, symbol_bounds
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
            for needed in operator(node.operator).requirements(operands, node.attributes):
                # what names the number of a trip holds by construction
                free = needed.names() <= bounds.keys() and not needed.names() & measured
                if free and needed.bounds(bounds)[0] < 0:
                    where = node_location(node)
                    message = f"{where} needs {needed} >= 0 (another compilation may serve: give `shapes`)"
                    found.append(Guard(needed, "nonnegative", message))
    return tuple(found)


def checks(nodes: Iterable[Node], graph: Graph, fixed: AbstractSet[str], measured: AbstractSet[str]) -> list[Check]:
    """Steps that end the call where nodes of a graph cannot run: with sizes that it measured, or ever.

    `fixed` are the symbols that have their values before the call.
    """
    bounds = symbol_bounds(graph.symbols)
    steps: list[Check] = []
    found: list[Guard] = []
    for node in nodes:
        if node.subgraphs:
            continue
        refusal = operator(node.operator).refusal(node.attributes)
        if refusal:
            never = Guard(dim(-1), "nonnegative", refusal)
            steps.append(Check(f"refuse {node.name}", (never,), 1804, origin=origin_of(node)))
        operands = [graph.values[name].type for name in node.inputs]
        for needed in operator(node.operator).requirements(operands, node.attributes):
            names = needed.names()
            if names & measured and names <= fixed | measured and needed.bounds(bounds)[0] < 0:
                text = f"{node_location(node)} needs {needed} >= 0, which the values decide"
                found.append(Guard(needed, "nonnegative", text))
    if found:
        where = found[0].message.split(" needs ")[0]
        steps.append(Check(f"check {where}", tuple(found), origin=where))
    return steps
