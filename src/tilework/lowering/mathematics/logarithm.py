"""log, log2, log1p and what follows from them: asinh, acosh, atanh.

Method: x = m 2^e, sqrt(1/2) <= m < sqrt(2), f = m - 1. In float32 log(1 + f) = f - f^2/2 + f^3 P(f); in float64, with
s = f / (2 + f), log(1 + f) = f - (f^2/2 - s (f^2/2 + z R(z))), z = s^2. P and R interpolate at Chebyshev nodes (60
digits): relative errors 3.2e-9 and 4.6e-18 of the logarithm. e ln 2 is added in two parts.
"""

from __future__ import annotations

import math

from tilework import dtypes
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Expression, bitcast, call, cast, constant
from tilework.lowering.mathematics.pieces import bits_of, fma, format_of, polynomial, select
from tilework.numerics import Numerics


@dataclass(frozen=True)
class _Log:
    high: float
    """ln 2 with enough trailing zeros that its multiples by exponents are exact."""
    low: float
    series: tuple[float, ...]
    tiny: float
    """The smallest normal number."""
    lift: int
    """Denormals are multiplied by 2^lift."""
    log2_e: tuple[float, float]
    huge: float
    """Its square is finite, its reciprocal negligible beside its logarithm."""


_LOG32 = _Log(
    0.693359375, -0.00021219444170128554,
    (
        0.3333333134651184, -0.2499999701976776, 0.20000715553760529, -0.1666780263185501, 0.14249058067798615,
        -0.12425687164068222, 0.11685419827699661, -0.11479733884334564, 0.06971611827611923,
    ),
    2.0**-126, 25, (1.4426950216293335, 1.925963033500011e-08), 2.0**40,
)  # fmt: skip
_LOG64 = _Log(
    0.6931471803691238, 1.9082149292705877e-10,
    (
        0.666666666666667, 0.39999999999899505, 0.28571428625975487, 0.2222221113479508, 0.18182889125261723,
        0.15331721600556042, 0.14616449685043406,
    ),
    2.0**-1022, 54, (1.4426950408889634, 2.0355273740931033e-17), 2.0**300,
)  # fmt: skip


def _constants(x: Expression) -> _Log:
    return _LOG32 if x.dtype == dtypes.float32 else _LOG64


def parts(x: Expression) -> tuple[Expression, Expression]:
    """x > 0 as m 2^e: m - 1 with m from sqrt(1/2) to sqrt(2), and e as a float. Denormals too."""
    c, form = _constants(x), format_of(x)
    low = call("less", x, c.tiny)
    x = select(low, x * 2.0**c.lift, x)
    base = bits_of(math.sqrt(0.5), form)
    bits = bitcast(x, form.integer) - base
    exponent = call("shift_right_arithmetic", bits, form.mantissa)
    mantissa = call("and", bits, (1 << form.mantissa) - 1) + base
    e = cast(exponent, x.dtype)
    return bitcast(mantissa, x.dtype) - 1.0, select(low, e - float(c.lift), e)


def log_one_plus(f: Expression) -> tuple[Expression, Expression]:
    """log(1 + f) as f + rest, for 1 + f from sqrt(1/2) to sqrt(2): (f, rest)."""
    c = _constants(f)
    if f.dtype == dtypes.float32:
        square = f * f
        return f, fma(square, -0.5, f * square * polynomial(f, c.series))
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    return f, call("negate", half - s * (half + z * polynomial(z, c.series)))


def _finish(x: Expression, result: Expression) -> Expression:
    """The logarithm with its special values: infinity, 0 to -infinity, negative and NaN to NaN."""
    result = select(call("equal", x, math.inf), x, result)
    outside = select(call("equal", x, 0.0), constant(-math.inf, x.dtype), constant(math.nan, x.dtype))
    return select(call("greater", x, 0.0), result, outside)


def log(x: Expression, *, numerics: Numerics) -> Expression:
    """The natural logarithm within 1 ULP."""
    del numerics
    c = _constants(x)
    f, e = parts(x)
    f, rest = log_one_plus(f)
    return _finish(x, fma(e, c.high, f + fma(e, c.low, rest)))


def log2(x: Expression, *, numerics: Numerics) -> Expression:
    """The logarithm to base 2 within 2 ULP; exact for powers of two."""
    del numerics
    c = _constants(x)
    f, e = parts(x)
    f, rest = log_one_plus(f)
    y = f + rest
    high, low = c.log2_e
    product = y * high
    error = fma(y, low, fma(y, high, call("negate", product)))
    return _finish(x, (e + product) + error)


def log1p(x: Expression, *, numerics: Numerics) -> Expression:
    """log(1 + x) within 2 ULP, also near 0. The error of 1 + x is divided by it and added."""
    del numerics
    c = _constants(x)
    u = x + 1.0
    back = u - 1.0
    error = (1.0 - (u - back)) + (x - back)
    f, e = parts(u)
    f, rest = log_one_plus(f)
    result = fma(e, c.high, f + (fma(e, c.low, rest) + error / u))
    result = _finish(u, result)
    return select(call("equal", x, 0.0), x, select(call("equal", x, math.inf), x, result))


def asinh(x: Expression, *, numerics: Numerics) -> Expression:
    """asinh within 3 ULP: log1p(a + a^2 / (1 + sqrt(1 + a^2))), a = |x|; log(2 a) where a^2 would overflow."""
    c = _constants(x)
    size = call("absolute", x)
    large = call("greater", size, c.huge)
    square = size * size
    part = size + square / (call("square_root", square + 1.0) + 1.0)
    result = log1p(select(large, size, part), numerics=numerics)
    return call("copy_sign", select(large, result + math.log(2.0), result), x)


def acosh(x: Expression, *, numerics: Numerics) -> Expression:
    """acosh within 3 ULP: log1p(t + sqrt(2 t + t^2)), t = x - 1; NaN below 1."""
    c = _constants(x)
    t = x - 1.0
    large = call("greater", x, c.huge)
    part = t + call("square_root", fma(t, t, t + t))
    result = log1p(select(large, x, part), numerics=numerics)
    result = select(large, result + math.log(2.0), result)
    return select(call("less", x, 1.0), constant(math.nan, x.dtype), result)


def atanh(x: Expression, *, numerics: Numerics) -> Expression:
    """atanh within 3 ULP: log1p(2 a / (1 - a)) / 2; infinite at 1, NaN beyond."""
    size = call("absolute", x)
    result = log1p((size + size) / (1.0 - size), numerics=numerics) * 0.5
    return call("copy_sign", result, x)
