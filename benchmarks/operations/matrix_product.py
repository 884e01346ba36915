"""Matrix products: float32, bfloat16, and unsigned by signed 8-bit integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from benchmarks.operations.operation import UNIT, Array, Operation, onnx_model, worst
from tilework import dtypes
from tilework.dims import IntLike
from tilework.dtypes import DType

if TYPE_CHECKING:
    import onnx

    from tilework.graph.graph import Value
    from tilework.ops.builder import GraphBuilder


@dataclass(frozen=True)
class MatrixProduct(Operation):
    """a (rows x depth) times b (depth x columns); `packed`: b is known when compiled, so that an engine may pack it.

    A product of float32 is right within `depth * 2^-24 * (|a| |b|)`, whatever the order of its sums (Higham, Accuracy
    and Stability of Numerical Algorithms, 2nd ed., section 3.1).
    """

    kind: ClassVar[str] = "matrix_product"
    depth: int
    columns: int
    packed: bool = False

    @property
    def label(self) -> str:
        cube = self.rows == self.depth == self.columns
        return f"{self.rows}^3" if cube else f"{self.rows}x{self.depth}x{self.columns}"

    @property
    def operations(self) -> int:
        return 2 * self.rows * self.depth * self.columns

    @property
    def bytes(self) -> int:
        return 4 * (self.rows * self.depth + self.depth * self.columns + self.rows * self.columns)

    def operands(self, random: np.random.Generator) -> tuple[Array, Array]:
        """Both matrices: standard normal."""
        return (
            random.standard_normal((self.rows, self.depth), np.float32),
            random.standard_normal((self.depth, self.columns), np.float32),
        )

    def inputs(self, random: np.random.Generator) -> dict[str, Array]:
        a, b = self.operands(random)
        return {"a": a} if self.packed else {"a": a, "b": b}

    def constants(self, random: np.random.Generator) -> dict[str, Array]:
        return {"b": self.operands(random)[1]} if self.packed else {}

    def shapes(self, rows: IntLike) -> dict[str, tuple[IntLike, ...]]:
        a: tuple[IntLike, ...] = (rows, self.depth)
        return {"a": a} if self.packed else {"a": a, "b": (self.depth, self.columns)}

    def express(self, builder: GraphBuilder, given: Mapping[str, Value]) -> Value:
        return builder.apply_one(
            "dot_general",
            given["a"],
            given["b"],
            lhs_contracting_dimensions=(1,),
            rhs_contracting_dimensions=(0,),
        )

    def model(self, constants: Mapping[str, Array]) -> onnx.ModelProto:
        from onnx import helper

        inputs = {"a": np.empty((self.rows, self.depth), np.float32)}
        if not self.packed:
            inputs["b"] = np.empty((self.depth, self.columns), np.float32)
        node = helper.make_node("MatMul", ["a", "b"], ["y"])
        return onnx_model("product", [node], inputs, self.peer_result(), constants)

    def peer_result(self) -> tuple[int, ...]:
        return self.rows, self.columns

    def numpy(self, given: Mapping[str, Array]) -> tuple[Callable[[], object], Array] | None:
        a, b = given["a"], given["b"]
        y = np.zeros((self.rows, self.columns), np.float32)
        return lambda: np.matmul(a, b, out=y), y

    def torch(self, torch: Any, given: Mapping[str, Any]) -> Callable[[], Any] | None:
        a, b = given["a"], given["b"]
        y = torch.empty((self.rows, self.columns))
        return lambda: torch.mm(a, b, out=y)

    def excess(self, given: Mapping[str, Array], result: Array) -> float:
        a, b = given["a"].astype(np.float64), given["b"].astype(np.float64)
        return worst(np.abs(result - a @ b), self.depth * UNIT * (np.abs(a) @ np.abs(b)))


@dataclass(frozen=True)
class Bfloat16Product(MatrixProduct):
    """The same on bfloat16, with b known when compiled.

    Products of bfloat16 are exact in float32, in which they are summed (a dot-product instruction truncates less than
    one unit more): right within `depth * 2^-23 * (|a| |b|)`, and half a unit of bfloat16 where the result is rounded.
    """

    kind: ClassVar[str] = "bfloat16_product"
    element: ClassVar[str] = "bfloat16"

    @property
    def bytes(self) -> int:
        return super().bytes // 2

    def operands(self, random: np.random.Generator) -> tuple[Array, Array]:
        a, b = super().operands(random)
        return a.astype(dtypes.bfloat16.numpy), b.astype(dtypes.bfloat16.numpy)

    def types(self) -> dict[str, DType]:
        return {"a": dtypes.bfloat16, "b": dtypes.bfloat16}

    def excess(self, given: Mapping[str, Array], result: Array) -> float:
        a, b = given["a"].astype(np.float64), given["b"].astype(np.float64)
        exact = a @ b
        bound = 2 * self.depth * UNIT * (np.abs(a) @ np.abs(b)) + 2.0**-8 * np.abs(exact)
        return worst(np.abs(result.astype(np.float64) - exact), bound)


@dataclass(frozen=True)
class IntegerProduct(MatrixProduct):
    """Unsigned 8-bit a times signed 8-bit b, summed in int32, with b known when compiled: exact."""

    kind: ClassVar[str] = "integer_product"
    element: ClassVar[str] = "u8s8"

    @property
    def bytes(self) -> int:
        return self.rows * self.depth + self.depth * self.columns + 4 * self.rows * self.columns

    def operands(self, random: np.random.Generator) -> tuple[Array, Array]:
        return (
            random.integers(0, 256, (self.rows, self.depth), np.uint8),
            random.integers(-128, 128, (self.depth, self.columns), np.int8),
        )

    def types(self) -> dict[str, DType]:
        return {"a": dtypes.uint8, "b": dtypes.int8}

    def excess(self, given: Mapping[str, Array], result: Array) -> float:
        # sums of at most 2^53 / 2^15 products are exact in float64
        exact = given["a"].astype(np.float64) @ given["b"].astype(np.float64)
        return 0.0 if result.dtype == np.int32 and np.array_equal(result, exact) else float("inf")
