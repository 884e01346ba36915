"""Small ONNX models with one kernel each, drawn from a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
Extents = Sequence["int | str"]


def node(operator: str, inputs: Sequence[str], output: str = "y", **attributes: Any) -> NodeProto:
    """A node with one output."""
    return helper.make_node(operator, inputs, [output], **attributes)


def model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Extents],
    weights: Mapping[str, Array] | None = None,
    *,
    element: int = TensorProto.FLOAT,
    outputs: Sequence[str] = ("y",),
    made: int | None = None,
    opset: int = 18,
    ir: int = 9,
    name: str = "graph",
) -> ModelProto:
    """A model; `element` is the type of its inputs, `made` that of its outputs where it is another one."""
    graph = helper.make_graph(
        list(nodes),
        name,
        [helper.make_tensor_value_info(given, element, list(shape)) for given, shape in inputs.items()],
        [helper.make_tensor_value_info(output, made if made is not None else element, None) for output in outputs],
        [numpy_helper.from_array(array, held) for held, array in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


class Drawn:
    """Sizes and weights of one pair."""

    def __init__(self, seed: int, name: str) -> None:
        """The same for the same seed and pair."""
        self._random = np.random.default_rng([seed, *name.encode()])
        m, k, n = (int(extent) for extent in self._random.choice(np.arange(5, 48), 3, replace=False))
        self.m, self.k, self.n = m, k, n
        self.channels = 4 * int(self._random.integers(1, 4))
        self.side = int(self._random.integers(9, 20))

    def weights(self, *shape: int, dtype: str = "float32") -> Array:
        """Small whole numbers."""
        return self._random.integers(-3, 4, shape).astype(dtype)

    # -- models that several pairs start from --------------------------------------------------------------------------
    def product(self, weights: Array | None = None, **more: Any) -> ModelProto:
        """`[m, k]` times weights `[k, n]`."""
        held = weights if weights is not None else self.weights(self.k, self.n)
        return model([node("MatMul", ["x", "w"])], {"x": [self.m, self.k]}, {"w": held}, **more)

    def elementwise(self, operator: str = "Tanh", extents: Extents | None = None, **attributes: Any) -> ModelProto:
        """One operator on `[m, n]`."""
        return model([node(operator, ["x"], **attributes)], {"x": extents or [self.m, self.n]})

    def binary(self, operator: str, inputs: Sequence[str] = ("a", "b"), **more: Any) -> ModelProto:
        """One operator on two arrays `[m, n]`."""
        return model([node(operator, inputs)], {"a": [self.m, self.n], "b": [self.m, self.n]}, **more)

    def convolution(self, weights: Array | None = None, **attributes: Any) -> ModelProto:
        """A convolution of 3x3 on `[1, channels, side, side]`."""
        group = attributes.get("group", 1)
        held = weights if weights is not None else self.weights(self.channels, self.channels // group, 3, 3)
        return model([node("Conv", ["x", "w"], **attributes)],
                     {"x": [1, self.channels, self.side, self.side]}, {"w": held})  # fmt: skip

    def pooling(self, **attributes: Any) -> ModelProto:
        """A maximum over windows."""
        return model([node("MaxPool", ["x"], **attributes)], {"x": [1, self.channels, self.side, self.side]})
