# ruff: noqa: ARG002 - an operation is given what any of them may need
"""`Operation`: one tensor operation at one size, in every form that an engine takes, with its reference in float64."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tilework import dtypes
from tilework.dims import IntLike, Symbol
from tilework.dtypes import DType

if TYPE_CHECKING:
    import onnx

    from tilework.graph.graph import Graph, Value
    from tilework.ops.builder import GraphBuilder

Array = np.ndarray[Any, Any]
UNIT = 2.0**-24
"""The unit roundoff of float32."""
SYMBOL = "M"


@dataclass(frozen=True)
class Operation(ABC):
    """An operation and its size. `rows` is the dimension that may be symbolic: rows of a matrix, or the batch."""

    kind: ClassVar[str]
    element: ClassVar[str] = "float32"
    rows: int

    # -- what it is ----------------------------------------------------------------------------------------------------
    @property
    @abstractmethod
    def label(self) -> str: ...

    @property
    @abstractmethod
    def operations(self) -> int:
        """Multiplications and additions of one run, nominally."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Bytes read and written by one run that touches everything once."""

    @abstractmethod
    def inputs(self, random: np.random.Generator) -> dict[str, Array]:
        """What a call is given, by name, in order."""

    def constants(self, random: np.random.Generator) -> dict[str, Array]:
        """What is known when it is compiled, by name."""
        return {}

    # -- in Tilework ---------------------------------------------------------------------------------------------------
    @abstractmethod
    def express(self, builder: GraphBuilder, given: Mapping[str, Value]) -> Value:
        """The result, from the inputs and constants by name."""

    @abstractmethod
    def shapes(self, rows: IntLike) -> dict[str, tuple[IntLike, ...]]:
        """The inputs' shapes for so many rows."""

    def types(self) -> dict[str, DType]:
        """The inputs' element types, where they are not float32."""
        return {}

    def graph(self, constants: Mapping[str, Array], symbolic: bool = False) -> Graph:
        """The graph of this operation; `symbolic`: for any number of rows."""
        from tilework.ops.builder import GraphBuilder

        builder = GraphBuilder(self.kind, [Symbol(SYMBOL, 1)] if symbolic else [])
        types = self.types()
        given = {
            name: builder.input(name, types.get(name, dtypes.float32), *shape)
            for name, shape in self.shapes(SYMBOL if symbolic else self.rows).items()
        }
        held = {name: builder.constant(array, name) for name, array in constants.items()}
        return builder.build([self.express(builder, {**given, **held})])

    # -- in peers ------------------------------------------------------------------------------------------------------
    def model(self, constants: Mapping[str, Array]) -> onnx.ModelProto:
        """The ONNX model of this operation; its inputs and result as `to_peer` and `from_peer` lay them out."""
        raise ValueError(f"{self.label} has no form in ONNX")

    def to_peer(self, name: str, array: Array) -> Array:
        """An input or constant as ONNX and torch want it."""
        return array

    def from_peer(self, result: Array) -> Array:
        """What ONNX or torch gave, as Tilework lays it out."""
        return result

    def peer_result(self) -> tuple[int, ...]:
        """The shape of a peer's result."""
        raise ValueError(f"{self.label} has no form in ONNX")

    def numpy(
        self,
        given: Mapping[str, Array],
    ) -> tuple[Callable[[], object], Array] | None:
        """A call of numpy and the array that it writes; None where numpy has no such function."""
        return None

    def torch(self, torch: Any, given: Mapping[str, Any]) -> Callable[[], Any] | None:
        """A call of torch on tensors in the peer's layout; None where it is not compared."""
        return None

    # -- being right ---------------------------------------------------------------------------------------------------
    @abstractmethod
    def excess(self, given: Mapping[str, Array], result: Array) -> float:
        """The largest difference from float64 as a share of the bound (the class states it); at most 1 is right."""

    def with_rows(self, rows: int) -> Self:
        """The same operation on so many rows."""
        return replace(self, rows=rows)

    def described(self) -> dict[str, Any]:
        """As JSON can hold it; `operation` reads it again."""
        return {"kind": self.kind, **asdict(self)}


def worst(difference: Array, bound: Array | float) -> float:
    """The largest share of a bound; infinity where a difference is not a number."""
    with np.errstate(all="ignore"):
        share = difference / np.maximum(bound, np.finfo(np.float64).tiny)
    if not share.size:
        return 0.0
    return float(share.max()) if np.isfinite(share).all() else float("inf")


def onnx_model(
    name: str,
    nodes: Any,
    inputs: Mapping[str, Array],
    result: tuple[int, ...],
    held: Mapping[str, Array] | None = None,
) -> onnx.ModelProto:
    """A model of some nodes whose result is `y`."""
    from onnx import TensorProto, helper, numpy_helper

    given = [helper.make_tensor_value_info(key, TensorProto.FLOAT, array.shape) for key, array in inputs.items()]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, result)
    initializers = [numpy_helper.from_array(array, key) for key, array in (held or {}).items()]
    model = helper.make_model(
        helper.make_graph(nodes, name, given, [y], initializers), opset_imports=[helper.make_opsetid("", 20)]
    )
    model.ir_version = 9
    return model
