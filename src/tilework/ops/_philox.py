"""Philox 4x32 with ten rounds: random bits as a function of a key and a counter.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework import dtypes
from tilework.compute.notation import Computation
from tilework.dims import Dim, Symbol, dim
from tilework.graph.types import TensorType
from tilework.loops.expressions import Expression, Load, call, cast, constant, index
from tilework.loops.program import Buffer
from tilework.ops.definitions import mapped
from tilework.ops.operator import Array
from tilework.ops.rules import Rule
from tilework.ops.values import dtype_attribute

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_LOW = 0xFFFFFFFF

OPERATIONS = _ROUNDS * 3
"""Operations for one element, as counts have them."""


def check_operands(rule: Rule, key: TensorType, counter: TensorType) -> None:
    """Report operands that are no key (uint64[2]) or no counter (uint64[1])."""
    for operand, words, what in ((key, 2, "the key"), (counter, 1, "the counter")):
        if operand.dtype != dtypes.uint64:
            rule.fault(1222, f"{what} has elements of {operand.dtype}, it must be uint64")
        if operand.shape != (dim(words),):
            rule.fault(1223, f"{what} is {operand}, it must be uint64[{words}]")


def result_type(rule: Rule) -> TensorType:
    """The type that attributes name: uint32 or uint64 of some shape."""
    shape = rule.shape("shape")
    dtype = rule.dtype("dtype", dtypes.uint32)
    if dtype not in (dtypes.uint32, dtypes.uint64):
        rule.fault(1225, f"attribute 'dtype' is {dtype}, it must be uint32 or uint64")
    return TensorType(shape, dtype)


def definition(
    name: str, operands: Sequence[Buffer], results: Sequence[Buffer], symbols: Sequence[Symbol]
) -> Computation:
    """Every element from the key and the counter."""
    key, counter = operands
    (result,) = results

    def value(point: tuple[Dim, ...]) -> Expression:
        position = Dim()
        for i, extent in zip(point, result.shape, strict=True):
            position = position * extent + i
        per_block = 16 // result.dtype.itemsize
        first, second = (Load(key.name, (dim(word),), key.dtype) for word in (0, 1))
        block = Load(counter.name, (Dim(),), counter.dtype) + cast(index(position // per_block), dtypes.uint64)
        words = _philox([*_halves(block), *_halves(second)], _halves(first))
        if result.dtype == dtypes.uint64:
            words = [
                call("or", low, call("shift_left", high, 32)) for low, high in zip(words[::2], words[1::2], strict=True)
            ]
        found = words[-1]
        place = index(position % per_block)
        for number in range(per_block - 1):
            found = call("select", call("equal", place, number), words[number], found)
        return cast(found, result.dtype)

    return mapped(name, operands, results, symbols, value)


def bits(key: Array, counter: Array, attributes: Mapping[str, Any]) -> Array:
    """The elements, computed by numpy."""
    shape: tuple[int, ...] = attributes["shape"]
    dtype = dtype_attribute(attributes)
    size = int(np.prod(shape, dtype=np.int64))
    blocks = -(-size * dtype.itemsize // 16)
    with np.errstate(over="ignore"):
        low = counter[0] + np.arange(blocks, dtype=np.uint64)
        state = np.empty((blocks, 4), np.uint32)
        state[:, 0], state[:, 1] = low, low >> np.uint64(32)
        state[:, 2:] = np.array([int(key[1]) & _LOW, int(key[1]) >> 32], np.uint32)
        schedule = np.array([int(key[0]) & _LOW, int(key[0]) >> 32], np.uint32)
        for _ in range(_ROUNDS):
            even = state[:, 0].astype(np.uint64) * np.uint64(_MULTIPLIERS[0])
            odd = state[:, 2].astype(np.uint64) * np.uint64(_MULTIPLIERS[1])
            mixed = np.stack(
                [
                    (odd >> np.uint64(32)).astype(np.uint32) ^ state[:, 1] ^ schedule[0], odd.astype(np.uint32),
                    (even >> np.uint64(32)).astype(np.uint32) ^ state[:, 3] ^ schedule[1], even.astype(np.uint32),
                ],
                axis=1,
            )  # fmt: skip
            state, schedule = mixed, schedule + np.array(_STEPS, np.uint32)
    words = np.ascontiguousarray(state).astype("<u4").reshape(-1)
    found = words if dtype == dtypes.uint32 else words.view("<u8")
    return found[:size].astype(dtype.numpy).reshape(shape)


def _halves(value: Expression) -> list[Expression]:
    """The low and the high 32 bits, each as uint64."""
    return [call("and", value, _LOW), call("shift_right_logical", value, 32)]


def _philox(counter: list[Expression], key: list[Expression]) -> list[Expression]:
    """Ten rounds over four words, under two; every word is a uint64 below 2^32."""
    steps = [constant(step, dtypes.uint64) for step in _STEPS]
    for _ in range(_ROUNDS):
        low_even, high_even = _halves(counter[0] * _MULTIPLIERS[0])
        low_odd, high_odd = _halves(counter[2] * _MULTIPLIERS[1])
        counter = [
            call("xor", call("xor", high_odd, counter[1]), key[0]), low_odd,
            call("xor", call("xor", high_even, counter[3]), key[1]), low_even,
        ]  # fmt: skip
        key = [call("and", word + step, _LOW) for word, step in zip(key, steps, strict=True)]
    return counter
