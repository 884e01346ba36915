"""Which nodes are one attention, computed without its score matrix ever being stored.

From a softmax over the last dimension forwards to the one product that reads it, backwards to the one that its scores
come from, with the nodes between and before them that compute each element on its own and are read nowhere else. They
form a region where a recipe knows the attention in it, and where the scores do not stay near anyway: a matrix of about
a second-level cache is written and read for less than it takes to go through it in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilework.candidates.region import region_of
from tilework.fast_dataclass import dataclass, field
from tilework.graph.graph import Graph, Node
from tilework.machine.cpu import CpuMachine
from tilework.memory.placement import typical
from tilework.numerics import Numerics
from tilework.ops.registry import operator
from tilework.recipes.cpu.online_attention import RECIPE

_MOVES = frozenset(("transpose", "broadcast_in_dim", "reshape", "slice", "convert"))
"""Operators that move elements."""
_MASKS = frozenset((*_MOVES, "iota", "compare", "select", "and", "or", "not", "add", "subtract"))
"""Operators whose result costs less to compute again for every head than to keep."""
MOST = 48
"""Nodes of an attention."""
NEAR = 2
"""Second-level caches that scores may fill and still be written and read as they are: measured, see design/0030."""


@dataclass(frozen=True)
class Attentions:
    """The nodes of each attention, in order, by the name of its last node."""

    nodes: Mapping[str, tuple[Node, ...]] = field(default_factory=dict[str, tuple[Node, ...]])

    def root_of(self) -> dict[str, str]:
        """The last node of the attention that a node is part of, by name."""
        return {node.name: root for root, nodes in self.nodes.items() for node in nodes}


def attentions(graph: Graph, machine: CpuMachine | None, numerics: Numerics) -> Attentions:
    """Every attention of a graph that is to be one region; none without a machine, or where sums keep their order."""
    found: dict[str, tuple[Node, ...]] = {}
    if machine is None or not numerics.reassociate:
        return Attentions(found)
    for node in graph.nodes:
        if node.operator != "softmax" or not _over_last(node) or not _far(graph, node, machine):
            continue
        nodes = _around(graph, node)
        if nodes and RECIPE.candidates(region_of(graph, nodes[-1].name, nodes), machine, numerics):
            found[nodes[-1].name] = nodes
    return Attentions(found)


def _over_last(node: Node) -> bool:
    return int(str(node.attributes["dimension"])) == len(node.output.tensor.shape) - 1


def _far(graph: Graph, softmax: Node, machine: CpuMachine) -> bool:
    """Whether the scores are too many to be near when they are read again."""
    scores, near = softmax.output.tensor, machine.cache(2)
    sizes = {symbol.name: typical(symbol) for symbol in graph.symbols}
    return near is None or int(scores.size.evaluate(sizes)) * scores.dtype.itemsize > NEAR * near.bytes


def _around(graph: Graph, softmax: Node) -> tuple[Node, ...]:
    """The nodes of the attention around a softmax, in the graph's order; none where no product is before and after."""
    ahead = [softmax]
    for node in _only_readers(graph, softmax):
        ahead.append(node)
        if node.operator == "dot_general":
            break
        if not _elementwise(node):
            return ()
    if ahead[-1].operator != "dot_general":
        return ()
    after = next(_only_readers(graph, ahead[-1]), None)
    if after is not None and after.operator == "transpose":
        ahead.append(after)
    inside = {node.name for node in ahead}
    scores, products = {softmax.inputs[0]}, 0
    for node in reversed(graph.nodes):
        if node.name in inside or len(inside) >= MOST or not _read_inside(graph, node, inside):
            continue
        wanted = node.outputs[0].name in scores
        if node.operator == "dot_general":
            if not wanted or products:
                continue
            products += 1
        elif not _may_join(graph, node, softmax, wanted=wanted):
            continue
        elif wanted:
            scores.update(node.inputs)
        inside.add(node.name)
    return tuple(node for node in graph.nodes if node.name in inside) if products else ()


def _only_readers(graph: Graph, node: Node) -> Iterator[Node]:
    """The node that alone reads a node's result, the one that alone reads that node's, and so on."""
    while True:
        name = node.outputs[0].name
        readers = graph.consumers.get(name, ())
        distinct = {reader.name for reader in readers}
        if len(distinct) != 1 or name in graph.outputs or readers[0].subgraphs or readers[0].black_box:
            return
        node = readers[0]
        yield node


def _read_inside(graph: Graph, node: Node, inside: set[str]) -> bool:
    """Whether all results of a node are read, and by nodes of the attention alone."""
    if node.subgraphs or node.black_box or len(node.outputs) != 1 or node.output.name in graph.outputs:
        return False
    readers = graph.consumers.get(node.output.name, ())
    return bool(readers) and all(reader.name in inside for reader in readers)


def _may_join(graph: Graph, node: Node, softmax: Node, *, wanted: bool) -> bool:
    if operator(node.operator).view and node.inputs[0] not in graph.producers:
        # the same bytes as what is stored anyway; read through where it is spread over heads after that
        return all(reader.operator == "broadcast_in_dim" for reader in graph.consumers[node.output.name])
    if wanted and node.output.tensor.size != softmax.output.tensor.size:
        return node.operator in _MASKS
    return _elementwise(node) or node.operator in _MOVES or node.operator == "iota"


def _elementwise(node: Node) -> bool:
    return operator(node.operator).elementwise
