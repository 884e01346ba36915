"""The slow, obvious way to run a graph: each node's numpy reference, in order. The oracle of everything below it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from tilework.dims import Dim, Symbol
from tilework.dtypes import dtype_of
from tilework.errors import GraphError, RunError, TileworkError, UsageError
from tilework.graph.graph import (
    MAXIMUM_NESTING,
    Array,
    Attribute,
    Graph,
    Node,
    Value,
    captured,
    nesting,
    node_location,
    subgraphs,
)
from tilework.graph.types import TensorType, TokenType, ValueType
from tilework.ops.operator import TOKEN
from tilework.ops.registry import operator

BlackBoxFunction: TypeAlias = Callable[[Node, Sequence[Any]], Sequence[Any]]
"""What a black box does: from the node and its operands to its results. Opaque values are any objects."""
_NO_SYMBOLS: Mapping[str, int] = MappingProxyType({})
_NO_FUNCTIONS: Mapping[str, BlackBoxFunction] = MappingProxyType({})


def interpret(
    graph: Graph,
    inputs: Mapping[str, Array] | Sequence[Array],
    symbols: Mapping[str, int] = _NO_SYMBOLS,
    *,
    black_boxes: Mapping[str, BlackBoxFunction] = _NO_FUNCTIONS,
) -> tuple[Array, ...]:
    """The outputs of a graph, in order, for these inputs (by name, or in order); inputs are not changed.

    Tokens need not be passed, and come back as `TOKEN`. Symbols get their values from the shapes of the inputs; one
    that no input's shape determines must be among `symbols`. `black_boxes` has a function for each black box's
    operator name. Opaque values go in and come out as they are.

    Raises `GraphError` 1240 (inputs that do not fit), 1241 (symbols), 1243 (no function for a black box), 1211 (nested
    too deep), 1226 (a result is not of its recorded type), and `RunError` 1242 (a check of the graph failed).
    """
    if nesting(graph) > MAXIMUM_NESTING:
        raise GraphError(1211, f"graph {graph.name} is nested deeper than {MAXIMUM_NESTING} subgraphs")
    declared = {symbol.name: symbol for inner, _ in subgraphs(graph) for symbol in inner.symbols}
    bindings = _Bindings(declared)
    for name, value in symbols.items():
        bindings.set(name, int(value), "the caller")
    arrays = _arguments(graph, inputs)
    for value, array in zip(graph.inputs, arrays, strict=True):
        if isinstance(value.type, TensorType):
            bindings.match(value.type, array, f"input {value.name}", 1240)
    boxed = {name for node in graph.nodes if node.black_box for name in _named_by(node)}
    bindings.finish([symbol.name for symbol in graph.symbols if not symbol.measured and symbol.name not in boxed])
    frame = _Frame(graph, None, bindings, black_boxes)
    found = frame.run(arrays)
    return tuple(np.array(array, copy=True) if isinstance(array, np.ndarray) else array for array in found)  # pyright: ignore[reportUnnecessaryIsInstance]


def _named_by(node: Node) -> set[str]:
    """Symbols in the shapes of a node's results."""
    kinds = [value.type for value in node.outputs]
    return {name for kind in kinds if isinstance(kind, TensorType) for extent in kind.shape for name in extent.names()}


def _arguments(graph: Graph, inputs: Mapping[str, Array] | Sequence[Array]) -> list[Array]:
    tensors = [value for value in graph.inputs if isinstance(value.type, TensorType)]
    where = f"graph {graph.name}"
    names = [value.name for value in graph.inputs if not isinstance(value.type, TokenType)]
    if isinstance(inputs, Mapping):
        wrong = [*(name for name in inputs if name not in names), *(name for name in names if name not in inputs)]
        if wrong:
            text = f"inputs are {', '.join(names) or 'none'}; missing or unknown: {', '.join(wrong)}"
            raise GraphError(1240, text, where=where)
        given = dict(inputs)
    else:
        if len(inputs) != len(names):
            raise GraphError(1240, f"{len(names)} inputs are needed, {len(inputs)} are given", where=where)
        given = dict(zip(names, inputs, strict=True))
    for value in tensors:
        array = given[value.name] = np.asarray(given[value.name])
        try:
            found = dtype_of(array)
        except UsageError as error:
            raise GraphError(1240, error.message, where=f"input {value.name}") from None
        if found != value.tensor.dtype or array.ndim != value.tensor.rank or not array.dtype.isnative:
            raise GraphError(
                1240, f"it is {value.type}, not {array.dtype}{list(array.shape)}", where=f"input {value.name}"
            )
    return [given.get(value.name, TOKEN) for value in graph.inputs]


class _Bindings:
    """The value of every symbol, as far as known."""

    def __init__(self, declared: Mapping[str, Symbol]) -> None:
        self.values: dict[str, int] = {}
        self._declared = declared
        self._open: list[tuple[Dim, int, str, int]] = []

    def set(self, name: str, value: int, where: str) -> None:
        """Give a symbol its value, within its bounds."""
        known = self.values.setdefault(name, value)
        if known != value:
            raise GraphError(1241, f"symbol {name} is {known} and {value}", where=where)
        symbol = self._declared.get(name)
        if symbol is None:
            raise GraphError(1241, f"there is no symbol {name}", where=where)
        low, high = symbol.bounds
        if not low <= value <= high or value % symbol.multiple:
            raise GraphError(1241, f"{name} = {value} is outside {symbol}", where=where)

    def match(self, kind: TensorType, array: Array, where: str, code: int) -> None:
        """Make a type's dims equal to an array's extents: solve for symbols without a value, check the rest."""
        if array.ndim != kind.rank or dtype_of(array) != kind.dtype:
            raise GraphError(code, f"it is {kind}, not {array.dtype}{list(array.shape)}", where=where)
        self._open.extend((extent, size, where, code) for extent, size in zip(kind.shape, array.shape, strict=True))
        while True:
            left = [entry for entry in self._open if not self._settle(*entry)]
            stuck = len(left) == len(self._open)
            self._open = left
            if stuck or not left:
                return

    def forget(self, names: Sequence[str]) -> None:
        """Let measured symbols of a subgraph be measured again."""
        for name in names:
            self.values.pop(name, None)
            self._open = [entry for entry in self._open if name not in entry[0].names()]

    def _settle(self, extent: Dim, size: int, where: str, code: int) -> bool:
        unknown = sorted(extent.names() - self.values.keys())
        if not unknown:
            value = int(extent.evaluate(self.values))
            if value != size:
                raise GraphError(code, f"an extent is {size}, {extent} is {value}", where=where)
            return True
        if len(unknown) > 1 or not extent.affine_in(unknown):
            return False
        (name,) = unknown
        factor = extent.coefficient(name)
        rest = int(extent.evaluate({**self.values, name: 0}))
        if factor == 0:
            return False
        if (size - rest) % factor:
            raise GraphError(1241, f"no {name} makes {extent} equal to {size}", where=where)
        self.set(name, (size - rest) // factor, where)
        return True

    def finish(self, needed: Sequence[str]) -> None:
        """Check that every symbol that inputs must determine has a value."""
        missing = [name for name in needed if name not in self.values]
        if missing:
            raise GraphError(1241, f"no input's shape determines {', '.join(missing)}", hint="pass them in `symbols`")

    def dim(self, extent: Dim) -> Dim:
        return extent.substitute(self.values)

    def attribute(self, value: Attribute) -> Any:
        """The attribute with symbolic integers evaluated."""
        if isinstance(value, tuple):
            return tuple(self.attribute(entry) for entry in value)
        return int(value.evaluate(self.values)) if isinstance(value, Dim) else value


class _Frame:
    """One evaluation of a graph or subgraph: the environment of its operators."""

    def __init__(
        self, graph: Graph, outer: _Frame | None, bindings: _Bindings, black_boxes: Mapping[str, BlackBoxFunction]
    ) -> None:
        self.graph = graph
        self.outer = outer
        self._bindings = bindings
        self._black_boxes = black_boxes
        self.held: dict[str, Array] = {}

    @property
    def symbols(self) -> Mapping[str, int]:
        return MappingProxyType(self._bindings.values)

    def attributes(self, node: Node) -> Mapping[str, Any]:
        return {name: self._bindings.attribute(value) for name, value in node.attributes.items()}

    def result_types(self, node: Node) -> tuple[TensorType, ...]:
        kinds = (value.type for value in node.outputs)
        return tuple(
            TensorType(tuple(self._bindings.dim(extent) for extent in kind.shape), kind.dtype)
            for kind in kinds
            if isinstance(kind, TensorType)
        )

    def evaluate(self, subgraph: Graph, arguments: Sequence[Array]) -> tuple[Array, ...]:
        if len(arguments) != len(subgraph.inputs):
            text = f"{len(subgraph.inputs)} inputs are needed, {len(arguments)} are given"
            raise GraphError(1240, text, where=f"subgraph {subgraph.name}")
        self._bindings.forget([symbol.name for symbol in subgraph.symbols])
        return _Frame(subgraph, self, self._bindings, self._black_boxes).run(arguments)

    def run(self, arguments: Sequence[Array]) -> tuple[Array, ...]:
        graph = self.graph
        for value, array in zip(graph.inputs, arguments, strict=True):
            self._store(value, array, f"subgraph {graph.name}, input {value.name}")
        self.held.update(graph.constant_arrays)
        last = _last_uses(graph)
        for place, node in enumerate(graph.nodes):
            operands = [self._find(name, node) for name in node.inputs]
            for value, array in zip(node.outputs, self._run_node(node, operands), strict=True):
                self._store(value, array, f"{node_location(node)}, result {value.name}")
            for name in last.get(place, ()):
                self.held.pop(name, None)
        return tuple(self._find(name, None) for name in graph.outputs)

    def _run_node(self, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
        if node.black_box:
            function = self._black_boxes.get(node.operator)
            if function is None:
                text = f"{node.operator} is a black box of {node.black_box}, and no function is given for it"
                raise GraphError(1243, text, where=node_location(node))
            results = function(node, operands)
        else:
            try:
                self._check_requirements(node)
                results = operator(node.operator).run(node, operands, self)
            except TileworkError as error:
                error.where = error.where or node_location(node)
                raise
        if len(results) != len(node.outputs):
            text = f"it gave {len(results)} results, the node has {len(node.outputs)}"
            raise GraphError(1226, text, where=node_location(node))
        return results

    def _check_requirements(self, node: Node) -> None:
        kinds = [self._kind(name) for name in node.inputs]
        for room in operator(node.operator).requirements(kinds, node.attributes):
            value = int(room.evaluate(self._bindings.values))
            if value < 0:
                raise RunError(1242, f"{node.operator} needs {room} >= 0, it is {value}")

    def _kind(self, name: str) -> ValueType:
        frame: _Frame | None = self
        while frame is not None:
            if name in frame.graph.values:
                return frame.graph.values[name].type
            frame = frame.outer
        raise GraphError(1205, f"nothing defines {name!r}", where=f"graph {self.graph.name}")

    def _store(self, value: Value, array: Array, where: str) -> None:
        if isinstance(value.type, TensorType):
            self._bindings.match(value.type, array, where, 1226)
        self.held[value.name] = array

    def _find(self, name: str, node: Node | None) -> Array:
        frame: _Frame | None = self
        while frame is not None:
            if name in frame.held:
                return frame.held[name]
            frame = frame.outer
        where = f"graph {self.graph.name}" if node is None else node_location(node)
        raise GraphError(1205, f"nothing has defined {name!r}", where=where)


def _last_uses(graph: Graph) -> dict[int, list[str]]:
    """Values that no node after each place, and no output, reads: they can be dropped there."""
    last: dict[str, int] = {}
    for place, node in enumerate(graph.nodes):
        for value in node.outputs:
            last[value.name] = place
        for name in (*node.inputs, *(n for subgraph in node.subgraphs for n in captured(subgraph))):
            last[name] = place
    found: dict[int, list[str]] = {}
    for name, place in last.items():
        if name not in graph.outputs:
            found.setdefault(place, []).append(name)
    return found
