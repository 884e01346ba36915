"""Random bits against the published test vectors, and checks that end a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.checking import faults
from tilework import dtypes
from tilework.compute.nest import loop_program
from tilework.dims import Symbol, dim
from tilework.dtypes import DType
from tilework.errors import GraphError, RunError
from tilework.graph.types import TensorType, TokenType, tensor
from tilework.loops.interpret import interpret
from tilework.loops.program import Buffer, buffer
from tilework.ops.operator import TOKEN, Array
from tilework.ops.registry import operator

U32, U64 = dtypes.uint32, dtypes.uint64


def bits(key: tuple[int, int], counter: int, shape: tuple[int, ...], dtype: DType = U32) -> Array:
    operands = [TOKEN, np.array(key, np.uint64), np.array([counter], np.uint64)]
    kind = TensorType(tuple(map(dim, shape)), dtype)
    token, found = operator("random_bits").reference(operands, {"shape": shape, "dtype": dtype}, [kind])
    assert token is TOKEN
    assert found.dtype == dtype.numpy
    assert found.shape == shape
    return found


def defined(key: tuple[int, int], counter: int, shape: tuple[int, ...], dtype: DType, symbolic: bool = False) -> Array:
    names = [f"n{k}" for k in range(len(shape))] if symbolic else []
    target = Buffer("y", tuple(map(dim, names or shape)), dtype)
    operands = [buffer("key", U64, 2), buffer("counter", U64, 1)]
    attributes: dict[str, Any] = {"shape": target.shape, "dtype": dtype}
    made = operator("random_bits").define(operands, [target], attributes, [Symbol(name) for name in names])
    arrays: dict[str, Array] = {
        "key": np.array(key, np.uint64), "counter": np.array([counter], np.uint64), "y": np.zeros(shape, dtype.numpy),
    }  # fmt: skip
    interpret(loop_program(made), arrays)
    return arrays["y"]


def test_the_published_vectors() -> None:
    # Random123's known answers for philox4x32 with ten rounds
    assert [hex(int(v)) for v in bits((0, 0), 0, (4,))] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    ones = 2**64 - 1
    assert [hex(int(v)) for v in bits((ones, ones), ones, (4,))] == [
        "0x408f276d",
        "0x41c83b0e",
        "0xa20bc7c6",
        "0x6d5451fd",
    ]
    pi = bits((0x299F31D0A4093822, 0x0370734413198A2E), 0x85A308D3243F6A88, (4,))
    assert [hex(int(v)) for v in pi] == ["0xd16cfe09", "0x94fdcceb", "0x5001e420", "0x24126ea1"]


@pytest.mark.parametrize("dtype", [U32, U64], ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 5), (2, 0, 3)])
def test_definition_and_numpy_agree(shape: tuple[int, ...], dtype: DType) -> None:
    generator = np.random.default_rng(len(shape))
    for _ in range(2):
        first, second, counter = (int(v) for v in generator.integers(0, 2**64, 3, np.uint64))
        wanted = bits((first, second), counter, shape, dtype)
        np.testing.assert_array_equal(defined((first, second), counter, shape, dtype), wanted)
        np.testing.assert_array_equal(defined((first, second), counter, shape, dtype, symbolic=True), wanted)
    last = (3, 4), 2**64 - 1, shape, dtype
    np.testing.assert_array_equal(defined(*last), bits(*last))


def test_counters_and_widths_fit_together() -> None:
    long = bits((1, 2), 5, (24,))
    np.testing.assert_array_equal(bits((1, 2), 8, (12,)), long[12:])
    np.testing.assert_array_equal(bits((1, 2), 5, (3,)), long[:3])
    pairs = bits((1, 2), 5, (12,), U64)
    np.testing.assert_array_equal(pairs & np.uint64(2**32 - 1), long[::2])
    assert len({bytes(bits((k, s), c, (8,))) for k in (0, 1) for s in (0, 1) for c in (0, 1)}) == 8


def test_bits_look_random() -> None:
    found = bits((123, 0), 0, (4000,))
    ones = np.bitwise_count(found).mean()
    assert abs(ones - 16) < 0.2
    assert len(np.unique(found)) == 4000


def test_faults_of_random_bits() -> None:
    token, key, counter = TokenType(), tensor(U64, 2), tensor(U64, 1)
    assert faults("random_bits", [token, key, counter], shape=(3,), dtype=U32) == []
    assert faults("random_bits", [token, key], shape=(3,), dtype=U32) == [1220]
    assert faults("random_bits", [key, key, token], shape=(3,), dtype=U32) == [1221, 1221]
    assert faults("random_bits", [token, counter, tensor(U32, 1)], shape=(3,), dtype=dtypes.int8) == [1225, 1223, 1222]


def test_assert_true() -> None:
    found = operator("assert_true")
    assert found.infer([TokenType(), tensor(dtypes.boolean, "N")], {"message": "no"}) == (TokenType(),)
    assert found.reference([TOKEN, np.array([True, True])], {"message": "no"}, []) == (TOKEN,)
    found.reference([TOKEN, np.zeros(0, np.bool_)], {"message": "no"}, [])
    with pytest.raises(RunError, match="rows differ") as caught:
        found.reference([TOKEN, np.array([True, False])], {"message": "rows differ"}, [])
    assert caught.value.code == 1242
    assert faults("assert_true", [TokenType(), tensor(U32)]) == [1224, 1222]
    with pytest.raises(GraphError) as refused:
        found.define([buffer("p", dtypes.boolean)], [], {"message": "no"})
    assert refused.value.code == 1230
