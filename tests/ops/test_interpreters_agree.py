"""Random graphs run twice: by the graph interpreter, and node by node through definitions and the loop interpreter."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.checking import same
from tilework import dtypes
from tilework.compute.nest import loop_program
from tilework.compute.notation import Computation
from tilework.dims import Dim, Symbol, dim
from tilework.graph.equal import equal
from tilework.graph.graph import Array, Graph, Node, Value
from tilework.graph.parse import parse
from tilework.graph.text import to_text
from tilework.loops.interpret import interpret as interpret_loops
from tilework.loops.program import Buffer
from tilework.ops.builder import GraphBuilder
from tilework.ops.interpret import interpret
from tilework.ops.registry import operator
from tilework.ops.verify import verify

F32 = dtypes.float32
BINARY = ["add", "subtract", "multiply", "maximum", "minimum"]
UNARY = ["negate", "abs", "sign", "floor"]


def random_graph(data: st.DataObject) -> Graph:
    """A graph over float32 values of ranks 0 to 3, with one symbol; values stay small integers."""
    builder = GraphBuilder("random", [Symbol("N", 1)])
    values: list[Value] = [builder.input("x", F32, "N", 3), builder.input("y", F32, 2, "N", 1)]
    for _ in range(data.draw(st.integers(1, 6))):
        value = data.draw(st.sampled_from(values))
        shape = value.tensor.shape
        rank = len(shape)
        match data.draw(st.integers(0, 9)):
            case 0 | 1:
                made = builder.apply_one(data.draw(st.sampled_from(UNARY)), value)
            case 2 | 3:
                small = builder.apply_one(
                    "clamp", builder.constant(-3.0, dtype=F32), value, builder.constant(3.0, dtype=F32)
                )
                scalar = builder.constant(float(data.draw(st.integers(-3, 3))), dtype=F32)
                made = builder.apply_one(
                    data.draw(st.sampled_from(BINARY)), small, data.draw(st.sampled_from([small, scalar]))
                )
            case 4:
                made = builder.apply_one("transpose", value, permutation=data.draw(st.permutations(range(rank))))
            case 5:
                made = builder.apply_one("reshape", value, shape=_regrouped(data, shape))
            case 6:
                made = (
                    builder.apply_one("concatenate", value, value, dimension=data.draw(st.integers(0, rank - 1)))
                    if rank
                    else value
                )
            case 7:
                low = [data.draw(st.integers(0, 2)) for _ in shape]
                zero = builder.constant(0.0, dtype=F32)
                made = builder.apply_one("pad", value, zero, edge_padding_low=low, edge_padding_high=low[::-1])
            case 8:
                chosen = [k for k in range(rank) if data.draw(st.booleans())]
                made = builder.apply_one("reduce", value, dimensions=chosen, reducer="maximum", keep_dimensions=True)
            case _:
                made = builder.apply_one(
                    "reverse", value, dimensions=[k for k in range(rank) if data.draw(st.booleans())]
                )
        values.append(made)
    return builder.build([values[-1], data.draw(st.sampled_from(values))])


def _regrouped(data: st.DataObject, shape: tuple[Dim, ...]) -> list[Dim]:
    """Some neighbouring dimensions merged, and ones put in."""
    found: list[Dim] = []
    for extent in shape:
        if found and data.draw(st.booleans()):
            found[-1] = found[-1] * extent
        else:
            found.append(extent)
        if data.draw(st.integers(0, 3)) == 0:
            found.append(dim(1))
    return found


def definition(graph: Graph, node: Node) -> Computation:
    operands = [Buffer(name, graph.values[name].tensor.shape, graph.values[name].tensor.dtype) for name in node.inputs]
    results = [Buffer(value.name, value.tensor.shape, value.tensor.dtype) for value in node.outputs]
    return operator(node.operator).define(operands, results, node.attributes, graph.symbols)


def by_definitions(graph: Graph, inputs: Mapping[str, Array], symbols: Mapping[str, int]) -> list[Array]:
    """Every node's plain loop nest, one after another."""
    arrays = {**inputs, **graph.constant_arrays}
    for node in graph.nodes:
        for value in node.outputs:
            shape = [int(extent.evaluate(symbols)) for extent in value.tensor.shape]
            arrays[value.name] = np.full(shape, 99, value.tensor.dtype.numpy)
        program = loop_program(definition(graph, node))
        interpret_loops(program, {a.buffer.name: arrays[a.buffer.name] for a in program.arguments}, symbols)
    return [arrays[name] for name in graph.outputs]


def inputs_for(size: int, seed: int) -> dict[str, Array]:
    generator = np.random.default_rng(seed)
    shapes = {"x": (size, 3), "y": (2, size, 1)}
    return {name: generator.integers(-3, 4, shape).astype(np.float32) for name, shape in shapes.items()}


@settings(max_examples=60)
@given(st.data(), st.integers(1, 3), st.integers(0, 1000))
def test_both_interpreters_agree(data: st.DataObject, size: int, seed: int) -> None:
    graph = random_graph(data)
    verify(graph)
    assert equal(parse(to_text(graph, 8)), graph)
    inputs = inputs_for(size, seed)
    found = interpret(graph, inputs)
    for a, b in zip(found, by_definitions(graph, inputs, {"N": size}), strict=True):
        same(b, a)


@settings(max_examples=40)
@given(st.data())
def test_names_in_definitions_begin_with_the_result(data: st.DataObject) -> None:
    graph = random_graph(data)
    for node in graph.nodes:
        made = definition(graph, node)
        prefix = f"{node.outputs[0].name}."
        names = [stage.name for stage in made.stages] + [axis.name for stage in made.stages for axis in stage.axes]
        names += [buffer.name for buffer in made.temporaries]
        assert all(name.startswith(prefix) for name in names)
        assert len(set(names)) == len(names)


def test_a_planted_bug_in_a_definition_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = GraphBuilder("g", [Symbol("N", 1)])
    x = builder.input("x", F32, "N", 3)
    builder.input("y", F32, 2, "N", 1)
    graph = builder.build([builder.apply_one("transpose", x, permutation=(1, 0))])
    inputs = inputs_for(2, 0)
    same(by_definitions(graph, inputs, {"N": 2})[0], interpret(graph, inputs)[0])
    reverse = operator("reverse")

    def wrong(
        _: object, operands: list[Buffer], results: list[Buffer], __: object, symbols: tuple[Symbol, ...] = ()
    ) -> Computation:
        flipped = [Buffer(results[0].name, operands[0].shape, F32)]
        return reverse.define(operands, flipped, {"dimensions": (0,)}, symbols)

    monkeypatch.setattr(type(operator("transpose")), "define", wrong)
    square = {"x": inputs_for(3, 1)["x"], "y": inputs_for(3, 1)["y"]}
    with pytest.raises(AssertionError):
        same(by_definitions(graph, square, {"N": 3})[0], interpret(graph, square)[0])
