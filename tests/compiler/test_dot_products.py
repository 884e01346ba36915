"""Products of narrow numbers: on this machine against exact arithmetic, for other machines through the interpreter and
by the instructions in their assembly.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

from tilework import dtypes
from tilework.codegen.cpu.llvm import emit_assembly
from tilework.compiler.compile import Compiled, compile_graph, lower_graph
from tilework.compiler.options import CompileOptions
from tilework.dims import Symbol
from tilework.dtypes import DType
from tilework.graph.graph import Graph
from tilework.loops.interpret import interpret
from tilework.loops.verify import verify
from tilework.machine.finder import machine
from tilework.numerics import Level
from tilework.ops.builder import GraphBuilder
from tilework.ops.registry import operator
from tilework.recipes.cpu._dot_products import tensorised
from tilework.runtime.context import Context, ContextOptions

Array = np.ndarray[Any, np.dtype[Any]]
U8, S8, BF16, F16 = dtypes.uint8, dtypes.int8, dtypes.bfloat16, dtypes.float16
PAIRS = ((U8, S8), (S8, U8), (S8, S8), (U8, U8))
SHAPES = (
    (1, 1, 1), (2, 3, 1), (6, 4, 16), (7, 8, 8), (5, 9, 17), (13, 31, 40), (12, 64, 64), (4, 2, 130), (31, 67, 129),
    (1, 40, 48), (65, 5, 33), (0, 8, 8), (3, 0, 8), (8, 8, 0),
)  # fmt: skip
"""Rows, depth, columns."""


@cache
def contexts() -> tuple[Context, ...]:
    return tuple(Context(ContextOptions(threads=threads)) for threads in (1, 2, 3, 8))


def draw(random: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Any integers, the extremes often; floating numbers that are small integers."""
    if dtype.is_floating:
        return random.integers(-8, 9, shape).astype(dtype.numpy)
    low, high = dtypes.integer_range(dtype)
    found = random.integers(low, high + 1, shape)
    return np.where(random.random(shape) < 0.3, random.choice([low, high], shape), found).astype(dtype.numpy)


def graph(
    left: Array, right: Array, kinds: tuple[DType, DType], *, symbolic: bool = False, constant: str = "b"
) -> Graph:
    builder = GraphBuilder("product", [Symbol("M", 0)] if symbolic else [])
    rows = "M" if symbolic else left.shape[0]
    a = builder.constant(left, "a") if constant == "a" else builder.input("a", kinds[0], rows, left.shape[1])
    b = builder.constant(right, "b") if constant == "b" else builder.input("b", kinds[1], *right.shape)
    return builder.build([
        builder.apply_one("dot_general", a, b, lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,))
    ])  # fmt: skip


def exact(left: Array, right: Array) -> Array:
    return left.astype(np.int64) @ right.astype(np.int64)


def instructions(done: Compiled) -> set[str]:
    traces = [str(step) for kernel in done.kernels for step in kernel.schedule.trace]
    return set(re.findall(r"tensorize\(.*instruction='([^']*)'", "\n".join(traces)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kinds", PAIRS, ids=str)
def test_integers_are_exact(kinds: tuple[DType, DType], shape: tuple[int, int, int]) -> None:
    random = np.random.default_rng(sum(shape))
    rows, depth, columns = shape
    left, right = draw(random, kinds[0], (rows, depth)), draw(random, kinds[1], (depth, columns))
    wanted = exact(left, right)
    levels: tuple[Level, ...] = ("default", "strict")
    for level in levels:
        for checked in (False, True) if level == "default" and depth < 10 else (False,):
            made = graph(left, right, kinds)
            run = compile_graph(made, CompileOptions(numerics=level, checked=checked), contexts()[0])
            (result,) = run(left)
            assert result.dtype == np.int32
            assert np.array_equal(result, wanted), (level, checked)


def test_the_constant_on_either_side_and_for_any_number_of_rows() -> None:
    random = np.random.default_rng(1)
    for kinds in PAIRS:
        left, right = draw(random, kinds[0], (37, 45)), draw(random, kinds[1], (45, 50))
        (result,) = compile_graph(graph(left, right, kinds, constant="a"), None, contexts()[0])(right)
        assert np.array_equal(result, exact(left, right))
        run = compile_graph(graph(left, right, kinds, symbolic=True), None, contexts()[0])
        for rows in (0, 1, 5, 6, 7, 37):
            (result,) = run(left[:rows])
            assert np.array_equal(result, exact(left[:rows], right))


def test_sums_wrap_as_int32() -> None:
    depth = 70000
    left, right = np.full((2, depth), -128, np.int8), np.full((depth, 16), -128, np.int8)
    right[:, 3] = 127
    (result,) = compile_graph(graph(left, right, (S8, S8)), None, contexts()[0])(left)
    assert np.array_equal(result, exact(left, right).astype(np.int32))
    deep = exact(left, right)
    assert deep.max() < 2**31
    left, right = np.full((1, 140000), -128, np.int8), np.full((140000, 8), -128, np.int8)
    (result,) = compile_graph(graph(left, right, (S8, S8)), None, contexts()[0])(left)
    assert np.array_equal(result, exact(left, right).astype(np.int32))


@pytest.mark.parametrize("kinds", [(U8, S8), (BF16, BF16), (F16, F16)], ids=str)
def test_the_same_bits_for_any_number_of_threads(kinds: tuple[DType, DType]) -> None:
    random = np.random.default_rng(2)
    left = random.standard_normal((61, 70)) if kinds[0].is_floating else draw(random, kinds[0], (61, 70))
    right = random.standard_normal((70, 75)) if kinds[0].is_floating else draw(random, kinds[1], (70, 75))
    left, right = left.astype(kinds[0].numpy), right.astype(kinds[1].numpy)
    made = graph(left, right, kinds)
    results = [compile_graph(made, None, context)(left)[0].tobytes() for context in contexts()]
    assert len(set(results)) == 1


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", [BF16, F16], ids=str)
def test_16_bit_floats_are_summed_in_float32_and_rounded_once(kind: DType, shape: tuple[int, int, int]) -> None:
    random = np.random.default_rng(sum(shape))
    rows, depth, columns = shape
    left = random.standard_normal((rows, depth)).astype(kind.numpy)
    right = random.standard_normal((depth, columns)).astype(kind.numpy)
    a, b = left.astype(np.float64), right.astype(np.float64)
    unit = 2.0**-8 if kind == BF16 else 2.0**-11
    bound = depth * 2.0**-23 * (np.abs(a) @ np.abs(b)) + unit * np.abs(a @ b)
    levels: tuple[Level, ...] = ("default", "strict")
    for level in levels:
        for checked in (False, True) if level == "default" and depth < 10 else (False,):
            made = graph(left, right, (kind, kind))
            (result,) = compile_graph(made, CompileOptions(numerics=level, checked=checked), contexts()[0])(left)
            assert np.all(np.abs(result.astype(np.float64) - a @ b) <= bound + 1e-30), (level, checked)


@pytest.mark.parametrize("kind", [BF16, F16], ids=str)
def test_long_sums_are_not_rounded_in_between(kind: DType) -> None:
    """Half a unit of the result and the rounding of float32: no partial sum was ever stored as 16 bits."""
    random = np.random.default_rng(6)
    left = (random.standard_normal((40, 6000)) / 64).astype(kind.numpy)
    right = random.standard_normal((6000, 80)).astype(kind.numpy)
    unit = 2.0**-8 if kind == BF16 else 2.0**-11
    a, b = left.astype(np.float64), right.astype(np.float64)
    (result,) = compile_graph(graph(left, right, (kind, kind)), None, contexts()[1])(left)
    error = np.abs(result.astype(np.float64) - a @ b)
    assert np.all(error <= unit * np.abs(a @ b) + 1e-5 * (np.abs(a) @ np.abs(b)))
    # ones beyond the fraction's reach: 16-bit partial sums would stand still
    ones = np.ones((3, 4096)).astype(kind.numpy)
    builder = GraphBuilder("sum")
    x = builder.input("x", kind, 3, 4096)
    made = builder.build([builder.apply_one("reduce", x, dimensions=(1,), reducer="sum")])
    for level in ("default", "strict"):
        (total,) = compile_graph(made, CompileOptions(numerics=level), contexts()[0])(ones)
        assert np.array_equal(total.astype(np.float64), np.full(3, 4096.0))


@pytest.mark.parametrize("kind", [BF16, F16], ids=str)
def test_special_values_of_16_bit_floats(kind: DType) -> None:
    left = np.ones((9, 24)).astype(kind.numpy)
    right = np.ones((24, 40)).astype(kind.numpy)
    left[1, 3], left[2, 5], left[3, 7], left[4, :] = np.nan, np.inf, -np.inf, -0.0
    right[5, 11], right[9, 12] = np.inf, np.nan
    with np.errstate(all="ignore"):
        wanted = left.astype(np.float64) @ right.astype(np.float64)
    (result,) = compile_graph(graph(left, right, (kind, kind)), None, contexts()[0])(left)
    assert np.array_equal(result.astype(np.float64), wanted, equal_nan=True)


MACHINES = {
    ("znver4", U8, S8): ("vpdpbusd.512.u8s8", r"vpdpbusd\s.*zmm", None),
    ("znver4", S8, U8): ("vpdpbusd.512.s8u8", r"vpdpbusd\s.*zmm", None),
    ("znver4", S8, S8): ("vpdpwssd.512.s16s8", r"vpdpwssd\s.*zmm", None),
    ("znver4", U8, U8): ("vpdpwssd.512.s16u8", r"vpdpwssd\s.*zmm", None),
    ("znver4", BF16, BF16): ("vdpbf16ps.512", r"vdpbf16ps\s.*zmm", None),
    ("alderlake", U8, S8): ("vpdpbusd.256.u8s8", r"\{vex\}\s+vpdpbusd\s.*ymm", None),
    ("alderlake", U8, U8): ("vpdpwssd.256.s16u8", r"\{vex\}\s+vpdpwssd\s.*ymm", None),
    ("x86-64-v4", U8, S8): ("vpmaddwd.512.s16s8", r"vpmaddwd\s.*zmm", None),
    ("x86-64-v3", U8, S8): ("vpmaddwd.256.s16s8", r"vpmaddwd\s.*ymm", r"vpmaddubsw"),
    ("x86-64-v3", S8, S8): ("vpmaddwd.256.s16s8", r"vpmaddwd\s.*ymm", r"vpmaddubsw"),
    ("aarch64", S8, S8): ("sdot.s8s8", r"\bsdot\s", None),
    ("aarch64", U8, U8): ("udot.u8u8", r"\budot\s", None),
}


@pytest.mark.parametrize(("target", "first", "second"), MACHINES, ids=str)
def test_instructions_of_other_machines(target: str, first: DType, second: DType) -> None:
    """The schedule computes the product (by the interpreter), and the assembly has the instruction."""
    name, pattern, never = MACHINES[target, first, second]
    random = np.random.default_rng(3)
    for rows, depth, columns in ((9, 16, 64), (7, 19, 37)):
        left, right = draw(random, first, (rows, depth)), draw(random, second, (depth, columns))
        done = lower_graph(graph(left, right, (first, second)), CompileOptions(machine=target))
        assert instructions(done) == {name}
        (kernel,) = done.kernels
        program = kernel.program
        verify(program)
        packed = kernel.packed(done.graph)
        result = np.zeros((rows, columns), first.numpy if first.is_floating else np.int32)
        interpret(program, {"x0": left, "x1": next(iter(packed.values())).array, "v0": result})
        wanted = left.astype(np.float64) @ right.astype(np.float64)
        assert np.array_equal(result, wanted.astype(result.dtype))
        text = emit_assembly(kernel.kernel.ir, machine(target))
        assert re.search(pattern, text)
        assert never is None or not re.search(never, text)


@pytest.mark.parametrize(("padding", "stride"), [(0, 1), (1, 1), (1, 2)])
@pytest.mark.parametrize("kinds", [(U8, S8), (S8, S8), (BF16, BF16)], ids=str)
def test_convolutions_with_channels_last(kinds: tuple[DType, DType], padding: int, stride: int) -> None:
    random = np.random.default_rng(7)
    image, weights = draw(random, kinds[0], (2, 5, 6, 11)), draw(random, kinds[1], (21, 11, 3, 3))
    builder = GraphBuilder("convolution")
    x = builder.input("x", kinds[0], *image.shape)
    y = builder.apply_one(
        "convolution", x, builder.constant(weights, "w"), window_strides=(stride,) * 2, padding=((padding,) * 2,) * 2,
        input_dimensions=(0, 3, 1, 2), output_dimensions=(0, 3, 1, 2),
    )  # fmt: skip
    made = builder.build([y])
    (node,) = made.nodes
    (wanted,) = operator("convolution").reference([image, weights], node.attributes, [node.outputs[0].tensor])
    (result,) = compile_graph(made, None, contexts()[1])(image)
    assert np.array_equal(result, wanted)
    done = lower_graph(made, CompileOptions(machine="znver4"))
    assert instructions(done)
    (kernel,) = done.kernels
    packed = next(iter(kernel.packed(done.graph).values())).array
    there = np.zeros_like(result)
    interpret(kernel.program, {"x0": image, "x1": packed, "v0": there})
    assert np.array_equal(there, wanted)


def test_strict_sums_keep_their_order() -> None:
    """The instruction for bfloat16 adds in an order of its own: not where numerics are strict."""
    random = np.random.default_rng(4)
    left, right = draw(random, BF16, (8, 32)), draw(random, BF16, (32, 64))
    made = graph(left, right, (BF16, BF16))
    assert instructions(lower_graph(made, CompileOptions(machine="znver4"))) == {"vdpbf16ps.512"}
    assert not instructions(lower_graph(made, CompileOptions(machine="znver4", numerics="strict")))


def test_a_whole_tile_needs_no_masks() -> None:
    """The hot loop of a product of whole tiles is loads, dot products and the loop's own."""
    random = np.random.default_rng(5)
    left, right = draw(random, U8, (48, 64)), draw(random, S8, (64, 128))
    done = lower_graph(graph(left, right, (U8, S8)), CompileOptions(machine="znver4"))
    text = emit_assembly(done.kernels[0].kernel.ir, machine("znver4"))
    blocks = re.split(r"^\.L\w+:", text, flags=re.MULTILINE)
    hot = max(blocks, key=lambda block: block.count("vpdpbusd"))
    words = [line.split()[0] for line in hot.split("\n") if line.startswith("\t") and line.split()]
    loop = words[: 1 + next(i for i, word in enumerate(words) if word.startswith("j"))]
    assert loop.count("vpdpbusd") == 24
    assert set(loop) <= {"vpdpbusd", "vpbroadcastd", "vmovdqu64", "movq", "shlq", "incq", "addq", "cmpq", "jl"}


@pytest.mark.parametrize("batch", [0, 1, 3])
def test_convolutions_with_channels_last_for_any_batch(batch: int) -> None:
    """Rows of a tile run along an image and not along the batch, whose extent nobody knows."""
    random = np.random.default_rng(batch)
    places = (0, 3, 1, 2)
    for kinds in PAIRS:
        image, kernel = draw(random, kinds[0], (batch, 7, 12, 19)), draw(random, kinds[1], (32, 3, 2, 19))
        builder = GraphBuilder("convolution", [Symbol("N", 0)])
        found = builder.apply_one(
            "convolution", builder.input("x", kinds[0], "N", 7, 12, 19), builder.constant(kernel),
            input_dimensions=places, kernel_dimensions=places, output_dimensions=places,
        )  # fmt: skip
        made = builder.build([found])
        (result,) = compile_graph(made, None, contexts()[0])(image)
        windows = np.lib.stride_tricks.sliding_window_view(image.astype(np.int64), (3, 2), (1, 2))
        assert np.array_equal(result, np.einsum("nyxcij,oijc->nyxo", windows, kernel.astype(np.int64)))
        for name in ("x86-64-v3", "x86-64-v4", "znver4", "aarch64"):
            done = lower_graph(made, CompileOptions(machine=name))
            assert instructions(done) or name == "aarch64", (kinds, name)
            steps = "\n".join(str(step) for step in done.kernels[0].schedule.trace)
            cut = re.findall(r"split\(loop='[^']*\.(i\d)'", steps)
            assert "i2" in cut or name == "aarch64", (kinds, name)
            assert "i0" not in cut, (kinds, name)


def test_what_is_an_instruction_already_is_left_alone() -> None:
    """Nests of a region may be given to instructions one after another."""
    rng = np.random.default_rng(5)
    right = draw(rng, S8, (64, 64))
    for name in ("x86-64-v3", "x86-64-v4", "znver4", "alderlake"):
        done = lower_graph(graph(draw(rng, U8, (12, 64)), right, (U8, S8)), CompileOptions(machine=name))
        assert instructions(done)
        for kernel in done.kernels:
            assert tensorised(kernel.schedule).trace == kernel.schedule.trace
