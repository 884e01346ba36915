"""Two-dimensional convolutions, dense and depthwise, on images whose channels lie next to each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from benchmarks.operations.operation import UNIT, Array, Operation, onnx_model, worst
from tilework.dims import IntLike

if TYPE_CHECKING:
    import onnx

    from tilework.graph.graph import Value
    from tilework.ops.builder import GraphBuilder


MOST_IMAGES = 16
"""Images of a batch that are compared with float64."""


@dataclass(frozen=True)
class Convolution(Operation):
    """`rows` images of `side` x `side` x `channels`, a square window, padded so that stride 1 keeps the side.

    Ours reads images as (batch, y, x, channels) and weights as (y, x, inputs, filters); peers read (batch, channels, y,
    x) and (filters, inputs, y, x), the order in which they are fastest or the only one they have. An element is right
    within `taps * inputs * 2^-24 * (|x| * |w|)`, whatever the order of its sums.
    """

    kind: ClassVar[str] = "convolution"
    side: int
    channels: int
    filters: int
    window: int
    stride: int = 1
    depthwise: bool = False

    @property
    def label(self) -> str:
        size = f"{self.side}x{self.side}x{self.channels}"
        batch = f"{self.rows} of " if self.rows != 1 else ""
        what = "depthwise " if self.depthwise else ""
        to = "" if self.filters == self.channels else f" to {self.filters}"
        step = f" by {self.stride}" if self.stride != 1 else ""
        return f"{what}{self.window}x{self.window} at {batch}{size}{to}{step}"

    @property
    def padding(self) -> int:
        return self.window // 2

    @property
    def places(self) -> int:
        """Rows and columns of the result."""
        return (self.side + 2 * self.padding - self.window) // self.stride + 1

    @property
    def depth(self) -> int:
        """Products that make one element."""
        return self.window**2 * (1 if self.depthwise else self.channels)

    @property
    def operations(self) -> int:
        return 2 * self.rows * self.places**2 * self.filters * self.depth

    @property
    def bytes(self) -> int:
        images = self.rows * (self.side**2 * self.channels + self.places**2 * self.filters)
        return 4 * (images + self.depth * self.filters)

    def inputs(self, random: np.random.Generator) -> dict[str, Array]:
        return {"x": random.standard_normal((self.rows, self.side, self.side, self.channels), np.float32)}

    def constants(self, random: np.random.Generator) -> dict[str, Array]:
        inner = 1 if self.depthwise else self.channels
        return {"w": random.standard_normal((self.window, self.window, inner, self.filters), np.float32)}

    def shapes(self, rows: IntLike) -> dict[str, tuple[IntLike, ...]]:
        return {"x": (rows, self.side, self.side, self.channels)}

    def express(self, builder: GraphBuilder, given: Mapping[str, Value]) -> Value:
        return builder.apply_one(
            "convolution",
            given["x"],
            given["w"],
            window_strides=(self.stride, self.stride),
            padding=((self.padding, self.padding),) * 2,
            feature_group_count=self.channels if self.depthwise else 1,
            input_dimensions=(0, 3, 1, 2),
            kernel_dimensions=(3, 2, 0, 1),
            output_dimensions=(0, 3, 1, 2),
        )

    def model(self, constants: Mapping[str, Array]) -> onnx.ModelProto:
        from onnx import helper

        node = helper.make_node(
            "Conv",
            ["x", "w"],
            ["y"],
            strides=[self.stride] * 2,
            pads=[self.padding] * 4,
            group=self.channels if self.depthwise else 1,
        )
        x = np.empty((self.rows, self.channels, self.side, self.side), np.float32)
        return onnx_model("convolution", [node], {"x": x}, self.peer_result(), constants)

    def to_peer(self, name: str, array: Array) -> Array:
        return np.ascontiguousarray(array.transpose(0, 3, 1, 2) if name == "x" else array.transpose(3, 2, 0, 1))

    def from_peer(self, result: Array) -> Array:
        return result.transpose(0, 2, 3, 1)

    def peer_result(self) -> tuple[int, ...]:
        return self.rows, self.filters, self.places, self.places

    def torch(self, torch: Any, given: Mapping[str, Any]) -> Callable[[], Any] | None:
        x, w = (given[name].contiguous(memory_format=torch.channels_last) for name in "xw")
        groups = self.channels if self.depthwise else 1
        return lambda: torch.conv2d(x, w, stride=self.stride, padding=self.padding, groups=groups)

    def excess(self, given: Mapping[str, Array], result: Array) -> float:
        weights = given["w"].astype(np.float64)
        return max(
            worst(
                np.abs(result[image] - self._convolved(given["x"][image].astype(np.float64), weights)),
                self.depth * UNIT * self._convolved(np.abs(given["x"][image]).astype(np.float64), np.abs(weights)),
            )
            for image in self._samples()
        )

    def _samples(self) -> list[int]:
        """The images that are checked: all of few, else the first, the last and some between."""
        if self.rows <= MOST_IMAGES:
            return list(range(self.rows))
        inner = np.random.default_rng(self.rows).integers(1, self.rows - 1, MOST_IMAGES - 2)
        return [0, *(int(image) for image in inner), self.rows - 1]

    def _convolved(self, image: Array, weights: Array) -> Array:
        """One image in float64, tap by tap."""
        pad, step, count = self.padding, self.stride, self.places
        wide = np.pad(image, ((pad, pad), (pad, pad), (0, 0)))
        total = np.zeros((count, count, self.filters))
        for y in range(self.window):
            for x in range(self.window):
                seen = wide[y : y + step * (count - 1) + 1 : step, x : x + step * (count - 1) + 1 : step]
                total += seen * weights[y, x, 0] if self.depthwise else seen @ weights[y, x]
        return total
