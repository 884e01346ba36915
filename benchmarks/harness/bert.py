"""An encoder of BERT-base's size with drawn weights (110 million), as an exporter writes one: fixed to 128 tokens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

TOKENS, WIDTH, HEADS, LAYERS, INNER, WORDS = 128, 768, 12, 12, 3072, 30522
_OUTPUT = "last_hidden_state"


class _Writer:
    """Nodes and weights, as they come."""

    def __init__(self, seed: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.held: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(seed)
        self._count = 0

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        """A weight."""
        from onnx import numpy_helper

        self._count += 1
        self.held.append(numpy_helper.from_array(array, f"constant{self._count}"))
        return f"constant{self._count}"

    def drawn(self, *shape: int, around: float = 0.0) -> str:
        """A weight that is drawn."""
        return self.constant((around + self._random.standard_normal(shape, np.float32) / 36).astype(np.float32))

    def __call__(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """A node with one result."""
        from onnx import helper

        self._count += 1
        name = output or f"{operator.lower()}{self._count}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def linear(self, value: str, rows: int, columns: int) -> str:
        """value @ weights + bias."""
        return self("Add", self("MatMul", value, self.drawn(rows, columns)), self.drawn(columns))

    def normal(self, value: str, output: str = "") -> str:
        """Over the features of each token."""
        scale, bias = self.drawn(WIDTH, around=1.0), self.drawn(WIDTH)
        return self("LayerNormalization", value, scale, bias, output=output, axis=-1, epsilon=1e-12)


def model(seed: int = 0) -> onnx.ModelProto:
    """Return the model: `input_ids` int64[1, 128] to `last_hidden_state` float32[1, 128, 768]."""
    from onnx import TensorProto, helper

    write = _Writer(seed)
    positions = write.drawn(1, TOKENS, WIDTH)
    value = write("Add", write("Gather", write.drawn(WORDS, WIDTH), "input_ids"), positions)
    value = write.normal(value)
    split = write.constant(np.array([0, TOKENS, HEADS, WIDTH // HEADS]))
    joined = write.constant(np.array([0, TOKENS, WIDTH]))
    scale = write.constant(np.array((WIDTH // HEADS) ** -0.5, np.float32))
    root = write.constant(np.array(2**-0.5, np.float32))
    one, half = (write.constant(np.array(number, np.float32)) for number in (1.0, 0.5))
    for layer in range(LAYERS):
        query, key, held = (
            write("Transpose", write("Reshape", write.linear(value, WIDTH, WIDTH), split), perm=perm)
            for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        shares = write("Softmax", write("Mul", write("MatMul", query, key), scale), axis=-1)
        mixed = write("Reshape", write("Transpose", write("MatMul", shares, held), perm=[0, 2, 1, 3]), joined)
        value = write.normal(write("Add", write.linear(mixed, WIDTH, WIDTH), value))
        inner = write.linear(value, WIDTH, INNER)
        bent = write("Mul", inner, write("Add", write("Erf", write("Mul", inner, root)), one))
        outer = write.linear(write("Mul", bent, half), INNER, WIDTH)
        last = _OUTPUT if layer == LAYERS - 1 else ""
        value = write.normal(write("Add", outer, value), output=last)
    graph = helper.make_graph(
        write.nodes,
        "bert-base",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, TOKENS])],
        [helper.make_tensor_value_info(_OUTPUT, TensorProto.FLOAT, [1, TOKENS, WIDTH])],
        write.held,
    )
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    found.ir_version = 9
    return found


def write_model(path: Path, seed: int = 0) -> None:
    """Write the model into a file (436 MB)."""
    path.write_bytes(model(seed).SerializeToString())


def inputs(seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Return words for one call."""
    return {"input_ids": np.random.default_rng(seed).integers(0, WORDS, (1, TOKENS))}
