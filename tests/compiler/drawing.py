"""What random graphs are drawn from: choices, types and their limits, data; and what is known of a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tilework import dtypes
from tilework.dims import Dim, Symbol, product
from tilework.dtypes import DType
from tilework.graph.graph import Array, Graph, Value


class Choices(Protocol):
    """Where the choices come from: hypothesis, which makes failures small, or a generator of numbers."""

    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both possible."""
        ...


class Numbers:
    """Choices from a seed."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def integer(self, low: int, high: int) -> int:
        return int(self._generator.integers(low, high + 1))


SYMBOLS = (Symbol("N", 0, 200), Symbol("M", 1, 200))
SYMBOL_VALUES = (
    {"N": 3, "M": 1},
    {"N": 0, "M": 5},
    {"N": 17, "M": 2},
    {"N": 1, "M": 16},
    {"N": 8, "M": 9},
    {"N": 130, "M": 3},
)

FLOATS = (dtypes.float32, dtypes.float32, dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16)
INTEGERS = (
    dtypes.int64, dtypes.int32, dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.uint32, dtypes.uint64,
)  # fmt: skip
WHOLE_LIMIT = {
    "float64": 1 << 53, "float32": 1 << 24, "float16": 1 << 11, "bfloat16": 1 << 8,
}  # fmt: skip
"""Whole numbers up to here are exact."""
LARGEST_ROUGH = {
    "float64": 1e200, "float32": 1e30, "float16": 2e4, "bfloat16": 1e30,
}  # fmt: skip
"""Magnitudes that stay well within a type, whatever is rounded on the way."""

ROUGH_UNARY = (
    "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "tanh", "sine", "cosine", "tan", "sinh",
    "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "sqrt", "rsqrt",
)  # fmt: skip
EXACT_UNARY = ("negate", "abs", "sign", "floor", "ceil", "truncate", "round_nearest_even")
EXACT_BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
INTEGER_BINARY = (
    "divide", "remainder", "floor_remainder", "power", "shift_left", "shift_right_logical", "shift_right_arithmetic",
    "and", "or", "xor",
)  # fmt: skip
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


@dataclass(frozen=True)
class Known:
    """A value of the graph and what is known of its elements."""

    value: Value
    bound: float
    """Magnitude that no finite element exceeds."""
    rough: bool = False

    @property
    def dtype(self) -> DType:
        return self.value.tensor.dtype

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.value.tensor.shape

    @property
    def rank(self) -> int:
        return len(self.shape)


class Unsuitable(Exception):  # noqa: N818 - not an error
    """The operator drawn cannot be applied here."""


def size_of(shape: Sequence[Dim]) -> int:
    """Elements at a typical value of the symbols."""
    return int(product(shape).evaluate({"N": 8, "M": 8}))


def upper(extent: Dim) -> int:
    """An extent at the values of the symbols that make it largest."""
    return max(int(extent.evaluate(values)) for values in SYMBOL_VALUES)


def broadcasts(first: Sequence[Dim], second: Sequence[Dim]) -> bool:
    pairs = zip(reversed(list(first)), reversed(list(second)), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


def largest(dtype: DType, *, whole: bool = False) -> float:
    """Magnitude of the numbers that `numbers` draws; with `whole`, of any number of an integer type."""
    if dtype.kind == "boolean":
        return 1
    if whole:
        return float(2**dtype.bits)
    return 3 if dtype.is_floating else 2.0**dtype.bits


def numbers(generator: np.random.Generator, dtype: DType, shape: tuple[int, ...], *, special: bool) -> Array:
    """Small whole numbers; integers also at the ends of their range; with `special` NaN, infinities and -0.0."""
    if dtype.kind == "boolean":
        return generator.integers(0, 2, shape).astype(np.bool_)
    if dtype.is_integer:
        low, high = dtypes.integer_range(dtype)
        small = generator.integers(max(low, -4), min(high, 5) + 1, shape)
        ends = generator.choice(np.array([low, high, high - 1], dtype=object), shape)
        mixed = np.where(generator.random(shape) < 0.9, small.astype(object), ends)
        return np.asarray(mixed).astype(np.uint64 if dtype.name == "uint64" else np.int64).astype(dtype.numpy)
    found = generator.integers(-3, 4, shape).astype(np.float64)
    if special:
        odd = generator.choice(np.array([np.nan, np.inf, -np.inf, -0.0]), shape)
        found = np.where(generator.random(shape) < 0.15, odd, found)
    with np.errstate(all="ignore"):
        return np.asarray(found).astype(dtype.numpy)


def inputs_for(graph: Graph, symbols: dict[str, int], seed: int, *, special: bool) -> dict[str, Array]:
    """Data for the inputs of a graph."""
    generator = np.random.default_rng(seed)
    return {
        value.name: numbers(
            generator,
            value.tensor.dtype,
            tuple(int(extent.evaluate(symbols)) for extent in value.tensor.shape),
            special=special,
        )
        for value in graph.inputs
    }
