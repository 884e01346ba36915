"""The file type detector of the package `magika`, its network run by Tilework.

The package's own code reads a file and makes the network's input of it, and makes a type of the network's output; only
the object that runs the network is another one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.harness import models
from tilework.runtime.executable import Executable

Array = np.ndarray[Any, np.dtype[Any]]
MODEL = "magika__model"


class Runner(Protocol):
    """What runs a network: as much of ONNX Runtime's session as the detector uses."""

    def run(self, output_names: Sequence[str] | None, feeds: Mapping[str, Any]) -> Sequence[Any]:
        """Return the outputs for inputs by name."""
        ...


class TileworkRunner:
    """A Tilework executable behind the face of a session. Inputs may be nested lists, as the detector gives them."""

    def __init__(self, executable: Executable) -> None:
        self.executable = executable
        self._types = [port.tensor.dtype.numpy for port in executable.inputs]
        self._inputs = [port.name for port in executable.inputs]
        self._outputs = [port.name for port in executable.outputs]

    def run(self, output_names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        """Return the named outputs (all for None)."""
        arrays = (np.asarray(feeds[name], dtype) for name, dtype in zip(self._inputs, self._types, strict=True))
        results = dict(zip(self._outputs, self.executable(*arrays), strict=True))
        return [results[name] for name in output_names or self._outputs]


class Recorder:
    """Runs a network through another runner and keeps its inputs."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.feeds: list[Mapping[str, Array]] = []

    def run(self, output_names: Sequence[str] | None, feeds: Mapping[str, Any]) -> Sequence[Any]:
        """Return what the other runner returns."""
        self.feeds.append({name: np.asarray(value, np.int32) for name, value in feeds.items()})
        return self.runner.run(output_names, feeds)


@dataclass(frozen=True)
class Verdict:
    """What a file is: the short name of its type, in words, and how sure the network is (0 to 1)."""

    label: str
    description: str
    score: float
    by_network: bool
    """Whether the network was asked: an empty or very short file needs none."""


class Detector:
    """The package's detector with its network run by `runner`."""

    def __init__(self, package: Path, runner: Runner) -> None:
        """`package` is the folder of the package, as `harness.models.package` fetches it.

        Raises `ImportError` where onnxruntime, which the package imports, is not installed.
        """
        parent = str(package.parent)
        if parent not in sys.path:
            sys.path.insert(0, parent)
        kind: Any = import_module("magika").Magika

        def own_runner(_: Any) -> Runner:
            return runner

        self._detector: Any = type("Magika", (kind,), {"_init_onnx_session": own_runner})()

    def identify(self, path: Path) -> Verdict:
        """Say what a file is; one that cannot be read is `unreadable`."""
        result: Any = self._detector.identify_path(path)
        if not result.ok:
            return Verdict("unreadable", str(result.status), 0.0, by_network=False)
        found = result.prediction
        asked = str(found.dl.label) != "undefined"
        return Verdict(str(found.output.label), str(found.output.description), float(found.score), by_network=asked)


def package_folder() -> Path:
    """Return the folder of the package `magika`, fetched if need be (not installed)."""
    return models.package(MODEL, "magika")


def model_file(package: Path) -> Path:
    """Return the network inside the package."""
    return package.parent / models.known()[MODEL]["path"]
