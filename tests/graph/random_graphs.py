"""Random graphs: any names, types, attributes, subgraphs and signatures; well formed where it matters."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np

from tilework import dtypes
from tilework.dims import Dim, Symbol, dim, maximum, minimum
from tilework.dtypes import DType, integer_range
from tilework.graph.graph import (
    Array,
    Attribute,
    Constant,
    Graph,
    GraphSignature,
    InputPolicy,
    Node,
    OutputPolicy,
    Value,
)
from tilework.graph.types import TensorType, TokenType, ValueType

ODD_NAMES = [
    "onnx::Add_12", "a b", "输入", "", 'quote"d', "back\\slash", "line\nbreak", "graph", "inf", "true", "1st", "a.1",
    "x/y:0",
]  # fmt: skip
ODD_FLOATS = [0.0, -0.0, 1.5, -1e-300, 1e300, float("inf"), float("-inf"), float("nan"), 1e16, 0.1, 5e-324]


class RandomGraph:
    """Draws one graph; names are unique in the whole tree."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.count = 0
        self.symbols = [Symbol("N"), Symbol("batch.size", 1, 64, 8), Symbol("K", 0, 100, measured=True)]

    def pick(self, options: Any) -> Any:
        return options[int(self.random.integers(0, len(options)))]

    def name(self, stem: str) -> str:
        self.count += 1
        odd = self.pick(ODD_NAMES) if self.random.random() < 0.3 else ""
        return f"{odd}{stem}{self.count}"

    def dim(self) -> Dim:
        symbol = dim(self.pick(["N", "batch.size", "K"]))
        return self.pick(
            [dim(int(self.random.integers(0, 9))), symbol, symbol * 2 + 1, symbol // 4, (symbol + 3) % 5,
             maximum(symbol, 2), minimum(symbol * 3, dim("N") + 1), symbol * dim("N")]
        )  # fmt: skip

    def type(self) -> ValueType:
        rank = int(self.random.integers(0, 4))
        return TensorType(tuple(self.dim() for _ in range(rank)), self.pick(dtypes.ALL))

    def array(self) -> Array:
        dtype: DType = self.pick(dtypes.ALL)
        shape = tuple(int(v) for v in self.random.integers(0, 4, int(self.random.integers(0, 3))))
        size = int(np.prod(shape, dtype=np.int64))
        raw = self.random.integers(0, 256, size * dtype.itemsize).astype(np.uint8)
        if dtype.kind == "boolean":
            raw = raw & np.uint8(1)
        if dtype.is_small_integer:
            low, high = integer_range(dtype)
            small = raw.astype(np.int64) % (high - low + 1) + low
            return small.astype(dtype.numpy).reshape(shape)
        if dtype.bits < 8:
            raw = raw % 16
        return np.frombuffer(raw.tobytes(), dtype.numpy).reshape(shape).copy()

    def attribute(self, depth: int = 0) -> Attribute:
        kind = int(self.random.integers(0, 8 if depth < 3 else 7))
        options: list[Attribute] = [
            int(self.random.integers(-9, 9)), self.pick(ODD_FLOATS), bool(self.random.integers(0, 2)),
            self.pick(ODD_NAMES), self.pick(dtypes.ALL), dim("N") * 2 - 1, -(2**70),
        ]  # fmt: skip
        if kind < len(options):
            return options[kind]
        return tuple(self.attribute(depth + 1) for _ in range(int(self.random.integers(0, 4))))

    def graph(self, depth: int = 0, visible: tuple[str, ...] = ()) -> Graph:
        inputs = tuple(Value(self.name("in"), self.type()) for _ in range(int(self.random.integers(0, 3))))
        if depth == 0:
            inputs = (*inputs, Value(self.name("token"), TokenType()))
        constants = tuple(Constant(self.name("c"), self.array()) for _ in range(int(self.random.integers(1, 4))))
        token = inputs[-1].name if depth == 0 else ""
        readable = [*visible, *(v.name for v in inputs if v.name != token), *(c.name for c in constants)]
        nodes: list[Node] = []
        for _ in range(int(self.random.integers(1, 5))):
            many = int(self.random.integers(1, 3))
            outputs = [Value(self.name("v"), self.type()) for _ in range(many)]
            reads = tuple(self.pick(readable) for _ in range(int(self.random.integers(0, 3))))
            if token and self.random.random() < 0.4:
                reads = (token, *reads)
                outputs.append(Value(self.name("t"), TokenType()))
                token = outputs[-1].name
            inner = 0 if depth > 1 else int(self.random.integers(0, 3)) // 2
            subgraphs = tuple(self.graph(depth + 1, tuple(readable)) for _ in range(inner))
            attributes = {self.name("a"): self.attribute() for _ in range(int(self.random.integers(0, 3)))}
            own = outputs[0].name if self.random.random() < 0.5 else self.name("node")
            nodes.append(
                Node(
                    own, self.pick(["add", "if", "custom::Op", "graph"]), reads, tuple(outputs),
                    MappingProxyType(attributes), subgraphs, self.pick(["", "layer 1/Add", 'odd "place"\n']),
                    self.pick(["", "", "onnx"]),
                )
            )  # fmt: skip
            readable.extend(v.name for v in outputs if not isinstance(v.type, TokenType))
        outputs = [self.pick(readable) for _ in range(int(self.random.integers(1, 4)))]
        if depth == 0:
            outputs.append(token)
        signature = None if depth or self.random.random() < 0.5 else self.signature(len(inputs), len(outputs))
        symbols = tuple(self.symbols) if depth == 0 else ()
        return Graph(self.name("g"), inputs, tuple(outputs), tuple(nodes), constants, symbols, signature)

    def signature(self, inputs: int, outputs: int) -> GraphSignature:
        def given() -> InputPolicy:
            special = InputPolicy(noncontiguous="specialise")
            return self.pick([InputPolicy(), InputPolicy("donated"), InputPolicy("mutated", 0, "refuse"), special])

        def returned() -> OutputPolicy:
            view = OutputPolicy("view", 0, (dim("N"), dim(1)), dim("N") + 1)
            return self.pick([OutputPolicy(), OutputPolicy("alias", 1), view, OutputPolicy("view", 2, ())])

        return GraphSignature(tuple(given() for _ in range(inputs)), tuple(returned() for _ in range(outputs)))


def nested(depth: int) -> Graph:
    """A graph with subgraphs nested this deep, built from the inside."""
    kind = TensorType((), dtypes.float32)
    graph = Graph(f"g{depth}", (), ("x",), ())
    for level in reversed(range(depth)):
        value = Value(f"v{level}", kind)
        node = Node(f"n{level}", "if", ("x",), (value,), MappingProxyType({}), (graph,))
        graph = Graph(f"g{level}", (Value("x", kind),) if level == 0 else (), (value.name,), (node,))
    return graph
