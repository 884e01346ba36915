"""Adding graph operators for one ONNX node: numbers become constants, steps that change nothing are left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from tilework import dtypes
from tilework.dims import Dim, IntLike, dim, product
from tilework.dtypes import DType
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.operand import DimArray, Operand
from tilework.frontends.onnx.symbols import SymbolTable
from tilework.frontends.onnx.unify import Unified, equal, require_equal
from tilework.graph.graph import Array, Graph, Value, captured
from tilework.ops.builder import GraphBuilder
from tilework.ops.registry import operator as find_operator

Number: TypeAlias = "int | float | bool"


class Emitter:
    """A `GraphBuilder` with the words that converters need; `location` is the ONNX node at hand."""

    def __init__(self, builder: GraphBuilder, symbols: SymbolTable) -> None:
        self.builder = builder
        self.symbols = symbols
        self.location = ""
        self._scalars: dict[tuple[str, bytes], Value] = {}
        self.around: Emitter | None = None
        self.trip: Value | None = None
        """The number of the trip, in the body of a loop."""
        self.fresh_key: Value | None = None
        self.drawn = 0
        """In the outermost graph: a random key that is new at every call, and how many nodes use it (`random_keys`)."""
        self.made: dict[int, tuple[Operand, Value]] = {}
        self.joined: dict[Dim, frozenset[Dim]] = {}
        """Measured extents that others broadcast to (`broadcasting`), and these others."""
        self.measures: list[str] = []
        """Symbols that are measured in this graph, not in one around or inside it."""

    def inside(self, name: str) -> Emitter:
        """An emitter for a subgraph, which may use every value made so far."""
        found = Emitter(self.builder.subgraph(name), self.symbols)
        found.location = self.location
        found.around = self
        return found

    def joints(self) -> dict[Dim, frozenset[Dim]]:
        """What `joined` of this emitter and those around it holds."""
        return self.joined if self.around is None else {**self.around.joints(), **self.joined}

    def inputs_behind(self, values: Sequence[Value]) -> list[str]:
        """Names of the model's inputs that some values are computed from."""
        emitters: list[Emitter] = [self]
        while emitters[-1].around is not None:
            emitters.append(emitters[-1].around)
        makers = {made.name: node for emitter in emitters for node in emitter.builder.nodes for made in node.outputs}
        names = {value.name for value in emitters[-1].builder.inputs}
        found: dict[str, None] = {}
        seen: set[str] = set()
        left = [value.name for value in values]
        while left:
            name = left.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in names:
                found[name] = None
            maker = makers.get(name)
            if maker is not None:
                left.extend((*maker.inputs, *(outer for graph in maker.subgraphs for outer in captured(graph))))
        return list(found)

    # -- values --------------------------------------------------------------------------------------------------------
    def emit(self, operand: Operand) -> Value:
        """The graph value of an operand: made on first need, so that what only shapes need never enters the graph.

        Raises `NodeFault` 1115 for strings and maps, which few operators take.
        """
        if operand.opaque:
            raise NodeFault(1115, f"{operand.name!r} is {operand}, which is not supported here")
        if operand.value is not None:
            return operand.value
        emitter: Emitter | None = self
        while emitter is not None:  # what a subgraph has made is not seen around it
            if id(operand) in emitter.made:
                return emitter.made[id(operand)][1]
            emitter = emitter.around
        if operand.array is not None:
            value = self.builder.constant(operand.array, self.builder.fresh(operand.name or "constant"))
        elif operand.quotients is not None:
            value = self._dims(operand.quotients.numerators, operand)
            under = operand.quotients.denominators
            if any(entry != 1 for entry in under.reshape(-1)):
                value = self.apply("divide", value, self._dims(under, operand))
        else:
            assert operand.dims is not None
            value = self._dims(operand.dims, operand)
        self.made[id(operand)] = (operand, value)
        return value

    def _dims(self, dims: DimArray, operand: Operand) -> Value:
        entries: tuple[Dim, ...] = tuple(dims.reshape(-1))
        held = self.builder.apply_one("dimension_values", values=entries, shape=operand.shape, location=self.location)
        return self.convert(held, operand.dtype)

    def constant(self, array: Array) -> Value:
        return self.builder.constant(array)

    def scalar(self, number: Number, dtype: DType) -> Value:
        """A constant without dimensions; equal ones are shared."""
        with np.errstate(over="ignore"):
            array = np.array(number).astype(dtype.numpy)
        key = (dtype.name, array.tobytes())
        if key not in self._scalars:
            self._scalars[key] = self.builder.constant(array)
        return self._scalars[key]

    def extent(self, value: Dim, dtype: DType) -> Value:
        """A symbolic integer as a scalar of some type."""
        if value.is_constant:
            return self.scalar(value.constant, dtype)
        return self.convert(self.apply("dimension_values", values=(value,), shape=()), dtype)

    def measured(self, count: Value, stem: str, upper: int | None = None) -> Dim:
        """An extent that is an integer's value when the model runs; it must not be negative then."""
        extent = self.measured_symbol(stem, upper)
        whole = self.convert(self.reshape(count, ()), dtypes.int64)
        self.apply("numbers_below", whole, extent=(extent,))
        return extent

    def measured_symbol(self, stem: str, upper: int | None = None) -> Dim:
        """A new measured symbol of this graph; what binds it must follow."""
        extent = self.symbols.measured(stem, upper)
        self.measures.append(str(extent))
        return extent

    def build(self, outputs: Sequence[Value]) -> Graph:
        """The graph of a subgraph's emitter, with the symbols that are measured in it."""
        return self.builder.build(outputs).replace(symbols=tuple(self.symbols.symbols[name] for name in self.measures))

    # -- operators -----------------------------------------------------------------------------------------------------
    def apply(self, operator: str, *operands: Value | Number, **attributes: Any) -> Value:
        """Apply an operator with one result; numbers get the element type of the last operand that is a value."""
        like = next((o.tensor.dtype for o in reversed(operands) if isinstance(o, Value)), dtypes.float32)
        values = [o if isinstance(o, Value) else self.scalar(o, like) for o in operands]
        if len(values) > 1 and find_operator(operator).elementwise:
            joined = self.joined_shape(*(value.tensor.shape for value in values))
            values = [self.fitted(value, joined) for value in values]
        return self.builder.apply_one(operator, *values, location=self.location, **attributes)

    def compare(self, direction: str, left: Value | Number, right: Value | Number) -> Value:
        return self.apply("compare", left, right, direction=direction)

    def convert(self, value: Value, dtype: DType) -> Value:
        return value if value.tensor.dtype == dtype else self.apply("convert", value, dtype=dtype)

    def reshape(self, value: Value, shape: Sequence[IntLike]) -> Value:
        wanted = tuple(dim(extent) for extent in shape)
        if value.tensor.shape == wanted:
            return value
        size = product(wanted)
        if size != value.tensor.size and not (size - value.tensor.size).is_constant:
            flat = self.apply("reshape", value, shape=(value.tensor.size,))
            value = self.assumed(flat, (size,))
        return self.apply("reshape", value, shape=wanted)

    def assumed(self, value: Value, shape: Sequence[Dim], at_least_zero: Sequence[Dim] = ()) -> Value:
        """The value with other extents, which are assumed to be equal to its own; every call checks that."""
        if tuple(shape) == value.tensor.shape and not at_least_zero:
            return value
        return self.apply("assume", value, shape=tuple(shape), at_least_zero=tuple(at_least_zero))

    def shaped(self, value: Value, shape: Sequence[Dim], what: str) -> Value:
        """The value under a shape that an operator needs it to have: known to be that, or assumed.

        Raises `NodeFault` 1119 where it never is, `Unified` as `equal`.
        """
        own = value.tensor.shape
        text = f"{what} is [{', '.join(map(str, own))}], it must be [{', '.join(map(str, shape))}]"
        if len(own) != len(shape):
            raise NodeFault(1119, text)
        for one, other in zip(own, shape, strict=True):
            try:
                equal(self.symbols, one, other, what)
            except NodeFault as fault:
                raise NodeFault(fault.code, text) from None
        return self.assumed(value, shape)

    def fitted(self, value: Value, shape: Sequence[Dim]) -> Value:
        """The value with a shape's last extents wherever its own are not 1; those not known to be equal are assumed."""
        own = value.tensor.shape
        count = min(len(own), len(shape))
        wanted = [own[place] if own[place] == 1 else shape[place] for place in range(-count, 0)]
        return self.assumed(value, (*own[: len(own) - count], *wanted))

    def transpose(self, value: Value, permutation: Sequence[int]) -> Value:
        if list(permutation) == list(range(len(permutation))):
            return value
        return self.apply("transpose", value, permutation=tuple(permutation))

    def broadcast(self, value: Value, shape: Sequence[IntLike]) -> Value:
        """Repeat along dims of extent 1 and new leading dims, numpy-style."""
        wanted = tuple(dim(extent) for extent in shape)
        if value.tensor.shape == wanted:
            return value
        value = self.fitted(value, wanted)
        if value.tensor.shape == wanted:
            return value
        places = tuple(range(len(wanted) - value.tensor.rank, len(wanted)))
        return self.apply("broadcast_in_dim", value, shape=wanted, broadcast_dimensions=places)

    def fill(self, number: Number, dtype: DType, shape: Sequence[IntLike]) -> Value:
        """A tensor of one number."""
        return self.broadcast(self.scalar(number, dtype), shape)

    def zeros_like(self, value: Value) -> Value:
        return self.fill(0, value.tensor.dtype, value.tensor.shape)

    def iota(self, shape: Sequence[IntLike], dimension: int, dtype: DType) -> Value:
        return self.apply("iota", shape=tuple(dim(s) for s in shape), dimension=dimension, dtype=dtype)

    def expand_dims(self, value: Value, axes: Sequence[int]) -> Value:
        """New dims of extent 1 at positions of the result (sorted, not negative)."""
        shape = list(value.tensor.shape)
        for axis in sorted(axes):
            shape.insert(axis, dim(1))
        return self.reshape(value, shape)

    def drop_dims(self, value: Value, axes: Sequence[int]) -> Value:
        return self.reshape(value, [s for axis, s in enumerate(value.tensor.shape) if axis not in axes])

    def slice(
        self, value: Value, starts: Sequence[IntLike], limits: Sequence[IntLike], strides: Sequence[int] | None = None
    ) -> Value:
        """A strided part (strides positive); nothing where it is the whole."""
        first = tuple(dim(s) for s in starts)
        last = tuple(dim(s) for s in limits)
        steps = tuple(strides) if strides is not None else (1,) * len(first)
        if last == value.tensor.shape and all(s == 0 for s in first) and all(s == 1 for s in steps):
            return value
        return self.apply("slice", value, start_indices=first, limit_indices=last, strides=steps)

    def slice_axis(self, value: Value, axis: int, start: IntLike, limit: IntLike) -> Value:
        starts: list[IntLike] = [0] * value.tensor.rank
        limits: list[IntLike] = list(value.tensor.shape)
        starts[axis], limits[axis] = start, limit
        return self.slice(value, starts, limits)

    def concatenate(self, values: Sequence[Value], dimension: int) -> Value:
        return values[0] if len(values) == 1 else self.apply("concatenate", *values, dimension=dimension)

    def reverse(self, value: Value, dimensions: Sequence[int]) -> Value:
        return self.apply("reverse", value, dimensions=tuple(dimensions)) if dimensions else value

    def pad(
        self,
        value: Value,
        fill: Value | Number,
        low: Sequence[IntLike],
        high: Sequence[IntLike],
        interior: Sequence[int] | None = None,
    ) -> Value:
        inside = tuple(interior) if interior is not None else (0,) * len(low)
        before, after = tuple(dim(p) for p in low), tuple(dim(p) for p in high)
        if not any(inside) and all(p == 0 for p in (*before, *after)):
            return value
        filler = fill if isinstance(fill, Value) else self.scalar(fill, value.tensor.dtype)
        return self.apply(
            "pad", value, filler, edge_padding_low=before, edge_padding_high=after, interior_padding=inside
        )

    # -- reductions ----------------------------------------------------------------------------------------------------
    def reduce(self, value: Value, axes: Sequence[int], reducer: str, keep: bool = True) -> Value:
        if not axes:
            return value
        return self.apply("reduce", value, dimensions=tuple(axes), reducer=reducer, keep_dimensions=keep)

    def count(self, value: Value, axes: Sequence[int]) -> Dim:
        """Elements along some dims."""
        return product(value.tensor.shape[axis] for axis in axes)

    def mean(self, value: Value, axes: Sequence[int], keep: bool = True) -> Value:
        if not axes:
            return value
        total = self.reduce(value, axes, "sum", keep)
        return self.apply("divide", total, self.extent(self.count(value, axes), value.tensor.dtype))

    def matmul(self, left: Value, right: Value) -> Value:
        """`numpy.matmul`: any ranks, leading dims broadcast."""
        a, b = left, right
        if a.tensor.rank == 0 or b.tensor.rank == 0:
            raise NodeFault(1119, "an operand of a matrix product has no dimensions")
        one_a, one_b = a.tensor.rank == 1, b.tensor.rank == 1
        if one_a and one_b:
            return self.dot(a, b, (), (), (0,), (0,))
        if one_a:
            a = self.expand_dims(a, [0])
        if one_b:
            b = self.expand_dims(b, [1])
        found = self._matrix_product(a, b)
        rank = found.tensor.rank
        return self.drop_dims(found, [rank - 2] if one_a else [rank - 1] if one_b else [])

    def _matrix_product(self, a: Value, b: Value) -> Value:
        if b.tensor.rank == 2:  # a stack of rows times one matrix
            return self.dot(a, b, (), (), (a.tensor.rank - 1,), (0,))
        lead = self.joined_shape(a.tensor.shape[:-2], b.tensor.shape[:-2])
        a = self.broadcast(a, (*lead, *a.tensor.shape[-2:]))
        b = self.broadcast(b, (*lead, *b.tensor.shape[-2:]))
        batch = tuple(range(len(lead)))
        return self.dot(a, b, batch, batch, (len(lead) + 1,), (len(lead),))

    def dot(
        self,
        left: Value,
        right: Value,
        left_batch: Sequence[int],
        right_batch: Sequence[int],
        left_contracted: Sequence[int],
        right_contracted: Sequence[int],
    ) -> Value:
        wanted = list(right.tensor.shape)
        for batch, other in zip((*left_batch, *left_contracted), (*right_batch, *right_contracted), strict=True):
            one, two = left.tensor.shape[batch], right.tensor.shape[other]
            equal(self.symbols, one, two, f"dimension {batch} of {left.type} and {other} of {right.type}")
            wanted[other] = one
        right = self.assumed(right, wanted)
        return self.apply(
            "dot_general", left, right, lhs_batching_dimensions=tuple(left_batch),
            rhs_batching_dimensions=tuple(right_batch), lhs_contracting_dimensions=tuple(left_contracted),
            rhs_contracting_dimensions=tuple(right_contracted),
        )  # fmt: skip

    def equal_shapes(self, one: Sequence[Dim], other: Sequence[Dim]) -> None:
        """Take two shapes of one rank to be equal (`Unified`); raises `NodeFault` where they cannot be."""
        for a, b in zip(one, other, strict=True):
            require_equal(self.symbols, a, b, "dimensions that must be equal")

    def joined_shape(self, *shapes: Sequence[Dim]) -> tuple[Dim, ...]:
        """The shape that shapes broadcast to: extents equal, or literally 1.

        Two free dims that meet are taken to be one (`Unified`), other extents are assumed to be equal; raises
        `NodeFault` 1119 for extents that never are.
        """
        rank = max((len(shape) for shape in shapes), default=0)
        joined: list[Dim] = []
        for place in range(-rank, 0):
            found = list(dict.fromkeys(s[place] for s in shapes if len(s) >= -place and s[place] != 1))
            for other in found[1:]:
                try:
                    equal(self.symbols, found[0], other, "dimensions that are joined")
                except Unified as taken:
                    if isinstance(taken.value, int) and not (found[0].is_constant or other.is_constant):
                        # n and 4 n are equal for n = 0, but a call is more likely to have one of them 1
                        raise NodeFault(1121, f"{found[0]} and {other} must be equal, or one of them 1") from None
                    raise Unified(taken.symbol, taken.value, certain=False) from None
            joined.append(found[0] if found else dim(1))
        return tuple(joined)
