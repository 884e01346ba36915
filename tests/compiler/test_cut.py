"""Graphs with black boxes between compiled operations, against the interpreter; what is measured before a cut and used
after it; what cannot be cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tilework import dtypes
from tilework.compiler.compile import compile_graph
from tilework.compiler.options import CompileOptions
from tilework.dims import Symbol, dim
from tilework.errors import CallError, CodegenError, RunError
from tilework.graph.graph import Graph, Node, Value
from tilework.graph.types import OpaqueType, ValueType, tensor
from tilework.ops.builder import GraphBuilder
from tilework.ops.interpret import interpret
from tilework.runtime.boxed import BoxedExecutable

F32, I64 = dtypes.float32, dtypes.int64


def _turned(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    return (np.ascontiguousarray(operands[0][::-1]) + np.float32(1),)


def _kept(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    return (operands[0][operands[0] > 0],)


def _written(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    return (np.array([f"{one:.0f}" for one in operands[0]], object),)


def _lengths(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    return (np.array([len(one) for one in operands[0]], np.float32),)


BOXES = {"Turned": _turned, "Kept": _kept, "Written": _written, "Lengths": _lengths}


def box(builder: GraphBuilder, name: str, value: Value, kind: ValueType, location: str = "") -> Value:
    where = location or f"{name} of {value.name}"
    (found,) = builder.black_box(name, "tests", value, results=[kind], location=where)
    return found


def compiled(graph: Graph, **options: Any) -> BoxedExecutable:
    found = compile_graph(graph, CompileOptions(**options), black_boxes=BOXES)
    assert isinstance(found, BoxedExecutable)
    return found


def random_graph(rng: np.random.Generator) -> Graph:
    """Vectors of N, of M and of what boxes keep, added, multiplied, summed up, and sent through boxes."""
    builder = GraphBuilder("g", [Symbol("N"), Symbol("M")])
    pool = [builder.input("a", F32, "N"), builder.input("b", F32, "N"), builder.input("c", F32, "M")]
    pool.append(builder.constant(rng.integers(-3, 4, 5).astype(np.float32)))
    kept = 0
    for _ in range(int(rng.integers(4, 16))):
        x = pool[rng.integers(len(pool))]
        alike = [v for v in pool if v.tensor.shape == x.tensor.shape]
        shape = x.tensor.shape
        match int(rng.integers(9)):
            case 0:
                pool.append(builder.apply_one("add", x, alike[rng.integers(len(alike))]))
            case 1:
                pool.append(builder.apply_one("maximum", x, alike[rng.integers(len(alike))]))
            case 2:
                pool.append(builder.apply_one("negate", x))
            case 3:
                count = builder.apply_one("iota", shape=shape, dimension=0, dtype=F32)
                pool.append(builder.apply_one("subtract", x, count))
            case 4:
                total = builder.apply_one("reduce", x, dimensions=(0,), reducer="sum")
                wanted = pool[rng.integers(len(pool))].tensor.shape
                pool.append(builder.apply_one("broadcast_in_dim", total, shape=wanted, broadcast_dimensions=()))
            case 5 | 6:
                pool.append(box(builder, "Turned", x, x.type))
            case 7:
                builder.symbol(Symbol(f"K{kept}"))
                pool.append(box(builder, "Kept", x, tensor(F32, f"K{kept}")))
                kept += 1
            case _:
                words = box(builder, "Written", x, OpaqueType("strings"))
                pool.append(box(builder, "Lengths", words, x.type))
    outputs = [pool[int(n)] for n in rng.permutation(len(pool))[:4].tolist()]
    return builder.build(outputs)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("checked", [False, True])
def test_random_graphs_with_boxes_anywhere(seed: int, checked: bool) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng)
    if not any(node.black_box for node in graph.nodes):
        return
    run = compiled(graph, checked=checked)
    for n, m in ((3, 4), (1, 1), (0, 2), (13, 0)):
        inputs: Mapping[str, Any] = {
            name: rng.integers(-4, 5, size).astype(np.float32) for name, size in (("a", n), ("b", n), ("c", m))
        }
        wanted = interpret(graph, inputs, black_boxes=BOXES)
        for found in (run(**inputs), run.step_times(**inputs)[0]):
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(one, other)


def chain() -> Graph:
    """A box in the middle decides how many elements there are; a size of the input is used after it."""
    builder = GraphBuilder("chain", [Symbol("N"), Symbol("K")])
    x = builder.input("x", F32, "N")
    shifted = builder.apply_one("negate", x)
    kept = box(builder, "Kept", shifted, tensor(F32, "K"), location="the/box")
    count = builder.apply_one("dimension_values", values=(dim("N"), dim("K")), shape=(2,))
    doubled = builder.apply_one("add", kept, kept)
    total = builder.apply_one("reduce", doubled, dimensions=(0,), reducer="sum")
    spread = builder.apply_one("broadcast_in_dim", total, shape=(dim("N"),), broadcast_dimensions=())
    return builder.build([spread, count, doubled])


def test_sizes_before_a_cut_are_known_after_it() -> None:
    run = compiled(chain())
    for x in ([-1, 2, -3], [1, 2], [], [-5]):
        array = np.array(x, np.float32)
        spread, count, doubled = run(array)
        kept = -array[array < 0]
        np.testing.assert_array_equal(doubled, 2 * kept)
        np.testing.assert_array_equal(count, [len(x), len(kept)])
        np.testing.assert_array_equal(spread, np.full(len(x), 2 * kept.sum(), np.float32))


def test_boxes_and_parts_are_told_of() -> None:
    run = compiled(chain())
    assert len(run.plans) == 2
    assert run.plan is run.plans[0]
    (explained,) = run.explain().black_boxes
    assert (explained.step, explained.operator, explained.provider) == ("the/box", "Kept", "tests")
    assert [notice.identifier for notice in run.explain().notices] == ["parts-between-black-boxes"]
    assert "Kept" in str(run.explain())
    _, times = run.step_times(np.array([-1, 2], np.float32))
    assert ("Kept", "the/box") in [(time.name, time.origin) for time in times]
    assert all(time.seconds >= 0 for time in times)
    assert "BoxedExecutable" in repr(run)
    run.trim()


def test_chains_of_boxes_need_no_part_between_them() -> None:
    builder = GraphBuilder("g", [Symbol("N")])
    x = builder.apply_one("negate", builder.input("x", F32, "N"))
    for _ in range(3):
        x = box(builder, "Turned", x, x.type)
    run = compiled(builder.build([builder.apply_one("negate", x)]))
    assert len(run.plans) == 2
    np.testing.assert_array_equal(run(np.array([1, 2, 3], np.float32))[0], [0, -1, -2])


def _failing(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    raise ValueError("no such luck")


def _wide(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    return (operands[0].astype(np.float64),)


def _twice(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    return (operands[0], operands[0])


def _as_row(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    return (operands[0].reshape(1, -1),)


@pytest.mark.parametrize(
    ("function", "says"),
    [(_failing, "no such luck"), (_wide, "float64"), (_twice, "2 values of 1"), (_as_row, "1 dimensions")],
)
def test_boxes_that_fail_are_named(function: Any, says: str) -> None:
    run = compile_graph(chain(), black_boxes={"Kept": function})
    for call in (run, run.step_times):
        with pytest.raises(RunError) as caught:
            call(np.array([-1, 2], np.float32))
        assert caught.value.code == 1805
        assert caught.value.where == "the/box"
        assert says in caught.value.message


def test_sizes_of_two_boxes_that_should_be_equal() -> None:
    builder = GraphBuilder("g", [Symbol("N"), Symbol("K")])
    x = builder.apply_one("negate", builder.input("x", F32, "N"))
    first = box(builder, "Kept", x, tensor(F32, "K"), location="first")
    second = box(builder, "Kept", builder.apply_one("add", x, x), tensor(F32, "K"), location="second")
    other = box(builder, "Kept", builder.apply_one("negate", x), tensor(F32, "K"), location="other")
    run = compiled(builder.build([builder.apply_one("add", builder.apply_one("add", first, second), other)]))
    np.testing.assert_array_equal(run(np.array([1, -1], np.float32))[0], [4])
    with pytest.raises(RunError) as caught:
        run(np.array([1, -1, 2], np.float32))
    assert caught.value.code == 1805
    assert "other" in caught.value.message


def test_arguments_are_refused_as_ever() -> None:
    run = compiled(chain())
    with pytest.raises(CallError) as caught:
        run(np.zeros((2, 2), np.float32))
    assert caught.value.code == 1704
    with pytest.raises(CallError) as caught:
        run(np.zeros(2, np.int32))
    assert caught.value.code == 1702


def test_a_size_that_only_a_box_tells_which_needs_it() -> None:
    builder = GraphBuilder("g", [Symbol("N"), Symbol("M")])
    x = builder.input("x", F32, "M")
    count = builder.apply_one("iota", shape=(dim("N"),), dimension=0, dtype=F32)
    made = box(builder, "Turned", count, tensor(F32, "N"))
    with pytest.raises(CodegenError) as caught:
        compile_graph(builder.build([made, x]), black_boxes=BOXES)
    assert caught.value.code == 1653


def test_a_box_in_a_body_is_refused() -> None:
    builder = GraphBuilder("g", [Symbol("N")])
    x = builder.input("x", F32, "N")
    condition = builder.input("c", dtypes.boolean)
    bodies: list[Graph] = []
    for inside in (True, False):
        body = builder.subgraph("body")
        one = body.apply_one("negate", x)
        bodies.append(body.build([box(body, "Turned", one, one.type, location="in/body") if inside else one]))
    (chosen,) = builder.apply_all("if", [condition], {}, subgraphs=bodies)
    outside = box(builder, "Turned", chosen, chosen.type)
    for output in (chosen, outside):
        with pytest.raises(CodegenError) as caught:
            compile_graph(builder.build([output]), black_boxes=BOXES)
        assert caught.value.code == 1652
        assert caught.value.where == "in/body"
        assert "body" in caught.value.message
