"""Every shape operator: definition against numpy on random shapes (0, 1, primes, symbols), and its type rule."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.checking import check, counted, faults, interpreted, reference, same
from tilework import dtypes
from tilework.dims import Symbol, dim, parse_dim
from tilework.errors import RunError
from tilework.graph.types import TokenType, tensor
from tilework.ops.operator import Array, TypeFaults
from tilework.ops.registry import operator
from tilework.ops.shape.reshape import source_index

F32 = dtypes.float32
EXTENTS = [0, 1, 2, 3, 5, 7]
shapes = st.lists(st.sampled_from(EXTENTS), max_size=3).map(tuple)


def numbered(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    """Each element its own number, so that a misplaced one shows."""
    return np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape).astype(dtype)


def names(shape: tuple[int, ...]) -> list[str]:
    return [f"n{place}" for place in range(len(shape))]


# -- reshape -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((2, 3), (6,)), ((6,), (2, 3)), ((2, 3, 4), (4, 6)), ((4, 6), (2, 3, 4)), ((), (1, 1)), ((1,), ()),
        ((0, 3), (5, 0)),
        ((1, 7, 1), (7,)), ((7,), (1, 7, 1)), ((2, 1, 3), (1, 2, 3, 1)), ((12, 5), (3, 4, 5)), ((3, 4, 5), (12, 5)),
        ((2, 3, 5, 7), (6, 35)), ((6, 35), (2, 21, 5)), ((0,), (0, 1)), ((2, 2, 3, 3), (4, 9)), ((8,), (2, 2, 2)),
    ],
)  # fmt: skip
def test_reshape(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    x = numbered(first)
    found = check("reshape", [x], shape=second)
    np.testing.assert_array_equal(found, x.reshape(second))


def test_reshape_with_symbols() -> None:
    for extents in ((3, 2), (1, 5), (0, 2)):
        x = numbered((*extents, 6))
        for shape in (
            (dim("n"), dim("m") * 6), (dim("n") * dim("m"), dim(6)), (dim("n"), dim("m"), dim(2), dim(3)),
            (dim("n") * dim("m") * 6,), (dim("n") * dim("m") * 2, dim(3)), (dim("n"), dim(1), dim("m"), dim(6)),
        ):  # fmt: skip
            found = interpreted("reshape", [x], [("n", "m", 6)], shape=shape)
            values = {"n": extents[0], "m": extents[1]}
            np.testing.assert_array_equal(found, x.reshape([int(d.evaluate(values)) for d in shape]))


def test_reshape_keeps_what_it_can() -> None:
    n, i, j, k = (dim(name) for name in ("N", "i", "j", "k"))
    heads = source_index((n, dim(5), dim(12)), (n, dim(5), dim(3), dim(4)), (i, j, k, dim("l")), [Symbol("N")])
    assert heads == (i, j, k * 4 + dim("l"))
    merged = source_index((n, dim(3), dim(4)), (n, dim(12)), (i, j), [Symbol("N")])
    assert merged == (i, parse_dim("j // 4"), parse_dim("j % 4"))
    assert source_index((n, dim(1), dim(4)), (n, dim(4)), (i, j), [Symbol("N")]) == (i, dim(0), j)
    both = source_index((dim(4), dim(6)), (dim(8), dim(3)), (i, j), [])
    assert both == (parse_dim("(i*3 + j) // 6"), parse_dim("(i*3 + j) % 6"))


@given(st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=5), st.data())
def test_reshape_of_regrouped_factors(factors: list[int], data: st.DataObject) -> None:
    def grouped() -> tuple[int, ...]:
        cuts = sorted(data.draw(st.sets(st.integers(0, len(factors)))) | {0, len(factors)})
        return tuple(int(np.prod(factors[a:b])) for a, b in itertools.pairwise(cuts))

    check("reshape", [numbered(grouped())], shape=grouped())


def test_reshape_faults() -> None:
    assert faults("reshape", [tensor(F32, 2, 3)], shape=(5,)) == [1223]
    assert faults("reshape", [tensor(F32, "N")], shape=(dim("N") // 4, 4)) == [1223]
    assert faults("reshape", [tensor(F32, 2, 3)], shape=(-6,)) == [1225, 1223]
    assert faults("reshape", [tensor(F32, 2, 3)]) == [1224, 1223]
    assert faults("reshape", [TokenType()], shape=(1,)) == [1221]
    assert operator("reshape").view


# -- assume ------------------------------------------------------------------------------------------------------------
def test_assume() -> None:
    x = numbered((2, 3))
    np.testing.assert_array_equal(check("assume", [x], shape=(2, 3)), x)
    np.testing.assert_array_equal(interpreted("assume", [x], [("n", 3)], shape=(dim("n"), 3)), x)
    found = operator("assume")
    given = [tensor(F32, "n", "m")]
    rooms = found.requirements(given, {"shape": (dim("k"), dim("m")), "at_least_zero": (dim("m") - 2,)})
    assert set(rooms) == {dim("k") - dim("n"), dim("n") - dim("k"), dim("m") - 2}
    either: dict[str, Any] = {"shape": (dim("n"), dim("m")), "one_or_equal": (dim("n"), dim("k"))}
    for n, k, holds in ((1, 5, True), (5, 1, True), (4, 4, True), (0, 0, True), (0, 2, False), (3, 2, False)):
        rooms = found.requirements(given, either)
        assert all(room.evaluate({"n": n, "k": k, "m": 1}) >= 0 for room in rooms) == holds
    assert {found.sentence(room, either) for room in rooms} == {"n = k, or one of them = 1"}
    assert found.infer(given, {"shape": (dim("k"), dim("m"))}) == (tensor(F32, "k", "m"),)
    with pytest.raises(RunError):
        found.reference([x], {"shape": (2, 4)}, [tensor(F32, 2, 4)])


def test_assume_faults() -> None:
    assert faults("assume", [tensor(F32, 2, 3)], shape=(2, 4)) == [1223]
    assert faults("assume", [tensor(F32, "N")], shape=(dim("N") + 1,)) == [1223]
    assert faults("assume", [tensor(F32, 2, 3)], shape=(6,)) == [1223]
    assert faults("assume", [tensor(F32, 2)], shape=(2,), other=1) == [1224]
    assert faults("assume", [tensor(F32, 2)], shape=(2,), one_or_equal=(2,)) == [1225]
    assert operator("assume").view


# -- movement ----------------------------------------------------------------------------------------------------------
@given(shapes, st.data())
def test_transpose_reverse_and_broadcast(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = numbered(shape)
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    np.testing.assert_array_equal(check("transpose", [x], [names(shape)], permutation=order), x.transpose(order))
    turned = tuple(sorted(data.draw(st.sets(st.sampled_from(range(len(shape))))))) if shape else ()
    found = check("reverse", [x], [names(shape)], dimensions=turned)
    np.testing.assert_array_equal(found, np.flip(x, turned) if turned else x)
    larger = tuple(data.draw(st.sampled_from([2, 3])) if d == 1 else d for d in shape)
    found = check("broadcast_in_dim", [x], shape=(2, *larger), broadcast_dimensions=tuple(range(1, len(shape) + 1)))
    np.testing.assert_array_equal(found, np.broadcast_to(x, (2, *larger)))


def test_broadcast_in_dim_crosses_dimensions_and_symbols() -> None:
    x = numbered((2, 3))
    found = check("broadcast_in_dim", [x], shape=(3, 4, 2), broadcast_dimensions=(2, 0))
    np.testing.assert_array_equal(found, np.broadcast_to(x.T[:, None, :], (3, 4, 2)))
    found = interpreted("broadcast_in_dim", [x], [("n", 3)], shape=(dim("n"), dim("n"), 3), broadcast_dimensions=(1, 2))
    np.testing.assert_array_equal(found, np.broadcast_to(x, (2, 2, 3)))
    assert faults("broadcast_in_dim", [tensor(F32, 2)], shape=(3,), broadcast_dimensions=(0,)) == [1223]
    assert faults("broadcast_in_dim", [tensor(F32, 2)], shape=(2,), broadcast_dimensions=(1,)) == [1225]
    assert faults("broadcast_in_dim", [tensor(F32, "N")], shape=(dim("M"),), broadcast_dimensions=(0,)) == [1223]
    assert faults("transpose", [tensor(F32, 2, 3)], permutation=(0, 0)) == [1225]
    assert faults("transpose", [tensor(F32, 2, 3)]) == [1224]
    assert faults("reverse", [tensor(F32, 2, 3)], dimensions=(2,)) == [1225]


@given(shapes, st.data())
def test_slice(shape: tuple[int, ...], data: st.DataObject) -> None:
    starts = tuple(data.draw(st.integers(0, d)) for d in shape)
    limits = tuple(data.draw(st.integers(a, d)) for a, d in zip(starts, shape, strict=True))
    strides = tuple(data.draw(st.integers(1, 4)) for _ in shape)
    x = numbered(shape)
    found = check("slice", [x], start_indices=starts, limit_indices=limits, strides=strides)
    wanted = x[tuple(slice(a, b, c) for a, b, c in zip(starts, limits, strides, strict=True))]
    np.testing.assert_array_equal(found, wanted)


def test_slice_with_symbols() -> None:
    x = numbered((7, 3))
    attributes: dict[str, Any] = {"start_indices": (1, 0), "limit_indices": (dim("n") - 1, dim("m")), "strides": (2, 1)}
    found = interpreted("slice", [x], [("n", "m")], **attributes)
    np.testing.assert_array_equal(found, x[1:6:2])
    shape = operator("slice").infer([tensor(F32, "n", "m")], attributes)
    assert shape == (tensor(F32, (dim("n") - 2).ceildiv(2), "m"),)


def test_slice_faults() -> None:
    x = tensor(F32, 5, "N")
    assert faults("slice", [x], start_indices=(-1, 0), limit_indices=(6, dim("N") + 1)) == [1225, 1225, 1225]
    assert faults("slice", [x], start_indices=(3, 0), limit_indices=(2, 1)) == [1225]
    assert faults("slice", [x], start_indices=(0,), limit_indices=(0, 0), strides=(0, 1)) == [1225, 1225]
    with pytest.raises(RunError):
        operator("slice").reference([numbered((3,))], {"start_indices": (2,), "limit_indices": (9,)}, [tensor(F32, 7)])


@pytest.mark.parametrize("extents", [(2,), (0, 3), (1, 0, 5), (2, 3, 0, 7)])
@pytest.mark.parametrize("along", [0, 1])
def test_concatenate(extents: tuple[int, ...], along: int) -> None:
    parts = [numbered((n, 3) if along == 0 else (3, n)) + 100 * k for k, n in enumerate(extents)]
    symbols = [[f"n{k}", "m"] if along == 0 else ["m", f"n{k}"] for k in range(len(extents))]
    found = check("concatenate", parts, symbols, dimension=along)
    np.testing.assert_array_equal(found, np.concatenate(parts, along))


def test_concatenate_the_same_buffer_twice_and_faults() -> None:
    from tilework.loops.program import buffer

    x = buffer("x", F32, 2)
    made = operator("concatenate").define([x, x], [buffer("y", F32, 4)], {"dimension": 0})
    assert [b.name for b in made.inputs] == ["x"]
    assert len({axis.name for stage in made.stages for axis in stage.axes}) == 2
    f = tensor(F32, 2, "N")
    assert faults("concatenate", [], dimension=0) == [1220]
    assert faults("concatenate", [f, tensor(dtypes.int8, 3, "M")], dimension=0) == [1222, 1223]
    assert faults("concatenate", [f, tensor(F32, 3)], dimension=2) == [1225, 1223]
    assert faults("concatenate", [tensor(F32)], dimension=0) == [1225]


# -- padding -----------------------------------------------------------------------------------------------------------
@given(shapes, st.data())
def test_pad(shape: tuple[int, ...], data: st.DataObject) -> None:
    interior = tuple(data.draw(st.integers(0, 2)) for _ in shape)
    low = tuple(data.draw(st.integers(-2, 3)) for _ in shape)
    spread = [d + max(d - 1, 0) * gap for d, gap in zip(shape, interior, strict=True)]
    high = tuple(data.draw(st.integers(max(-2, -n - a), 3)) for n, a in zip(spread, low, strict=True))
    x = numbered(shape) + 1
    attributes: dict[str, Any] = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}
    found = check("pad", [x, np.array(-7, np.float32)], [names(shape), ()], **attributes)
    wanted = np.full([n + a + b for n, a, b in zip(spread, low, high, strict=True)], -7, np.float32)
    for place in np.ndindex(*shape):
        at = tuple(i * (gap + 1) + a for i, gap, a in zip(place, interior, low, strict=True))
        if all(0 <= i < n for i, n in zip(at, wanted.shape, strict=True)):
            wanted[at] = x[place]
    np.testing.assert_array_equal(found, wanted)


def test_pad_by_symbols_and_faults() -> None:
    x = numbered((3,))
    zero = np.zeros((), np.float32)
    attributes: dict[str, Any] = {"edge_padding_low": (dim("n") - 1,), "edge_padding_high": (0,)}
    found = interpreted("pad", [x, zero], [("n",), ()], **attributes)
    np.testing.assert_array_equal(found, [0, 0, 0, 1, 2])
    value = tensor(F32, 1)
    wrong: dict[str, Any] = {"edge_padding_low": (-2,), "edge_padding_high": (-2,)}
    assert faults("pad", [tensor(F32, 3), tensor(F32)], **wrong) == [1225]
    assert faults("pad", [tensor(F32, 3), value], edge_padding_low=(0,), edge_padding_high=(0, 1)) == [1223, 1225]
    assert faults("pad", [tensor(F32, 3), tensor(dtypes.int8)], edge_padding_low=(0,), edge_padding_high=(0,)) == [1222]


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize(
    ("shape", "low", "high"),
    [
        ((5,), (2,), (4,)), ((1,), (3,), (2,)), ((3,), (7,), (8,)), ((3, 4), (1, 0), (2, 3)), ((2, 3), (5, 1), (0, 0)),
        ((), (), ()), ((7,), (0,), (0,)), ((0, 2), (0, 1), (0, 1)), ((4,), (4,), (4,)),
        ((2, 1, 3), (1, 1, 1), (1, 1, 1)),
    ],
)  # fmt: skip
def test_pad_reflect(mode: str, shape: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...]) -> None:
    x = numbered(shape)
    found = check("pad_reflect", [x], [names(shape)], low=low, high=high, mode=mode)
    around: Any = list(zip(low, high, strict=True))
    if shape:
        numpy_mode: Any = mode
        np.testing.assert_array_equal(found, np.pad(x, around, numpy_mode))


def test_pad_reflect_is_affine_where_bounds_allow_it() -> None:
    from tilework.loops.program import Buffer

    def stages(lower: int) -> int:
        operands, results = [Buffer("x", (dim("N"),), F32)], [Buffer("y", (dim("N") + 5,), F32)]
        attributes: dict[str, Any] = {"low": (2,), "high": (3,), "mode": "reflect"}
        return len(operator("pad_reflect").define(operands, results, attributes, [Symbol("N", lower)]).stages)

    assert (stages(4), stages(3)) == (3, 1)
    assert faults("pad_reflect", [tensor(F32, 0)], low=(1,), high=(0,), mode="edge") == [1225]
    assert faults("pad_reflect", [tensor(F32, 3)], low=(-1,), high=(0,), mode="mirror") == [1225, 1225]


# -- indices and dims as values ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [dtypes.int64, dtypes.float32, dtypes.uint8, dtypes.bfloat16, dtypes.int4], ids=str)
def test_iota(dtype: dtypes.DType) -> None:
    for shape, along in (((5,), 0), ((2, 0, 3), 2), ((3, 7), 1), ((3, 7), 0)):
        found = check("iota", [], shape=shape, dimension=along, dtype=dtype)
        assert found.shape == shape
        np.testing.assert_array_equal(
            found, np.indices(shape)[along].astype(np.int8 if dtype.is_small_integer else dtype.numpy)
        )
    long = reference("iota", [], shape=(300,), dimension=0, dtype=dtypes.uint8)
    assert long[256] == 0
    assert faults("iota", [], shape=(3,), dimension=1, dtype=dtypes.boolean) == [1225, 1225]
    assert faults("iota", [tensor(F32)], shape=(3,), dimension=0, dtype=F32) == [1220]


def test_dimension_values() -> None:
    values = (dim("n") * 2, dim("m") // 2, 7, dim("n") - dim("m"))
    found = operator("dimension_values")
    made = found.infer([], {"values": values, "shape": (2, 2)})
    assert made == (tensor(dtypes.int64, 2, 2),)
    same(check("dimension_values", [], values=(6, 2, 7, -2), shape=(2, 2)), np.array([[6, 2], [7, -2]], np.int64))
    check("dimension_values", [], values=(), shape=(0,))
    check("dimension_values", [], values=(4,), shape=())
    assert faults("dimension_values", [], values=(1, 2), shape=(3,)) == [1223]
    assert faults("dimension_values", [], values=(parse_dim("x[0]"),), shape=()) == [1225]


def test_dimension_values_of_symbols_in_a_loop_program() -> None:
    from tilework.compute.nest import loop_program
    from tilework.loops.interpret import interpret
    from tilework.loops.program import buffer

    attributes: dict[str, Any] = {"values": (dim("n") * 2, dim("n") - 7), "shape": (2,)}
    made = operator("dimension_values").define([], [buffer("y", dtypes.int64, 2)], attributes, [Symbol("n")])
    arrays = {"y": np.zeros(2, np.int64)}
    interpret(loop_program(made), arrays, {"n": 5})
    assert arrays["y"].tolist() == [10, -2]


def test_moving_costs_bytes_and_no_arithmetic() -> None:
    found = counted("transpose", [tensor(F32, "N", 4)], permutation=(1, 0))
    assert found.flops == 0
    assert found.bytes == dim("N") * 32


def test_unknown_attributes_are_reported_with_the_known_ones() -> None:
    with pytest.raises(TypeFaults, match=r"'axes' is unknown \(it takes: permutation\)"):
        operator("transpose").infer([tensor(F32, 2)], {"permutation": (0,), "axes": 1})
