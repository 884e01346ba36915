"""Random graphs for the passes, and the check that a pass keeps every bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilework import dtypes
from tilework.dims import Symbol
from tilework.graph.graph import Array, Graph, Value, walk
from tilework.ops.builder import GraphBuilder
from tilework.ops.interpret import interpret
from tilework.ops.verify import verify
from tilework.passes.protocol import Pass

F32, I32, BOOL = dtypes.float32, dtypes.int32, dtypes.boolean
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.5, 2.0, 3e38, 1e-40], np.float32)


def equal_bits(first: Array, second: Array) -> bool:
    """Same type, shape and bits; any NaN equals any NaN, and zeros have signs."""
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    if first.dtype.kind in "biu":
        return bool(np.array_equal(first, second))
    both = np.isnan(first) & np.isnan(second)
    return bool(np.all(both | ((first == second) & (np.signbit(first) == np.signbit(second)))))


def inputs_for(graph: Graph, generator: np.random.Generator, symbols: dict[str, int]) -> list[Array]:
    found: list[Array] = []
    for value in graph.inputs:
        shape = tuple(int(d.evaluate(symbols)) for d in value.tensor.shape)
        if value.tensor.dtype == F32:
            found.append(generator.choice(SPECIAL, shape))
        elif value.tensor.dtype == BOOL:
            found.append(generator.integers(0, 2, shape).astype(np.bool_))
        else:
            found.append(generator.integers(-9, 9, shape).astype(value.tensor.dtype.numpy))
    return found


def check_pass(one: Pass, graph: Graph, seed: int = 0, **symbols: int) -> Graph:
    """Run a pass; the result verifies, has the same inputs and outputs, and computes the same bits."""
    verify(graph)
    found = one.run(graph)
    verify(found)
    assert found.inputs == graph.inputs
    assert found.outputs == graph.outputs
    assert [found.values[name].type for name in found.outputs] == [graph.values[name].type for name in graph.outputs]
    arrays = inputs_for(graph, np.random.default_rng(seed), symbols)
    for a, b in zip(interpret(graph, arrays, symbols), interpret(found, arrays, symbols), strict=True):
        assert equal_bits(a, b), f"{one.name} changed a value of\n{graph.name}: {a} became {b}"
    return found


def operators(graph: Graph) -> list[str]:
    """The operators of a graph, in order, subgraphs included."""
    return [node.operator for node in walk(graph)]


class Random:
    """Grows a graph of float32 and int32 tensors of few shapes, so that operators often meet their match."""

    def __init__(self, seed: int) -> None:
        self.g = np.random.default_rng(seed)
        self.builder = GraphBuilder(f"random_{seed}", [Symbol("n", 1, 9)])
        self.values: list[Value] = [
            self.builder.input("x", F32, "n", 3), self.builder.input("y", F32, 3), self.builder.input("i", I32, "n", 3),
            self.builder.input("p", BOOL, "n", 3),
        ]  # fmt: skip

    def pick(self, *kinds: dtypes.DType) -> Value:
        fit = [v for v in self.values if v.tensor.dtype in kinds]
        return fit[int(self.g.integers(0, len(fit)))]

    def number(self, dtype: dtypes.DType) -> Value:
        values = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf] if dtype == F32 else [0, 1, -1, -(2**31), 2**31 - 1]
        return self.builder.constant(values[int(self.g.integers(0, len(values)))], dtype=dtype)

    def step(self, depth: int = 0) -> Value:
        g, b = self.g, self.builder
        choice = int(g.integers(0, 13 if depth == 0 else 12))
        x = self.pick(F32, I32)
        rank = x.tensor.rank
        flip = tuple(int(d) for d in g.permutation(rank))
        match choice:
            case 0 | 1:
                name = str(g.choice(["add", "subtract", "multiply", "divide", "maximum", "minimum"]))
                pair = [x, self.number(x.tensor.dtype)]
                return b.apply(name, *(pair if g.integers(0, 2) else pair[::-1]))
            case 2:
                same = [v for v in self.values if v.type == x.type]
                return b.apply("add", x, same[int(g.integers(0, len(same)))])
            case 3:
                return b.apply(str(g.choice(["negate", "abs"])), x)
            case 4:
                return b.apply("convert", x, dtype=F32 if g.integers(0, 2) else I32)
            case 5:
                return b.apply("transpose", x, permutation=flip)
            case 6:
                return b.apply("reshape", x, shape=(1, *x.tensor.shape) if rank < 3 else (x.tensor.size,))
            case 7:
                return b.apply("reverse", x, dimensions=flip[: int(g.integers(0, rank + 1))])
            case 8:
                start = (0,) * rank
                return b.apply("slice", x, start_indices=start, limit_indices=x.tensor.shape, strides=(1,) * rank)
            case 9:
                return b.apply("concatenate", *([x] * int(g.integers(1, 3))), dimension=flip[0]) if rank else x
            case 10:
                reducer = str(g.choice(["sum", "maximum"]))
                return b.apply("reduce", x, dimensions=flip[:1], reducer=reducer, keep_dimensions=True)
            case 11:
                size = (int(g.integers(1, 3)), *x.tensor.shape) if rank < 3 else x.tensor.shape
                places = tuple(range(len(size) - rank, len(size)))
                return b.apply("broadcast_in_dim", x, shape=size, broadcast_dimensions=places)
            case _:
                return self.branch(x)

    def branch(self, x: Value) -> Value:
        """An `if` whose branches capture values and repeat what is outside."""
        b = self.builder
        if self.g.integers(0, 2):
            pred = b.constant(bool(self.g.integers(0, 2)), dtype=BOOL)
        else:
            pred = b.apply("reduce", self.pick(BOOL), dimensions=(0, 1), reducer="or")
        graphs: list[Graph] = []
        for name in ("then", "else"):
            inner = b.subgraph(b.fresh(name))
            y = inner.add_input(b.fresh(f"{name}_input"), x.type)
            one = inner.constant(1, b.fresh("one"), dtype=x.tensor.dtype)
            first = inner.apply("multiply", y, one, names=b.fresh("first"))
            again = inner.apply("abs" if name == "then" else "negate", first, names=b.fresh("again"))
            twice = inner.apply("negate", again, names=b.fresh("twice"))
            last = inner.apply("add", twice, x, names=b.fresh("last"))
            graphs.append(inner.build([last]))
        return b.apply("if", pred, x, subgraphs=graphs)

    def graph(self, steps: int = 14) -> Graph:
        for _ in range(steps):
            found: Any = self.step()
            self.values.append(found)
        return self.builder.build(list(dict.fromkeys(v.name for v in self.values[-5:])))
