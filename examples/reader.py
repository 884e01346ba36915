"""The text reader of the package `rapidocr_onnxruntime`, its networks run by other engines than ONNX Runtime.

The package's own code prepares pictures and makes boxes and text of what the networks return; only the objects that run
the three networks are others: one finds lines, one tells which are upside down, one reads a line.
"""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness import models
from benchmarks.harness.result import MissingPeerError
from tilework.runtime.executable import Executable
from tilework.runtime.per_shape import PerShape

if TYPE_CHECKING:
    from PIL import Image

Array = np.ndarray[Any, np.dtype[Any]]
Network = Callable[[Array], Sequence[Any]]
"""What runs a network: its one input to its outputs."""

PACKAGE = "rapidocr_onnxruntime"
NETWORKS: Mapping[str, tuple[str, str, str]] = {
    "detection": ("text_det", "infer", "ch_PP-OCRv4_det_infer"),
    "direction": ("text_cls", "infer", "ch_ppocr_mobile_v2.0_cls_infer"),
    "recognition": ("text_rec", "session", "ch_PP-OCRv4_rec_infer"),
}
"""Of each network: the part of the reader that runs it, the part's attribute, the name of the file."""


@dataclass(frozen=True)
class Line:
    """A line that was read: its four corners, clockwise from the upper left, its text, and how sure the reader is."""

    box: tuple[tuple[float, float], ...]
    text: str
    score: float


class Stopwatch:
    """Runs a network through another object, and keeps the seconds that it took, shapes given and the last array."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.seconds: list[float] = []
        self.shapes: list[tuple[int, ...]] = []
        self.last: Array | None = None

    def __call__(self, given: Array) -> Sequence[Any]:
        """Return what the network returns."""
        start = time.perf_counter()
        found = self._network(given)
        self.seconds.append(time.perf_counter() - start)
        self.shapes.append(given.shape)
        self.last = given
        return found

    def lap(self) -> float:
        """Return the seconds since the last time that this was asked, and start anew."""
        total = sum(self.seconds)
        self.seconds.clear()
        return total


class Reader:
    """The package's reader with its networks run by `networks`, by the names of `NETWORKS`."""

    def __init__(self, package: Path, networks: Mapping[str, Network]) -> None:
        """`package` is the folder of the package, as `package_folder` gives it.

        Raises `MissingPeerError` where something that the package imports cannot be.
        """
        self._reader: Any = _package(package).RapidOCR()
        for name, (part, attribute, _) in NETWORKS.items():
            other = copy.copy(getattr(self._reader, part))
            setattr(other, attribute, networks[name])
            setattr(self._reader, part, other)

    def read(self, page: Image.Image) -> list[Line]:
        """Return the lines on a page from top to bottom."""
        found: Any = self._reader(page)[0] or []
        return [
            Line(tuple((float(x), float(y)) for x, y in box), str(text), float(score)) for box, text, score in found
        ]


def package_folder() -> Path:
    """Return the folder of the package, fetched if need be (not installed)."""
    return models.package(f"{PACKAGE}__{NETWORKS['detection'][2]}", PACKAGE)


def model_file(package: Path, network: str) -> Path:
    """Return the file of a network inside the package."""
    return package / "models" / f"{NETWORKS[network][2]}.onnx"


def tilework_network(executable: Executable | PerShape) -> Network:
    """Return a network that an executable runs."""
    return executable.__call__


def onnxruntime_network(session: Any) -> Network:
    """Return a network that a session of ONNX Runtime runs."""
    (name,) = (given.name for given in session.get_inputs())
    return lambda given: session.run(None, {name: given})


def _package(folder: Path) -> Any:
    parent = str(folder.parent)
    if parent not in sys.path:
        sys.path.insert(0, parent)
    try:
        return import_module(PACKAGE)
    except ImportError as missing:
        name = missing.name or str(missing)
        raise MissingPeerError(name, f"{PACKAGE} needs it: run `make demo` ({missing})") from missing
