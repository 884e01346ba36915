"""Floats of at most 8 bits: their bits in memory, and the same numbers in `f32` registers.

A format is bits of exponent and fraction, a bias, and what its last codes mean. Widening is exact: the bits are put
where an f32 has them, and a multiplication by a power of two puts the bias right, for subnormal numbers too. Narrowing
rounds to nearest, ties to even: in the bits for normal numbers, by adding a power of two for subnormal ones.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilework import dtypes
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass
from tilework.lowering.builder import Builder
from tilework.lowering.registers import Value


@dataclass(frozen=True)
class Format:
    """`largest`: the code of the largest finite number; `overflow`: what larger ones become; `nan`: a NaN's code.

    `infinity` is its code, or None. Where `negative_zero` is False, its code is the NaN.
    """

    fraction: int
    bias: int
    largest: int
    overflow: int
    nan: int
    infinity: int | None = None
    negative_zero: bool = True
    sign: int = 0x80


FORMATS: Mapping[DType, Format] = {
    dtypes.float8_e4m3fn: Format(3, 7, 0x7E, 0x7F, 0x7F),
    dtypes.float8_e5m2: Format(2, 15, 0x7B, 0x7C, 0x7E, infinity=0x7C),
    dtypes.float8_e4m3fnuz: Format(3, 8, 0x7F, 0x80, 0x80, negative_zero=False),
    dtypes.float8_e5m2fnuz: Format(2, 16, 0x7F, 0x80, 0x80, negative_zero=False),
    dtypes.float4_e2m1fn: Format(1, 1, 0x07, 0x07, 0x08, sign=0x08),
}
"""As the package ml_dtypes has them; of float4, which has no NaN, a NaN becomes a zero of the other sign."""


def widened(builder: Builder, value: Value, dtype: DType) -> Value:
    """The number of an element's bits (i8) as f32."""
    if dtype == dtypes.float8_e8m0fnu:
        return _power_of_two(builder, value)
    form = FORMATS[dtype]

    def number(n: int) -> Value:
        return builder.constant("i32", n)

    bits = builder.op("zext", "i32", value)
    magnitude = builder.op("and", "i32", bits, number(form.sign - 1))
    placed = builder.op("bitcast", "f32", builder.op("shl", "i32", magnitude, number(23 - form.fraction)))
    scaled = builder.op("fmul", "f32", placed, builder.constant("f32", 2.0 ** (127 - form.bias)))
    found = builder.op("bitcast", "i32", scaled)
    if form.infinity is not None:
        is_infinite = builder.op("icmp", "i1", magnitude, number(form.infinity), extra="eq")
        is_nan = builder.op("icmp", "i1", magnitude, number(form.infinity), extra="ugt")
        found = builder.select(is_infinite, number(0x7F800000), found)
        found = builder.select(is_nan, number(0x7FC00000), found)
    elif form.negative_zero and form.largest + 1 == form.nan:
        found = builder.select(
            builder.op("icmp", "i1", magnitude, number(form.nan), extra="eq"), number(0x7FC00000), found
        )
    sign = builder.op("and", "i32", bits, number(form.sign))
    found = builder.op("or", "i32", found, builder.op("shl", "i32", sign, number(31 - (form.sign.bit_length() - 1))))
    if not form.negative_zero:
        is_nan = builder.op("icmp", "i1", bits, number(form.nan), extra="eq")
        found = builder.select(is_nan, number(-0x400000), found)  # a NaN with the sign bit set
    return builder.op("bitcast", "f32", found)


def narrowed(builder: Builder, value: Value, dtype: DType) -> Value:
    """The bits (i8) of the number of a type that is nearest to an f32."""
    if dtype == dtypes.float8_e8m0fnu:
        return _exponent(builder, value)
    form = FORMATS[dtype]
    shift = 23 - form.fraction

    def number(n: int) -> Value:
        return builder.constant("i32", n)

    bits = builder.op("bitcast", "i32", value)
    magnitude = builder.op("and", "i32", bits, number(0x7FFFFFFF))
    odd = builder.op("and", "i32", builder.op("lshr", "i32", magnitude, number(shift)), number(1))
    near = builder.add(builder.add(magnitude, odd), number((1 << (shift - 1)) - 1))
    normal = builder.op("sub", "i32", builder.op("lshr", "i32", near, number(shift)),
                        number((127 - form.bias) << form.fraction))  # fmt: skip
    # the sum's last bit stands for the smallest number of the type
    large = 2.0 ** (1 - form.bias + shift)
    raised = builder.op("fadd", "f32", builder.op("bitcast", "f32", magnitude), builder.constant("f32", large))
    base = (127 + 1 - form.bias + shift) << 23
    subnormal = builder.op("sub", "i32", builder.op("bitcast", "i32", raised), number(base))
    below = builder.op("icmp", "i1", magnitude, number((127 + 1 - form.bias) << 23), extra="ult")
    code = builder.select(below, subnormal, normal)
    over = builder.op("icmp", "i1", code, number(form.largest), extra="sgt")
    code = builder.select(over, number(form.overflow), code)
    is_nan = builder.op("icmp", "i1", magnitude, number(0x7F800000), extra="ugt")
    sign = builder.op("lshr", "i32", bits, number(31 - (form.sign.bit_length() - 1)))
    sign = builder.op("and", "i32", sign, number(form.sign))
    if not form.negative_zero:
        sign = builder.select(builder.op("icmp", "i1", code, number(0), extra="eq"), number(0), sign)
    elif form.nan > form.largest and form.nan == form.sign:
        sign = builder.select(is_nan, builder.op("xor", "i32", sign, number(form.sign)), sign)
        return builder.op("itrunc", "i8", builder.op("or", "i32", builder.select(is_nan, number(0), code), sign))
    code = builder.op("or", "i32", builder.select(is_nan, number(form.nan), code), sign)
    return builder.op("itrunc", "i8", code)


def _power_of_two(builder: Builder, value: Value) -> Value:
    """2^(code - 127); 255 is the NaN."""

    def number(n: int) -> Value:
        return builder.constant("i32", n)

    bits = builder.op("zext", "i32", value)
    found = builder.op("shl", "i32", bits, number(23))
    found = builder.select(builder.op("icmp", "i1", bits, number(0), extra="eq"), number(0x00400000), found)
    found = builder.select(builder.op("icmp", "i1", bits, number(255), extra="eq"), number(0x7FC00000), found)
    return builder.op("bitcast", "f32", found)


def _exponent(builder: Builder, value: Value) -> Value:
    """The nearest power of two, ties up (below 2^-126: the next); the NaN for 0, negative and infinite numbers."""

    def number(n: int) -> Value:
        return builder.constant("i32", n)

    bits = builder.op("bitcast", "i32", value)
    near = builder.op("lshr", "i32", builder.add(bits, number(0x00400000)), number(23))
    low = builder.op("zext", "i32", builder.op("icmp", "i1", bits, number(0x00400000), extra="ugt"))
    below = builder.op("icmp", "i1", bits, number(0x00800000), extra="ult")
    code = builder.select(below, low, near)
    positive = builder.op("icmp", "i1", bits, number(0), extra="sgt")
    finite = builder.op("icmp", "i1", bits, number(0x7F800000), extra="slt")
    valid = builder.op("and", "i1", positive, finite)
    return builder.op("itrunc", "i8", builder.select(valid, code, number(255)))
