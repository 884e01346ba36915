"""Angles of any size modulo pi/2, by the method of Payne and Hanek ("Radian Reduction for Trigonometric Functions",
1983).

|x| = M 2^E with a 53-bit integer M. Words of 2/pi that only add multiples of 4 to x 2/pi are skipped; the next 192 bits
times M, shifted, leave 2 bits of quadrant and 126 bits of fraction, of which at most 62 are lost to cancellation.
"""

from __future__ import annotations

from tilework import dtypes
from tilework.loops.expressions import Call, Expression, bitcast, call, cast, constant
from tilework.lowering.mathematics.pieces import fma, format_of, select

TWO_OVER_PI: tuple[int, ...] = (
    0, 0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561, 0xB7246E3A,
    0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484, 0xE99C7026, 0xB45F7E41,
    0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F, 0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF,
    0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B, 0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08,
    0x56033046, 0xFC7B6BAB, 0xF0CFBC20, 0x9AF4361D,
)  # fmt: skip
"""2/pi in 32-bit words after two words of zero (computed with 450 digits)."""
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)


def reduced_huge(x: Expression) -> tuple[Expression, Expression, Expression]:
    """x = n pi/2 + r + low: n modulo 4 as an integer of x's width, r, low. For |x| >= 2^-10 or so; NaN for
    infinities.
    """
    wide = cast(x, dtypes.float64)
    n, r, low = _reduced64(wide)
    if x.dtype == dtypes.float64:
        return n, r, low
    near = cast(r, x.dtype)
    rest = cast((r - cast(near, dtypes.float64)) + low, x.dtype)
    return cast(n, format_of(x).integer), near, rest


def _reduced64(x: Expression) -> tuple[Expression, Expression, Expression]:
    u64 = dtypes.uint64
    bits = bitcast(call("absolute", x), dtypes.int64)
    mantissa = call("or", call("and", bits, (1 << 52) - 1), 1 << 52)
    exponent = call("shift_right_logical", bits, 52) - (1023 + 52 - 64)
    # lanes that need no reduction come here too: their words must exist, whatever they are
    first = call("minimum", call("maximum", call("shift_right_arithmetic", exponent - 2, 5), 0), len(TWO_OVER_PI) - 6)
    shift = cast(exponent - call("shift_left", first, 5), u64)
    words = [Call("two_over_pi", (first + i,), u64) for i in range(5, -1, -1)]
    m = cast(mantissa, u64)
    low, high = call("and", m, 0xFFFFFFFF), call("shift_right_logical", m, 32)
    digits: list[Expression] = []
    carry: Expression = constant(0, u64)
    carry_high: Expression = constant(0, u64)
    for j in range(6):
        t = words[j] * low + carry
        digit, carry = call("and", t, 0xFFFFFFFF), call("shift_right_logical", t, 32)
        t = digit + carry_high
        if j:
            t = t + words[j - 1] * high
        digits.append(call("and", t, 0xFFFFFFFF))
        carry_high = call("shift_right_logical", t, 32)
    parts = [call("or", call("shift_left", digits[i + 1], 32), digits[i]) for i in (4, 2, 0)]
    left, right = shift - 2, 66 - shift
    a = call("or", call("shift_left", parts[0], left), call("shift_right_logical", parts[1], right))
    b = call("or", call("shift_left", parts[1], left), call("shift_right_logical", parts[2], right))
    n = call("shift_right_logical", a + (1 << 61), 62)
    a = a - call("shift_left", n, 62)
    below = call("less", cast(a, dtypes.int64), 0)
    minus_b = 0 - b
    minus_a = call("not", a) + cast(call("equal", b, 0), u64)
    a, b = select(below, minus_a, a), select(below, minus_b, b)
    whole = cast(a, dtypes.float64)
    rest = cast(cast(a, dtypes.int64) - cast(whole, dtypes.int64), dtypes.float64)
    fraction = whole * 2.0**-62
    fraction_low = fma(cast(b, dtypes.float64), 2.0**-126, rest * 2.0**-62)
    r = fraction * _HALF_PI[0]
    low_part = fma(fraction, _HALF_PI[0], call("negate", r))
    low_part = fma(fraction_low, _HALF_PI[0], fma(fraction, _HALF_PI[1], low_part))
    total = r + low_part
    error = low_part - (total - r)
    minus = call("xor", below, call("less", x, 0.0))
    # n counts from |x|: the other sign for a negative x; the fraction's own sign is in `below`.
    quadrant = cast(n, dtypes.int64)
    quadrant = select(call("less", x, 0.0), 0 - quadrant, quadrant)
    total = select(minus, call("negate", total), total)
    error = select(minus, call("negate", error), error)
    return quadrant, total + (x - x), error
