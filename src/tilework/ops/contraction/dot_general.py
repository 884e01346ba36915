"""`dot_general`: products of two tensors summed over contracting dimensions, for every batch (StableHLO)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.compute.notation import Axis, Computation, Stage
from tilework.dims import Symbol, product
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import cast
from tilework.loops.program import Buffer
from tilework.loops.reducers import reducer
from tilework.ops._attributes import integers_of, same_dim
from tilework.ops._stages import accumulate_for, axes, load
from tilework.ops.contraction._products import check_types, numpy_sum_type, product_type, rounded
from tilework.ops.definitions import computation
from tilework.ops.operator import Array, Counts, Operator, PrecisionFacts
from tilework.ops.rules import Rule


@dataclass(frozen=True)
class Roles:
    """What each dimension of one side is for, as positions."""

    batch: tuple[int, ...]
    contracting: tuple[int, ...]
    free: tuple[int, ...]


def _roles(rank: int, batch: tuple[int, ...], contracting: tuple[int, ...]) -> Roles:
    used = {*batch, *contracting}
    return Roles(batch, contracting, tuple(d for d in range(rank) if d not in used))


class DotGeneral(Operator):
    """`dot_general(lhs, rhs; lhs_batching_dimensions, rhs_batching_dimensions, lhs_contracting_dimensions,
    rhs_contracting_dimensions)`: result dimensions are batch, the rest of lhs, the rest of rhs.

    16-bit floating operands are summed in float32; 8-bit integers (of either sign each) give int32.
    """

    name = "dot_general"
    precision = PrecisionFacts(safe_low=True)

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        lhs, rhs, dtype = check_types(rule)
        sides: list[Roles] = []
        for name, operand in (("lhs", lhs), ("rhs", rhs)):
            batch = rule.axes(f"{name}_batching_dimensions", operand.rank, ())
            contracting = rule.axes(f"{name}_contracting_dimensions", operand.rank)
            both = sorted(set(batch) & set(contracting))
            if both:
                rule.fault(1225, f"{name} dimensions {both} are both batching and contracting")
            sides.append(_roles(operand.rank, batch, contracting))
        left, right = sides
        for what, a, b in (
            ("batching", left.batch, right.batch), ("contracting", left.contracting, right.contracting)
        ):  # fmt: skip
            if len(a) != len(b):
                rule.fault(1225, f"lhs has {len(a)} {what} dimensions and rhs {len(b)}; they pair up one to one")
            for i, j in zip(a, b, strict=False):
                same_dim(rule, lhs.shape[i], rhs.shape[j], f"{what} dimensions {i} of lhs and {j} of rhs")
        rule.finish()
        shape = (
            *(lhs.shape[d] for d in (*left.batch, *left.free)), *(rhs.shape[d] for d in right.free)
        )  # fmt: skip
        return (TensorType(shape, dtype),)

    def define(
        self, operands: Sequence[Buffer], results: Sequence[Buffer], attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:  # fmt: skip
        (lhs, rhs), (result,) = operands, results
        left, right = _sides(len(lhs.shape), len(rhs.shape), attributes)
        batch = axes(result.name, [lhs.shape[d] for d in left.batch], "b")
        rows = axes(result.name, [lhs.shape[d] for d in left.free], "m")
        columns = axes(result.name, [rhs.shape[d] for d in right.free], "n")
        inner = axes(result.name, [lhs.shape[d] for d in left.contracting], "k", "reduction")
        wide = product_type(result.dtype)
        factors = (
            load(lhs, _placed(left, batch, rows, inner), wide), load(rhs, _placed(right, batch, columns, inner), wide)
        )  # fmt: skip
        value = factors[0] * factors[1]
        name, free = f"{result.name}.{self.name}", (*batch, *rows, *columns)
        if not inner:
            outer = Stage(name, (result,), free, (cast(value, result.dtype),))
            return computation(self.name, operands, results, [outer], symbols)
        total = reducer("sum", wide)
        stage = Stage(
            name, (result,), (*free, *inner), (value,), reducer=total, init=total.identity,
            accumulate=accumulate_for(result.dtype),
        )  # fmt: skip
        return computation(self.name, operands, results, [stage], symbols)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        lhs, rhs = operands
        (result,) = results
        left, right = _sides(lhs.ndim, rhs.ndim, attributes)
        wide = numpy_sum_type(result.dtype)
        a = lhs.astype(wide).transpose(*left.batch, *left.free, *left.contracting)
        b = rhs.astype(wide).transpose(*right.batch, *right.contracting, *right.free)
        batch = a.shape[: len(left.batch)]
        depth = int(np.prod(a.shape[a.ndim - len(left.contracting) :], dtype=np.int64))
        rows = int(np.prod(a.shape[len(batch) : len(batch) + len(left.free)], dtype=np.int64))
        columns = int(np.prod(b.shape[b.ndim - len(right.free) :], dtype=np.int64))
        a, b = a.reshape(*batch, rows, depth), b.reshape(*batch, depth, columns)
        with np.errstate(all="ignore"):
            # without a sum there is no +0.0 to start from: -0.0 stays
            total: Array = np.matmul(a, b) if left.contracting else np.multiply(a, b)
        return (rounded(total.reshape(tuple(int(d) for d in result.shape)), result.dtype),)

    def counts(
        self, operands: Sequence[ValueType], results: Sequence[ValueType], attributes: Mapping[str, Attribute]
    ) -> Counts:
        traffic = super().counts(operands, results, attributes).bytes
        lhs, result = operands[0], results[0]
        assert isinstance(lhs, TensorType)
        assert isinstance(result, TensorType)
        depth = product(lhs.shape[d] for d in integers_of(attributes, "lhs_contracting_dimensions"))
        return Counts(result.size * depth * 2, traffic)


def _sides(lhs_rank: int, rhs_rank: int, attributes: Mapping[str, Any]) -> tuple[Roles, Roles]:
    left, right = (
        _roles(
            rank,
            integers_of(attributes, f"{name}_batching_dimensions"),
            integers_of(attributes, f"{name}_contracting_dimensions"),
        )
        for name, rank in (("lhs", lhs_rank), ("rhs", rhs_rank))
    )
    return left, right


def _placed(side: Roles, batch: Sequence[Axis], free: Sequence[Axis], inner: Sequence[Axis]) -> list[Axis]:
    """The axes of one side in the order of its dimensions."""
    by_dimension = dict(zip((*side.batch, *side.free, *side.contracting), (*batch, *free, *inner), strict=True))
    return [by_dimension[d] for d in range(len(by_dimension))]


OPERATOR = DotGeneral()
