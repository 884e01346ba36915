"""Long chains on vectors wider than a register: ties and second loads, and values that do not change by them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.lowering.native import Native
from tilework.codegen.cpu.jit import Jit
from tilework.codegen.cpu.kernel import emit_kernel
from tilework.codegen.cpu.llvm import verify_text
from tilework.codegen.cpu.side_by_side import LONG, side_by_side
from tilework.loops.parse import parse_program
from tilework.loops.program import LoopProgram
from tilework.lowering.registers import Block, Function, Instruction, Module, Value
from tilework.machine.finder import machine
from tilework.numerics import numerics

TIE = re.compile(r'asm sideeffect "", "=[vw],0"\(<(\d+) x (float|double)>')


def chain(
    lanes: int, dtype: str = "float32", value: str = "logistic(x[AT] * b[AT] + x[AT]) * x[AT] + b[AT]"
) -> LoopProgram:
    at = f"{lanes}*i + l"
    return parse_program(f"""
program chain
  symbol N in 0..
  read x: {dtype}[N]
  read b: {dtype}[N]
  write y: {dtype}[N]

  serial i < (N + {lanes - 1}) // {lanes}
    vectorized l < {lanes}
      y: y[{at}] = {value.replace("AT", at)}  where N - 1 - {lanes}*i - l >= 0
""")


def ir(program: LoopProgram, name: str) -> str:
    return emit_kernel(program, machine(name), numerics("default")).ir


@pytest.mark.parametrize(
    ("name", "lanes", "part"),
    [("x86-64-v3", 16, 8), ("x86-64-v3", 32, 8), ("x86-64-v4", 32, 16), ("x86-64-v4", 64, 16), ("aarch64", 16, 4)],
)
def test_parts_are_as_wide_as_a_register(name: str, lanes: int, part: int) -> None:
    found = TIE.findall(ir(chain(lanes), name))
    assert found
    assert {int(count) for count, _ in found} == {part}
    assert len(found) % (lanes // part) == 0, "every part of a value is tied"


@pytest.mark.parametrize(
    ("lanes", "dtype", "value"),
    [
        (8, "float32", "logistic(x[AT])"),  # one register
        (64, "float32", "logistic(x[AT])"),  # eight of sixteen registers
        (12, "float32", "logistic(x[AT])"),  # no whole registers
        (32, "float32", "x[AT] * b[AT] + x[AT]"),  # a short chain
        (32, "int32", "x[AT] * b[AT] + x[AT] * x[AT] + b[AT] * x[AT] * x[AT] * x[AT] * x[AT] * x[AT]"),
    ],
)
def test_what_is_left_to_llvm(lanes: int, dtype: str, value: str) -> None:
    assert not TIE.search(ir(chain(lanes, dtype, value), "x86-64-v3"))


def test_late_uses_are_loaded_again() -> None:
    def loads(lanes: int) -> int:
        program = parse_program(f"""
program whole
  read x: float32[{lanes}]
  read b: float32[{lanes}]
  write y: float32[{lanes}]

  vectorized l < {lanes}
    y: y[l] = logistic(x[l] * b[l] + x[l]) * x[l] + b[l]
""")
        return len(re.findall(rf"= load <{lanes} x float>", ir(program, "x86-64-v3")))

    assert loads(8) == 2
    assert loads(32) == 4, "x and b, at the start and at the end"


@pytest.mark.parametrize("stores", [False, True])
def test_nothing_is_loaded_again_behind_a_store(stores: bool) -> None:
    """What was loaded may have been overwritten since."""
    numbers = iter(range(1, 100))

    def value() -> Value:
        return Value("f32", 16, 1, next(numbers))

    address, first = Value("ptr", 0, 0, next(numbers)), value()
    block = Block()
    block.items.append(Instruction("load", (address,), first, (4, "x", False)))
    last = first
    for _ in range(LONG):
        following = value()
        block.items.append(Instruction("fadd", (last, last), following))
        last = following
    if stores:
        block.items.append(Instruction("store", (last, address), None, (4, "x", False)))
    block.items.append(Instruction("fadd", (last, first), value()))
    side_by_side(Module(Function("f", block), [], ()), 256, 16)
    loads = [item for item in block.items if isinstance(item, Instruction) and item.name == "load"]
    (use,) = (item for item in block.items[-2:] if isinstance(item, Instruction) and item.name == "fadd")
    assert len(loads) == (1 if stores else 2)
    assert (use.operands[1] is first) == stores
    ties = [item for item in block.items if isinstance(item, Instruction) and item.name == "tie"]
    assert len(ties) == LONG + 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("level", ["default", "strict"])
def test_same_bits_at_every_width(dtype: str, level: str) -> None:
    """How many vectors are beside each other changes no value, in whole vectors and in the last one."""
    rng = np.random.default_rng(3)
    narrow = Native(chain(4, dtype), level)
    for lanes in (8, 16, 32, 64):
        wide = Native(chain(lanes, dtype), level)
        for extent in (0, 1, lanes - 1, lanes, 3 * lanes + 5):
            x = rng.standard_normal(extent).astype(dtype) * 40
            x[:2], x[2:3] = [np.nan, np.inf][: min(extent, 2)], -np.inf
            arrays = {"x": x, "b": rng.standard_normal(extent).astype(dtype), "y": np.zeros(extent, dtype)}
            a = narrow.run(arrays, {"N": extent}).arrays["y"]
            b = wide.run(arrays, {"N": extent}).arrays["y"]
            assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4", "aarch64"])
def test_code_for_every_machine(name: str) -> None:
    target = machine(name)
    text = ir(chain(32), name)
    verify_text(text, target)
    assert Jit().emit_assembly(text, target)
