# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
"""Kernels as text: the calling convention, every target, parallel loops, workspaces, streaming stores, big strides."""

from __future__ import annotations

import ctypes
import re
from functools import reduce
from typing import Any

import numpy as np
import pytest

from tests.lowering.native import Native, assert_same, jit
from tests.lowering.nests import elementwise
from tests.lowering.random_programs import draw
from tilework import dtypes
from tilework.codegen.cpu.kernel import emit_kernel
from tilework.dims import Symbol, dim
from tilework.errors import CodegenError
from tilework.loops.expressions import Expression, Load, call, constant
from tilework.loops.functions import FUNCTIONS
from tilework.loops.program import (
    Access,
    Argument,
    Buffer,
    Compute,
    Loop,
    LoopProgram,
    Node,
    Storage,
    buffer,
    sequence,
)
from tilework.loops.reducers import reducer
from tilework.lowering.streams import streamed
from tilework.machine.finder import machine
from tilework.numerics import numerics

F = dtypes.float32
MACHINES = ("x86-64-v3", "x86-64-v4", "aarch64")


# -- the calling convention --------------------------------------------------------------------------------------------
def test_signature() -> None:
    held = Buffer("held", (dim("N"), dim(1000)), F)
    x, y = buffer("x", F, "N"), buffer("y", dtypes.int8, "M")
    node = Storage(held, Compute("s", (Access("y", (dim(0),)),), (constant(1, dtypes.int8),)))
    program = LoopProgram(
        "odd name!", (Argument(x, "read"), Argument(y, "accumulate")), node, (Symbol("N"), Symbol("M"))
    )
    kernel = emit_kernel(program, machine("x86-64-v3"), numerics("default"))
    assert kernel.name == kernel.signature.name == "tilework_odd_name_"
    assert kernel.exports == (kernel.name,)
    assert [(b.name, b.access, b.alignment) for b in kernel.signature.buffers] == [
        ("x", "read", 4), ("y", "accumulate", 1), ("held", "workspace", 64),
    ]  # fmt: skip
    assert [s.name for s in kernel.signature.symbols] == ["N", "M"]
    assert kernel.signature.faults == ()
    assert "define i32 @tilework_odd_name_(ptr %args, ptr %pool)" in kernel.ir
    assert emit_kernel(program, machine("x86-64-v3"), numerics("default"), name="mine").exports == ("mine",)


def test_buffers_that_may_be_the_same_memory() -> None:
    def pairs(program: LoopProgram) -> tuple[tuple[str, str], ...]:
        return emit_kernel(program, machine("x86-64-v4"), numerics("default")).signature.may_alias

    both = elementwise(lambda a, b: a + b, (F, F), F, 8, "parallel")
    assert pairs(both) == (("x0", "y"), ("x1", "y"))
    native = Native(both)
    data = np.arange(37, dtype=np.float32)
    raw = np.zeros(37 + 16, np.float32)
    raw[:37] = data
    error = np.zeros(3, np.int64)
    block = (ctypes.c_int64 * 5)(error.ctypes.data, raw.ctypes.data, raw.ctypes.data, raw.ctypes.data, 37)
    native.entry(ctypes.addressof(block), None)
    np.testing.assert_array_equal(raw[:37], 2 * data)
    assert pairs(elementwise(lambda a: call("less", a, 0.0), (F,), dtypes.boolean, 8)) == ()
    x, y = buffer("x", F, "N"), buffer("y", F, "N")
    arguments = (Argument(x, "read"), Argument(y, "write"))
    i = dim("i")
    here, there = Load("x", (i,), F), Load("x", (dim("N") - 1 - i,), F)

    def nest(*nodes: Node, again: bool = False) -> LoopProgram:
        body: Node = Loop("i", dim("N"), "serial", sequence(*nodes))
        if again:
            body = Loop("r", dim(2), "serial", body)
        return LoopProgram("p", arguments, body, (Symbol("N"),))

    write = Compute("y", (Access("y", (i,)),), (here * 2.0,))
    assert pairs(nest(write)) == (("x", "y"),)
    assert pairs(nest(write, again=True)) == ()
    assert pairs(nest(Compute("y", (Access("y", (i,)),), (there,)))) == ()
    assert pairs(nest(Compute("y", (Access("y", (i,)),), (here + there,)))) == ()
    assert pairs(nest(write, Compute("z", (Access("y", (i,)),), (here,)))) == ()


def test_too_much_unrolled() -> None:
    y = buffer("y", F, 200, 200)
    node: Node = Compute("y", (Access("y", (dim("i"), dim("j"))),), (constant(0, F),))
    for name in ("j", "i"):
        node = Loop(name, dim(200), "unrolled", node)
    with pytest.raises(CodegenError) as caught:
        emit_kernel(LoopProgram("p", (Argument(y, "write"),), node), machine("x86-64-v4"), numerics("default"))
    assert caught.value.code == 1608


def test_the_same_program_gives_the_same_text() -> None:
    for seed in range(6):
        texts = {emit_kernel(draw(seed).program, machine("x86-64-v4"), numerics("default")).ir for _ in range(2)}
        assert len(texts) == 1


# -- targets -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", MACHINES)
def test_random_programs_become_objects_of_every_machine(name: str) -> None:
    target = machine(name)
    for seed in range(300, 312):
        text = emit_kernel(draw(seed).program, target, numerics("default")).ir
        assert len(jit()[0].compile_object(text, target)) > 100


@pytest.mark.parametrize("name", MACHINES)
def test_every_function_becomes_an_object_of_every_machine(name: str) -> None:
    """All functions of both widths in two kernels: nothing that a target lacks is left for LLVM to trip over."""
    target = machine(name)
    for dtype in (dtypes.float32, dtypes.float64):

        def value(a: Expression) -> Expression:
            total = a
            for function in FUNCTIONS.values():
                if function.transcendental or function.name in ("floor", "round_even", "truncate", "remainder"):
                    total = total + call(function.name, *([a] * function.arity))
            return total

        text = emit_kernel(elementwise(value, (dtype,), dtype, 8), target, numerics("default")).ir
        assert len(jit()[0].compile_object(text, target)) > 1000


@pytest.mark.parametrize(
    "dtype", [dtypes.float16, dtypes.bfloat16, dtypes.int8, dtypes.uint64, dtypes.boolean], ids=str
)
@pytest.mark.parametrize("name", MACHINES)
def test_small_types_become_objects_of_every_machine(name: str, dtype: dtypes.DType) -> None:
    target = machine(name)
    for lanes in (0, 3, 16):
        text = emit_kernel(
            elementwise(lambda a, b: call("maximum", a, b), (dtype, dtype), dtype, lanes), target, numerics("default")
        ).ir
        assert jit()[0].compile_object(text, target)


def test_code_of_the_older_machine_runs_here() -> None:
    host = machine("host")
    older = machine("x86-64-v3")
    if not older.available <= host.available:
        return
    for seed in range(500, 515):
        found = draw(seed)
        native = Native(found.program, on=older)
        assert_same(found.program, found.arrays, found.symbols, native=native)


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.int16, dtypes.bfloat16, dtypes.float16, dtypes.float32], ids=str)
@pytest.mark.parametrize("machine_name", ["host", "x86-64-v3", "x86-64-v4"])
def test_masks_of_every_pattern(dtype: dtypes.DType, machine_name: str) -> None:
    """Literal masks with one lane, some lanes, all but one: nothing beside them is read or written."""
    host, target = machine("host"), machine(machine_name)
    if not target.available <= host.available:
        return
    x, y = buffer("x", dtype, 16), buffer("y", dtype, 16)
    lane = dim("l")
    for low, high in ((0, 0), (3, 3), (15, 15), (0, 1), (2, 9), (0, 14), (1, 15)):
        load = Load("x", (lane,), dtype) + Load("x", (lane,), dtype)
        node = Compute("y", (Access("y", (lane,)),), (load,), guards=(lane - low, high - lane))
        program = LoopProgram(
            "masks", (Argument(x, "read"), Argument(y, "accumulate")), Loop("l", dim(16), "vectorized", node)
        )
        arrays = {"x": np.arange(1, 17).astype(dtype.numpy), "y": np.zeros(16, dtype.numpy)}
        assert_same(program, arrays, native=Native(program, on=target))


# -- parallel loops ----------------------------------------------------------------------------------------------------
def test_chunks_depend_on_extents_alone() -> None:
    """Every chunk is run once, whatever their number; iterations are shared out evenly."""
    program = elementwise(lambda a: a + 1.0, (F,), F, 16, "parallel")
    kernel = Native(program)
    assert re.search(
        r"call void @tilework_pool_run_watched\(ptr %pool, ptr @tilework_elementwise_r0, ptr %args, i32 %v\d+\)",
        kernel.text.ir,
    )
    for count in (0, 1, 16, 17, 5000, 300000, 3000001):
        x = np.arange(count, dtype=np.float32)
        outcome = kernel.run({"x0": x, "y": np.zeros(count, np.float32)})
        np.testing.assert_array_equal(outcome.arrays["y"], x + 1)


def test_a_parallel_loop_inside_a_serial_one_knows_where_it_is() -> None:
    """What the region needs from around it goes with it: loop variables, stack buffers, unrolled numbers."""
    x, y = buffer("x", F, "T", "N"), buffer("y", F, "T", "N")
    scale = Buffer("scale", (dim(4),), F)
    t, i = dim("t"), dim("i")
    fill = Compute("fill", (Access("scale", (dim("z"),)),), (Load("x", (t, dim(0)), F) + 1.0,))
    use = Compute(
        "use", (Access("y", (t, i)),), (Load("x", (t, i), F) * Load("scale", (dim("u") + 1,), F),), reducer("sum", F)
    )  # fmt: skip
    body = Storage(
        scale,
        sequence(
            Loop("z", dim(4), "serial", fill), Loop("u", dim(2), "unrolled", Loop("i", dim("N"), "parallel", use))
        ),
    )
    program = LoopProgram(
        "nested",
        (Argument(x, "read"), Argument(y, "accumulate")),
        Loop("t", dim("T"), "serial", body),
        (Symbol("T"), Symbol("N")),
    )
    rng = np.random.default_rng(0)
    for shape in ((0, 3), (1, 1), (3, 50)):
        data = rng.integers(-3, 4, shape).astype(np.float32)
        assert_same(program, {"x": data, "y": np.ones(shape, np.float32)})


def test_storage_of_parallel_iterations_is_their_own() -> None:
    """A large buffer inside a parallel loop is a workspace with a part for every chunk."""
    x, y = buffer("x", F, "N", "K"), buffer("y", F, "N", "K")
    held = Buffer("held", (dim("K"),), F)
    i = dim("i")
    first = Compute("first", (Access("held", (dim("K") - 1 - dim("a"),)),), (Load("x", (i, dim("a")), F),))
    second = Compute("second", (Access("y", (i, dim("b"))),), (Load("held", (dim("b"),), F),))
    body = Storage(held, sequence(Loop("a", dim("K"), "serial", first), Loop("b", dim("K"), "serial", second)))
    program = LoopProgram(
        "own",
        (Argument(x, "read"), Argument(y, "write")),
        Loop("i", dim("N"), "parallel", body),
        (Symbol("N"), Symbol("K")),
    )
    native = Native(program)
    assert native.text.signature.buffers[-1].access == "workspace"
    for shape in ((3, 5), (200, 1000), (1, 0)):
        data = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
        outcome = native.run({"x": data, "y": np.zeros(shape, np.float32)})
        np.testing.assert_array_equal(outcome.arrays["y"], data[:, ::-1])


# -- streaming stores --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_streaming_stores(kind: str) -> None:
    program = elementwise(lambda a: a * 2.0, (F,), F, 16, kind)
    plain, streaming = Native(program), Native(program, streaming=frozenset({"y"}))
    assert "nontemporal" not in plain.text.ir
    assert streaming.text.ir.count("nontemporal") == 1
    if machine("host").architecture == "x86":
        assert "sfence" in streaming.text.ir
    large = machine("host").last_level_bytes // 4 + 21
    for count, offset in ((100, 0), (large, 0), (large, 4)):
        x = np.arange(count, dtype=np.float32)
        outcome = streaming.run({"x0": x, "y": np.zeros(count, np.float32)}, offset=offset)
        np.testing.assert_array_equal(outcome.arrays["y"], x * 2)


@pytest.mark.parametrize("name", MACHINES)
def test_streaming_stores_on_every_machine(name: str) -> None:
    target = machine(name)
    program = elementwise(lambda a: a * 2.0, (F,), F, 16)
    text = emit_kernel(program, target, numerics("default"), streaming=frozenset({"y"})).ir
    assembly = jit()[0].emit_assembly(text, target)
    assert ("stnp" if name == "aarch64" else "vmovntps") in assembly


def _sum_then_copy(terms: int) -> LoopProgram:
    """y[8 i + l] = sum over k of x[k, 8 i + l], added up in a register and then copied, for any number of rows i."""
    place, rows = dim("i") * 8 + dim("l"), Symbol("N", 1)
    x, y, t = buffer("x", F, terms, dim("N") * 8), buffer("y", F, dim("N") * 8), Buffer("t", (dim(8),), F, "register")
    start = Compute("start", (Access("t", (dim("l"),)),), (constant(0.0, F),))
    read = call("add", Load("t", (dim("l"),), F), Load("x", (dim("k"), place), F))
    term = Compute("term", (Access("t", (dim("l"),)),), (read,))
    copy = Compute("copy", (Access("y", (place,)),), (Load("t", (dim("l"),), F),))
    first, *rest = (Loop("l", dim(8), "vectorized", node) for node in (start, term, copy))
    body = sequence(first, Loop("k", dim(terms), "serial", rest[0]), rest[1])
    nest = Loop("i", dim("N"), "serial", Storage(t, body))
    return LoopProgram("sums", (Argument(x, "read"), Argument(y, "write")), nest, (rows,))


def test_which_buffers_are_worth_streaming() -> None:
    cheap = elementwise(lambda a: a + 1.0, (F,), F, 16)
    assert streamed(cheap, 1 << 25) == {"y"}
    assert streamed(elementwise(lambda a: a + 1.0, (F,), F, 0), 1 << 25) == frozenset()
    (symbol,) = cheap.symbols
    assert streamed(cheap, 1 << 25, {symbol.name: 1 << 20}) == frozenset()
    assert streamed(cheap, 1 << 25, {symbol.name: 1 << 24}) == {"y"}
    functions = ("sin", "exp", "erf", "log", "tanh", "cos", "atan", "expm1", "log1p")
    dear = elementwise(lambda a: reduce(lambda x, name: call(name, x), functions, a), (F,), F, 16)
    assert streamed(dear, 1 << 25) == frozenset()
    for terms, worth in ((16, {"y"}), (4096, set[str]())):  # the copy is cheap, the sum before it need not be
        assert streamed(_sum_then_copy(terms), 1 << 25) == worth
    x, y = buffer("x", F, 4096), buffer("y", F, 4096)
    node = Compute("y", (Access("y", (dim("i") * 8 + dim("l"),)),), (Load("x", (dim("i") * 8 + dim("l"),), F),))
    nest = Loop("i", dim(512), "serial", Loop("l", dim(8), "vectorized", node))
    small = LoopProgram("small", (Argument(x, "read"), Argument(y, "write")), nest)
    assert streamed(small, 1 << 25) == frozenset()
    assert streamed(small, 1 << 12) == {"y"}


# -- addresses ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("lanes", [0, 8])
def test_strides_past_two_to_the_31(lanes: int) -> None:
    """Element (1, 3) of an array with rows of 2^32 + 5 elements: only its pages are touched."""
    row = 2**32 + 5
    libc: Any = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    size = 3 * row
    address = libc.mmap(None, size, 3, 0x4022, -1, 0)  # private, anonymous, no reserve
    if address in (None, ctypes.c_void_p(-1).value):
        return  # the machine does not even lend the addresses
    try:
        x, y = buffer("x", dtypes.uint8, 3, "R"), buffer("y", dtypes.uint8, 3, 16)
        j = dim("l")
        node: Node = Compute(
            "y", (Access("y", (dim("i"), j)),), (Load("x", (dim("i"), dim("R") - 17 + j), dtypes.uint8),)
        )
        node = Loop("l", dim(16), "vectorized" if lanes else "serial", node)
        program = LoopProgram(
            "big", (Argument(x, "read"), Argument(y, "write")), Loop("i", dim(3), "serial", node), (Symbol("R", 20),)
        )
        native = Native(program)
        for i in range(3):
            ctypes.memmove(address + i * row + row - 17, bytes(range(i, i + 16)), 16)
        have, error = np.zeros((3, 16), np.uint8), np.zeros(3, np.int64)
        block = (ctypes.c_int64 * 4)(error.ctypes.data, address, have.ctypes.data, row)
        assert native.entry(ctypes.addressof(block), None) == 0
        np.testing.assert_array_equal(have, np.arange(16) + np.arange(3)[:, None])
    finally:
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        libc.munmap(address, size)


def test_compiling_is_quick() -> None:
    """A loose bound on the lowering's own work: lines of text for an unrolled tile, not milliseconds."""
    from tests.lowering.test_registers import tile

    text = emit_kernel(tile(8, 16, 3, symbolic=False), machine("x86-64-v4"), numerics("default")).ir
    assert text.count("\n") < 500
