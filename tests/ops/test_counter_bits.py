"""Random bits without a token: the numbers of `random_bits`, in every way of computing them."""

from __future__ import annotations

import numpy as np
import pytest

import tilework
from tests.ops.checking import faults
from tilework import dtypes
from tilework.dims import Dim, Symbol, dim
from tilework.graph.types import TensorType, tensor
from tilework.ops.builder import GraphBuilder
from tilework.ops.interpret import interpret
from tilework.ops.operator import TOKEN, Array
from tilework.ops.registry import operator

U32, U64 = dtypes.uint32, dtypes.uint64


def with_token(key: Array, counter: Array, shape: tuple[int, ...], dtype: dtypes.DType) -> Array:
    attributes = {"shape": shape, "dtype": dtype}
    kind = TensorType(tuple(map(dim, shape)), dtype)
    return operator("random_bits").reference([TOKEN, key, counter], attributes, [kind])[1]


@pytest.mark.parametrize("dtype", [U32, U64], ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 5), (2, 0, 3), (40, 33)])
def test_the_same_bits_everywhere(shape: tuple[int, ...], dtype: dtypes.DType) -> None:
    random = np.random.default_rng(len(shape))
    key, counter = random.integers(0, 2**64, 2, np.uint64), random.integers(0, 2**64, 1, np.uint64)
    wanted = with_token(key, counter, shape, dtype)
    for symbolic in (False, True):
        builder = GraphBuilder("g")
        extents = [f"n{place}" for place in range(len(shape))] if symbolic else list(shape)
        like = builder.input("like", dtypes.int8, *(builder_dim(builder, e) for e in extents))
        operands = builder.input("key", U64, 2), builder.input("counter", U64, 1)
        bits = builder.apply_one("counter_bits", *operands, shape=like.tensor.shape, dtype=dtype)
        graph = builder.build([bits])
        feeds = {"like": np.zeros(shape, np.int8), "key": key, "counter": counter}
        np.testing.assert_array_equal(interpret(graph, feeds)[0], wanted)
        np.testing.assert_array_equal(tilework.compile(graph)(**feeds)[0], wanted)


def builder_dim(builder: GraphBuilder, extent: int | str) -> Dim:
    if isinstance(extent, str):
        builder.symbol(Symbol(extent))
    return dim(extent)


def test_faults() -> None:
    key, counter = tensor(U64, 2), tensor(U64, 1)
    assert faults("counter_bits", [key, counter], shape=(3,), dtype=U32) == []
    assert faults("counter_bits", [key, counter], shape=(3,), dtype=dtypes.int32)
    assert faults("counter_bits", [counter, key], shape=(3,), dtype=U32)
    assert faults("counter_bits", [tensor(U32, 2), counter], shape=(3,), dtype=U32)
