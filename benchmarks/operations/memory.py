# ruff: noqa: ARG002 - an operation is given what any of them may need
"""Operations that the memory bounds: softmax, layer norm, sums of rows and columns, GELU, transposition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import erf, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from benchmarks.operations.operation import UNIT, Array, Operation, onnx_model, worst
from tilework.dims import IntLike

if TYPE_CHECKING:
    import onnx

    from tilework.graph.graph import Value
    from tilework.ops.builder import GraphBuilder

PIECE = 1 << 20
"""Elements that are checked at once, to save memory."""
EPSILON = 1e-5


@dataclass(frozen=True)
class RowOperation(Operation):
    """An operation on a matrix of standard normal numbers; the result has its shape unless `peer_result` says else."""

    columns: int

    @property
    def label(self) -> str:
        return f"{self.kind.replace('_', ' ')} {self.rows}x{self.columns}"

    @property
    def operations(self) -> int:
        return self.rows * self.columns

    @property
    def bytes(self) -> int:
        return 4 * (self.rows * self.columns + int(np.prod(self.peer_result())))

    def inputs(self, random: np.random.Generator) -> dict[str, Array]:
        return {"x": random.standard_normal((self.rows, self.columns), np.float32)}

    def shapes(self, rows: IntLike) -> dict[str, tuple[IntLike, ...]]:
        return {"x": (rows, self.columns)}

    def peer_result(self) -> tuple[int, ...]:
        return self.rows, self.columns

    def nodes(self) -> list[onnx.NodeProto]:
        """The model's nodes, from `x` and the constants to `y`."""
        raise ValueError(f"{self.label} has no form in ONNX")

    def model(self, constants: Mapping[str, Array]) -> onnx.ModelProto:
        x = np.empty((self.rows, self.columns), np.float32)
        return onnx_model(self.kind, self.nodes(), {"x": x}, self.peer_result(), {**constants, **self._extra()})

    def _extra(self) -> dict[str, Array]:
        return {}

    def pieces(self, given: Mapping[str, Array], result: Array) -> float:
        """The worst share over pieces of so many whole rows."""
        step = max(1, PIECE // self.columns)
        return max(
            self.piece_excess(given, given["x"][at : at + step].astype(np.float64), result[at : at + step])
            for at in range(0, self.rows, step)
        )

    def piece_excess(self, given: Mapping[str, Array], x: Array, result: Array) -> float:
        """The share of some rows."""
        raise NotImplementedError  # pragma: no cover - only where `excess` uses it

    def excess(self, given: Mapping[str, Array], result: Array) -> float:
        return self.pieces(given, result)


@dataclass(frozen=True)
class Softmax(RowOperation):
    """Right within `2^-24 * (columns + |x - max| + 8)` of each value: sum, argument, exponential and quotient."""

    kind: ClassVar[str] = "softmax"

    def express(self, builder: GraphBuilder, given: Mapping[str, Value]) -> Value:
        return builder.apply_one("softmax", given["x"], dimension=1)

    def nodes(self) -> list[onnx.NodeProto]:
        from onnx import helper

        return [helper.make_node("Softmax", ["x"], ["y"], axis=1)]

    def torch(self, torch: Any, given: Mapping[str, Any]) -> Callable[[], Any] | None:
        y = torch.empty_like(given["x"])
        return lambda: torch.softmax(given["x"], 1, out=y)

    def piece_excess(self, given: Mapping[str, Array], x: Array, result: Array) -> float:
        shifted = x - x.max(1, keepdims=True)
        exact = np.exp(shifted)
        exact /= exact.sum(1, keepdims=True)
        return worst(np.abs(result - exact), UNIT * exact * (self.columns - shifted + 8))


@dataclass(frozen=True)
class LayerNorm(RowOperation):
    """Right within `2^-24 * (columns / 8 + 16) * (|y| + 1) * |scale|`: statistics of standard normal rows."""

    kind: ClassVar[str] = "layer_norm"

    def constants(self, random: np.random.Generator) -> dict[str, Array]:
        scale, bias = (random.standard_normal(self.columns, np.float32) for _ in range(2))
        return {"scale": scale, "bias": bias}

    def express(self, builder: GraphBuilder, given: Mapping[str, Value]) -> Value:
        def number(value: float) -> Value:
            return builder.constant(np.array(value, np.float32))

        def mean(value: Value) -> Value:
            total = builder.apply_one("reduce", value, dimensions=(1,), reducer="sum", keep_dimensions=True)
            return builder.apply_one("divide", total, number(self.columns))

        x = given["x"]
        deviation = builder.apply_one("subtract", x, mean(x))
        variance = mean(builder.apply_one("multiply", deviation, deviation))
        root = builder.apply_one("sqrt", builder.apply_one("add", variance, number(EPSILON)))
        normal = builder.apply_one("multiply", deviation, builder.apply_one("divide", number(1), root))
        return builder.apply_one("add", builder.apply_one("multiply", normal, given["scale"]), given["bias"])

    def nodes(self) -> list[onnx.NodeProto]:
        from onnx import helper

        return [helper.make_node("LayerNormalization", ["x", "scale", "bias"], ["y"], axis=-1, epsilon=EPSILON)]

    def torch(self, torch: Any, given: Mapping[str, Any]) -> Callable[[], Any] | None:
        scale, bias = given["scale"], given["bias"]
        return lambda: torch.nn.functional.layer_norm(given["x"], (self.columns,), scale, bias, EPSILON)

    def piece_excess(self, given: Mapping[str, Array], x: Array, result: Array) -> float:
        deviation = x - x.mean(1, keepdims=True)
        normal = deviation / np.sqrt((deviation**2).mean(1, keepdims=True) + EPSILON)
        scale = given["scale"].astype(np.float64)
        bound = UNIT * (self.columns / 8 + 16) * (np.abs(normal) + 1) * (np.abs(scale) + np.abs(given["bias"]))
        return worst(np.abs(result - (normal * scale + given["bias"])), bound)


@dataclass(frozen=True)
class SumRows(RowOperation):
    """The sum of each row: right within `columns * 2^-24 * sum |x|`."""

    kind: ClassVar[str] = "sum_rows"

    def peer_result(self) -> tuple[int, ...]:
        return (self.rows,)

    def express(self, builder: GraphBuilder, given: Mapping[str, Value]) -> Value:
        return builder.apply_one("reduce", given["x"], dimensions=(1,), reducer="sum")

    def _extra(self) -> dict[str, Array]:
        return {"axes": np.array([1], np.int64)}

    def nodes(self) -> list[onnx.NodeProto]:
        from onnx import helper

        return [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)]

    def numpy(self, given: Mapping[str, Array]) -> tuple[Callable[[], object], Array] | None:
        x, y = given["x"], np.zeros(self.rows, np.float32)
        return lambda: np.sum(x, axis=1, out=y), y

    def torch(self, torch: Any, given: Mapping[str, Any]) -> Callable[[], Any] | None:
        return lambda: torch.sum(given["x"], 1)

    def piece_excess(self, given: Mapping[str, Array], x: Array, result: Array) -> float:
        return worst(np.abs(result - x.sum(1)), self.columns * UNIT * np.abs(x).sum(1))


@dataclass(frozen=True)
class SumColumns(RowOperation):
    """The sum of each column: right within `rows * 2^-24 * sum |x|`."""

    kind: ClassVar[str] = "sum_cols"

    def peer_result(self) -> tuple[int, ...]:
        return (self.columns,)

    def express(self, builder: GraphBuilder, given: Mapping[str, Value]) -> Value:
        return builder.apply_one("reduce", given["x"], dimensions=(0,), reducer="sum")

    def _extra(self) -> dict[str, Array]:
        return {"axes": np.array([0], np.int64)}

    def nodes(self) -> list[onnx.NodeProto]:
        from onnx import helper

        return [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)]

    def numpy(self, given: Mapping[str, Array]) -> tuple[Callable[[], object], Array] | None:
        x, y = given["x"], np.zeros(self.columns, np.float32)
        return lambda: np.sum(x, axis=0, out=y), y

    def torch(self, torch: Any, given: Mapping[str, Any]) -> Callable[[], Any] | None:
        return lambda: torch.sum(given["x"], 0)

    def excess(self, given: Mapping[str, Array], result: Array) -> float:
        step = max(1, PIECE // self.columns)
        total, largest = np.zeros(self.columns), np.zeros(self.columns)
        for at in range(0, self.rows, step):
            piece = given["x"][at : at + step].astype(np.float64)
            total += piece.sum(0)
            largest += np.abs(piece).sum(0)
        return worst(np.abs(result - total), self.rows * UNIT * largest)


@dataclass(frozen=True)
class Gelu(RowOperation):
    """`x * (1 + erf(x / sqrt 2)) / 2`: right within `2^-21 * |x|` (its relative error is not bounded for x < 0)."""

    kind: ClassVar[str] = "gelu"

    def express(self, builder: GraphBuilder, given: Mapping[str, Value]) -> Value:
        def number(value: float) -> Value:
            return builder.constant(np.array(value, np.float32))

        x = given["x"]
        inner = builder.apply_one("erf", builder.apply_one("multiply", x, number(1 / sqrt(2))))
        half = builder.apply_one("multiply", x, number(0.5))
        return builder.apply_one("multiply", half, builder.apply_one("add", inner, number(1)))

    def nodes(self) -> list[onnx.NodeProto]:
        from onnx import helper

        return [helper.make_node("Gelu", ["x"], ["y"])]

    def torch(self, torch: Any, given: Mapping[str, Any]) -> Callable[[], Any] | None:
        return lambda: torch.nn.functional.gelu(given["x"])

    def excess(self, given: Mapping[str, Array], result: Array) -> float:
        """Every element that numpy can do soon: a random sample of 2^18, and the first and last rows."""
        x, y = given["x"].ravel(), result.ravel()
        ends = np.arange(min(self.columns, x.size))
        places = np.concatenate([ends, x.size - 1 - ends, np.random.default_rng(0).integers(0, x.size, 1 << 18)])
        wide = x[places].astype(np.float64)
        exact = wide * (1 + np.array([erf(value) for value in (wide / sqrt(2)).tolist()])) / 2
        return worst(np.abs(y[places] - exact), 8 * UNIT * np.abs(wide)) if np.isfinite(y).all() else float("inf")


@dataclass(frozen=True)
class Transposed(RowOperation):
    """Rows become columns: exact."""

    kind: ClassVar[str] = "transpose"

    def peer_result(self) -> tuple[int, ...]:
        return self.columns, self.rows

    def express(self, builder: GraphBuilder, given: Mapping[str, Value]) -> Value:
        return builder.apply_one("transpose", given["x"], permutation=(1, 0))

    def nodes(self) -> list[onnx.NodeProto]:
        from onnx import helper

        return [helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])]

    def numpy(self, given: Mapping[str, Array]) -> tuple[Callable[[], object], Array] | None:
        x, y = given["x"], np.zeros((self.columns, self.rows), np.float32)
        return lambda: np.copyto(y, x.T), y

    def torch(self, torch: Any, given: Mapping[str, Any]) -> Callable[[], Any] | None:
        y = torch.empty((self.columns, self.rows))
        return lambda: y.copy_(given["x"].t())

    def excess(self, given: Mapping[str, Array], result: Array) -> float:
        return 0.0 if np.array_equal(result, given["x"].T) else float("inf")
