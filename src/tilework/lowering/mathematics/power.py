"""power and reciprocal_square_root.

float32 powers are computed in float64: 2^(y log2 x) with a logarithm of some 50 bits. float64 powers need more: log2
x is a sum of two float64 (about 65 bits), from atanh(s) = s + s^3/3 + s^5 Q(s^2), s = (m - 1) / (m + 1) in two parts. Q
interpolates at Chebyshev nodes (60 digits), error 8.1e-22. Integer powers multiply squares, and wrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tilework import dtypes
from tilework.loops.expressions import Constant, Expression, bitcast, call, cast, constant
from tilework.lowering.mathematics.exponential import exp2
from tilework.lowering.mathematics.logarithm import parts
from tilework.lowering.mathematics.pieces import clamp, fma, format_of, nearest, polynomial, scaled, select
from tilework.numerics import Numerics

_Q = (
    0.2, 0.14285714285714682, 0.11111111110827943, 0.09090909167696401, 0.07692297481259215, 0.06667402346923655,
    0.05853118169745603, 0.05861589311938259,
)  # fmt: skip
_THIRD = (0.3333333333333333, 1.850371707708594e-17)
_TWICE_LOG2_E = (2.8853900817779268, 4.0710547481862066e-17)
_EXP2 = (
    0.6931471805599453, 0.24022650695910072, 0.055504108664821625, 0.00961812910762848, 0.0013333558146406436,
    0.00015403530393370715, 1.5252733841601815e-05, 1.3215486808727859e-06, 1.0178057064573359e-07,
    7.054897292691627e-09, 4.455822025014915e-10, 2.5729344553786755e-11,
)  # fmt: skip


def reciprocal_square_root(x: Expression, *, numerics: Numerics) -> Expression:
    """1 / sqrt(x), each rounded: within 1.5 ULP."""
    del numerics
    return 1.0 / call("square_root", x)


def power(x: Expression, y: Expression, *, numerics: Numerics) -> Expression:
    """x^y. float32 within 0.51 ULP, float64 within 1 ULP; special values as IEEE 754's pow. Integers wrap; a negative
    integer exponent gives 0 unless the base is 1 or -1.
    """
    if x.dtype.is_integer:
        return _integer_power(x, y)
    if isinstance(y, Constant) and y.value in _SIMPLE:
        return _SIMPLE[y.value](x)
    if x.dtype == dtypes.float32:
        wide = _power(cast(x, dtypes.float64), cast(y, dtypes.float64), numerics, precise=False)
        return cast(wide, dtypes.float32)
    return _power(x, y, numerics, precise=True)


def _square_root(x: Expression) -> Expression:
    """x^(1/2): as the square root, but +0 of -0 and +infinity of -infinity."""
    root = call("square_root", x + 0.0)
    return select(call("equal", x, -math.inf), constant(math.inf, x.dtype), root)


_SIMPLE: dict[object, Callable[[Expression], Expression]] = {
    0.0: lambda x: constant(1.0, x.dtype),
    1.0: lambda x: x,
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
    -1.0: lambda x: 1.0 / x,
    0.5: _square_root,
}
"""Exponents that need no logarithm."""


def _two_product(a: Expression, b: Expression) -> tuple[Expression, Expression]:
    product = a * b
    return product, fma(a, b, call("negate", product))


def _two_sum(a: Expression, b: Expression) -> tuple[Expression, Expression]:
    """a + b and its rounding error, |a| >= |b|."""
    total = a + b
    return total, b - (total - a)


def _log2(x: Expression) -> tuple[Expression, Expression]:
    """log2 of x > 0 as a sum of two parts."""
    f, e = parts(x)
    d, d_low = _two_sum(constant(2.0, x.dtype), f)
    s = f / d
    s_low = fma(call("negate", s), d_low, fma(call("negate", s), d, f)) / d
    z, z_low = _two_product(s, s)
    z_low = fma(s + s, s_low, z_low)
    # (1/3 + z Q) in two parts, times z, plus 1, times s: atanh(s)
    tail = z * polynomial(z, _Q)
    c, c_low = _two_sum(constant(_THIRD[0], x.dtype), tail)
    c_low = c_low + _THIRD[1]
    p, p_low = _two_product(z, c)
    p_low = p_low + fma(z, c_low, z_low * c)
    t, t_low = _two_product(s, p)
    t_low = t_low + fma(s, p_low, s_low * p)
    a, a_low = _two_sum(s, t)
    a_low = a_low + (t_low + s_low)
    high, low = _TWICE_LOG2_E
    r, r_low = _two_product(a, constant(high, x.dtype))
    r_low = r_low + fma(a, low, a_low * high)
    total = e + r
    back = total - e
    error = (e - (total - back)) + (r - back)
    return total, error + r_low


def _power(x: Expression, y: Expression, numerics: Numerics, *, precise: bool) -> Expression:
    dtype = x.dtype
    size = call("absolute", x)
    high, low = _log2(size)
    special = select(
        call("equal", size, 0.0),
        constant(-math.inf, dtype),
        select(call("equal", size, math.inf), constant(math.inf, dtype), high),
    )
    rough = y * special
    if precise:
        t, t_low = _two_product(y, high)
        t_low = fma(y, low, t_low)
        t = clamp(t, -1100.0, 1100.0)
        n, bits = nearest(t)
        r = (t - n) + t_low
        middle = scaled(fma(r, polynomial(r, _EXP2), 1.0), bits)
    else:
        middle = exp2(fma(y, high, y * low), numerics=numerics)
    result = select(call("greater", rough, 1100.0), constant(math.inf, dtype), middle)
    result = select(call("less", rough, -1100.0), constant(0.0, dtype), result)
    whole = call("equal", call("truncate", y), y)
    halved = y * 0.5
    odd = call("and", whole, call("not_equal", call("truncate", halved), halved))
    below = call("less", bitcast(x, format_of(x).integer), 0)
    result = select(call("and", odd, below), call("negate", result), result)
    finite_below = call("and", call("less", x, 0.0), call("greater", x, -math.inf))
    undefined = call("or", call("is_nan", x), call("is_nan", y))
    undefined = call("or", undefined, call("and", finite_below, call("not", whole)))
    # (-1)^(+-infinity) is 1 by the rule for |x| = 1
    result = select(undefined, constant(math.nan, dtype), result)
    unit = call("and", call("equal", size, 1.0), call("is_infinite", y))
    one = call("or", call("or", call("equal", y, 0.0), call("equal", x, 1.0)), unit)
    return select(one, constant(1.0, dtype), result)


def _integer_power(x: Expression, y: Expression) -> Expression:
    dtype = x.dtype
    one, zero = constant(1, dtype), constant(0, dtype)
    bits = dtype.bits - (1 if dtype.kind == "signed" else 0)
    total: Expression = one
    factor = x
    for bit in range(bits):
        on = call("not_equal", call("and", y, 1 << bit), 0)
        total = select(on, total * factor, total)
        if bit < bits - 1:
            factor = factor * factor
    if dtype.kind == "unsigned":
        return total
    odd = call("not_equal", call("and", y, 1), 0)
    minus = call("equal", x, -1)
    reciprocal = select(call("equal", x, 1), one, select(minus, select(odd, constant(-1, dtype), one), zero))
    return select(call("less", y, 0), reciprocal, total)
