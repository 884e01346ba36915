"""Formulas over graph values, written with Python's operators: compositions of elementwise operators read like text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tilework import dtypes
from tilework.dims import Dim, IntLike
from tilework.dtypes import DType
from tilework.frontends.onnx.emitter import Emitter
from tilework.graph.graph import Value

Term: TypeAlias = "Formula | int | float"


class Formula:
    """A value whose operators add elementwise nodes; operands broadcast, numbers take its element type."""

    __slots__ = ("emit", "value")

    def __init__(self, emit: Emitter, value: Value) -> None:
        self.emit = emit
        self.value = value

    @property
    def dtype(self) -> DType:
        return self.value.tensor.dtype

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.value.tensor.shape

    # -- arithmetic ----------------------------------------------------------------------------------------------------
    def __add__(self, other: Term) -> Formula:
        return self._with("add", other)

    def __radd__(self, other: Term) -> Formula:
        return self._with("add", other)

    def __sub__(self, other: Term) -> Formula:
        return self._with("subtract", other)

    def __rsub__(self, other: Term) -> Formula:
        return Formula(self.emit, self.emit.apply("subtract", self._operand(other), self.value))

    def __mul__(self, other: Term) -> Formula:
        return self._with("multiply", other)

    def __rmul__(self, other: Term) -> Formula:
        return self._with("multiply", other)

    def __truediv__(self, other: Term) -> Formula:
        return self._with("divide", other)

    def __mod__(self, other: Term) -> Formula:
        return self._with("floor_remainder", other)

    def __and__(self, other: Formula) -> Formula:
        return self._with("and", other)

    def __or__(self, other: Formula) -> Formula:
        return self._with("or", other)

    def __abs__(self) -> Formula:
        return self._alone("abs")

    def maximum(self, other: Term) -> Formula:
        return self._with("maximum", other)

    def minimum(self, other: Term) -> Formula:
        return self._with("minimum", other)

    def clamp(self, low: Term, high: Term) -> Formula:
        """Kept from `low` to `high`; NaN stays."""
        return self.maximum(low).minimum(high)

    def floor(self) -> Formula:
        return self._alone("floor")

    def ceil(self) -> Formula:
        return self._alone("ceil")

    def rounded(self) -> Formula:
        """To the nearest integer, halves to the even one."""
        return self._alone("round_nearest_even")

    # -- comparison ----------------------------------------------------------------------------------------------------
    def __lt__(self, other: Term) -> Formula:
        return self._compared("LT", other)

    def __le__(self, other: Term) -> Formula:
        return self._compared("LE", other)

    def __gt__(self, other: Term) -> Formula:
        return self._compared("GT", other)

    def __ge__(self, other: Term) -> Formula:
        return self._compared("GE", other)

    def equals(self, other: Term) -> Formula:
        return self._compared("EQ", other)

    def select(self, one: Term, other: Term) -> Formula:
        """`one` where this condition holds, else `other`; at least one of them is a formula."""
        operands = [term.value if isinstance(term, Formula) else term for term in (one, other)]
        kinds = [operand.tensor.dtype for operand in operands if isinstance(operand, Value)]
        values = [
            operand if isinstance(operand, Value) else self.emit.scalar(operand, kinds[0]) for operand in operands
        ]
        return Formula(self.emit, self.emit.apply("select", self.value, *values))

    # -- shape and type ------------------------------------------------------------------------------------------------
    def to(self, dtype: DType) -> Formula:
        """Converted; floating to integer truncates and saturates."""
        return Formula(self.emit, self.emit.convert(self.value, dtype))

    def reshape(self, shape: Sequence[IntLike]) -> Formula:
        return Formula(self.emit, self.emit.reshape(self.value, shape))

    def along(self, place: int, rank: int) -> Formula:
        """A vector as a tensor of a rank whose only dimension that is not 1 is at a place."""
        return self.reshape([self.shape[0] if k == place else 1 for k in range(rank)])

    # -- making them ---------------------------------------------------------------------------------------------------
    def _operand(self, term: Term) -> Value:
        return term.value if isinstance(term, Formula) else self.emit.scalar(term, self.dtype)

    def _with(self, operator: str, other: Term) -> Formula:
        return Formula(self.emit, self.emit.apply(operator, self.value, self._operand(other)))

    def _alone(self, operator: str) -> Formula:
        return Formula(self.emit, self.emit.apply(operator, self.value))

    def _compared(self, direction: str, other: Term) -> Formula:
        return Formula(self.emit, self.emit.compare(direction, self.value, self._operand(other)))


def extent(emit: Emitter, value: Dim, dtype: DType) -> Formula:
    """A dim as a number."""
    return Formula(emit, emit.extent(value, dtype))


def counting(emit: Emitter, count: Dim, dtype: DType = dtypes.int64) -> Formula:
    """0, 1, ... count - 1."""
    return Formula(emit, emit.iota((count,), 0, dtype))
