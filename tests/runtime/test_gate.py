"""The call gate: what it takes, what it converts, what it refuses and how it says so; native and plain alike."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilework import dtypes
from tilework.codegen.cpu.jit import Jit
from tilework.dims import Dim, Symbol, dim
from tilework.errors import CallError, OutOfMemoryError, UsageError
from tilework.graph.graph import InputPolicy, OutputPolicy
from tilework.graph.types import TensorType, tensor
from tilework.plan.guard import Guard
from tilework.runtime.call_spec import GateInput, GateOutput, GateSpec
from tilework.runtime.frame import FIRST_SLOT, Frame
from tilework.runtime.gate import Gate
from tilework.runtime.memory import RECYCLE_FROM, BlockPool
from tilework.runtime.native import NativeGate, expected_layout

N, M = Symbol("N", 1, 64), Symbol("M", 0, None, 4)
F32, I64 = dtypes.float32, dtypes.int64


@pytest.fixture(scope="module")
def native(jit: Jit) -> NativeGate:
    return NativeGate(jit)


@pytest.fixture(params=["native", "plain"])
def gates(request: pytest.FixtureRequest, native: NativeGate) -> NativeGate | None:
    return native if request.param == "native" else None


def make(
    native: NativeGate | None,
    *types: TensorType,
    outputs: tuple[TensorType, ...] = (),
    policies: dict[int, InputPolicy] | None = None,
    symbols: tuple[Symbol, ...] = (N, M),
    guards: tuple[Guard, ...] = (),
    alignment: int = 1,
    output_policies: dict[int, OutputPolicy] | None = None,
    blocks: BlockPool | None = None,
) -> tuple[Gate, Frame]:
    """A gate whose inputs are called a, b, c, and a frame for it: symbols first, then inputs, then outputs."""
    slots = {symbol.name: FIRST_SLOT + k for k, symbol in enumerate(symbols)}
    first = FIRST_SLOT + len(symbols)
    inputs = tuple(
        GateInput("abcdefgh"[k], kind, first + k, (policies or {}).get(k, InputPolicy()), alignment)
        for k, kind in enumerate(types)
    )
    results = tuple(
        GateOutput("rstuv"[k], kind, first + len(types) + k, (output_policies or {}).get(k, OutputPolicy()))
        for k, kind in enumerate(outputs)
    )
    spec = GateSpec(inputs, results, symbols, slots, None, guards)
    return Gate(spec, native, blocks), Frame(first + len(types) + len(outputs))


def addresses(gate: Gate, frame: Frame) -> list[int]:
    return [int(frame.words[given.slot]) for given in gate.spec.inputs]


def address(array: np.ndarray) -> int:
    return array.ctypes.data


def refused(gate: Gate, frame: Frame, *arguments: object) -> CallError:
    with pytest.raises(CallError) as caught:
        gate.bind(frame, arguments)
    return caught.value


# -- what is taken as it stands ----------------------------------------------------------------------------------------
def test_layout_of_arrays_is_the_expected_one():
    assert expected_layout()


def test_addresses_and_symbols(gates: NativeGate | None):
    gate, frame = make(gates, tensor(F32, "N", 3), tensor(I64, "M", "N"), tensor(F32))
    a, b, c = np.ones((5, 3), np.float32), np.ones((8, 5), np.int64), np.array(2, np.float32)
    bound = gate.bind(frame, (a, b, c))
    assert addresses(gate, frame) == [address(a), address(b), address(c)]
    assert list(frame.words)[FIRST_SLOT : FIRST_SLOT + 2] == [5, 8]
    assert all(x is y for x, y in zip(bound.arrays, (a, b, c), strict=True))
    assert not bound.write_backs
    assert not gate.counted


def test_extents_of_zero(gates: NativeGate | None):
    gate, frame = make(gates, tensor(F32, "M", 3))
    empty = np.empty((0, 3), np.float32)
    gate.bind(frame, (empty,))
    assert frame.words[gate.spec.symbol_slots["M"]] == 0


def test_every_data_type(gates: NativeGate | None):
    for dtype in dtypes.ALL:
        gate, frame = make(gates, tensor(dtype, 3))
        gate.bind(frame, (np.zeros(3, dtype.numpy),))
        assert not gate.counted, dtype


def test_affine_extents_bind_their_symbol(gates: NativeGate | None):
    gate, frame = make(gates, tensor(F32, dim("N") * 3 + 2), tensor(F32, dim("N") + 1))
    gate.bind(frame, (np.zeros(17, np.float32), np.zeros(6, np.float32)))
    assert frame.words[gate.spec.symbol_slots["N"]] == 5
    assert refused(gate, frame, np.zeros(17, np.float32), np.zeros(5, np.float32)).code == 1706


def test_extents_that_need_other_symbols_first(gates: NativeGate | None):
    wide = (dim("N") * dim("M") + 1, dim("N") // 2, Dim() + dim("M") % 3)
    gate, frame = make(gates, tensor(F32, *wide), tensor(F32, "N", "M"))
    b = np.zeros((5, 8), np.float32)
    gate.bind(frame, (np.zeros((41, 2, 2), np.float32), b))
    for shape in ((40, 2, 2), (41, 3, 2), (41, 2, 1)):
        error = refused(gate, frame, np.zeros(shape, np.float32), b)
        assert error.code == 1706
        assert "N = 5 (dimension 0 of input b)" in str(error) or "M = 8 (dimension 1 of input b)" in str(error)


def test_symbols_that_nothing_binds():
    with pytest.raises(UsageError) as caught:
        make(None, tensor(F32, dim("N") * dim("M")))
    assert caught.value.code == 1005


# -- what is refused
# ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("argument", "code", "words"),
    [
        (np.zeros((4, 3), np.float64), 1702, ["a", "float32", "float64"]),
        (np.zeros((4, 3), np.int32), 1702, ["int32"]),
        (np.zeros((4, 3), ">f4"), 1703, ["byte order"]),
        (np.zeros(4, np.float32), 1704, ["2 dimensions", "(4,)"]),
        (np.zeros((4, 3, 1), np.float32), 1704, ["3"]),
        (np.float32(1), 1704, ["0"]),
        (np.zeros((4, 2), np.float32), 1705, ["dimension 1", "2", "3"]),
        (np.zeros((65, 3), np.float32), 1707, ["N = 65", "at most 64"]),
        (np.zeros((0, 3), np.float32), 1707, ["at least 1"]),
        ("text", 1702, ["str"]),
        (None, 1709, ["NoneType"]),
        ([[1, 2, 3], [4]], 1709, ["list"]),
        ({"x": 1}, 1709, ["dict"]),
        (object(), 1709, ["object"]),
        (np.ma.masked_array(np.zeros((4, 3), np.float32)), 1709, ["mask"]),
        ([[1j, 2, 3]], 1702, ["complex128"]),
        (np.zeros((4, 3), np.dtype([("x", "f4")])), 1702, []),
    ],
)
def test_refusals(gates: NativeGate | None, argument: object, code: int, words: list[str]):
    gate, frame = make(gates, tensor(F32, "N", 3))
    error = refused(gate, frame, argument)
    assert error.code == code
    for word in words:
        assert word in str(error), str(error)
    assert not gate.counted or code in (1704, 1702)


def test_symbols_that_disagree(gates: NativeGate | None):
    gate, frame = make(gates, tensor(F32, "N"), tensor(F32, 2, "N"))
    error = refused(gate, frame, np.zeros(4, np.float32), np.zeros((2, 5), np.float32))
    assert error.code == 1706
    assert "N = 4 (dimension 0 of input a)" in str(error)
    assert "input b: dimension 1 is 5" in str(error)


def test_multiples(gates: NativeGate | None):
    gate, frame = make(gates, tensor(F32, "M"))
    gate.bind(frame, (np.zeros(12, np.float32),))
    error = refused(gate, frame, np.zeros(13, np.float32))
    assert error.code == 1707
    assert "multiple of 4" in str(error)


def test_affine_extent_without_a_solution(gates: NativeGate | None):
    gate, frame = make(gates, tensor(F32, dim("N") * 3 + 2))
    assert refused(gate, frame, np.zeros(18, np.float32)).code == 1705
    assert refused(gate, frame, np.zeros(1, np.float32)).code in (1705, 1707)


def test_wrong_numbers_of_arguments(gates: NativeGate | None):
    gate, frame = make(gates, tensor(F32, 2), tensor(F32, 2))
    x = np.zeros(2, np.float32)
    for arguments in ((), (x,), (x, x, x)):
        assert refused(gate, frame, *arguments).code == 1701


def test_order_of_arguments():
    gate, _ = make(None, tensor(F32, 2), tensor(F32, 2), tensor(F32, 2))
    assert gate.order((1, 2, 3), {}) == (1, 2, 3)
    assert gate.order((1,), {"c": 3, "b": 2}) == (1, 2, 3)
    assert gate.order((), {"c": 3, "b": 2, "a": 1}) == (1, 2, 3)
    for args, kwargs, word in [
        ((1, 2), {}, "no argument for c"),
        ((1, 2, 3, 4), {}, "4 arguments for 3 inputs"),
        ((1, 2), {"b": 1, "c": 2}, "both by position and by name"),
        ((1, 2), {"z": 1}, "no input is called z"),
    ]:
        with pytest.raises(CallError) as caught:
            gate.order(args, kwargs)
        assert caught.value.code == 1701
        assert word in str(caught.value)


def test_guards(gates: NativeGate | None):
    guards = (
        Guard(dim("N") - dim("M"), "nonnegative", "N must not be less than M"),
        Guard(dim("N") % 5, "zero", "N must be a multiple of 5"),
    )
    gate, frame = make(gates, tensor(F32, "N"), tensor(F32, "M"), guards=guards)
    for n, m, good in [(5, 4, True), (5, 8, False), (6, 4, False)]:
        arguments = (np.zeros(n, np.float32), np.zeros(m, np.float32))
        if good:
            gate.bind(frame, arguments)
        else:
            assert refused(gate, frame, *arguments).code == 1707


# -- what is converted or copied
# ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["strided rows", "reversed", "Fortran order", "transposed"])
def test_views_are_copied_and_counted(gates: NativeGate | None, kind: str):
    gate, frame = make(gates, tensor(F32, "N", "M"))
    whole = np.arange(24 * 8, dtype=np.float32).reshape(24, 8)
    view = {
        "strided rows": whole[::2],
        "reversed": whole[:, ::-1],
        "Fortran order": np.asfortranarray(whole),
        "transposed": whole[:16].reshape(8, 16).T,
    }[kind]
    bound = gate.bind(frame, (view,))
    assert bound.arrays[0].flags.c_contiguous
    assert addresses(gate, frame) == [address(bound.arrays[0])]
    assert (bound.arrays[0] == view).all()
    assert gate.counted == {("a", "copied: not contiguous"): 1}


def test_copies_can_be_refused(gates: NativeGate | None):
    gate, frame = make(gates, tensor(F32, "N"), policies={0: InputPolicy(noncontiguous="refuse")})
    assert refused(gate, frame, np.zeros(8, np.float32)[::2]).code == 1712


def test_misaligned_arrays_are_copied(gates: NativeGate | None):
    raw = np.zeros(4 * 7 + 1, np.uint8)[1:]
    shifted = raw.view(np.float32) if raw.ctypes.data % 4 == 0 else np.ndarray(7, np.float32, raw)
    gate, frame = make(gates, tensor(F32, "N"))
    bound = gate.bind(frame, (shifted,))
    assert bound.arrays[0].flags.aligned
    assert len(gate.counted) == 1
    gate, frame = make(gates, tensor(F32, "N"), alignment=256)
    inside = np.zeros(200, np.float32)
    for start in range(3):
        bound = gate.bind(frame, (inside[start : start + 50],))
        assert addresses(gate, frame)[0] % 256 == 0
        assert (bound.arrays[0] == 0).all()
    assert sum(gate.counted.values()) >= 2


@pytest.mark.parametrize(
    "argument", [[1, 2.5, 3], (1.0, 2.5, 3.0), [True, 2.5, 3], [np.float32(1), np.float32(2.5), np.float32(3)]]
)
def test_lists_of_numbers_are_converted_and_counted(gates: NativeGate | None, argument: object):
    gate, frame = make(gates, tensor(F32, "N"))
    bound = gate.bind(frame, (argument,))
    assert bound.arrays[0].tolist() == [1, 2.5, 3]
    assert bound.arrays[0].dtype == np.float32
    assert gate.counted == {("a", f"converted: a {type(argument).__name__}"): 1}


def test_numbers_and_empty_lists(gates: NativeGate | None):
    gate, frame = make(gates, tensor(I64), tensor(I64, "M"), tensor(dtypes.bfloat16))
    bound = gate.bind(frame, (7, [], 1.5))
    assert [array.tolist() for array in bound.arrays] == [7, [], 1.5]


@pytest.mark.parametrize(
    ("dtype", "value", "code"),
    [
        (dtypes.int8, [1, 300], 1709), (dtypes.uint8, [-1, 1], 1709), (dtypes.int64, [0.5, 1], 1702),
        (dtypes.boolean, [1, 0], 1702), (dtypes.int4, [9, 1], 1709), (dtypes.float32, np.ones(2), 1702),
        (dtypes.int64, [2**70, 1], 1709),
    ],
)  # fmt: skip
def test_conversions_that_would_lose_something(gates: NativeGate | None, dtype: Any, value: object, code: int):
    gate, frame = make(gates, tensor(dtype, 2))
    assert refused(gate, frame, value).code == code


def test_subclasses_and_array_likes(gates: NativeGate | None):
    class Mine(np.ndarray):
        pass

    class Like:
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return np.full((2, 3), 4, np.float32)

    base = np.arange(6, dtype=np.float32).reshape(2, 3)
    gate, frame = make(gates, tensor(F32, "N", 3))
    bound = gate.bind(frame, (base.view(Mine),))
    assert type(bound.arrays[0]) is np.ndarray
    assert addresses(gate, frame) == [address(base)]
    assert not gate.counted
    gate.bind(frame, (memoryview(base.data),))
    assert addresses(gate, frame) == [address(base)]
    assert (gate.bind(frame, (Like(),)).arrays[0] == 4).all()
    assert gate.counted == {("a", "converted: a memoryview"): 1, ("a", "converted: a Like"): 1}


def test_another_descriptor_of_the_same_type(gates: NativeGate | None):
    with_metadata = np.dtype(np.float32, metadata={"unit": "m"})
    gate, frame = make(gates, tensor(F32, 2))
    array = np.zeros(2, with_metadata)
    gate.bind(frame, (array,))
    assert addresses(gate, frame) == [address(array)]
    assert np.zeros(2, ml_dtypes.bfloat16).dtype is dtypes.bfloat16.numpy  # the fast way holds for these too


# -- memory that calls change
# -------------------------------------------------------------------------------------------
MUTATED = InputPolicy("mutated", 0)


def test_readonly_arrays(gates: NativeGate | None):
    locked = np.zeros(4, np.float32)
    locked.flags.writeable = False
    gate, frame = make(gates, tensor(F32, 4))
    gate.bind(frame, (locked,))
    assert addresses(gate, frame) == [address(locked)]
    gate, frame = make(gates, tensor(F32, 4), policies={0: MUTATED})
    assert refused(gate, frame, locked).code == 1708
    assert refused(gate, frame, [1, 2, 3, 4]).code == 1708
    gate, frame = make(gates, tensor(F32, 4), policies={0: InputPolicy("donated")})
    assert addresses(gate, frame) != [address(gate.bind(frame, (locked,)).arrays[0])]
    assert gate.counted == {("a", "copied: read-only, so its memory cannot be donated"): 1}


def test_changed_views_are_written_back(gates: NativeGate | None):
    gate, frame = make(gates, tensor(F32, "N"), policies={0: MUTATED})
    whole = np.arange(10, dtype=np.float32)
    bound = gate.bind(frame, (whole[::2],))
    bound.arrays[0][...] += 100
    assert whole[0] == 0
    gate.finish(bound)
    assert whole.tolist() == [100, 1, 102, 3, 104, 5, 106, 7, 108, 9]


def test_overlap_with_changed_memory(gates: NativeGate | None):
    x = np.arange(8, dtype=np.float32)
    gate, frame = make(gates, tensor(F32, 4), tensor(F32, 4), policies={0: MUTATED})
    bound = gate.bind(frame, (x[:4], x[2:6]))
    assert addresses(gate, frame)[0] == address(x)
    assert addresses(gate, frame)[1] == address(bound.arrays[1]) != address(x[2:])
    assert bound.arrays[1].tolist() == [2, 3, 4, 5]
    assert ("b", "copied: overlaps an argument that the call changes") in gate.counted
    gate.bind(frame, (x[:4], x[4:]))
    assert addresses(gate, frame)[1] == address(x[4:])
    gate, frame = make(gates, tensor(F32, 4), tensor(F32, 4), policies={0: MUTATED, 1: MUTATED})
    assert refused(gate, frame, x[:4], x[3:7]).code == 1711


# -- outputs
# -------------------------------------------------------------------------------------------------------------
def test_outputs(gates: NativeGate | None):
    gate, frame = make(
        gates, tensor(F32, "N", "M"), outputs=(tensor(F32, 3), tensor(I64, "M", dim("N") * 2 + 1), tensor(F32))
    )
    bound = gate.bind(frame, (np.zeros((5, 8), np.float32),))
    outputs = gate.allocate(frame, bound)
    assert [output.shape for output in outputs if output is not None] == [(3,), (8, 11), ()]
    assert [int(frame.words[output.slot]) for output in gate.spec.outputs] == [
        address(output) for output in outputs if output is not None
    ]


def test_large_outputs_are_recycled(gates: NativeGate | None):
    blocks = BlockPool()
    gate, frame = make(gates, tensor(F32, "M"), outputs=(tensor(F32, "M"), tensor(F32, RECYCLE_FROM)), blocks=blocks)
    bound = gate.bind(frame, (np.zeros(RECYCLE_FROM // 2, np.float32),))
    seen: set[int] = set()
    for _ in range(10):
        first, second = gate.allocate(frame, bound)
        assert first is not None
        assert second is not None
        first[...] = second[...] = 1
        seen |= {address(first), address(second)}
    assert len(seen) <= 4
    assert blocks.mapped <= 4


def test_outputs_beyond_the_limit(gates: NativeGate | None):
    blocks = BlockPool(limit_bytes=1000)
    for shape in ((100, "M"), ("M", 10**6)):
        gate, frame = make(gates, tensor(F32, "M"), outputs=(tensor(F32, *shape),), blocks=blocks)
        bound = gate.bind(frame, (np.zeros(4, np.float32),))
        with pytest.raises(OutOfMemoryError) as caught:
            gate.allocate(frame, bound)
        assert caught.value.code == 1710
        assert "output r" in str(caught.value)
    gate, frame = make(gates, outputs=(tensor(F32, 1000),), blocks=blocks)
    with pytest.raises(OutOfMemoryError):
        gate.allocate(frame, gate.bind(frame, ()))


def test_outputs_larger_than_any_memory(gates: NativeGate | None):
    gate, frame = make(gates, tensor(F32, "M"), outputs=(tensor(F32, dim("M") * 2**60),))
    with pytest.raises(OutOfMemoryError) as caught:
        gate.allocate(frame, gate.bind(frame, (np.zeros(4, np.float32),)))
    assert caught.value.code == 1710


def test_outputs_with_negative_extents(gates: NativeGate | None):
    gate, frame = make(gates, tensor(F32, "N"), outputs=(tensor(F32, dim("N") - 3),))
    with pytest.raises(CallError) as caught:
        gate.allocate(frame, gate.bind(frame, (np.zeros(2, np.float32),)))
    assert caught.value.code == 1707


def test_aliases_views_and_measured_outputs(gates: NativeGate | None):
    measured = Symbol("count", 0, 100, measured=True)
    gate, frame = make(
        gates, tensor(F32, "N", 4),
        outputs=(tensor(F32, "N", 4), tensor(F32, "N", 2), tensor(F32, "count")),
        output_policies={
            0: OutputPolicy("alias", 0),
            1: OutputPolicy("view", 0, (dim(4), dim(2)), dim(1)),
        },
        symbols=(N, measured),
        policies={0: MUTATED},
    )  # fmt: skip
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    alias, view, later = gate.allocate(frame, gate.bind(frame, (a,)))
    assert alias is a
    assert view is not None
    assert (view == a[:, 1::2]).all()
    assert np.shares_memory(view, a)
    assert later is None
    assert gate.measured(2, (7,)).shape == (7,)
    strided = np.arange(24, dtype=np.float32).reshape(3, 8)[:, ::2]
    bound = gate.bind(frame, (strided,))
    assert gate.allocate(frame, bound)[0] is strided


def test_views_outside_their_input(gates: NativeGate | None):
    gate, frame = make(
        gates, tensor(F32, "N"), outputs=(tensor(F32, 4),),
        output_policies={0: OutputPolicy("view", 0, (dim(1),), dim(0))},
    )  # fmt: skip
    gate.allocate(frame, gate.bind(frame, (np.zeros(4, np.float32),)))
    with pytest.raises(CallError) as caught:
        gate.allocate(frame, gate.bind(frame, (np.zeros(3, np.float32),)))
    assert caught.value.code == 1707


# -- references
# ----------------------------------------------------------------------------------------------------------
def test_nothing_is_leaked(gates: NativeGate | None):
    gate, frame = make(gates, tensor(F32, "N", 3), tensor(F32, 4), outputs=(tensor(F32, "N"),))
    a, b, wrong = np.zeros((5, 3), np.float32), np.zeros(8, np.float32)[::2], np.zeros(4, np.int32)

    def once() -> None:
        gate.allocate(frame, gate.bind(frame, (a, b)))
        with pytest.raises(CallError):
            gate.bind(frame, (a, wrong))

    for _ in range(10):
        once()
    gc.collect()
    before = [sys.getrefcount(x) for x in (a, b, wrong)]
    tracemalloc.start()
    held = tracemalloc.get_traced_memory()[0]
    for _ in range(300):
        once()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - held
    tracemalloc.stop()
    assert [sys.getrefcount(x) for x in (a, b, wrong)] == before
    assert grown < 20_000


def test_a_hundred_thousand_calls_leave_the_counts_alone(native: NativeGate):
    gate, frame = make(native, tensor(F32, 4), outputs=(tensor(F32, 4),))
    x = np.zeros(4, np.float32)
    gate.allocate(frame, gate.bind(frame, (x,)))
    before = [sys.getrefcount(y) for y in (x, x.dtype, np.ndarray, 0, None)]
    for _ in range(100_000):
        gate.allocate(frame, gate.bind(frame, (x,)))
    after = [sys.getrefcount(y) for y in (x, x.dtype, np.ndarray, 0, None)]
    assert all(abs(now - then) < 100 for now, then in zip(after, before, strict=True)), (before, after)
    assert after[0] == before[0]
