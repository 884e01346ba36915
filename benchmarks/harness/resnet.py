"""ResNet-50 with drawn weights (25 million), as an exporter writes it: batch norms folded into the convolutions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness.onnx_writer import Writer

if TYPE_CHECKING:
    import onnx

SIDE, CLASSES, EXPANSION = 224, 1000, 4
STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Inner channels and blocks of each stage."""


class _Writer(Writer):
    """Layers of a network of convolutions."""

    def weight(self, *shape: int) -> str:
        """So small that sums of what it multiplies keep the size of their terms."""
        return self.drawn(*shape, spread=float(1 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.1))

    def convolution(self, value: str, channels: int, filters: int, taps: int, stride: int = 1) -> str:
        """With a bias, and as much around the image as keeps its size."""
        around = taps // 2
        return self(
            "Conv", value, self.weight(filters, channels, taps, taps), self.weight(filters), kernel_shape=[taps, taps],
            strides=[stride, stride], pads=[around] * 4,
        )  # fmt: skip

    def block(self, value: str, channels: int, inner: int, stride: int) -> str:
        """Three convolutions beside the value itself, or one convolution of it."""
        filters = EXPANSION * inner
        narrow = self("Relu", self.convolution(value, channels, inner, 1))
        wide = self("Relu", self.convolution(narrow, inner, inner, 3, stride))
        last = self.convolution(wide, inner, filters, 1)
        beside = value if channels == filters else self.convolution(value, channels, filters, 1, stride)
        return self("Relu", self("Add", last, beside))


def model(seed: int = 0) -> onnx.ModelProto:
    """Return the model: `x` float32[1, 3, 224, 224] to `y` float32[1, 1000]."""
    from onnx import TensorProto, helper

    write = _Writer(seed)
    value = write("Relu", write.convolution("x", 3, 64, 7, 2))
    value = write("MaxPool", value, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for stage, (inner, blocks) in enumerate(STAGES):
        for block in range(blocks):
            value = write.block(value, channels, inner, 2 if stage and not block else 1)
            channels = EXPANSION * inner
    flat = write("Flatten", write("GlobalAveragePool", value))
    write("Gemm", flat, write.weight(CLASSES, channels), write.weight(CLASSES), output="y", transB=1)
    return write.model(
        "resnet50",
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, SIDE, SIDE]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, CLASSES]),
    )


def write_model(path: Path, seed: int = 0) -> None:
    """Write the model into a file (102 MB)."""
    path.write_bytes(model(seed).SerializeToString())


def inputs(seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Return an image for one call."""
    return {"x": np.random.default_rng(seed).standard_normal((1, 3, SIDE, SIDE), np.float32)}
