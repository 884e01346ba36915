"""exp, exp2, expm1 and what follows from them: logistic, tanh, sinh, cosh.

Method (exp): x = n ln 2 + r, |r| <= ln 2 / 2, with ln 2 in two parts; exp(r) = 1 + r + r^2 q(r); scaled by 2^n
through the exponent bits. q approximates (exp(r) - 1 - r) / r^2: least worst error in exp (float32, found by Lawson's
iteration), interpolation at Chebyshev nodes (float64, with 60 digits). The relative error in exp is 3.7e-9 and
1.8e-19, below the rounding of the last steps.
"""

from __future__ import annotations

import math

from tilework import dtypes
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Call, Constant, Expression, bitcast, call, constant
from tilework.lowering.mathematics.pieces import (
    clamp,
    fma,
    format_of,
    nearest,
    nearest_power,
    nearest_powers,
    nearest_product,
    polynomial,
    power_of_two,
    scaled,
    select,
)  # fmt: skip
from tilework.numerics import Numerics


@dataclass(frozen=True)
class _Exp:
    """Constants of exp in one format: ln 2 in two parts, q's coefficients, and where results are 0 or infinite."""

    high: float
    low: float
    q: tuple[float, ...]
    least: float
    most: float
    exp2: tuple[float, ...]
    """(2^r - 1) / r on [-1/2, 1/2], interpolated at Chebyshev nodes."""
    exp2_range: tuple[float, float]
    flat: float
    """Beyond it tanh is 1."""


_EXP32 = _Exp(
    0.693359375,
    -0.00021219444170128554,
    (0.4999999403953552, 0.1666652113199234, 0.04166838899254799, 0.00836874544620514, 0.0013814540579915047),
    -104.5,
    89.0,
    (
        0.6931471824645996,
        0.24022650718688965,
        0.055503569543361664,
        0.009618082083761692,
        0.0013390886597335339,
        0.00015453182277269661,
    ),
    (-151.0, 129.0),
    10.0,
)
_EXP64 = _Exp(
    0.6931471803691238,
    1.9082149292705877e-10,
    (
        0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326136, 0.0013888888888883748,
        0.00019841269874820627, 2.4801587325547743e-05, 2.7557255400206422e-06, 2.75572736431103e-07,
        2.5105217004720745e-08, 2.0914686968086876e-09,
    ),
    -745.5,
    710.0,
    (
        0.6931471805599453, 0.24022650695910072, 0.055504108664821625, 0.00961812910762848, 0.0013333558146406436,
        0.00015403530393370715, 1.5252733841601815e-05, 1.3215486808727859e-06, 1.0178057064573359e-07,
        7.054897292691627e-09, 4.455822025014915e-10, 2.5729344553786755e-11,
    ),
    (-1076.0, 1025.0),
    22.0,
)  # fmt: skip
_CUBIC = (0.5000645518302917, 0.1666685789823532)
"""(e^r - 1 - r) / r^2 on [-ln 2 / 16, ln 2 / 16]: relative error in e^r 2.6e-8, by Lawson's iteration."""
_QUARTIC = (0.5, 0.16668027639389038, 0.04166042432188988)
"""The same with one coefficient more: 1.9e-10."""
EIGHTH_POWERS: tuple[int, ...] = tuple(
    mantissa - (j << 20)
    for j, mantissa in enumerate([0, 0x0B95C2, 0x1837F0, 0x25FED7, 0x3504F3, 0x45672A, 0x5744FD, 0x6AC0C7])
)
"""The mantissas of 2^(j / 8), rounded to nearest, each less j << 20."""
_LOG2_E = 1.0 / math.log(2.0)


def _constants(x: Expression) -> _Exp:
    return _EXP32 if x.dtype == dtypes.float32 else _EXP64


def reduced(x: Expression) -> tuple[Expression, Expression, Expression]:
    """x = n ln 2 + r: exp(r) - 1, n as an integer, n as a float. |x| must be moderate."""
    c = _constants(x)
    n, bits = nearest_product(x, _LOG2_E)
    r = fma(n, -c.low, fma(n, -c.high, x))
    return _less_one(r, c), bits, n


def exp(x: Expression, *, numerics: Numerics) -> Expression:
    """e^x within 1 ULP; 0 and infinity where the result is."""
    del numerics
    return _exp_of_negative(x) if _never_positive(x) else exp_scaled(x, 0)


def _never_positive(x: Expression) -> bool:
    """Whether the form of an expression shows that it is at most 0 (or NaN)."""
    if not isinstance(x, Call):
        return False
    if x.function == "minimum":
        return any(isinstance(a, Constant) and a.value <= 0 for a in x.arguments)
    (inner, *_) = x.arguments
    return x.function == "negate" and isinstance(inner, Call) and inner.function == "absolute"


def _exp_of_negative(x: Expression) -> Expression:
    """e^x for x <= 0 (or NaN): nothing overflows, and 2^(n + 64) is never denormal, so 2^-64 after it rounds once."""
    c = _constants(x)
    x = call("maximum", x, c.least)
    n, power = nearest_power(x, _LOG2_E, 64)
    p = _less_one(fma(n, -c.low, fma(n, -c.high, x)), c)
    return fma(p, power, power) * 2.0**-64


def exp_by_lookup(x: Expression, *, numerics: Numerics) -> Expression:
    """As `exp`, float32 only: x <= 0 from a power of 2^(1/8) and a polynomial of degree 4."""
    if not _never_positive(x):
        return exp(x, numerics=numerics)
    c = _constants(x)
    x = call("maximum", x, c.least)
    n, power = nearest_eighth_power(x, _LOG2_E, 64)
    r = fma(n, -c.low / 8, fma(n, -c.high / 8, x))
    return fma(fma(r * r, polynomial(r, _QUARTIC), r), power, power) * 2.0**-64


def exp_scaled(x: Expression, shift: int) -> Expression:
    """e^x 2^shift (-1 <= shift <= 0), without overflow in between."""
    c = _constants(x)
    x = clamp(x, c.least, c.most + 1.0 if shift else c.most)
    n, first, second = nearest_powers(x, _LOG2_E, shift)
    p = _less_one(fma(n, -c.low, fma(n, -c.high, x)), c)
    return fma(p, first, first) * second


def _less_one(r: Expression, c: _Exp) -> Expression:
    """e^r - 1 for |r| <= ln 2 / 2."""
    return fma(r * r, polynomial(r, c.q), r)


def exp2(x: Expression, *, numerics: Numerics) -> Expression:
    """2^x within 1 ULP; exact for integers."""
    del numerics
    c = _constants(x)
    x = clamp(x, *c.exp2_range)
    n, bits = nearest(x)
    r = x - n
    return scaled(fma(r, polynomial(r, c.exp2), 1.0), bits)


def expm1(x: Expression, *, numerics: Numerics) -> Expression:
    """e^x - 1 within 2 ULP, also near 0."""
    del numerics
    c = _constants(x)
    return select(call("equal", x, 0.0), x, expm1_moderate(clamp(x, -50.0, c.most)))


def expm1_moderate(x: Expression) -> Expression:
    """e^x - 1 for x from -50 to where it overflows: ((e^r - 1) 2^(n-1) + 2^(n-1) - 1/2) 2. (-0 gives +0.)"""
    p, bits, _ = reduced(x)
    half = power_of_two(bits - 1, x)
    return fma(half, p, half - 0.5) * 2.0


def logistic(x: Expression, *, numerics: Numerics) -> Expression:
    """1 / (1 + e^-x) within 2.5 ULP, denormal results included.

    As s / (s + s e^-x), where s, a power of two, keeps s e^-x finite and normal for every x whose result is not 0; x is
    clamped where e^-x is lost beside 1.
    """
    del numerics
    c = _constants(x)
    down = format_of(x).bias // 4
    x = clamp(x, c.least, -0.6 * c.least)
    n, power = nearest_power(x, -_LOG2_E, -down)
    r = call("negate", fma(n, c.low, fma(n, c.high, x)))
    s = constant(2.0**-down, x.dtype)
    return s / fma(polynomial(r, (1.0, 1.0, *c.q)), power, s)


def logistic_by_lookup(x: Expression, *, numerics: Numerics) -> Expression:
    """As `logistic`, float32 only, within 3 ULP and |x| / 25 more: e^-x from a power of 2^(1/8) and a cubic.

    -x = n ln 2 / 8 + r, |r| <= ln 2 / 16: the low 3 bits of n name an element of the table, the others are an exponent.
    """
    del numerics
    c = _constants(x)
    down = format_of(x).bias // 4
    x = clamp(x, c.least, -0.6 * c.least)
    n, power = nearest_eighth_power(x, -_LOG2_E, -down)
    # ln 2 in float32 is off by 2.7e-9 of itself, and r by as much of x: no second part
    r = call("negate", fma(n, math.log(2.0) / 8, x))
    s = constant(2.0**-down, x.dtype)
    return s / fma(polynomial(r, (1.0, 1.0, *_CUBIC)), power, s)


def nearest_eighth_power(x: Expression, factor: float, shift: int) -> tuple[Expression, Expression]:
    """The integer n nearest to 8 x * factor as a float, and 2^(n / 8 + shift), which must be a normal float32.

    As `nearest_power`, but the low 3 bits stay below the exponent when the sum is moved up; the table takes them away
    again.
    """
    form = format_of(x)
    magic = 1.5 * 2.0**form.mantissa + 8 * (form.bias + shift)
    shifted = fma(x, 8 * factor, magic)
    bits = bitcast(shifted, form.integer)
    moved = call("shift_left", bits, form.mantissa - 3)
    power = bitcast(moved + Call("eighth_power", (bits,), form.integer), x.dtype)
    return shifted - magic, power


def like_one(x: Expression) -> Expression:
    """The literal 1 in the type of x."""
    return constant(1.0, x.dtype)


def tanh(x: Expression, *, numerics: Numerics) -> Expression:
    """(e^2x - 1) / (e^2x + 1) within 2.5 ULP, also near 0."""
    del numerics
    c = _constants(x)
    size = call("minimum", call("absolute", x), c.flat)
    p = expm1_moderate(size + size)
    return call("copy_sign", p / (p + 2.0), x)


def sinh(x: Expression, *, numerics: Numerics) -> Expression:
    """sinh within 2.5 ULP: from e^|x| - 1 up to 1, from e^|x| / 2 beyond (which overflows no sooner than sinh)."""
    del numerics
    size = call("absolute", x)
    p = expm1_moderate(call("minimum", size, 1.0))
    half = exp_scaled(size, -1)
    below = (p + p / (p + 1.0)) * 0.5
    result = select(call("less", size, 1.0), below, half - 0.25 / half)
    return call("copy_sign", result, x)


def cosh(x: Expression, *, numerics: Numerics) -> Expression:
    """cosh within 2 ULP."""
    del numerics
    half = exp_scaled(call("absolute", x), -1)
    return half + 0.25 / half
