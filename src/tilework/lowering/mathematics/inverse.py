"""asin, acos, atan, atan2.

atan: the angle of (b, a) is base + atan(t) with one division, |t| <= tan(pi/8); atan(t) = t + t^3 P(t^2). asin:
x + x^3 R(x^2) up to 1/2, pi/2 - 2 asin(sqrt((1 - x) / 2)) beyond. P and R interpolate at Chebyshev nodes (60 digits);
relative errors below 2.4e-9 and 4.8e-18.
"""

from __future__ import annotations

import math

from tilework import dtypes
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Expression, bitcast, call, constant
from tilework.lowering.mathematics.pieces import fma, format_of, polynomial, select
from tilework.numerics import Numerics


@dataclass(frozen=True)
class _Arc:
    atan: tuple[float, ...]
    asin: tuple[float, ...]
    pi: tuple[float, float]
    """pi in two parts; its half and quarter are exact scalings."""
    large: float
    shrink: float


_ARC32 = _Arc(
    (-0.3333333134651184, 0.19999539852142334, -0.14263944327831268, 0.10743605345487595, -0.06451509147882462),
    (
        0.1666666567325592, 0.07500094175338745, 0.04459940269589424, 0.031100662425160408, 0.017149237915873528,
        0.03369084745645523,
    ),
    (3.1415927410125732, -8.742277657347586e-08), 2.0**100, 2.0**-30,
)  # fmt: skip
_ARC64 = _Arc(
    (
        -0.3333333333333333, 0.19999999999995513, -0.1428571428466482, 0.11111111015117626, -0.09090904572487347,
        0.07692183059894114, -0.06664509603255386, 0.05858132894427922, -0.05085365922344248, 0.03922923713835943,
        -0.01917392228554793,
    ),
    (
        0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247, 0.02237217294214989,
        0.017352392720869973, 0.013971212973552933, 0.011479177415184906, 0.01032281435018578, 0.005457506718640358,
        0.01740087944269402, -0.014851887071247204, 0.028757851367421566,
    ),
    (3.141592653589793, 1.2246467991473532e-16), 2.0**1000, 2.0**-200,
)  # fmt: skip


def _constants(x: Expression) -> _Arc:
    return _ARC32 if x.dtype == dtypes.float32 else _ARC64


def _angle(a: Expression, b: Expression) -> tuple[Expression, Expression]:
    """The angle of the point (b, a), a and b >= 0, not both infinite, as a sum of two parts."""
    c = _constants(a)
    steep = call("greater", a, b * math.tan(3 * math.pi / 8))
    middle = call("greater", a, b * math.tan(math.pi / 8))
    above = select(steep, call("negate", b), select(middle, a - b, a))
    below = select(steep, a, select(middle, a + b, b))
    t = select(call("equal", a, 0.0), a, above / below)
    z = t * t
    high, low = c.pi
    base = select(
        steep, constant(high / 2, a.dtype), select(middle, constant(high / 4, a.dtype), constant(0.0, a.dtype))
    )
    rest = select(steep, constant(low / 2, a.dtype), select(middle, constant(low / 4, a.dtype), constant(0.0, a.dtype)))
    tail = fma(t * z, polynomial(z, c.atan), rest)
    return base, t + tail


def atan(x: Expression, *, numerics: Numerics) -> Expression:
    """atan within 2 ULP."""
    del numerics
    base, rest = _angle(call("absolute", x), constant(1.0, x.dtype))
    return call("copy_sign", base + rest, x)


def atan2(y: Expression, x: Expression, *, numerics: Numerics) -> Expression:
    """The angle of the point (x, y) within 2 ULP, signs of zeros and infinities as IEEE 754 has them."""
    del numerics
    c = _constants(y)
    a, b = call("absolute", y), call("absolute", x)
    both = call("and", call("equal", a, math.inf), call("equal", b, math.inf))
    a, b = select(both, constant(1.0, y.dtype), a), select(both, constant(1.0, y.dtype), b)
    large = call("greater", call("maximum", a, b), c.large)
    a, b = select(large, a * c.shrink, a), select(large, b * c.shrink, b)
    base, rest = _angle(a, b)
    high, low = c.pi
    left = call("less", bitcast(x, format_of(x).integer), 0)
    angle = select(left, (high - base) + (low - rest), base + rest)
    angle = call("copy_sign", angle, y)
    unordered = call("or", call("is_nan", x), call("is_nan", y))
    return select(unordered, constant(math.nan, y.dtype), angle)


def _arc(x: Expression) -> tuple[Expression, Expression, Expression]:
    """|x| > 1/2?, and asin of |x| (or of sqrt((1 - |x|) / 2)) as a sum of two parts."""
    c = _constants(x)
    size = call("absolute", x)
    far = call("greater", size, 0.5)
    z = select(far, fma(size, -0.5, 0.5), size * size)
    s = select(far, call("square_root", z), size)
    return far, s, s * z * polynomial(z, c.asin)


def asin(x: Expression, *, numerics: Numerics) -> Expression:
    """asin within 2.5 ULP; NaN outside [-1, 1]."""
    del numerics
    high, low = _constants(x).pi
    far, s, tail = _arc(x)
    p = s + tail
    result = select(far, (high / 2) - fma(p, 2.0, -low / 2), p)
    return call("copy_sign", result, x)


def acos(x: Expression, *, numerics: Numerics) -> Expression:
    """acos within 2 ULP; NaN outside [-1, 1]."""
    del numerics
    high, low = _constants(x).pi
    far, s, tail = _arc(x)
    negative = call("less", x, 0.0)
    p = s + tail
    twice = p + p
    beyond = select(negative, high - (twice - low), twice)
    signed = call("copy_sign", s, x)
    near = (high / 2) - (signed - (low / 2 - call("copy_sign", constant(1.0, x.dtype), x) * tail))
    return select(far, beyond, near)
