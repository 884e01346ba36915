"""Writes ONNX models with drawn weights, node by node, as exporters do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx


class Writer:
    """Nodes and weights, as they come."""

    def __init__(self, seed: int) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._held: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(seed)
        self._count = 0

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        """A weight."""
        from onnx import numpy_helper

        self._count += 1
        self._held.append(numpy_helper.from_array(array, f"constant{self._count}"))
        return f"constant{self._count}"

    def drawn(self, *shape: int, around: float = 0.0, spread: float = 1.0) -> str:
        """A weight in float32, drawn from a normal distribution."""
        array = self._random.standard_normal(shape, np.float32)
        return self.constant((around + spread * array).astype(np.float32))

    def __call__(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """A node with one result."""
        from onnx import helper

        self._count += 1
        name = output or f"{operator.lower()}{self._count}"
        self._nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def model(self, name: str, given: onnx.ValueInfoProto, result: onnx.ValueInfoProto) -> onnx.ModelProto:
        """All of it, with one input and one output."""
        from onnx import helper

        graph = helper.make_graph(self._nodes, name, [given], [result], self._held)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
