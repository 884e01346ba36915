"""Tiles of registers that are read along another dimension than their lanes: shuffled, and the values stay right."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.lowering.native import Native, assert_same
from tilework.codegen.cpu.jit import Jit
from tilework.codegen.cpu.kernel import emit_kernel
from tilework.dtypes import DType, bfloat16, boolean, float16, float32, float64, int8, int16, int64, uint8
from tilework.loops.parse import parse_program
from tilework.loops.program import LoopProgram
from tilework.lowering import transposes
from tilework.lowering.builder import Builder
from tilework.lowering.registers import Instruction, Value
from tilework.lowering.transposes import transposed
from tilework.machine.finder import machine
from tilework.numerics import numerics

Place = tuple[int, int]


def tile(rows: int, lanes: int, height: Any, width: Any, dtype: DType = float32) -> LoopProgram:
    """y = x transposed, through a register tile of `rows` vectors with `lanes` lanes."""
    symbols = "".join(f"  symbol {name} in 0..\n" for name in sorted({str(height), str(width)}) if not name.isdigit())
    return parse_program(f"""
program transpose
{symbols}  read x: {dtype}[{height}, {width}]
  write y: {dtype}[{width}, {height}]

  serial i < ({width} + {lanes - 1}) // {lanes}
    serial j < ({height} + {rows - 1}) // {rows}
      register t: {dtype}[{rows}, {lanes}]
      unrolled r < {rows}
        vectorized c < {lanes}
          t: t[r, c] = x[{rows}*j + r, {lanes}*i + c]  where {height} - 1 - {rows}*j - r >= 0 and \
{width} - 1 - {lanes}*i - c >= 0
      unrolled a < {lanes}
        vectorized b < {rows}
          y: y[{lanes}*i + a, {rows}*j + b] = t[b, a]  where {width} - 1 - {lanes}*i - a >= 0 and \
{height} - 1 - {rows}*j - b >= 0
""")


def data(rng: np.random.Generator, dtype: DType, *shape: int) -> np.ndarray[Any, Any]:
    if dtype == boolean:
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(0 if dtype == uint8 else -99, 100, shape).astype(dtype.numpy)


def moved(builder: Builder, rows: list[Value]) -> dict[int, list[Place]]:
    """Where every lane of every value comes from: (row, lane) of the tile."""
    places = {row.number: [(r, lane) for lane in range(row.lanes)] for r, row in enumerate(rows)}
    for item in builder.scopes[0].block.items:
        assert isinstance(item, Instruction)
        assert item.name == "shuffle"
        assert item.result is not None
        both = [place for operand in item.operands for place in places[operand.number]]
        places[item.result.number] = [both[lane] for lane in item.extra]
    return places


@pytest.mark.parametrize("kind", ["i8", "i16", "f32", "i64"])
@pytest.mark.parametrize("count", [2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("width", [2, 4, 8, 16, 32, 64])
def test_columns_of_any_tile(kind: str, count: int, width: int) -> None:
    builder = Builder()
    rows = [builder.fresh(kind, width) for _ in range(count)]
    columns = transposed(builder, rows)
    places = moved(builder, rows)
    assert [places[column.number] for column in columns] == [[(r, c) for r in range(count)] for c in range(width)]


@pytest.mark.parametrize(("kind", "side"), [("f32", 4), ("f32", 8), ("f32", 16), ("f64", 4), ("i16", 16), ("i8", 32)])
def test_a_square_takes_log_stages(kind: str, side: int) -> None:
    builder = Builder()
    transposed(builder, [builder.fresh(kind, side) for _ in range(side)])
    assert len(builder.scopes[0].block.items) == side * (side.bit_length() - 1)


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize(
    ("dtype", "rows", "lanes"),
    [(float32, 8, 8), (float32, 8, 4), (float32, 16, 8), (float32, 4, 8), (float64, 4, 4), (int64, 8, 4),
     (float32, 2, 2), (int16, 16, 16), (int8, 16, 16), (uint8, 8, 16), (float16, 16, 8), (bfloat16, 8, 16),
     (boolean, 8, 16)],
)  # fmt: skip
def test_values(dtype: DType, rows: int, lanes: int, checked: bool) -> None:
    rng = np.random.default_rng((dtype.bits, rows, lanes, checked))
    native = Native(tile(rows, lanes, "M", "N", dtype), checked=checked)
    for height, width in ((rows, lanes), (3 * rows + 1, 2 * lanes - 1), (1, 1), (0, 5), (37, 53)):
        arrays = {"x": data(rng, dtype, height, width), "y": data(rng, dtype, width, height)}
        found = assert_same(native.program, arrays, {"M": height, "N": width}, native=native)
        np.testing.assert_array_equal(found["y"].astype(np.float64), arrays["x"].T.astype(np.float64))


def test_every_bit_is_kept() -> None:
    bits = np.random.default_rng(5).integers(0, 1 << 32, (19, 21), np.uint32)
    bits[0, :4] = 0x7F800001, 0xFFC12345, 0x80000000, 1  # NaNs with payloads, -0.0, a denormal
    outcome = Native(tile(8, 8, 19, 21)).run({"x": bits.view(np.float32), "y": np.zeros((21, 19), np.float32)})
    np.testing.assert_array_equal(outcome.arrays["y"].view(np.uint32), bits.T)


@pytest.mark.parametrize("rows", [3, 6])
def test_a_tile_that_no_butterfly_fits_is_in_memory(rows: int) -> None:
    arrays = {"x": data(np.random.default_rng(rows), float32, 13, 17), "y": np.zeros((17, 13), np.float32)}
    native = Native(tile(rows, 8, 13, 17))
    assert_same(native.program, arrays, native=native)


def test_elements_and_both_directions_of_one_tile() -> None:
    program = parse_program("""
program mixed
  read x: float32[8, 8]
  write y: float32[8, 8]
  write z: float32[8, 8]
  write d: float32[8]

  register t: float32[8, 8]
  unrolled r < 8
    vectorized c < 8
      t: t[r, c] = x[r, c]
  unrolled a < 8
    vectorized b < 8
      y: y[a, b] = t[b, a] + t[a, b]
  unrolled a.1 < 8
    vectorized b.1 < 8
      z: z[a.1, b.1] = t[b.1, a.1] * x[a.1, b.1]
  unrolled e < 8
    d: d[e] = t[e, e]
""")
    arrays = {"x": data(np.random.default_rng(1), float32, 8, 8), "y": np.zeros((8, 8), np.float32)}
    arrays |= {"z": np.zeros((8, 8), np.float32), "d": np.zeros(8, np.float32)}
    assert_same(program, arrays)


def loop_of(assembly: str) -> list[str]:
    """The instructions between the first load of a vector and the last store of one."""
    lines = [line.strip() for line in assembly.splitlines() if re.match(r"\s+[a-z]", line)]
    moves = [n for n, line in enumerate(lines) if re.match(r"vmovup", line)]
    return lines[moves[0] : moves[-1] + 1]


@pytest.mark.parametrize(("dtype", "side", "shuffles"), [(float32, 8, 24), (float64, 4, 8), (int64, 4, 8)])
def test_one_instruction_a_shuffle(dtype: DType, side: int, shuffles: int) -> None:
    target = machine("x86-64-v3")
    text = emit_kernel(tile(side, side, 16 * side, 16 * side, dtype), target, numerics("default"))
    assembly = loop_of(Jit().emit_assembly(text.ir, target))
    found = [line for line in assembly if re.match(r"v(unpck|punpck|perm|shuf|insert|blend|pshuf|broadcast)", line)]
    assert len(found) == shuffles
    assert not any("rsp" in line for line in assembly)


@pytest.mark.parametrize("name", ["x86-64-v4", "aarch64"])
def test_other_machines(name: str) -> None:
    target = machine(name)
    for side, dtype in ((4, float32), (16, float32), (16, int8)):
        text = emit_kernel(tile(side, side, "M", "N", dtype), target, numerics("default"))
        assembly = Jit().emit_assembly(text.ir, target)
        assert re.search(r"zip1|vunpcklps|vpunpckl", assembly)


def test_a_swapped_shuffle_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = transposes._stage  # pyright: ignore[reportPrivateUsage]

    def wrong(builder: Builder, vectors: list[Value], bit: int, low: list[int], high: list[int]) -> list[Value]:
        return right(builder, vectors, bit, high, low) if bit == 2 else right(builder, vectors, bit, low, high)

    monkeypatch.setattr(transposes, "_stage", wrong)
    with pytest.raises(AssertionError):
        test_values(float32, 8, 8, checked=False)
