"""The basic scalar functions as instructions, lane by lane. Transcendental ones are expanded before they get here.

Integers wrap and nothing traps: a divisor of 0 is replaced before dividing, as is -1 below the smallest value; shifts
by the width or more give 0 (or the sign).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from tilework.dtypes import DType, integer_range
from tilework.lowering.builder import Builder
from tilework.lowering.registers import BITS, Value
from tilework.numerics import Numerics

Emit: TypeAlias = Callable[[Builder, Numerics, DType, "tuple[Value, ...]"], Value]
"""(builder, numerics, type of the first operand, operands) to the result."""


def _number(builder: Builder, like: Value, value: float) -> Value:
    return builder.constant(like.kind, float(value) if like.kind.startswith("f") else int(value))


def _same(floating: str, integer: str) -> Emit:
    def emit(b: Builder, n: Numerics, d: DType, v: tuple[Value, ...]) -> Value:  # noqa: ARG001
        return b.op(floating if d.is_floating else integer, v[0].kind, *v)

    return emit


def _is(predicate: str, b: Builder, x: Value, y: Value) -> Value:
    """A comparison in words that suit the kind: eq, ne, lt, le, gt, ge (signed for integers)."""
    if x.kind.startswith("f"):
        return b.op("fcmp", "i1", x, y, extra="une" if predicate == "ne" else "o" + predicate)
    return b.op("icmp", "i1", x, y, extra=predicate if predicate in ("eq", "ne") else "s" + predicate)


def _compare(predicate: str) -> Emit:
    def emit(b: Builder, n: Numerics, d: DType, v: tuple[Value, ...]) -> Value:  # noqa: ARG001
        if d.is_floating:
            return b.op("fcmp", "i1", *v, extra="une" if predicate == "ne" else "o" + predicate)
        if predicate in ("eq", "ne"):
            return b.op("icmp", "i1", *v, extra=predicate)
        return b.op("icmp", "i1", *v, extra=("s" if d.kind == "signed" else "u") + predicate)

    return emit


def _extreme(name: str) -> Emit:
    def emit(b: Builder, n: Numerics, d: DType, v: tuple[Value, ...]) -> Value:
        if d.is_floating:
            return b.op(name, v[0].kind, *v, extra=None if n.signed_zeros else "nsz")
        if d.kind == "boolean":
            return b.op("or" if name == "maximum" else "and", "i1", *v)
        return b.op(("s" if d.kind == "signed" else "u") + name[:3], v[0].kind, *v)

    return emit


def _safe_divisor(b: Builder, d: DType, x: Value, y: Value) -> Value:
    """The divisor with 1 where the division would trap."""
    if y.constant is not None and not isinstance(y.constant, tuple) and y.constant not in (0, -1):
        return y
    bad = b.op("icmp", "i1", y, _number(b, y, 0), extra="eq")
    if d.kind == "signed":
        lowest = b.op("icmp", "i1", x, _number(b, x, integer_range(d)[0]), extra="eq")
        minus = b.op("icmp", "i1", y, _number(b, y, -1), extra="eq")
        bad = b.op("or", "i1", bad, b.op("and", "i1", lowest, minus))
    return b.select(bad, _number(b, y, 1), y)


def _divide(b: Builder, n: Numerics, d: DType, v: tuple[Value, ...]) -> Value:  # noqa: ARG001
    x, y = v
    if d.is_floating:
        return b.op("fdiv", x.kind, x, y)
    quotient = b.op("sdiv" if d.kind == "signed" else "udiv", x.kind, x, _safe_divisor(b, d, x, y))
    return b.select(_is("eq", b, y, _number(b, y, 0)), _number(b, y, 0), quotient)


def _remainder(b: Builder, n: Numerics, d: DType, v: tuple[Value, ...]) -> Value:  # noqa: ARG001
    x, y = v
    if d.is_floating:
        return b.op("frem", x.kind, x, y)
    # x % 1 = 0 serves both for a divisor of 0 and for the smallest value by -1
    return b.op("srem" if d.kind == "signed" else "urem", x.kind, x, _safe_divisor(b, d, x, y))


def _floor_remainder(b: Builder, n: Numerics, d: DType, v: tuple[Value, ...]) -> Value:
    x, y = v
    rest = _remainder(b, n, d, v)
    if d.kind == "unsigned":
        return rest
    zero = _number(b, y, 0)
    if d.is_floating:
        apart = b.op("xor", "i1", _is("lt", b, rest, zero), _is("lt", b, y, zero))
        moved = b.select(b.op("and", "i1", _is("ne", b, rest, zero), apart), b.op("fadd", x.kind, rest, y), rest)
        return b.select(_is("eq", b, rest, zero), b.op("copysign", x.kind, zero, y), moved)
    apart = _is("lt", b, b.op("xor", x.kind, rest, y), zero)
    adjust = b.op("and", "i1", _is("ne", b, rest, zero), b.op("and", "i1", apart, _is("ne", b, y, zero)))
    return b.select(adjust, b.op("add", x.kind, rest, y), rest)


def _negate(b: Builder, n: Numerics, d: DType, v: tuple[Value, ...]) -> Value:  # noqa: ARG001
    (x,) = v
    return b.op("fneg", x.kind, x) if d.is_floating else b.op("sub", x.kind, _number(b, x, 0), x)


def _absolute(b: Builder, n: Numerics, d: DType, v: tuple[Value, ...]) -> Value:
    (x,) = v
    if d.is_floating:
        return b.op("fabs", x.kind, x)
    if d.kind == "unsigned":
        return x
    return b.select(_is("lt", b, x, _number(b, x, 0)), _negate(b, n, d, v), x)


def _sign(b: Builder, n: Numerics, d: DType, v: tuple[Value, ...]) -> Value:  # noqa: ARG001
    (x,) = v
    zero, one = _number(b, x, 0), _number(b, x, 1)
    if d.kind == "unsigned":
        return b.select(_is("eq", b, x, zero), zero, one)
    below = b.select(_is("lt", b, x, zero), _number(b, x, -1), x)  # zeros and NaN are their own sign
    return b.select(_is("gt", b, x, zero), one, below)


def _shift(name: str) -> Emit:
    def emit(b: Builder, n: Numerics, d: DType, v: tuple[Value, ...]) -> Value:  # noqa: ARG001
        x, by = v
        bits = BITS[x.kind]
        if isinstance(by.constant, int) and not by.lanes and 0 <= by.constant < bits:
            return b.op(name, x.kind, x, by)
        inside = b.op("icmp", "i1", by, _number(b, by, bits), extra="ult")  # a negative count is a large one
        if name == "ashr":
            return b.op(name, x.kind, x, b.select(inside, by, _number(b, by, bits - 1)))
        shifted = b.op(name, x.kind, x, b.select(inside, by, _number(b, by, 0)))
        return b.select(inside, shifted, _number(b, x, 0))

    return emit


def _plain(name: str) -> Emit:
    def emit(b: Builder, n: Numerics, d: DType, v: tuple[Value, ...]) -> Value:  # noqa: ARG001
        return b.op(name, v[0].kind, *v)

    return emit


def _not(b: Builder, n: Numerics, d: DType, v: tuple[Value, ...]) -> Value:  # noqa: ARG001
    (x,) = v
    return b.op("xor", x.kind, x, b.constant("i1", True) if x.kind == "i1" else _number(b, x, -1))


def _is_nan(b: Builder, n: Numerics, d: DType, v: tuple[Value, ...]) -> Value:  # noqa: ARG001
    return b.op("fcmp", "i1", v[0], v[0], extra="uno")


def _is_infinite(b: Builder, n: Numerics, d: DType, v: tuple[Value, ...]) -> Value:  # noqa: ARG001
    return b.op("fcmp", "i1", b.op("fabs", v[0].kind, v[0]), _number(b, v[0], math.inf), extra="oeq")


def _select(b: Builder, n: Numerics, d: DType, v: tuple[Value, ...]) -> Value:  # noqa: ARG001
    condition, x, y = v
    lanes = max(condition.lanes, x.lanes, y.lanes)
    if condition.lanes or not lanes:
        return b.op("select", x.kind, condition, x, y)
    return b.select(condition, x, y)


EMIT: dict[str, Emit] = {
    "add": _same("fadd", "add"),
    "subtract": _same("fsub", "sub"),
    "multiply": _same("fmul", "mul"),
    "divide": _divide,
    "remainder": _remainder,
    "floor_remainder": _floor_remainder,
    "maximum": _extreme("maximum"),
    "minimum": _extreme("minimum"),
    "negate": _negate,
    "absolute": _absolute,
    "sign": _sign,
    "floor": _plain("floor"),
    "ceil": _plain("ceil"),
    "round_even": _plain("roundeven"),
    "truncate": _plain("trunc"),
    "square_root": _plain("sqrt"),
    "copy_sign": _plain("copysign"),
    "fused_multiply_add": _plain("fma"),
    "equal": _compare("eq"),
    "not_equal": _compare("ne"),
    "less": _compare("lt"),
    "less_equal": _compare("le"),
    "greater": _compare("gt"),
    "greater_equal": _compare("ge"),
    "is_nan": _is_nan,
    "is_infinite": _is_infinite,
    "and": _plain("and"),
    "or": _plain("or"),
    "xor": _plain("xor"),
    "not": _not,
    "shift_left": _shift("shl"),
    "shift_right_logical": _shift("lshr"),
    "shift_right_arithmetic": _shift("ashr"),
    "population_count": _plain("ctpop"),
    "select": _select,
    "rare_select": _select,  # inside another one's rare part
}
"""Every function that is not expanded (see `lowering.mathematics`)."""
