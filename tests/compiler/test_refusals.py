"""What is not compiled is refused by a code that names the user's node, and leaves everything usable."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tests.compiler.checking import check_graph
from tilework import dtypes
from tilework.compiler.compile import compile_graph, lower_graph
from tilework.compiler.options import CompileOptions
from tilework.dims import Symbol, dim
from tilework.dtypes import DType
from tilework.errors import CodegenError, TileworkError, UsageError, VerificationError
from tilework.graph.graph import Graph
from tilework.ops.builder import GraphBuilder

F32 = dtypes.float32


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_every_type_is_compiled_or_refused(dtype: DType) -> None:
    """Moving elements, in every type there is."""
    builder = GraphBuilder("g", [Symbol("N", 0, 200)])
    x = builder.input("x", dtype, "N", 3)
    turned = builder.apply_one("transpose", x, permutation=(1, 0), location="layers/turn")
    graph = builder.build([builder.apply_one("reverse", turned, dimensions=(1,), location="layers/back")])
    if dtype.kind == "complex":
        with pytest.raises(CodegenError) as caught:
            compile_graph(graph)
        assert caught.value.code == 1603
        assert "layers/" in caught.value.where
        assert str(dtype) in str(caught.value)
    else:
        check_graph(graph, sizes=[{"N": 5}, {"N": 0}, {"N": 70}])


def effects() -> Graph:
    builder = GraphBuilder("g")
    token = builder.token()
    key, counter = builder.input("key", dtypes.uint64, 2), builder.input("counter", dtypes.uint64, 1)
    token, bits = builder.apply(
        "random_bits", token, key, counter, shape=(4,), dtype=dtypes.uint32, location="dropout/bits"
    )
    return builder.build([token, bits])


def black_box() -> Graph:
    builder = GraphBuilder("g")
    x = builder.input("x", F32, 3)
    (y,) = builder.black_box("NonMaxSuppression", "onnx", x, results=[x.type], location="detect/nms")
    return builder.build([y])


def token_input() -> Graph:
    builder = GraphBuilder("g")
    token = builder.token("world")
    return builder.build([token])


@pytest.mark.parametrize(
    ("graph", "where"), [(effects(), "dropout/bits"), (black_box(), "detect/nms"), (token_input(), "world")]
)
def test_what_has_no_kernel(graph: Graph, where: str) -> None:
    with pytest.raises(CodegenError) as caught:
        compile_graph(graph)
    assert caught.value.code == 1652
    assert caught.value.where == where


def test_symbols_that_no_input_gives_a_value() -> None:
    builder = GraphBuilder("g", [Symbol("N"), Symbol("M")])
    x = builder.input("x", F32, "N")
    counted = builder.apply_one("dimension_values", values=(dim("M"),), shape=(1,))
    wide = builder.apply_one("iota", shape=(dim("M"),), dimension=0, dtype=F32)
    for outputs in ([x, counted], [x, wide]):
        with pytest.raises(CodegenError) as caught:
            compile_graph(builder.build(outputs))
        assert caught.value.code == 1653
        assert "M" in caught.value.message


def test_symbols_that_nobody_uses_are_no_fault() -> None:
    builder = GraphBuilder("g", [Symbol("N", 0, 200), Symbol("unused")])
    x = builder.input("x", F32, "N")
    f = compile_graph(builder.build([builder.apply_one("negate", x)]))
    np.testing.assert_array_equal(f(np.arange(3, dtype=np.float32))[0], [0, -1, -2])
    assert [symbol.name for symbol in f.plan.symbols] == ["N"]


def test_graphs_that_do_not_verify() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", F32, 3)
    y = builder.apply_one("negate", x)
    graph = builder.build([y])
    wrong = graph.replace(outputs=("nothing",))
    with pytest.raises((VerificationError, TileworkError)) as caught:
        compile_graph(wrong)
    assert "nothing" in str(caught.value)


def test_machines_and_levels_that_there_are_not() -> None:
    builder = GraphBuilder("g")
    graph = builder.build([builder.apply_one("negate", builder.input("x", F32, 3))])
    with pytest.raises(UsageError):
        lower_graph(graph, CompileOptions(machine="z80"))
    with pytest.raises(UsageError):
        lower_graph(graph, CompileOptions(numerics="sloppy"))  # type: ignore[arg-type]


@pytest.mark.parametrize("machine", ["x86_64_v3", "x86_64_v4", "aarch64"])
def test_other_machines_are_lowered_for(machine: str) -> None:
    builder = GraphBuilder("g", [Symbol("N", 0, 200)])
    x = builder.input("x", F32, "N", 40)
    y = builder.apply_one("softmax", x, dimension=1)
    done = lower_graph(builder.build([y]), CompileOptions(machine=machine))
    assert all("define" in text for text in done.llvm)
    assert done.explanation.machine


def test_several_threads_compile_at_once() -> None:
    """Each a graph of its own; results are right and no thread meets another's fault."""
    problems: list[str] = []

    def work(number: int) -> None:
        builder = GraphBuilder(f"g{number}", [Symbol("N", 0, 200)])
        value = builder.input("x", F32, "N", number + 2)
        for _ in range(3):
            value = builder.apply_one("cumulative", value, dimension=1, reducer="sum")
        x = np.ones((4, number + 2), np.float32)
        wanted = np.cumsum(np.cumsum(np.cumsum(x, 1), 1), 1)
        try:
            if not np.array_equal(compile_graph(builder.build([value]))(x)[0], wanted):
                problems.append(f"graph {number} is wrong")
            bad = GraphBuilder("bad")
            odd = bad.input("x", dtypes.complex64, 3)
            compile_graph(bad.build([bad.apply_one("transpose", odd, permutation=(0,))]))
            problems.append("complex numbers were compiled")
        except CodegenError as error:
            if error.code != 1603:
                problems.append(repr(error))
        except Exception as error:  # noqa: BLE001 - a thread must not die silently
            problems.append(repr(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert problems == []
