"""What the expansions are made of: literals, fused steps, polynomials, and powers of two by exponent arithmetic."""

from __future__ import annotations

from tilework import dtypes
from tilework.dtypes import DType
from tilework.errors import CodegenError
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Call, Expression, Operand, bitcast, call, constant


@dataclass(frozen=True)
class Format:
    """A binary floating format: its integer of equal width, explicit mantissa bits and exponent bias."""

    integer: DType
    mantissa: int
    bias: int


_FORMATS = {
    dtypes.float32: Format(dtypes.int32, 23, 127),
    dtypes.float64: Format(dtypes.int64, 52, 1023),
}


def format_of(x: Expression) -> Format:
    """The format of an expression's type; raises `CodegenError` 1603 where it is neither float32 nor float64."""
    found = _FORMATS.get(x.dtype)
    if found is None:
        raise CodegenError(1603, f"no code can be generated for transcendental functions of {x.dtype}")
    return found


def fma(a: Expression, b: Operand, c: Operand) -> Expression:
    """a * b + c, rounded once."""
    return call("fused_multiply_add", a, b, c)


def polynomial(x: Expression, coefficients: tuple[float, ...]) -> Expression:
    """sum of coefficients[i] x^i, by Horner's rule in fused steps."""
    total: Expression = constant(coefficients[-1], x.dtype)
    for coefficient in reversed(coefficients[:-1]):
        total = fma(total, x, coefficient)
    return total


def select(condition: Expression, a: Operand, b: Operand) -> Expression:
    """a where the condition holds, else b (one of them an expression)."""
    model = a if isinstance(a, Expression) else b
    assert isinstance(model, Expression)
    first = a if isinstance(a, Expression) else constant(a, model.dtype)
    second = b if isinstance(b, Expression) else constant(b, model.dtype)
    return call("select", condition, first, second)


def clamp(x: Expression, low: float, high: float) -> Expression:
    """x between two bounds; NaN stays NaN."""
    return call("minimum", call("maximum", x, low), high)


def nearest(x: Expression) -> tuple[Expression, Expression]:
    """The integer nearest to x, |x| < 2^(mantissa - 2), as a float and as an integer of equal width.

    Adding 1.5 * 2^mantissa leaves the integer in the low bits of the sum: no conversion, and nothing to saturate.
    """
    form = format_of(x)
    magic = 1.5 * 2.0**form.mantissa
    shifted = x + magic
    bits = bitcast(shifted, form.integer) - bits_of(magic, form)
    return shifted - magic, bits


def nearest_product(x: Expression, factor: float) -> tuple[Expression, Expression]:
    """As `nearest`, of x * factor."""
    form = format_of(x)
    magic = 1.5 * 2.0**form.mantissa
    shifted = fma(x, factor, magic)
    bits = bitcast(shifted, form.integer) - bits_of(magic, form)
    return shifted - magic, bits


def nearest_power(x: Expression, factor: float, shift: int) -> tuple[Expression, Expression]:
    """The integer n nearest to x * factor as a float, and 2^(n + shift), which must be a normal number.

    As `nearest`, with the exponent's bias in the addend: the low bits are then an exponent and need only be moved up.
    """
    form = format_of(x)
    magic = 1.5 * 2.0**form.mantissa + form.bias + shift
    shifted = fma(x, factor, magic)
    power = bitcast(call("shift_left", bitcast(shifted, form.integer), form.mantissa), x.dtype)
    return shifted - magic, power


def nearest_powers(x: Expression, factor: float, shift: int) -> tuple[Expression, Expression, Expression]:
    """The integer n nearest to x * factor as a float, and two powers of two whose product is 2^(n + shift).

    Each has half of the exponent, so both are normal numbers for |n| up to twice the largest exponent, and a denormal
    result is rounded once. As `nearest_power`: the low bits are both exponents together.
    """
    form = format_of(x)
    magic = 1.5 * 2.0**form.mantissa + 2 * form.bias
    shifted = fma(x, factor, magic)
    bits = bitcast(shifted, form.integer)
    both = bits + shift if shift else bits
    half = call("shift_right_arithmetic", both, 1)

    def power(exponent: Expression) -> Expression:
        return bitcast(call("shift_left", exponent, form.mantissa), x.dtype)

    return shifted - magic, power(half), power(both - half)


def bits_of(value: float, form: Format) -> int:
    """The bits of a float as a signed integer."""
    import struct

    if form.mantissa == 23:
        return int(struct.unpack("<i", struct.pack("<f", value))[0])
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def power_of_two(n: Expression, x: Expression) -> Expression:
    """2^n in the type of x, n an integer of equal width within the range of normal exponents."""
    form = format_of(x)
    return bitcast(call("shift_left", n + form.bias, form.mantissa), x.dtype)


def scaled(x: Expression, n: Expression) -> Expression:
    """x 2^n for |n| up to twice the largest exponent: by two factors, so that a denormal result is rounded once."""
    half = call("shift_right_arithmetic", n, 1)
    return x * power_of_two(half, x) * power_of_two(n - half, x)


def rare(condition: Expression, seldom: Expression, usual: Expression) -> Expression:
    """`select` that computes `seldom` (and what only it needs) in a branch, entered when a lane needs it."""
    return Call("rare_select", (condition, seldom, usual), usual.dtype)
