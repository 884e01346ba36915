"""sin, cos, tan.

x = n pi/2 + r, |r| <= pi/4. Up to a limit pi/2 is taken in three parts, each product fused: x - n P1 is exact, the rest
loses nothing that matters. Beyond it the bits of 2/pi that matter are taken from a table and multiplied with integers
(Payne and Hanek), a path that is entered only when a lane needs it. sin(r) = r + r^3 S(r^2), cos(r) = 1 - r^2/2 + r^4
C(r^2); S and C interpolate at Chebyshev nodes (60 digits), relative errors below 8.4e-10 and 5.7e-19.
"""

from __future__ import annotations

import math

from tilework import dtypes
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Expression, bitcast, call
from tilework.lowering.mathematics.huge_angle import reduced_huge
from tilework.lowering.mathematics.pieces import fma, format_of, nearest_product, polynomial, rare, select
from tilework.numerics import Numerics


@dataclass(frozen=True)
class _Trig:
    half_pi: tuple[float, float, float]
    sin: tuple[float, ...]
    cos: tuple[float, ...]
    limit: float
    """Largest |x| for which the three parts suffice."""


_TRIG32 = _Trig(
    (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    (-0.1666666716337204, 0.008333331905305386, -0.00019840039021801203, 2.724378191487631e-06),
    (0.0416666641831398, -0.0013888279208913445, 2.4542870960431173e-05),
    2.0**15,
)
_TRIG64 = _Trig(
    (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
    (
        -0.16666666666666666, 0.008333333333333331, -0.00019841269841264567, 2.7557319218954762e-06,
        -2.505210610025599e-08, 1.6058510875319195e-10, -7.585486485235938e-13,
    ),
    (
        0.041666666666666664, -0.0013888888888887241, 2.480158729853226e-05, -2.7557317151858866e-07,
        2.0876121534608454e-09, -1.1380868171449914e-11,
    ),
    2.0**29,
)  # fmt: skip


def _reduced(x: Expression) -> tuple[Expression, Expression, Expression]:
    """n modulo 4 (in the low bits), r and its rounding error."""
    c = _TRIG32 if x.dtype == dtypes.float32 else _TRIG64
    first, second, third = c.half_pi
    n, bits = nearest_product(x, 2.0 / math.pi)
    a = fma(n, -first, x)
    r = fma(n, -second, a)
    low = fma(n, -third, fma(n, -second, a - r))
    huge = call("greater", call("absolute", x), c.limit)
    far_bits, far, far_low = reduced_huge(x)
    return rare(huge, far_bits, bits), rare(huge, far, r), rare(huge, far_low, low)


def _both(r: Expression, low: Expression) -> tuple[Expression, Expression]:
    """sin(r + low), cos(r + low)."""
    c = _TRIG32 if r.dtype == dtypes.float32 else _TRIG64
    z = r * r
    sine = r + fma(r * z, polynomial(z, c.sin), low)
    half = z * 0.5
    w = 1.0 - half
    cosine = w + (((1.0 - w) - half) + fma(z * z, polynomial(z, c.cos), call("negate", r * low)))
    return sine, cosine


def _turned(bits: Expression, value: Expression) -> Expression:
    """The value with its sign changed in the third and fourth quadrant."""
    form = format_of(value)
    sign = call("shift_left", call("and", bits, 2), value.dtype.bits - 2)
    return bitcast(call("xor", bitcast(value, form.integer), sign), value.dtype)


def sin(x: Expression, *, numerics: Numerics) -> Expression:
    """sin within 1.5 ULP for every finite x; NaN for infinities."""
    del numerics
    bits, r, low = _reduced(x)
    sine, cosine = _both(r, low)
    odd = call("not_equal", call("and", bits, 1), 0)
    return select(call("equal", x, 0.0), x, _turned(bits, select(odd, cosine, sine)))


def cos(x: Expression, *, numerics: Numerics) -> Expression:
    """cos within 1.5 ULP for every finite x; NaN for infinities."""
    del numerics
    bits, r, low = _reduced(x)
    sine, cosine = _both(r, low)
    odd = call("not_equal", call("and", bits, 1), 0)
    return _turned(bits + 1, select(odd, sine, cosine))


def tan(x: Expression, *, numerics: Numerics) -> Expression:
    """tan within 3 ULP for every finite x; NaN for infinities."""
    del numerics
    bits, r, low = _reduced(x)
    sine, cosine = _both(r, low)
    odd = call("not_equal", call("and", bits, 1), 0)
    ratio = select(odd, cosine, sine) / select(odd, call("negate", sine), cosine)
    return select(call("equal", x, 0.0), x, ratio)
