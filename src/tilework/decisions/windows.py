"""Values that are windows on others: operands of a concatenation and slices that need no kernel of their own.

Where every dimension before the one that is cut or joined is 1, a part is one piece of the whole's bytes. A
concatenation then costs nothing if its operands are written there to begin with, and a slice nothing at all. Operands
along inner dimensions are boxes of the whole: the kernels that write and read them are given the whole, and a kernel
of the concatenation's own copies only the others. A later stage decides by predicted time instead; here the rule is
fixed: the value stays where it is whenever that saves a copy, and where rows of a box are long enough to be written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from tilework.candidates.region import Within
from tilework.decisions.maps import is_map
from tilework.dims import Dim, product
from tilework.fast_dataclass import dataclass, field
from tilework.graph.graph import Graph, Node, Value
from tilework.loops.program import Buffer
from tilework.memory.placement import typical
from tilework.ops._attributes import integer_of, integers_of
from tilework.ops.registry import operator
from tilework.ops.shape._base import dims_of

INNER = "an inner dimension: its parts lie in pieces"
MEASURED = "its sizes are known only while the call runs"


ELSEWHERE = "most of its operands live elsewhere"
SHORT = "an inner dimension: rows of its parts are shorter than writing them apart is worth"
ROW = 128
"""Bytes of a row from which on a box is written where it belongs: two lines of a cache, four vectors of 256 bits. It
costs the kernel one broken vector a row, and readers another, where the copy would load and store all of the row."""


@dataclass(frozen=True)
class Window:
    """The bytes of the value `whole` from number `start` on; or a box of it, from the index `corner` on."""

    whole: str
    start: Dim
    corner: tuple[Dim, ...] = ()


@dataclass(frozen=True)
class Windows:
    """What shares memory with what, of one graph.

    `within` has the window that a value is, by name. `joined` are concatenations that need no kernel, by their
    result: the operands that live elsewhere, each with the byte at which its copy starts. `cut` are results of slices
    that need none. `reasons` say of the other concatenations and slices, by the node's name, why they are copied
    (unless all that they take is computed while they are written).
    """

    within: Mapping[str, Window] = field(default_factory=dict[str, Window])
    joined: Mapping[str, tuple[Window, ...]] = field(default_factory=dict[str, tuple[Window, ...]])
    filled: Mapping[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]])
    """By the results of concatenations whose kernels copy some operands, the positions of the others: boxes of them."""
    cut: frozenset[str] = frozenset()
    enterable: frozenset[str] = frozenset()
    """Values whose memory may be entered at an offset, by graphs inside too."""
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])

    def boxes(self, graph: Graph) -> dict[str, Within]:
        """The values that are boxes, by name: of the array that no box holds, and where in it they start."""
        found: dict[str, Within] = {}
        for name, window in self.within.items():
            if not window.corner:
                continue
            whole, corner = window.whole, list(window.corner)
            while whole in self.within and self.within[whole].corner:
                outer = self.within[whole]
                whole = outer.whole
                corner = [a + b for a, b in zip(corner, outer.corner, strict=True)]
            found[name] = Within(graph.values[whole].tensor.shape, tuple(corner))
        return found

    def covers(self, node: Node) -> bool:
        """Whether a slice or a concatenation needs no kernel, its result being where its operands are."""
        return any(value.name in self.joined or value.name in self.cut for value in node.outputs)


class WindowFinder:
    """Decides for one node after the other, readers first, while regions are formed.

    `fixed` are the symbols whose values are known before the call's first step, `enterable` the inputs whose memory may
    be entered at an offset. What leaves a graph has memory of its own: it is the caller's, or copied by control steps.
    Nodes named in `apart` read and write whole values.
    """

    def __init__(
        self, graph: Graph, fixed: frozenset[str], enterable: frozenset[str], apart: frozenset[str] = frozenset()
    ) -> None:
        self._graph = graph
        self._fixed = fixed
        self._enterable = enterable
        self._outputs = frozenset(graph.outputs)
        self._within: dict[str, Window] = {}
        self._apart = apart
        self._sizes = {symbol.name: typical(symbol) for symbol in graph.symbols}
        self._joined: dict[str, tuple[Window, ...]] = {}
        self._filled: dict[str, frozenset[int]] = {}
        self._cut: set[str] = set()
        self._reasons: dict[str, str] = {}

    def windows(self) -> Windows:
        """All that was decided."""
        entered = frozenset(name for name in self._graph.values if self._is_enterable(self._base(name)))
        joined, within, filled = (
            MappingProxyType(self._joined), MappingProxyType(self._within), MappingProxyType(self._filled)
        )  # fmt: skip
        return Windows(within, joined, filled, frozenset(self._cut), entered, MappingProxyType(self._reasons))

    def holds(self, node: Node) -> bool:
        """Whether a concatenation or slice was decided to need no kernel: what it reads does not join it."""
        return any(value.name in self._joined or value.name in self._cut for value in node.outputs)

    def join(self, node: Node) -> bool:
        """Let a concatenation's operands be written into its result, if they can and something is saved."""
        reason = self._why_not_joined(node)
        if reason:
            self._reasons[node.name] = reason
            return False
        saved, copied, start = 0, 0, Dim()
        placed: dict[str, Window] = {}
        copies: list[Window] = []
        for name in node.inputs:
            base = self._base(name)
            if base not in placed and self._placeable(name, base):
                placed[base] = Window(node.output.name, start)
                saved += self._is_stored(name)
            else:
                copies.append(Window(name, start))
                copied += 1
            start = start + self._graph.values[name].tensor.bytes
        if saved == 0 or saved < copied:
            if copied:
                self._reasons[node.name] = ELSEWHERE
            return False
        self._within.update(placed)
        self._joined[node.output.name] = tuple(copies)
        return True

    def fill(self, node: Node) -> None:
        """Let operands of a concatenation that has a kernel be written into its result, as boxes of it, where they are
        stored anyway. Without others it needs no kernel.
        """
        name, along, start = node.output.name, integer_of(node.attributes, "dimension"), Dim()
        if not all(self._is_fixed(other) for other in (name, *node.inputs)) or len(node.inputs) < 2:
            return
        there: set[int] = set()
        short = False
        for position, operand in enumerate(node.inputs):
            shape = self._graph.values[operand].tensor.shape
            if self._is_stored(operand) and self._takes_boxes(operand):
                if self._row(operand, along) >= ROW:
                    corner = tuple(start if place == along else Dim() for place in range(len(shape)))
                    self._within[operand] = Window(name, Dim(), corner)
                    there.add(position)
                else:
                    short = True
            start = start + shape[along]
        if len(there) == len(node.inputs):
            self._joined[name] = ()
            self._reasons.pop(node.name, None)
        elif there:
            self._filled[name] = frozenset(there)
        if short:
            self._reasons[node.name] = SHORT

    def is_box(self, name: str) -> bool:
        """Whether a value is a box of another."""
        return name in self._within and bool(self._within[name].corner)

    def cut(self, node: Node) -> bool:
        """Let a slice be a window on its operand, if it can."""
        reason = self._why_not_cut(node)
        if reason:
            self._reasons[node.name] = reason
            return False
        whole = self._graph.values[node.inputs[0]].tensor
        start = Dim()
        for place, first in enumerate(dims_of(node.attributes, "start_indices")):
            start = start + first * product(whole.shape[place + 1 :])
        self._within[node.output.name] = Window(node.inputs[0], start * whole.dtype.itemsize)
        self._cut.add(node.output.name)
        return True

    # -- why not ---------------------------------------------------------------------------------------------------
    def _why_not_joined(self, node: Node) -> str:
        name, shape = node.output.name, node.output.tensor.shape
        along = integer_of(node.attributes, "dimension")
        if len(node.inputs) < 2 or any(extent.value != 1 for extent in shape[:along]):
            return INNER
        if not all(self._is_fixed(other) for other in (name, *node.inputs)):
            return MEASURED
        if any(self.is_box(other) for other in (name, *node.inputs)):
            return INNER
        return ""

    def _why_not_cut(self, node: Node) -> str:
        source, name = node.inputs[0], node.output.name
        whole, part = self._graph.values[source].tensor.shape, node.output.tensor.shape
        strides = integers_of(node.attributes, "strides", (1,) * len(whole))
        cut = [place for place, (extent, of) in enumerate(zip(part, whole, strict=True)) if extent != of]
        if any(stride != 1 for stride in strides) or (cut and any(of.value != 1 for of in whole[: cut[-1]])):
            return INNER
        bounds = (*dims_of(node.attributes, "start_indices"), *dims_of(node.attributes, "limit_indices"))
        known = all(entry.names() <= self._fixed for entry in bounds)
        if not known or not self._is_fixed(source) or not self._is_fixed(name):
            return MEASURED
        if name in self._within or self.is_box(source):
            return "its operand or its result is a part of another value"
        if not self._outputs.isdisjoint(self._members(name)):
            return "its result is returned"
        if not self._is_enterable(self._base(source)):
            return "its operand is a constant, or state of a loop"
        return ""

    def _placeable(self, name: str, base: str) -> bool:
        if base not in self._graph.producers or base in self._within or not self._is_enterable(base):
            return False
        if not self._is_fixed(base) or self._graph.values[base].tensor.bytes != self._graph.values[name].tensor.bytes:
            return False
        return self._outputs.isdisjoint(self._members(base))

    def _takes_boxes(self, name: str) -> bool:
        """Whether those who write and read a value can be given an array that it is a box of: kernels all, with one
        index for each element.
        """
        graph = self._graph
        producer = graph.producers.get(name)
        if producer is None or name in self._within or name in self._outputs:
            return False
        held = (*self._within.values(), *(window for windows in self._joined.values() for window in windows))
        if any(window.whole == name for window in held) or producer.operator == "slice":
            return False  # (a slice joins all its readers)
        readers = graph.consumers[name]
        if any(node.subgraphs or node.black_box or node.name in self._apart for node in (producer, *readers)):
            return False
        if any(self._reads_whole(node, name) for node in readers):
            return False
        return not operator(producer.operator).view and self._is_stored_alone(producer)

    def _reads_whole(self, node: Node, name: str) -> bool:
        known = operator(node.operator)
        position = node.inputs.index(name)
        return known.view or bool(known.measured(node.attributes)) or position in known.index_operands

    def _is_stored_alone(self, node: Node) -> bool:
        """Whether an operator's only result is written by statements that write nothing else."""
        if len(node.outputs) != 1 or operator(node.operator).measured(node.attributes):
            return False
        operands = [Buffer(f"x{n}", v.tensor.shape, v.tensor.dtype) for n, v in enumerate(self._values(node.inputs))]
        result = Buffer("result", node.output.tensor.shape, node.output.tensor.dtype)
        stages = operator(node.operator).define(operands, [result], node.attributes, self._graph.symbols).stages
        return all(len(stage.targets) == 1 for stage in stages if result in stage.targets)

    def _values(self, names: tuple[str, ...]) -> Iterator[Value]:
        return (self._graph.values[name] for name in names)

    def _row(self, name: str, along: int) -> int:
        """Bytes of a value that stay together when it is a box of one that is longer along a dimension."""
        tensor = self._graph.values[name].tensor
        return int(product(tensor.shape[along:]).evaluate(self._sizes)) * tensor.dtype.itemsize

    def _is_enterable(self, base: str) -> bool:
        """Whether the memory of a value may be entered at an offset: that of constants has none, and what control steps
        hand on may be memory of another value.
        """
        producer = self._graph.producers.get(base)
        if producer is None:
            return base in self._enterable
        if producer.operator == "scan":  # the rows that it collects; states may be what was handed in
            names = [value.name for value in producer.outputs]
            return names.index(base) >= int(str(producer.attributes["state_count"]))
        return not producer.subgraphs and not producer.black_box and self._is_fixed(base)

    # -- values that are the same bytes -----------------------------------------------------------------------------
    def _base(self, name: str) -> str:
        """The value whose memory this is, where views share that of their operand."""
        while name in self._graph.producers and self._is_view(self._graph.producers[name]):
            name = self._graph.producers[name].inputs[0]
        return name

    def _members(self, name: str) -> Iterator[str]:
        """A value and all views on it."""
        left = [name]
        while left:
            found = left.pop()
            yield found
            readers = self._graph.consumers.get(found, ())
            left.extend(node.output.name for node in readers if self._is_view(node) and node.inputs[0] == found)

    def _is_view(self, node: Node) -> bool:
        return not node.subgraphs and not node.black_box and operator(node.operator).view

    def _is_fixed(self, name: str) -> bool:
        return all(extent.names() <= self._fixed for extent in self._graph.values[name].tensor.shape)

    def _is_stored(self, name: str) -> bool:
        """Whether a value is written to memory by some kernel anyway, rather than computed where it is read.

        Elementwise nodes behind it may follow the kernel that computes their operand.
        """
        graph = self._graph
        while True:
            producer = graph.producers.get(name)
            if producer is None:
                return False
            if producer.subgraphs or len(graph.consumers.get(name, ())) > 1 or not is_map(producer):
                return True
            if producer.operator == "concatenate":
                return any(self._is_stored(one) for one in producer.inputs)
            size = producer.outputs[0].tensor.size
            same = [one for one in producer.inputs if one in graph.producers and graph.values[one].tensor.size == size]
            if not same or not (operator(producer.operator).elementwise or operator(producer.operator).view):
                return False
            name = same[0]
