"""Fusion by a fixed rule: which nodes form a region.

Walking from the outputs back, a node whose results are only read inside one region joins that region when recomputing
it there costs nothing: its reader is itself a map over elements, or reads every element once (a reduction), or the node
only moves elements that an index can follow. A reduction of rows joins a region that goes over the same rows again: one
walk then does both while a row is near. A slice joins all the regions that read it: each reads its part of the operand
where that is. A later stage of the design decides by predicted time instead.
"""

from __future__ import annotations

from tilework.candidates.region import Region, region_of
from tilework.decisions.attention import Attentions
from tilework.decisions.maps import MOVES, is_map
from tilework.decisions.repeated import is_repeated_tail
from tilework.decisions.windows import WindowFinder, Windows
from tilework.dims import product
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Graph, Node
from tilework.ops._attributes import integers_of
from tilework.ops.registry import operator

_READ_ONCE = frozenset(("reduce", "arg_reduce"))
"""Reductions that read each element of their operand once."""
_PRODUCTS = frozenset(("dot_general", "convolution"))
"""Sums that use elements of their operands again, in tiles."""
NEAR = 1 << 16
"""Elements of a row that are still near when it has been walked over once: they fit a second-level cache."""
LARGEST = 64
"""Nodes beyond which a region's code grows for no gain."""


@dataclass(frozen=True)
class Fused:
    """Regions that cover all nodes of a graph, in an order in which they can run, and which values share memory.

    A node whose result is where its operands are (`windows.covers`) is a region by itself.
    """

    regions: tuple[Region, ...]
    windows: Windows


def fused(
    graph: Graph,
    fixed: frozenset[str] = frozenset(),
    enterable: frozenset[str] = frozenset(),
    apart: Attentions | None = None,
) -> Fused:
    """Form regions. `fixed` are the symbols known before the call's first step, `enterable` the inputs whose memory may
    be entered at an offset. The nodes of each of `apart` are a region, and no other joins it.
    """
    apart = apart if apart is not None else Attentions()
    attention = apart.root_of()
    root_of: dict[str, Node] = {}
    members: dict[str, list[Node]] = {}
    shared: set[str] = set()
    finder = WindowFinder(graph, fixed, enterable, frozenset(attention))

    def takes(root: Node, node: Node) -> bool:
        if any(finder.is_box(value.name) for value in node.outputs):
            return False  # it is in the result of a concatenation, for the region that reads it too
        there = members.get(root.name, [])
        is_open = bool(there) and root.name not in apart.nodes and not finder.holds(root)
        return is_open and len(there) < LARGEST and _may_join(graph, node, root, there)

    for node in reversed(graph.nodes):
        if node.name in attention:
            there = members.setdefault(attention[node.name], [])
            there.append(node)
            root_of[node.name] = there[0]
            continue
        in_place = node.operator == "concatenate" and finder.join(node)
        roots = () if in_place else _reader_regions(graph, node, root_of)
        if len(roots) == 1 and takes(roots[0], node):
            root_of[node.name] = roots[0]
            members[roots[0].name].append(node)
            continue
        root_of[node.name] = node
        if node.operator == "concatenate" and not in_place:
            finder.fill(node)
        copied = node.operator == "slice" and not _computes_only(graph, node) and not finder.cut(node)
        if copied and len(roots) > 1 and all(takes(root, node) for root in roots):
            shared.add(node.name)
            for root in roots:
                members[root.name].append(node)
        else:
            members[node.name] = [node]
    found: list[Region] = []
    windows = finder.windows()
    boxes = windows.boxes(graph)
    for node in graph.nodes:
        if root_of[node.name] is node and node.name not in shared:
            nodes = tuple(reversed(members[node.name]))
            if node.name not in attention:
                nodes = _as_read(node, nodes)
            there = windows.filled.get(node.outputs[0].name, frozenset()) if node.outputs else frozenset[int]()
            found.append(region_of(graph, node.name, nodes, frozenset(shared), boxes, there))
    return Fused(tuple(found), windows)


def _as_read(root: Node, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes in the order in which they are come upon from the root: it does not depend on the order in which the
    model lists them, so neither does the region's code.
    """
    makers = {value.name: node for node in nodes for value in node.outputs}
    found: dict[str, Node] = {}
    waiting: list[tuple[Node, bool]] = [(root, False)]
    while waiting:
        node, over = waiting.pop()
        if node.name in found:
            continue
        if over:
            found[node.name] = node
            continue
        waiting.append((node, True))
        waiting += [(makers[read], False) for read in reversed(node.inputs) if read in makers]
    return tuple(found.values())


def regions(graph: Graph) -> tuple[Region, ...]:
    """The regions of a graph by itself."""
    return fused(graph).regions


def _computes_only(graph: Graph, node: Node) -> bool:
    """Whether a slice's operand is computed for it alone, and then only the elements that it takes."""
    producer = graph.producers.get(node.inputs[0])
    if producer is None or producer.subgraphs or producer.black_box or node.inputs[0] in graph.outputs:
        return False
    alone = len(graph.consumers[node.inputs[0]]) == 1 and len(producer.outputs) == 1
    return alone and _may_join(graph, producer, node, [node])


def _reader_regions(graph: Graph, node: Node, root_of: dict[str, Node]) -> tuple[Node, ...]:
    """The roots of the regions in which a node's results are read; none where they are stored for others too."""
    if any(value.name in graph.outputs for value in node.outputs) or node.subgraphs or node.black_box:
        return ()
    readers = [reader for value in node.outputs for reader in graph.consumers.get(value.name, ())]
    if any(reader.subgraphs or reader.black_box for reader in readers):
        return ()
    return tuple({root_of[reader.name].name: root_of[reader.name] for reader in readers}.values())


def _may_join(graph: Graph, node: Node, root: Node, members: list[Node]) -> bool:
    if operator(root.operator).view or operator(root.operator).measured(root.attributes):
        return False  # what a size is measured from is stored
    if is_repeated_tail(graph, node):
        return False
    if _feeds_product(node, members):
        return node.operator in MOVES and not _narrows(graph, node)
    if _reduces_rows(graph, node, root) or _ends_in(node, root, members):
        return True
    if not is_map(node):
        return False
    if is_map(root) or root.operator in _READ_ONCE:
        return not (operator(node.operator).view and _aliases(graph, node))
    return node.operator in MOVES and not _narrows(graph, node)


def _narrows(graph: Graph, node: Node) -> bool:
    """Whether a conversion makes elements smaller: whoever reads them many times reads less, and what it wants."""
    if node.operator != "convert":
        return False
    before, after = graph.values[node.inputs[0]].tensor.dtype, node.output.tensor.dtype
    return after.bits < before.bits


def _reduces_rows(graph: Graph, node: Node, root: Node) -> bool:
    """Whether a node reduces rows (the last dimensions) that are near enough, and the root goes over the same rows."""
    if node.operator != "reduce" or not (is_map(root) or root.operator in _READ_ONCE):
        return False
    shape = graph.values[node.inputs[0]].tensor.shape
    walked = graph.values[root.inputs[0]] if root.operator in _READ_ONCE else root.outputs[0]
    reduced = integers_of(node.attributes, "dimensions")
    row = shape[len(shape) - len(reduced) :]
    last = bool(row) and len(row) < len(shape) and sorted(reduced) == list(range(len(shape) - len(row), len(shape)))
    elements = product(row).value
    return last and walked.tensor.shape == shape and (elements is None or elements <= NEAR)


def _feeds_product(node: Node, members: list[Node]) -> bool:
    """Whether a product among the members reads a node's results, at first hand or not: it reads each many times."""
    wanted: set[str] = set()
    for member in members:  # readers first
        if member.operator in _PRODUCTS or any(value.name in wanted for value in member.outputs):
            wanted.update(member.inputs)
    return any(value.name in wanted for value in node.outputs)


def _ends_in(node: Node, root: Node, members: list[Node]) -> bool:
    """Whether a product's results go element by element through elementwise nodes into the root's, and nowhere else.

    A region has one product: its tiles are what the nodes after it follow.
    """
    if node.operator not in _PRODUCTS or any(member.operator in _PRODUCTS for member in members):
        return False
    shape = node.outputs[0].tensor.shape
    reached = {node.outputs[0].name}
    for member in reversed(members):
        if reached.isdisjoint(member.inputs):
            continue
        if not operator(member.operator).elementwise or member.outputs[0].tensor.shape != shape:
            return False
        reached.add(member.outputs[0].name)
    return root.outputs[0].name in reached


def _aliases(graph: Graph, node: Node) -> bool:
    """Whether a reshape costs nothing on its own: its operand is stored anyway, so the result is the same bytes."""
    operand = node.inputs[0]
    return operand not in graph.producers or len(graph.consumers.get(operand, ())) > 1
