"""`dot_general` and `convolution`: against numpy and direct sums, in every layout, group, padding and type."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.ops.checking import check, counted, faults, interpreted, reference, same, whole
from tilework import dtypes
from tilework.compute.notation import Computation
from tilework.dims import Symbol
from tilework.graph.graph import Attribute
from tilework.graph.types import TokenType, tensor
from tilework.loops.program import Buffer
from tilework.ops.contraction.convolution import Convolution
from tilework.ops.operator import Array

F32 = dtypes.float32


# -- dot_general -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (3, 5, 7), (2, 1, 11), (0, 3, 2), (3, 0, 2), (3, 2, 0)])
def test_matrix_product(m: int, k: int, n: int) -> None:
    g = np.random.default_rng(m * 100 + k * 10 + n)
    a, b = whole(g, m, k), whole(g, k, n)
    found = check(
        "dot_general", [a, b], [("m", "k"), ("k", "n")],
        lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,),
    )  # fmt: skip
    same(found, a @ b)


@pytest.mark.parametrize("seed", range(8))
def test_dot_general_of_any_dimension_numbers(seed: int) -> None:
    g = np.random.default_rng(seed)
    letters = "abcdef"
    sizes = dict(zip(letters, g.choice([1, 2, 3, 5], 6), strict=True))
    batch, contract, left, right = "ab"[: g.integers(0, 3)], "cd"[: g.integers(0, 3)], "e", "f"[: g.integers(0, 2)]
    lhs = "".join(g.permutation(list(batch + contract + left)))
    rhs = "".join(g.permutation(list(batch + contract + right)))
    a, b = whole(g, *(sizes[c] for c in lhs)), whole(g, *(sizes[c] for c in rhs))
    found = check(
        "dot_general", [a, b], [tuple(lhs), tuple(rhs)],
        lhs_batching_dimensions=tuple(lhs.index(c) for c in batch),
        rhs_batching_dimensions=tuple(rhs.index(c) for c in batch),
        lhs_contracting_dimensions=tuple(lhs.index(c) for c in contract),
        rhs_contracting_dimensions=tuple(rhs.index(c) for c in contract),
    )  # fmt: skip
    free = [c for c in lhs if c in left] + [c for c in rhs if c in right]
    same(found, np.einsum(f"{lhs},{rhs}->{batch}{''.join(free)}", a, b), 1e-30)


MATRIX: dict[str, Any] = {"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (0,)}


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64, np.int32, np.int64, np.uint16])
def test_dot_general_of_other_types(dtype: Any) -> None:
    g = np.random.default_rng(1)
    a, b = whole(g, 3, 5, dtype=dtype), whole(g, 5, 2, dtype=dtype)
    found = check("dot_general", [a, b], **MATRIX)
    np.testing.assert_array_equal(found.astype(np.float64), (a.astype(np.float64) @ b.astype(np.float64)))


def test_sums_of_halves_are_kept_in_float32() -> None:
    a = np.full((1, 4000), 1, np.float16)
    b = np.full((4000, 1), 1.001, np.float16)
    found = check("dot_general", [a, b], **MATRIX)
    assert abs(float(found[0, 0]) - 4000 * float(np.float16(1.001))) <= 2  # float16 sums would stick at 2048


@pytest.mark.parametrize(("left", "right"), list(itertools.product([np.int8, np.uint8], repeat=2)))
def test_bytes_give_int32(left: Any, right: Any) -> None:
    g = np.random.default_rng(2)
    a = g.integers(np.iinfo(left).min, np.iinfo(left).max + 1, (3, 50)).astype(left)
    b = g.integers(np.iinfo(right).min, np.iinfo(right).max + 1, (50, 2)).astype(right)
    found = check("dot_general", [a, b], **MATRIX)
    same(found, a.astype(np.int32) @ b.astype(np.int32))


def test_integers_wrap() -> None:
    a = np.array([[2**31 - 1, 5]], np.int32)
    b = np.array([[3], [7]], np.int32)
    found = check("dot_general", [a, b], **MATRIX)
    assert int(found[0, 0]) == ((2**31 - 1) * 3 + 35 + 2**31) % 2**32 - 2**31


def test_not_a_number_and_infinity_run_through_a_product() -> None:
    a = np.array([[np.nan, 1], [np.inf, 1], [np.inf, -np.inf], [0, 1]], np.float32)
    b = np.array([[1, 0], [1, 1]], np.float32)
    with np.errstate(all="ignore"):
        same(check("dot_general", [a, b], **MATRIX), a @ b)


def test_flops_of_a_batched_product() -> None:
    counts = counted(
        "dot_general", [tensor(F32, "b", 3, 5), tensor(F32, "b", 5, 7)], lhs_batching_dimensions=(0,),
        rhs_batching_dimensions=(0,), lhs_contracting_dimensions=(2,), rhs_contracting_dimensions=(1,),
    )  # fmt: skip
    assert int(counts.flops.evaluate({"b": 2})) == 2 * 2 * 3 * 5 * 7
    assert int(counts.bytes.evaluate({"b": 2})) == 4 * 2 * (15 + 35 + 21)


def test_faults_of_dot_general() -> None:
    a, b = tensor(F32, 2, "k"), tensor(F32, "j", 3)
    assert faults("dot_general", [a], **MATRIX) == [1220]
    assert faults("dot_general", [a, TokenType()], **MATRIX) == [1221]
    assert faults("dot_general", [a, b], **MATRIX) == [1223]
    assert faults("dot_general", [a, tensor(dtypes.float64, "k", 3)], **MATRIX) == [1222]
    assert faults("dot_general", [a, b]) == [1224, 1224]
    assert faults("dot_general", [a, a], lhs_contracting_dimensions=(0, 1), rhs_contracting_dimensions=(0,)) == [1225]
    everything = faults(
        "dot_general", [tensor(dtypes.boolean, 2, 3), b], lhs_contracting_dimensions=(2,),
        rhs_contracting_dimensions=(0, 0), colour="red",
    )  # fmt: skip
    assert sorted(everything) == [1222, 1222, 1224, 1225, 1225, 1225]


# -- convolution -------------------------------------------------------------------------------------------------------
def direct(
    image: Array, kernel: Array, strides: tuple[int, ...], pads: tuple[tuple[int, int], ...], base: tuple[int, ...],
    hole: tuple[int, ...], groups: int,
) -> Array:  # fmt: skip
    """The definition of a convolution, one product at a time (batch, features, spatial)."""
    spatial = range(image.ndim - 2)
    spread = [(image.shape[d + 2] - 1) * base[d] + 1 if image.shape[d + 2] else 0 for d in spatial]
    reach = [(kernel.shape[d + 2] - 1) * hole[d] + 1 for d in spatial]
    places = [max(0, (spread[d] + sum(pads[d]) - reach[d]) // strides[d] + 1) for d in spatial]
    result = np.zeros((image.shape[0], kernel.shape[0], *places))
    per_group = kernel.shape[0] // groups
    for n, o, *place in np.ndindex(*result.shape):
        for c, *tap in np.ndindex(*kernel.shape[1:]):
            at = [place[d] * strides[d] + tap[d] * hole[d] - pads[d][0] for d in spatial]
            if all(0 <= at[d] < spread[d] and at[d] % base[d] == 0 for d in spatial):
                source = (n, o // per_group * kernel.shape[1] + c, *(at[d] // base[d] for d in spatial))
                with np.errstate(all="ignore"):
                    result[(n, o, *place)] += float(image[source]) * float(kernel[(o, c, *tap)])
    return result


@pytest.mark.parametrize("seed", range(12))
def test_convolutions_against_the_direct_sum(seed: int) -> None:
    g = np.random.default_rng(seed)
    spatial = int(g.integers(1, 3))
    groups = int(g.choice([1, 1, 2, 3]))
    per_group, outer = int(g.integers(1, 3)), groups * int(g.integers(1, 3))
    strides = tuple(int(v) for v in g.integers(1, 4, spatial))
    base = tuple(int(v) for v in g.choice([1, 1, 2], spatial))
    hole = tuple(int(v) for v in g.choice([1, 1, 2], spatial))
    pads = tuple((int(a), int(b)) for a, b in g.integers(-1, 3, (spatial, 2)))
    image = whole(g, int(g.integers(1, 3)), groups * per_group, *(int(v) for v in g.integers(3, 7, spatial)))
    kernel = whole(g, outer, per_group, *(int(v) for v in g.integers(1, 4, spatial)))
    names = ["n", image.shape[1], *"hw"[:spatial]]
    found = check(
        "convolution", [image, kernel], [names, kernel.shape], window_strides=strides, padding=pads,
        lhs_dilation=base, rhs_dilation=hole, feature_group_count=groups,
    )  # fmt: skip
    same(found, direct(image, kernel, strides, pads, base, hole, groups).astype(np.float32))


def test_layouts_only_move_dimensions() -> None:
    g = np.random.default_rng(3)
    image, kernel = whole(g, 2, 3, 5, 4), whole(g, 6, 3, 2, 3)
    plain = reference("convolution", [image, kernel], padding=((1, 0), (0, 1)))
    for input_order, kernel_order, output_order in [
        ((0, 2, 3, 1), (2, 3, 1, 0), (0, 2, 3, 1)), ((1, 0, 2, 3), (0, 2, 3, 1), (2, 3, 1, 0))
    ]:  # fmt: skip
        found = check(
            "convolution", [image.transpose(input_order), kernel.transpose(kernel_order)], padding=((1, 0), (0, 1)),
            input_dimensions=tuple(int(v) for v in np.argsort(input_order)),
            kernel_dimensions=tuple(int(v) for v in np.argsort(kernel_order)),
            output_dimensions=tuple(int(v) for v in np.argsort(output_order)),
        )  # fmt: skip
        same(found, plain.transpose(output_order))


@pytest.mark.parametrize(
    ("image", "kernel"),
    [((0, 2, 5), (3, 2, 3)), ((1, 0, 5), (3, 0, 3)), ((1, 2, 0), (3, 2, 1)), ((1, 2, 2), (3, 2, 5)), ((1, 2), (3, 2)),
     ((1, 2, 5), (0, 2, 3)), ((1, 2, 5), (3, 2, 0))],
)  # fmt: skip
def test_convolutions_of_nothing(image: tuple[int, ...], kernel: tuple[int, ...]) -> None:
    g = np.random.default_rng(4)
    check("convolution", [whole(g, *image), whole(g, *kernel)])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64, np.int8])
def test_convolutions_of_other_types(dtype: Any) -> None:
    g = np.random.default_rng(5)
    image, kernel = whole(g, 1, 2, 6, dtype=dtype), whole(g, 3, 2, 3, dtype=dtype)
    found = check("convolution", [image, kernel], padding=((1, 1),))
    assert found.dtype == (np.int32 if dtype is np.int8 else dtype)
    np.testing.assert_array_equal(found.astype(float), direct(image, kernel, (1,), ((1, 1),), (1,), (1,), 1))


def test_padding_is_no_operand() -> None:
    image = np.array([[[1, 2, np.nan, 4]]], np.float32)
    kernel = np.array([[[np.inf, 1, 0]]], np.float32)
    found = check("convolution", [image, kernel], padding=((1, 1),))
    same(found, direct(image, kernel, (1,), ((1, 1),), (1,), (1,), 1).astype(np.float32))
    assert not np.isnan(found[0, 0, 0])  # infinity met padding there


def test_flops_of_a_convolution() -> None:
    counts = counted(
        "convolution", [tensor(F32, 2, 4, 8, 8), tensor(F32, 6, 2, 3, 3)], feature_group_count=2,
        padding=((1, 1), (1, 1)),
    )  # fmt: skip
    assert counts.flops == 2 * (2 * 6 * 8 * 8) * (2 * 3 * 3)


def test_faults_of_convolution() -> None:
    image, kernel = tensor(F32, 1, 4, 8), tensor(F32, 6, 2, 3)
    assert faults("convolution", [image, kernel], feature_group_count=2) == []
    assert faults("convolution", [image, kernel]) == [1223]
    assert faults("convolution", [image, tensor(F32, 5, 2, 3)], feature_group_count=2) == [1223]
    assert faults("convolution", [image, tensor(F32, "o", 2, 3)], feature_group_count=2) == [1223]
    assert faults("convolution", [image, tensor(F32, 4, 4)]) == [1223]
    found = faults(
        "convolution", [image, kernel], feature_group_count=0, window_strides=(0,), padding=((1,),),
        lhs_dilation=(1, 1), rhs_dilation=(-1,), input_dimensions=(0, 0, 1), kernel_dimensions=(0, 1, 3), depth=1,
    )  # fmt: skip
    assert set(found) == {1223, 1224, 1225}
    assert len(found) >= 8


def test_a_planted_bug_is_caught() -> None:
    class Unguarded(Convolution):
        """Forgets where the image starts."""

        def define(
            self, operands: Sequence[Buffer], results: Sequence[Buffer], attributes: Mapping[str, Attribute],
            symbols: Sequence[Symbol] = (),
        ) -> Computation:  # fmt: skip
            found = super().define(operands, results, attributes, symbols)
            (stage,) = found.stages
            return replace(found, stages=(replace(stage, guards=stage.guards[1:]),))

    g = np.random.default_rng(6)
    operands = [whole(g, 1, 2, 6), whole(g, 3, 2, 3)]
    wanted = reference("convolution", operands, padding=((1, 1),))
    same(interpreted("convolution", operands, padding=((1, 1),)), wanted)
    with pytest.raises(Exception, match="TW1311"):
        interpreted(Unguarded(), operands, padding=((1, 1),))
