"""What a model would give without rounding: its graph computed in float64, node by node, by the NumPy interpreter.

Where inputs make no sense (a file's bytes in another order), small differences grow, and two correct engines are
further apart than the tolerance. The exact values tell which of them is off.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness.onnx_engines import excess

if TYPE_CHECKING:
    import onnx

Arrays = Mapping[str, "np.ndarray[Any, Any]"]


def in_float64(path: Path) -> onnx.ModelProto:
    """The model with float64 in place of float32."""
    import onnx
    from onnx import TensorProto, numpy_helper

    model = onnx.load(path)
    graph = model.graph
    attributes = [attribute for node in graph.node for attribute in node.attribute]
    for tensor in (*graph.initializer, *(attribute.t for attribute in attributes if attribute.HasField("t"))):
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    return model


def exact_outputs(path: Path, given: Arrays) -> dict[str, np.ndarray[Any, Any]]:
    """Outputs by name, in float64, for inputs by name in the model's own types. No code is generated."""
    from tilework.frontends.compile import load_graph
    from tilework.ops.interpret import interpret

    model = in_float64(path)
    wide = {name: array.astype(np.float64) if array.dtype == np.float32 else array for name, array in given.items()}
    found = interpret(load_graph(model), wide)
    return dict(zip((value.name for value in model.graph.output), found, strict=True))


def distances(path: Path, given: Arrays, ours: Arrays, theirs: Arrays, noise: float) -> tuple[float, float]:
    """How many tolerances our outputs and another engine's are from the exact ones."""
    exact = {name: value.astype(ours[name].dtype) for name, value in exact_outputs(path, given).items()}
    return excess(ours, exact, noise), excess(theirs, exact, noise)
