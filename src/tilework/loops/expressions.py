"""Scalar expressions: what one iteration of a computation evaluates.

Expressions are compared by identity: sharing an object means computing it once. Every expression has a type;
`call` and the operators derive it, and refuse operands that do not fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from operator import is_
from typing import TypeAlias

from tilework import dtypes
from tilework.dims import Dim, Loaded, dim
from tilework.dtypes import DType
from tilework.errors import LoopProgramError
from tilework.fast_dataclass import dataclass
from tilework.loops.functions import FUNCTIONS, result_type

Scalar: TypeAlias = bool | int | float


class Expression:
    """Base of scalar expressions; has `dtype`. Python operators build calls (but `==` is identity)."""

    dtype: DType

    def __add__(self, other: Operand) -> Expression:
        return call("add", self, other)

    def __radd__(self, other: Operand) -> Expression:
        return call("add", like(other, self), self)

    def __sub__(self, other: Operand) -> Expression:
        return call("subtract", self, other)

    def __rsub__(self, other: Operand) -> Expression:
        return call("subtract", like(other, self), self)

    def __mul__(self, other: Operand) -> Expression:
        return call("multiply", self, other)

    def __rmul__(self, other: Operand) -> Expression:
        return call("multiply", like(other, self), self)

    def __truediv__(self, other: Operand) -> Expression:
        return call("divide", self, other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return call("divide", like(other, self), self)

    def __neg__(self) -> Expression:
        return call("negate", self)

    def __abs__(self) -> Expression:
        return call("absolute", self)

    def __pow__(self, other: Operand) -> Expression:
        return call("power", self, other)

    def __mod__(self, other: Operand) -> Expression:
        return call("floor_remainder", self, other)

    def __lt__(self, other: Operand) -> Expression:
        return call("less", self, other)

    def __le__(self, other: Operand) -> Expression:
        return call("less_equal", self, other)

    def __gt__(self, other: Operand) -> Expression:
        return call("greater", self, other)

    def __ge__(self, other: Operand) -> Expression:
        return call("greater_equal", self, other)

    def __bool__(self) -> bool:
        hint = "write select(condition, a, b) where values depend on one another"
        raise LoopProgramError(1301, "the values of elements are not known yet", hint=hint)

    def __float__(self) -> float:
        hint = "functions of elements are call(name, x): call('exp', x), call('square_root', x)"
        raise LoopProgramError(1301, "the values of elements are not known yet", hint=hint)

    def __array_ufunc__(self, function: object, method: str, *operands: Operand, **named: object) -> Expression:
        """What numpy's functions make of an element: the scalar function of that name."""
        name = str(getattr(function, "__name__", function))
        name = _NUMPY_NAMES.get(name, name)
        if method != "__call__" or named or name not in FUNCTIONS:
            hint = f"functions of elements are call(name, x), with a name of: {', '.join(FUNCTIONS)}"
            raise LoopProgramError(1301, f"numpy's {name} cannot be computed of elements", hint=hint)
        first = next(operand for operand in operands if isinstance(operand, Expression))
        return call(name, *(like(operand, first) for operand in operands))


@dataclass(frozen=True, eq=False)
class Constant(Expression):
    """A literal of type `dtype` (a complex one is built from two calls, never a literal)."""

    value: Scalar
    dtype: DType


@dataclass(frozen=True, eq=False)
class Load(Expression):
    """An element of a buffer; `dtype` is the buffer's element type."""

    buffer: str
    index: tuple[Dim, ...]
    dtype: DType


@dataclass(frozen=True, eq=False)
class Index(Expression):
    """A symbolic integer (loop variables, symbols) used as a number."""

    value: Dim
    dtype: DType = dtypes.int64


@dataclass(frozen=True, eq=False)
class Call(Expression):
    """A scalar function of `loops.functions` applied to expressions; `cast` and `bitcast` convert to `dtype`."""

    function: str
    arguments: tuple[Expression, ...]
    dtype: DType


@dataclass(frozen=True, eq=False)
class Parameter(Expression):
    """A formal operand of a reducer's `combine`: a component of the left or the right partial result."""

    name: str
    dtype: DType


Operand: TypeAlias = "Expression | Scalar"

_NUMPY_NAMES = {
    "negative": "negate", "sqrt": "square_root", "rint": "round_even", "trunc": "truncate", "fmod": "remainder",
    "isnan": "is_nan", "isinf": "is_infinite", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "copysign": "copy_sign",
    "float_power": "power", "mod": "floor_remainder", "logical_not": "not", "logical_and": "and", "logical_or": "or",
}  # fmt: skip
"""What numpy calls otherwise (`remainder` has its own meaning there, and is `mod`'s other name)."""


def constant(value: Scalar, dtype: DType | str) -> Constant:
    """A literal, converted to what its type can hold (raises `LoopProgramError` 1301 where it cannot)."""
    dtype = _type(dtype)
    if type(value) not in (bool, int, float):
        value = _number(value)
    if dtype.kind == "boolean":
        return Constant(bool(value), dtype)
    if dtype.is_integer:
        low, high = dtypes.integer_range(dtype)
        if not math.isfinite(value) or int(value) != value or not low <= value <= high:
            raise LoopProgramError(1301, f"{value} is no {dtype}")
        return Constant(int(value), dtype)
    return Constant(float(value), dtype)


def _number(value: object) -> Scalar:
    """A number of another kind (numpy's, for example) as Python's."""
    if isinstance(value, Dim):
        hint = f"write index({value}, float32), with the type you mean"
        raise LoopProgramError(1301, f"{value} is an index, no number", hint=hint)
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise LoopProgramError(1301, f"a {type(value).__name__} is no operand", hint="give a number or an element")
    try:
        return value.__index__() if hasattr(value, "__index__") else float(value)  # type: ignore[arg-type, union-attr]
    except TypeError as error:
        raise LoopProgramError(1301, f"a {type(value).__name__} is no number: {error}") from None


def like(value: Operand, other: Expression) -> Expression:
    """`value` as an expression: a Python number becomes a literal of the other operand's type."""
    return value if isinstance(value, Expression) else constant(value, other.dtype)


def call(function: str, *arguments: Operand) -> Expression:
    """Apply a scalar function. Python numbers take the type of the first expression operand (`select`: of the last).

    Raises `UsageError` 1001 for an unknown function, `LoopProgramError` 1301 for operands that do not fit.
    """
    typed = [a for a in arguments if isinstance(a, Expression)]
    if not typed:
        raise LoopProgramError(1301, f"{function}: at least one operand must be an expression")
    model = typed[-1] if function == "select" else typed[0]
    operands = tuple(like(a, model) for a in arguments)
    return Call(function, operands, result_type(function, tuple(a.dtype for a in operands)))


def cast(value: Expression, dtype: DType | str) -> Expression:
    """Convert the value to another type (floating to integer truncates; NaN gives 0, values out of range saturate)."""
    dtype = _type(dtype)
    return value if value.dtype == dtype else Call("cast", (value,), dtype)


def bitcast(value: Expression, dtype: DType) -> Expression:
    """The same bits read as another type of equal width."""
    if value.dtype.bits != dtype.bits:
        raise LoopProgramError(1301, f"bitcast of {value.dtype} to {dtype}: the widths differ")
    return value if value.dtype == dtype else Call("bitcast", (value,), dtype)


_KEPT = 256
"""Expressions of up to so many subexpressions remember them, as they do not change and are walked over and over."""


def index(value: Dim | int | str, dtype: DType | str = dtypes.int64) -> Index:
    """A symbolic integer as a number."""
    return Index(dim(value), _type(dtype))


def _type(dtype: object) -> DType:
    """A type, or the type of a name. Raises `UsageError` 1003 for anything else."""
    return dtype if isinstance(dtype, DType) else dtypes.dtype_named(str(dtype))


def children(expression: Expression) -> tuple[Expression, ...]:
    """The operands of a call; nothing for a leaf."""
    return expression.arguments if isinstance(expression, Call) else ()


def walk(expression: Expression) -> Iterator[Expression]:
    """Every distinct subexpression, operands before users (iterative: expressions may be deep)."""
    if not isinstance(expression, Call):
        return iter((expression,))
    below: tuple[Expression, ...] | None = expression.__dict__.get("_below")
    if below is None:
        *found, _ = _walked(expression)
        below = tuple(found)
        if len(below) <= _KEPT:  # without itself: a ring would be left to the search for cyclic garbage
            expression.__dict__["_below"] = below
    return iter((*below, expression))


def _walked(expression: Expression) -> Iterator[Expression]:
    seen: set[int] = set()
    stack: list[tuple[Expression, bool]] = [(expression, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            if isinstance(node, Call):
                stack.append((node, True))
                stack.extend([(child, False) for child in reversed(node.arguments)])
            else:
                yield node


def loads(expression: Expression) -> Iterator[Load]:
    """Every distinct load (elements loaded inside indices excluded; see `Dim.loads`)."""
    return (node for node in walk(expression) if isinstance(node, Load))


def rewrite(
    expression: Expression, leaf: Callable[[Expression], Expression], memo: dict[int, Expression] | None = None
) -> Expression:
    """Replace leaves (constants, loads, indices, parameters), keeping what is shared shared."""
    done: dict[int, Expression] = {} if memo is None else memo
    for node in walk(expression):
        if id(node) in done:
            continue
        if isinstance(node, Call):
            arguments = tuple([done[id(a)] for a in node.arguments])
            same = all(map(is_, arguments, node.arguments))
            done[id(node)] = node if same else Call(node.function, arguments, node.dtype)
        else:
            done[id(node)] = leaf(node)
    return done[id(expression)]


def substitute(
    expression: Expression,
    values: dict[str, Dim],
    move: Callable[[Loaded], Dim] | None = None,
    memo: dict[int, Expression] | None = None,
) -> Expression:
    """Replace loop variables and symbols in every index below the expression."""

    def leaf(node: Expression) -> Expression:
        if isinstance(node, Load):
            moved = tuple(i.substitute(values, move) for i in node.index)
            return node if moved == node.index else Load(node.buffer, moved, node.dtype)
        if isinstance(node, Index):
            value = node.value.substitute(values, move)
            return node if value == node.value else Index(value, node.dtype)
        return node

    return rewrite(expression, leaf, memo)
