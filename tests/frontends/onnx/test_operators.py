"""Operators with attributes, ranks and values that ONNX's own cases do not have, against onnx.reference or numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.frontends.onnx.models import assert_close, check_against_reference, codes_of, model, one_node, reference, run
from tilework.frontends.onnx.importer import import_model


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(21)


def numbers(random: np.random.Generator, *shape: int) -> Any:
    """Small integers held in floats: sums and products of them are exact."""
    return random.integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 5)), ((4, 2, 3), (3, 5)), ((4, 2, 3), (4, 3, 5)),
        ((2, 3), (4, 3, 5)), ((1, 7, 2, 3), (4, 1, 3, 5)), ((4, 2, 3), (3,)), ((3,), (4, 3, 5)), ((0, 3), (3, 2)),
        ((2, 0), (0, 2)), ((1, 1), (1, 1)),
    ],
)  # fmt: skip
def test_matmul_of_all_ranks(random: np.random.Generator, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = numbers(random, *left), numbers(random, *right)
    assert_close(run(one_node("MatMul", {"a": a, "b": b}), {"a": a, "b": b}), [a @ b])
    assert_close(run(one_node("MatMul", {"a": a, "b": b}, symbolic=True), {"a": a, "b": b}), [a @ b])


@pytest.mark.parametrize("across", [0, 1])
@pytest.mark.parametrize("bias", [(), (1,), (5,), (3, 1), (1, 5), (3, 5)])
def test_gemm(random: np.random.Generator, across: int, bias: tuple[int, ...]) -> None:
    a = numbers(random, *((4, 3) if across else (3, 4)))
    b = numbers(random, *((5, 4) if across else (4, 5)))
    c = numbers(random, *bias)
    proto = one_node(
        "Gemm", {"a": a}, {"b": b, "c": c}, transA=across, transB=across, alpha=0.5, beta=2.0, symbolic=not across
    )
    check_against_reference(proto, {"a": a})


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_gelu_of_the_small_types(random: np.random.Generator, kind: Any) -> None:
    x = random.standard_normal((3, 5)).astype(kind)
    wide = x.astype(np.float64)
    exact = wide / 2 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
    # the operator's body in ONNX has float32 constants, also for float64
    factor, cubic = math.sqrt(float(np.float32(2 / math.pi))), float(np.float32(0.044715))
    close = wide / 2 * (1 + np.tanh(factor * (wide + cubic * wide**3)))
    assert_close(run(one_node("Gelu", {"x": x}, opset=20), {"x": x}), [exact.astype(kind)])
    assert_close(run(one_node("Gelu", {"x": x}, opset=20, approximate="tanh"), {"x": x}), [close.astype(kind)])


@pytest.mark.parametrize(
    ("base", "exponent"),
    [
        (np.float32, np.float32), (np.float32, np.int64), (np.float32, np.int32), (np.int32, np.float32),
        (np.int64, np.int64), (np.float64, np.float32),
    ],
)  # fmt: skip
def test_pow_has_the_type_of_the_base(random: np.random.Generator, base: Any, exponent: Any) -> None:
    x = random.integers(1, 6, (3, 4)).astype(base)
    y = random.integers(0, 4, (4,)).astype(exponent)
    expected = np.power(x.astype(np.float64), y.astype(np.float64)).astype(base)
    assert_close(run(one_node("Pow", {"x": x, "y": y}), {"x": x, "y": y}), [expected])
    for whole in (1, 2, 3, 4, 0):
        proto = one_node("Pow", {"x": x}, {"y": np.array(whole, exponent)})
        assert_close(run(proto, {"x": x}), [np.power(x.astype(np.float64), whole).astype(base)])


def test_mod_both_ways() -> None:
    x = np.array([-7, -5, 5, 7, 0], np.int32)
    y = np.array([3, -3, -3, 3, 2], np.int32)
    assert_close(run(one_node("Mod", {"x": x, "y": y}), {"x": x, "y": y}), [np.mod(x, y)])
    assert_close(run(one_node("Mod", {"x": x, "y": y}, fmod=1), {"x": x, "y": y}), [np.fmod(x, y)])
    assert_close(
        run(one_node("Mod", {"x": x / 2, "y": y / 4}, fmod=1), {"x": x / 2, "y": y / 4}), [np.fmod(x / 2, y / 4)]
    )
    # refused in words before version 28 only, where no other value was meant either
    assert_close(run(one_node("Mod", {"x": x / 2, "y": y / 4}), {"x": x / 2, "y": y / 4}), [np.mod(x / 2, y / 4)])


def test_integer_division_truncates() -> None:
    x, y = np.array([7, -7, 7, -7], np.int64), np.array([2, 2, -2, -2], np.int64)
    assert_close(run(one_node("Div", {"x": x, "y": y}), {"x": x, "y": y}), [np.array([3, -3, -3, 3], np.int64)])


def test_special_values_pass_through_activations() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -100.0, 100.0], np.float32)
    for operator in ("Relu", "Softplus", "Elu", "Selu", "Sigmoid", "Tanh", "LeakyRelu"):
        (got,) = run(one_node(operator, {"x": x}), {"x": x})
        assert np.isnan(got[0])
        assert not np.isnan(got[1:]).any(), operator
    assert_close(run(one_node("Softplus", {"x": x[1:]}), {"x": x[1:]}), [np.logaddexp(0, x[1:])])


@pytest.mark.parametrize("automatic", ["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolution(random: np.random.Generator, automatic: str, rank: int) -> None:
    x = numbers(random, 2, 4, *(9, 8, 7)[:rank])
    w = numbers(random, 6, 2, *(3, 2, 2)[:rank])
    options: dict[str, Any] = {"strides": [2, 1, 3][:rank], "group": 2, "auto_pad": automatic}
    if automatic == "NOTSET":
        options["pads"] = ([1, 0, 2][:rank]) + ([0, 1, 1][:rank])
        options["dilations"] = [2, 3, 1][:rank]
    proto = one_node("Conv", {"x": x}, {"w": w, "b": numbers(random, 6)}, **options)
    check_against_reference(proto, {"x": x})
    free = one_node("Conv", {"x": x}, {"w": w, "b": numbers(random, 6)}, **options)
    for place in (0, *range(2, rank + 2)):
        free.graph.input[0].type.tensor_type.shape.dim[place].dim_param = f"d{place}"
    for extent in (9, 12, 7):
        wider = numbers(random, 3, 4, *(extent, 8, 7)[:rank])
        check_against_reference(free, {"x": wider})


def test_transposed_convolution(random: np.random.Generator) -> None:
    x, w = numbers(random, 2, 4, 5, 6), numbers(random, 4, 3, 3, 2)
    variants: list[dict[str, Any]] = [
        {}, {"strides": [2, 3]}, {"strides": [2, 2], "pads": [1, 0, 1, 1]}, {"dilations": [2, 2]},
        {"strides": [2, 2], "output_padding": [1, 0]},
    ]  # fmt: skip
    for options in variants:
        check_against_reference(one_node("ConvTranspose", {"x": x}, {"w": w}, **options), {"x": x})
    halves = [
        run(one_node("ConvTranspose", {"x": x[:, half]}, {"w": w[half]}), {"x": x[:, half]})[0]
        for half in (slice(2), slice(2, 4))
    ]
    assert_close(run(one_node("ConvTranspose", {"x": x}, {"w": w}, group=2), {"x": x}), [np.concatenate(halves, 1)])
    (whole,) = run(one_node("ConvTranspose", {"x": x}, {"w": w}, strides=[3, 2]), {"x": x})
    (cut,) = run(one_node("ConvTranspose", {"x": x}, {"w": w}, strides=[3, 2], output_shape=[14, 11]), {"x": x})
    np.testing.assert_array_equal(cut, whole[:, :, 1:, 1:])  # the odd element is cut at the low side


@pytest.mark.parametrize("ceil_mode", [0, 1])
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
def test_pooling_with_free_dims(random: np.random.Generator, operator: str, ceil_mode: int) -> None:
    x = numbers(random, 2, 3, 11, 10)
    windows = [
        ([3, 2], [2, 2], [1, 0, 1, 1]), ([2, 2], [3, 3], [0, 0, 0, 0]), ([3, 3], [1, 2], [1, 1, 1, 1]),
    ]  # fmt: skip
    for kernel, strides, pads in windows:
        options: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "pads": pads, "ceil_mode": ceil_mode}
        fixed = one_node(operator, {"x": x}, **options, opset=19)
        free = one_node(operator, {"x": x}, **options, opset=19, symbolic=True)
        (one,) = run(fixed, {"x": x})
        assert_close(run(free, {"x": x}), [one])
        if not ceil_mode:
            check_against_reference(fixed, {"x": x})


def test_average_pool_counts_padding_on_demand() -> None:
    x = np.ones((1, 1, 4), np.float32)
    options: dict[str, Any] = {"kernel_shape": [3], "pads": [1, 1], "strides": [2], "ceil_mode": 1}
    (without,) = run(one_node("AveragePool", {"x": x}, **options, opset=19), {"x": x})
    np.testing.assert_array_equal(without, np.ones((1, 1, 3), np.float32))
    (counted,) = run(one_node("AveragePool", {"x": x}, **options, count_include_pad=1, opset=19), {"x": x})
    # windows over pad 1 1 | 1 1 1 | 1 pad and one place that rounding up added, which does not count
    np.testing.assert_allclose(counted.reshape(-1), [2 / 3, 1, 1 / 2], rtol=1e-6)


@pytest.mark.parametrize(
    ("starts", "ends", "steps"),
    [
        ([0], [2**63 - 1], [2]), ([-1], [-(2**63)], [-1]), ([2], [-1], [1]), ([5], [1], [-2]), ([-3], [100], [1]),
        ([100], [0], [-3]), ([3], [3], [1]), ([5], [2], [1]), ([-100], [4], [1]),
    ],
)  # fmt: skip
def test_slices_clamp_as_numpys_do(random: np.random.Generator, starts: Any, ends: Any, steps: Any) -> None:
    x = numbers(random, 7, 2)
    constants = {"s": np.array(starts), "e": np.array(ends), "a": np.array([0]), "t": np.array(steps)}
    expected = x[starts[0] : None if ends[0] == -(2**63) else ends[0] : steps[0]]
    assert_close(run(one_node("Slice", {"x": x}, constants), {"x": x}), [expected])
    assert_close(run(one_node("Slice", {"x": x}, constants, symbolic=True), {"x": x}), [expected])


@pytest.mark.parametrize(
    ("start", "end", "step", "wanted"),
    [
        # a start before the first element is clamped to it, an end to the place before it
        (-100, -200, -1, [0]), (-8, -100, -3, [0]), (-100, 2, -1, []), (-7, -8, -1, [0]), (3, 3, -1, []),
        (100, 20, -1, []), (6, -100, -100, [6]), (2**62, -(2**62), -100, [6]), (0, 100, -1, []),
        (-20, 3, 1, [0, 1, 2]), (-20, -5, 1, [0, 1]), (-20, -30, 1, []), (20, 30, 1, []), (-3, 2**62, 2, [4, 6]),
    ],
)  # fmt: skip
def test_positions_of_slices_are_clamped(start: int, end: int, step: int, wanted: list[int]) -> None:
    x = np.arange(7, dtype=np.float32)
    constants = {"s": np.array([start]), "e": np.array([end]), "a": np.array([0]), "t": np.array([step])}
    for symbolic in (False, True):
        (got,) = run(one_node("Slice", {"x": x}, constants, symbolic=symbolic), {"x": x})
        np.testing.assert_array_equal(got, wanted)
    known = model(
        [helper.make_node("Slice", ["k", *constants], ["p"]), helper.make_node("Add", ["p", "z"], ["y"])],
        {"z": (np.int64, [1])}, ["y"], {"k": np.arange(7), **constants},
    )  # fmt: skip
    np.testing.assert_array_equal(run(known, {"z": np.zeros(1, np.int64)})[0], wanted)


@pytest.mark.parametrize("step", [-1, -2, -3, -100, 1, 3])
def test_slices_of_every_short_extent(step: int) -> None:
    ends = (-100, -6, -3, -1, 0, 2, 5, 100)
    for start in ends:
        for end in ends:
            constants = {"s": np.array([start]), "e": np.array([end]), "a": np.array([0]), "t": np.array([step])}
            proto = model(
                [helper.make_node("Slice", ["x", *constants], ["y"])], {"x": (np.int64, ["n"])}, ["y"], constants
            )
            imported = import_model(proto, check="own")
            for extent in range(imported.symbols[0].lower, 8):
                low, high = (0, extent) if step > 0 else (0, extent - 1)
                first = min(max(start + extent if start < 0 else start, low), high)
                low, high = (0, extent) if step > 0 else (-1, extent - 1)
                last = min(max(end + extent if end < 0 else end, low), high)
                x = np.arange(extent)
                np.testing.assert_array_equal(run(imported, {"x": x})[0], list(range(first, last, step)))


def test_a_grouped_convolution_fixes_the_channels(random: np.random.Generator) -> None:
    x, w = numbers(random, 2, 4, 5, 5), numbers(random, 6, 2, 3, 3)
    proto = model(
        [helper.make_node("Conv", ["x", "w"], ["y"], group=2)], {"x": (np.float32, ["b", "c", "h", "v"])}, ["y"],
        {"w": w},
    )  # fmt: skip
    assert import_model(proto, check="own").inputs[0].tensor.shape[1] == 4
    assert_close(run(proto, {"x": x}), reference(proto, {"x": x}), 1e-4)
    assert codes_of(one_node("Conv", {"x": numbers(random, 2, 5, 5, 5)}, {"w": w}, group=2)) == {1119}
    assert codes_of(one_node("Conv", {"x": x}, {"w": w[:5]}, group=2)) == {1108}


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pad_modes_with_axes_and_cuts(random: np.random.Generator, mode: str) -> None:
    x = numbers(random, 4, 5)
    proto = one_node(
        "Pad", {"x": x}, {"p": np.array([2, -1]), "v": np.float32(3), "a": np.array([-1])}, opset=19, mode=mode
    )
    extra: dict[str, Any] = {"constant_values": 3} if mode == "constant" else {}
    np_mode: Any = {"edge": "edge", "wrap": "wrap", "reflect": "reflect", "constant": "constant"}[mode]
    expected = np.pad(x[:, :-1], [(0, 0), (2, 0)], np_mode, **extra)
    assert_close(run(proto, {"x": x}), [expected])


def test_gather_takes_negative_indices_and_slices_for_one(random: np.random.Generator) -> None:
    x = numbers(random, 4, 5, 3)
    i = np.array([[0, -1], [-4, 2]])
    assert_close(run(one_node("Gather", {"x": x, "i": i}), {"x": x, "i": i}), [np.take(x, i, 0)])
    for index in (0, 4, -1, -5):
        proto = one_node("Gather", {"x": x}, {"i": np.array(index)}, axis=1)
        assert_close(run(proto, {"x": x}), [x[:, index]])
    assert codes_of(one_node("Gather", {"x": x}, {"i": np.array(5)}, axis=1)) == {1119}


def test_gather_nd_and_scatter_nd(random: np.random.Generator) -> None:
    x = numbers(random, 3, 4, 5)
    i = np.array([[[0, 1], [-1, -4]], [[2, 3], [1, 0]]])
    inside = i % np.array([3, 4])
    check_against_reference(one_node("GatherND", {"x": x, "i": inside}), {"x": x, "i": inside})
    (got,) = run(one_node("GatherND", {"x": x, "i": i}), {"x": x, "i": i})
    np.testing.assert_array_equal(got, x[i[..., 0], i[..., 1]])
    batched = random.integers(0, 4, (3, 2, 1))
    check_against_reference(one_node("GatherND", {"x": x, "i": batched}, batch_dims=1), {"x": x, "i": batched})
    places, updates = np.array([[0, 1], [2, 3]]), numbers(random, 2, 5)
    for reduction in ("none", "add", "mul", "max"):
        proto = one_node("ScatterND", {"x": x, "i": places, "u": updates}, opset=18, reduction=reduction)
        check_against_reference(proto, {"x": x, "i": places, "u": updates})


def test_one_hot_of_indices_outside() -> None:
    i = np.array([0, -1, 3, -5, 2])
    proto = one_node("OneHot", {"i": i}, {"d": np.array(3), "v": np.array([2.0, 5.0], np.float32)})
    expected = np.full((5, 3), 2, np.float32)
    expected[0, 0] = expected[1, 2] = expected[4, 2] = 5
    assert_close(run(proto, {"i": i}), [expected])


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", ((2, 3), (3, 4))), ("bhqd,bhkd->bhqk", ((2, 3, 4, 5), (2, 3, 6, 5))), ("ij->ji", ((2, 3),)),
        ("ij->", ((2, 3),)), ("i,j->ij", ((2,), (3,))), ("...ij,...jk->...ik", ((5, 2, 3), (5, 3, 4))),
        ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 5))), ("ij,jk", ((2, 3), (3, 4))), ("bi , bi -> b", ((2, 3), (2, 3))),
    ],
)  # fmt: skip
def test_einstein_sums(random: np.random.Generator, equation: str, shapes: Any) -> None:
    feeds = {f"x{place}": numbers(random, *shape) for place, shape in enumerate(shapes)}
    expected = np.einsum(equation.replace(" ", ""), *feeds.values())
    assert_close(run(one_node("Einsum", feeds, equation=equation), feeds), [np.asarray(expected)])


@pytest.mark.parametrize("order", [1, 2])
def test_norms_of_zero_rows(order: int) -> None:
    x = np.array([[0, 0], [3, 4]], np.float32)
    expected = np.array([[0, 0], [3, 4]], np.float32) / np.array([[1], [7 if order == 1 else 5]], np.float32)
    assert_close(run(one_node("LpNormalization", {"x": x}, p=order, axis=1), {"x": x}), [expected])


def test_log_sum_exp_does_not_overflow() -> None:
    x = np.array([[1000, 1000], [-1000, -1000], [np.inf, 0], [-np.inf, -np.inf]], np.float32)
    (got,) = run(one_node("ReduceLogSumExp", {"x": x}, axes=[1], keepdims=0), {"x": x})
    np.testing.assert_allclose(got, [1000 + np.log(2), -1000 + np.log(2), np.inf, -np.inf], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize(("operator", "symbolic"), [("ReduceLogSumExp", True), ("ReduceLogSum", False)])
def test_logarithms_of_sums_of_integers_are_cut_off(dtype: Any, operator: str, symbolic: bool) -> None:
    rows: Any = [[1, 2, 3], [1000, 40, 30], [7, 0, 5], [np.iinfo(dtype).max, 1, 1]]
    if np.iinfo(dtype).min:
        rows.append([-5, 0, 7])
    x = np.array(rows, dtype)
    with np.errstate(over="ignore"):
        top = x.max(1) if operator == "ReduceLogSumExp" else np.zeros(len(x), dtype)
        less = x.astype(np.float64) - top[:, None].astype(np.float64)
        summed = np.log((np.exp(less) if operator == "ReduceLogSumExp" else less).sum(1))
    wanted = (top[:3].astype(np.float64) + summed[:3]).astype(dtype)
    (got,) = run(one_node(operator, {"x": x}, symbolic=symbolic, axes=[1], keepdims=0), {"x": x})
    assert got.dtype == dtype
    np.testing.assert_array_equal(got[:3], wanted)
    assert got[3] == (x[3, 0] if operator == "ReduceLogSumExp" else int(np.log(float(x[3, 0]))))
    assert (run(one_node(operator, {"x": x[:, :1] * 0 + 1}, axes=[1]), {"x": x[:, :1] * 0 + 1})[0] >= 0).all()


def test_casts_that_saturate_and_casts_to_bool() -> None:
    x = np.array([0, -0.0, 1e9, -1e9, np.nan, 0.3], np.float32)
    (truth,) = run(one_node("Cast", {"x": x}, to=TensorProto.BOOL), {"x": x})
    np.testing.assert_array_equal(truth, [False, False, True, True, True, True])
    (small,) = run(one_node("Cast", {"x": x}, opset=19, to=TensorProto.FLOAT8E4M3FN), {"x": x})
    np.testing.assert_array_equal(small.astype(np.float32)[2:4], [448, -448])
    assert np.isnan(small.astype(np.float32)[4])


def test_a_small_attention_block(random: np.random.Generator) -> None:
    """Batch and length free: one import serves every extent."""
    wide, heads = 8, 2
    weights = {name: random.standard_normal((wide, wide)).astype(np.float32) for name in ("wq", "wk", "wv")}
    nodes = [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Gather", ["shape", "zero"], ["batch"]),
             helper.make_node("Gather", ["shape", "one"], ["length"]),
             helper.make_node("Unsqueeze", ["batch", "at0"], ["b1"]),
             helper.make_node("Unsqueeze", ["length", "at0"], ["l1"]),
             helper.make_node("Concat", ["b1", "l1", "split"], ["parts"], axis=0),
             helper.make_node("Concat", ["b1", "l1", "minus"], ["whole"], axis=0)]  # fmt: skip
    for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes += [
            helper.make_node("MatMul", ["x", f"w{name}"], [f"{name}0"]),
            helper.make_node("Reshape", [f"{name}0", "parts"], [f"{name}1"]),
            helper.make_node("Transpose", [f"{name}1"], [f"{name}2"], perm=order),
        ]
    nodes += [
        helper.make_node("MatMul", ["q2", "k2"], ["scores"]), helper.make_node("Mul", ["scores", "scale"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "v2"], ["mixed"]),
        helper.make_node("Transpose", ["mixed"], ["back"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["back", "whole"], ["flat"]),
        helper.make_node("Add", ["flat", "x"], ["sum"]),
        helper.make_node("LayerNormalization", ["sum", "g", "b"], ["out"], axis=-1),
    ]  # fmt: skip
    constants = {
        **weights, "zero": np.array(0), "one": np.array(1), "at0": np.array([0]), "minus": np.array([-1]),
        "split": np.array([heads, wide // heads]), "scale": np.float32(0.5), "g": np.ones(wide, np.float32),
        "b": np.zeros(wide, np.float32),
    }  # fmt: skip
    proto = model(nodes, {"x": (np.float32, ["batch", "length", wide])}, ["out"], constants)
    for batch, length in ((1, 1), (2, 5), (3, 7)):
        x = random.standard_normal((batch, length, wide)).astype(np.float32)
        check_against_reference(proto, {"x": x})
