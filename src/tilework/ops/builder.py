"""Building a graph node by node, types inferred as it grows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from mmap import mmap
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from tilework.dims import IntLike, Symbol
from tilework.dtypes import DType
from tilework.errors import Fault, GraphError, VerificationError
from tilework.graph.graph import Array, Attribute, Constant, Graph, GraphSignature, Node, Value, node_location
from tilework.graph.types import TokenType, ValueType, tensor
from tilework.ops.operator import TypeFaults
from tilework.ops.registry import operator


class GraphBuilder:
    """Collects inputs, constants and nodes in order; `build` makes the graph.

    Values may be given as `Value` or by name. Names that the builder makes up are the operator's, with a number where
    that is taken; a name that is given must be free (`GraphError` 1203). `enclosing`: what a subgraph may capture.
    """

    def __init__(self, name: str, symbols: Iterable[Symbol] = (), enclosing: Mapping[str, Value] | None = None) -> None:
        self.name = name
        self.symbols: dict[str, Symbol] = {symbol.name: symbol for symbol in symbols}
        self._enclosing = dict(enclosing or {})
        self._is_inner = enclosing is not None
        self._inputs: list[Value] = []
        self._constants: list[Constant] = []
        self._nodes: list[Node] = []
        self._arrays: dict[str, Array] = {}
        self._values: dict[str, Value] = {}
        self._used: set[str] = set(self._enclosing)
        """Names of values anywhere in the tree of graphs (shared with subgraphs)."""
        self._counts: dict[str, int] = {}

    # -- names ---------------------------------------------------------------------------------------------------------
    def fresh(self, stem: str) -> str:
        """A value name that nothing has yet: the stem where it is free, else the stem and a number."""
        name = stem
        while not name or name in self._used:
            count = self._counts[stem] = self._counts.get(stem, 0) + 1
            name = f"{stem}_{count}"
        self._used.add(name)
        return name

    def _is_free(self, name: str) -> bool:
        return name not in self._values and name not in self._enclosing

    def _claim(self, name: str) -> str:
        if not name or not self._is_free(name):
            raise GraphError(1203, f"the name {name!r} is taken", where=self.name, hint="give each value its own name")
        self._used.add(name)
        return name

    # -- growing -------------------------------------------------------------------------------------------------------
    def symbol(self, symbol: Symbol) -> Symbol:
        """Declare a symbol (the same one again is no fault)."""
        known = self.symbols.setdefault(symbol.name, symbol)
        if known != symbol:
            raise GraphError(1208, f"symbol {known} is declared again as {symbol}", where=self.name)
        return symbol

    def input(self, name: str, dtype: DType, *shape: IntLike) -> Value:
        """Add a tensor input."""
        return self.add_input(name, tensor(dtype, *shape))

    def token(self, name: str = "token") -> Value:
        """Add a token input: the state of the world before the graph's effects."""
        return self.add_input(name, TokenType())

    def add_input(self, name: str, kind: ValueType) -> Value:
        """Add an input of any type."""
        value = Value(self._claim(name), kind)
        self._values[name] = value
        self._inputs.append(value)
        return value

    def constant(
        self, array: Array | np.generic | Sequence[Any] | float, name: str | None = None, dtype: DType | None = None
    ) -> Value:
        """Add a constant: an array (native byte order; copied unless nothing can write to it), or numbers."""
        wanted = None if dtype is None else dtype.numpy
        if type(array) is np.ndarray and wanted in (None, array.dtype) and _cannot_change(array):
            held: Array = array
        else:
            held = np.array(array, wanted, order="C")
            held.flags.writeable = False
        found = Constant(self.fresh("constant") if name is None else self._claim(name), held)
        value = found.value
        self._values[found.name] = value
        self._arrays[found.name] = held
        self._constants.append(found)
        return value

    def apply(
        self,
        name: str,
        *inputs: Value | str,
        location: str = "",
        names: Sequence[str] | str | None = None,
        subgraphs: Sequence[Graph] = (),
        **attributes: Any,
    ) -> Any:
        """Apply an operator; returns its result (a tuple of them where it has several or none).

        Lists among the attributes become tuples. `names` are the results' names. Raises `VerificationError` with every
        fault of the operator's type rule, `UsageError` 1227 for an unknown operator.
        """
        results = self.apply_all(
            name, inputs, {key: _frozen(value) for key, value in attributes.items()}, location, names, subgraphs
        )
        return results[0] if len(results) == 1 else results

    def apply_one(
        self, name: str, *inputs: Value | str, location: str = "", names: str | None = None, **attributes: Any
    ) -> Value:
        """As `apply`, for an operator with one result."""
        frozen = {key: _frozen(value) for key, value in attributes.items()}
        (only,) = self.apply_all(name, inputs, frozen, location, names, ())
        return only

    def apply_all(
        self,
        name: str,
        inputs: Sequence[Value | str],
        attributes: Mapping[str, Attribute],
        location: str = "",
        names: Sequence[str] | str | None = None,
        subgraphs: Sequence[Graph] = (),
    ) -> tuple[Value, ...]:
        """As `apply`, with the attributes in a mapping; always a tuple of results."""
        operands = tuple(self.value(v) for v in inputs)
        try:
            types = operator(name).infer_node([v.type for v in operands], attributes, subgraphs)
        except TypeFaults as found:
            where = node_location(Node(f"node {len(self._nodes)}", name, (), (), location=location))
            faults = [Fault(f.code, f.where or where, f.message) for f in found.faults]
            raise VerificationError(f"graph {self.name}", faults) from None
        return self._add(name, operands, types, attributes, location, names, subgraphs, "")

    def black_box(
        self,
        name: str,
        provider: str,
        *inputs: Value | str,
        results: Sequence[ValueType],
        location: str = "",
        names: Sequence[str] | None = None,
        **attributes: Any,
    ) -> tuple[Value, ...]:
        """Add an operation that the frontend `provider` runs and Tilework does not know."""
        operands = tuple(self.value(v) for v in inputs)
        frozen = {key: _frozen(value) for key, value in attributes.items()}
        return self._add(name, operands, tuple(results), frozen, location, names, (), provider)

    def _add(
        self,
        name: str,
        operands: Sequence[Value],
        types: Sequence[ValueType],
        attributes: Mapping[str, Attribute],
        location: str,
        names: Sequence[str] | str | None,
        subgraphs: Sequence[Graph],
        black_box: str,
    ) -> tuple[Value, ...]:
        wanted = (names,) if isinstance(names, str) else names
        if wanted is not None and len(wanted) != len(types):
            raise GraphError(1220, f"{name} has {len(types)} results, {len(wanted)} names were given", where=location)
        results: list[Value] = []
        for position, kind in enumerate(types):
            chosen = self.fresh(name) if wanted is None else self._claim(wanted[position])
            value = Value(chosen, kind)
            self._values[chosen] = value
            results.append(value)
        own_name = results[0].name if results else f"{name}.{len(self._nodes)}"
        inputs = tuple(operand.name for operand in operands)
        held = MappingProxyType(dict(attributes))
        self._nodes.append(Node(own_name, name, inputs, tuple(results), held, tuple(subgraphs), location, black_box))
        return tuple(results)

    # -- what there is so far -----------------------------------------------------------------------------------------
    @property
    def inputs(self) -> tuple[Value, ...]:
        return tuple(self._inputs)

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(self._nodes)

    # -- reading -------------------------------------------------------------------------------------------------------
    def value(self, value: Value | str) -> Value:
        """The value of that name, of this graph or an enclosing one; raises `GraphError` 1205."""
        name = value if isinstance(value, str) else value.name
        found = self._values.get(name) or self._enclosing.get(name)
        if found is None:
            raise GraphError(1205, f"there is no value {name!r}", where=self.name)
        return found

    def type_of(self, value: Value | str) -> ValueType:
        """The type of a value."""
        return self.value(value).type

    def constant_value(self, value: Value | str) -> Array | None:
        """The array of a value that is a constant of this graph, else None."""
        return self._arrays.get(value if isinstance(value, str) else value.name)

    def defines(self, value: Value) -> bool:
        """Whether the value is of this graph, not of one around it."""
        return value.name in self._values

    def subgraph(self, name: str) -> GraphBuilder:
        """A builder for a subgraph, which may capture every value made so far; symbols are shared."""
        inner = GraphBuilder(name, (), {**self._enclosing, **self._values})
        inner.symbols, inner._used, inner._counts, inner._is_inner = self.symbols, self._used, self._counts, True
        return inner

    def capture(self, value: Value) -> None:
        """Let a subgraph read a value of a graph around it that was made after the subgraph's builder."""
        self._enclosing[value.name] = value

    def build(self, outputs: Sequence[Value | str], signature: GraphSignature | None = None) -> Graph:
        """The graph with these outputs; not verified. A subgraph declares no symbols: it sees those around it."""
        names = tuple(self.value(v).name for v in outputs)
        symbols = () if self._is_inner else tuple(self.symbols.values())
        return Graph(
            self.name, tuple(self._inputs), names, tuple(self._nodes), tuple(self._constants), symbols, signature
        )


def _cannot_change(array: Array) -> bool:
    """Whether an array is dense, aligned, and read-only as is all that it is a view of: bytes, a mapped file."""
    if not (array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative):
        return False
    held: Any = array
    while isinstance(held, np.ndarray):
        if cast("Array", held).flags.writeable:
            return False
        held = cast("Array", held).base
    return held is None or isinstance(held, bytes | mmap)


def _frozen(value: Any) -> Attribute:
    """Lists as tuples and numpy integers as integers, at any depth."""
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(entry) for entry in cast("Iterable[Any]", value))
    return cast("Attribute", value.item() if isinstance(value, np.generic) else value)
