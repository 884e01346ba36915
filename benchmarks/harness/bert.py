"""An encoder of BERT-base's size with drawn weights (110 million), as an exporter writes one: fixed to 128 tokens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness.onnx_writer import Writer

if TYPE_CHECKING:
    import onnx

TOKENS, WIDTH, HEADS, LAYERS, INNER, WORDS = 128, 768, 12, 12, 3072, 30522
_OUTPUT = "last_hidden_state"


class _Writer(Writer):
    """Layers of an encoder."""

    def weight(self, *shape: int) -> str:
        """Small enough that layers keep the size of what they are given."""
        return self.drawn(*shape, spread=1 / 36)

    def linear(self, value: str, rows: int, columns: int) -> str:
        """value @ weights + bias."""
        return self("Add", self("MatMul", value, self.weight(rows, columns)), self.weight(columns))

    def normal(self, value: str, output: str = "") -> str:
        """Over the features of each token."""
        scale, bias = self.drawn(WIDTH, around=1.0, spread=1 / 36), self.weight(WIDTH)
        return self("LayerNormalization", value, scale, bias, output=output, axis=-1, epsilon=1e-12)


def model(seed: int = 0) -> onnx.ModelProto:
    """Return the model: `input_ids` int64[1, 128] to `last_hidden_state` float32[1, 128, 768]."""
    from onnx import TensorProto, helper

    write = _Writer(seed)
    positions = write.weight(1, TOKENS, WIDTH)
    value = write("Add", write("Gather", write.weight(WORDS, WIDTH), "input_ids"), positions)
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
    return write.model(
        "bert-base",
        helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, TOKENS]),
        helper.make_tensor_value_info(_OUTPUT, TensorProto.FLOAT, [1, TOKENS, WIDTH]),
    )


def write_model(path: Path, seed: int = 0) -> None:
    """Write the model into a file (436 MB)."""
    path.write_bytes(model(seed).SerializeToString())


def inputs(seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Return words for one call."""
    return {"input_ids": np.random.default_rng(seed).integers(0, WORDS, (1, TOKENS))}
