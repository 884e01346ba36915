"""Conversions between element types, and between elements in memory and values in registers.

Floats narrower than `float32` are kept in `f32` registers: widening is exact, and they are rounded (to nearest, ties to
even) where they are stored or cast, and after every operation when rounding is strict. Rounding from `f64` goes through
a `f32` rounded to odd, so that it is never done twice. Integers of less than 8 bits are kept in `i8` registers, wrapped
after every operation; in memory the rest of their byte is 0.
"""

from __future__ import annotations

from tilework import dtypes
from tilework.dtypes import DType, integer_range
from tilework.lowering.builder import Builder
from tilework.lowering.registers import BITS, Value
from tilework.lowering.small_floats import narrowed, widened
from tilework.lowering.state import memory_kind, register_kind


def from_memory(builder: Builder, value: Value, dtype: DType) -> Value:
    """A loaded element (see `memory_kind`) as a value in its register kind."""
    if dtype == dtypes.boolean:
        return builder.op("icmp", "i1", value, builder.constant("i8", 0), extra="ne")
    if dtype == dtypes.float16:
        wide = builder.op("fpext", "f32", value)
    elif dtype == dtypes.bfloat16:
        bits = builder.op("shl", "i32", builder.op("zext", "i32", value), builder.constant("i32", 16))
        wide = builder.op("bitcast", "f32", bits)
    elif dtype.is_small_float:
        wide = widened(builder, value, dtype)
    else:
        return wrapped(builder, value, dtype) if dtype.is_small_integer else value
    builder.widened[wide, dtype] = value
    return wide


def to_memory(builder: Builder, value: Value, dtype: DType) -> Value:
    """A value in its register kind as an element to store."""
    if dtype == dtypes.boolean:
        return builder.op("zext", "i8", value)
    if dtype.is_small_integer:
        return without_sign(builder, value, dtype)
    if dtype.is_small_float and (element := builder.widened.get((value, dtype))) is not None:
        return element
    if dtype == dtypes.float16:
        return builder.op("fptrunc", "f16", value)
    if dtype == dtypes.bfloat16:
        return _bfloat16_bits(builder, value)
    return narrowed(builder, value, dtype) if dtype.is_small_float else value


def without_sign(builder: Builder, value: Value, dtype: DType) -> Value:
    """The bits of an integer of less than 8 bits, the rest of its byte 0."""
    return builder.op("and", "i8", value, builder.constant("i8", (1 << dtype.bits) - 1))


def wrapped(builder: Builder, value: Value, dtype: DType) -> Value:
    """The low bits of an i8 as a number of an integer type of less than 8 bits."""
    return without_sign(builder, value, dtype) if dtype.kind == "unsigned" else with_sign(builder, value, dtype)


def with_sign(builder: Builder, value: Value, dtype: DType) -> Value:
    """The bits of an integer of less than 8 bits, the rest of its byte as its highest one."""
    rest = builder.constant("i8", 8 - dtype.bits)
    return builder.op("ashr", "i8", builder.op("shl", "i8", value, rest), rest)


def rounded(builder: Builder, value: Value, dtype: DType) -> Value:
    """The nearest value that `dtype` has, in the same register kind."""
    return from_memory(builder, to_memory(builder, value, dtype), dtype) if dtype.is_small_float else value


def _bfloat16_bits(builder: Builder, value: Value) -> Value:
    """An f32 to the nearest bfloat16's 16 bits, ties to even; a NaN stays a NaN."""

    def number(n: int) -> Value:
        return builder.constant("i32", n)

    bits = builder.op("bitcast", "i32", value)
    odd = builder.op("and", "i32", builder.op("lshr", "i32", bits, number(16)), number(1))
    near = builder.add(builder.add(bits, odd), number(0x7FFF))
    quiet = builder.op("or", "i32", bits, number(0x400000))
    is_nan = builder.op("fcmp", "i1", value, value, extra="uno")
    kept = builder.op("lshr", "i32", builder.select(is_nan, quiet, near), number(16))
    return builder.op("itrunc", "i16", kept)


def _to_odd(builder: Builder, value: Value) -> Value:
    """An f64 as f32, rounded to odd: towards zero, the last bit set where anything was lost."""
    near = builder.op("fptrunc", "f32", value)
    back = builder.op("fpext", "f64", near)
    bits = builder.op("bitcast", "i32", near)
    grown = builder.op("fcmp", "i1", builder.op("fabs", "f64", back), builder.op("fabs", "f64", value), extra="ogt")
    bits = builder.select(grown, builder.op("sub", "i32", bits, builder.constant("i32", 1)), bits)
    lost = builder.op("fcmp", "i1", back, value, extra="one")
    return builder.op("bitcast", "f32", builder.op("or", "i32", bits, builder.op("zext", "i32", lost)))


def _sticky(builder: Builder, value: Value, source: DType) -> Value:
    """An integer whose bits past the 53 of an f64 are gathered in one, so that converting it rounds to odd."""
    if value.kind != "i64":
        return value

    def number(n: int) -> Value:
        return builder.constant("i64", n)

    lost = builder.op("icmp", "i1", builder.op("and", "i64", value, number(2047)), number(0), extra="ne")
    low = builder.op("and", "i64", value, number(-2048))
    kept = builder.op("or", "i64", low, builder.select(lost, number(2048), number(0)))
    big = builder.op("icmp", "i1", value, number(1 << 53), extra="ugt")
    if source.kind == "signed":
        inside = builder.add(value, number(1 << 53))
        big = builder.op("icmp", "i1", inside, number(1 << 54), extra="ugt")
    return builder.select(big, kept, value)


def cast(builder: Builder, value: Value, source: DType, target: DType) -> Value:
    """The value as another type: to integers truncating, saturating, NaN to 0; to bool: whether it is not zero."""
    if source == target:
        return value
    have, want = register_kind(source), register_kind(target)
    if target == dtypes.boolean:
        if source.is_floating:
            return builder.op("fcmp", "i1", value, builder.constant(have, 0.0), extra="une")
        return builder.op("icmp", "i1", value, builder.constant(have, 0), extra="ne")
    if target.is_small_integer:
        return _small_integer(builder, value, source, target)
    if target.is_integer:
        if source.is_floating and (target.bits < 32 or target == dtypes.int32):
            return _saturated(builder, value, target)
        if source.is_floating:
            return builder.op("fptosi" if target.kind == "signed" else "fptoui", want, value)
        if BITS[have] < BITS[want]:
            return builder.op("sext" if source.kind == "signed" else "zext", want, value)
        return builder.op("itrunc", want, value) if BITS[have] > BITS[want] else value
    if not source.is_floating:
        name = "sitofp" if source.kind == "signed" else "uitofp"
        if target.is_small_float and BITS[have] >= 32:
            value = _to_odd(builder, builder.op(name, "f64", _sticky(builder, value, source)))
        else:
            value = builder.op(name, want, value)
    elif have == "f64" and want == "f32":
        value = _to_odd(builder, value) if target.is_small_float else builder.op("fptrunc", "f32", value)
    elif have == "f32" and want == "f64":
        value = builder.op("fpext", "f64", value)
    return rounded(builder, value, target)


def _saturated(builder: Builder, value: Value, target: DType) -> Value:
    """A float as an integer of 8, 16 or (with a sign) 32 bits: saturated while it is a float, then by way of i32, of
    which vectors have conversions, as they have none that saturate.
    """
    zero, (least, most) = builder.constant(value.kind, 0.0), integer_range(target)
    # the largest float within the type; below it, float32 has steps of 128
    highest = float(most) if target.bits < 32 or value.kind == "f64" else float(most - 127)
    low, high = builder.constant(value.kind, float(least)), builder.constant(value.kind, highest)
    number = value
    if target.kind == "signed":  # else a NaN becomes the lower bound, which is 0
        number = builder.select(builder.op("fcmp", "i1", value, value, extra="ord"), value, zero)
    number = builder.select(builder.op("fcmp", "i1", number, low, extra="ogt"), number, low)
    number = builder.select(builder.op("fcmp", "i1", number, high, extra="olt"), number, high)
    whole = builder.op("fptosi", "i32", number, extra="inside")
    if highest != most:
        beyond = builder.op("fcmp", "i1", value, builder.constant(value.kind, float(most + 1)), extra="oge")
        whole = builder.select(beyond, builder.constant("i32", most), whole)
    want = register_kind(target)
    return whole if want == "i32" else builder.op("itrunc", want, whole)


def _small_integer(builder: Builder, value: Value, source: DType, target: DType) -> Value:
    """As an integer of less than 8 bits, by way of i8."""
    if not source.is_floating:
        return wrapped(builder, cast(builder, value, source, dtypes.int8), target)
    signed = target.kind == "signed"
    low, high = integer_range(target)
    whole = _saturated(builder, value, dtypes.int8 if signed else dtypes.uint8)
    inside = builder.op("smin" if signed else "umin", "i8", whole, builder.constant("i8", high))
    return builder.op("smax", "i8", inside, builder.constant("i8", low)) if signed else inside


def bitcast(builder: Builder, value: Value, source: DType, target: DType) -> Value:
    """The element's bits read as another type of the same width."""
    raw = to_memory(builder, value, source)
    if target == dtypes.boolean:  # any byte that is not zero is true
        return from_memory(builder, builder.op("bitcast", "i8", raw) if raw.kind != "i8" else raw, target)
    kind = memory_kind(target)
    return from_memory(builder, raw if raw.kind == kind else builder.op("bitcast", kind, raw), target)
