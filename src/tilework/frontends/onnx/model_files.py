"""What a model is, by content: a digest of its bytes, and of each file that its tensors lie in.

The names of those files stand in the model, which has to be parsed to find them; who has parsed it once keeps them
under the digest of its bytes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tilework.cache.hashing import checksum, file_checksum
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.external import DataFolder
from tilework.frontends.onnx.faults import NodeFault

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

_Facts: TypeAlias = "tuple[int, ...]"

LARGEST = 2**31 - 1
"""Bytes of a model that are looked at: no ONNX file has more."""


@dataclass(frozen=True)
class SeenFile:
    """A file whose content was hashed, and what the system said of it before."""

    path: Path
    digest: str
    facts: _Facts

    def unchanged(self) -> bool:
        """Whether the system says the same of it now."""
        try:
            return _facts(self.path.stat()) == self.facts
        except OSError:
            return False


@dataclass(frozen=True)
class ModelContent:
    """The digest of a model's bytes, and the file they are in (None: bytes or an object)."""

    digest: str
    file: SeenFile | None

    def data_files(self, locations: tuple[str, ...]) -> dict[str, SeenFile] | None:
        """The files of the model's folder at these locations, hashed; None where one is missing or outside of it."""
        if not locations:
            return {}
        if self.file is None:
            return None
        folder = DataFolder.of(self.file.path)
        try:
            return {location: seen(folder.find(location)) for location in locations}
        except (OSError, ValueError, NodeFault):
            return None


def content_of(source: object) -> ModelContent | None:
    """What a model given as a path, bytes or a `ModelProto` is; None for what cannot be read, which nobody keeps.

    An object is known by its serialised form, which takes a copy of its bytes, a small part of what importing it takes.
    """
    try:
        if isinstance(source, bytes):
            return ModelContent(checksum(source).hex(), None)
        if isinstance(source, (str, os.PathLike)):
            file = seen(Path(source), LARGEST)  # pyright: ignore[reportUnknownArgumentType]
            return ModelContent(file.digest, file)
        proto: Any = source
        return ModelContent(checksum(proto.SerializeToString(deterministic=True)).hex(), None)
    except Exception:  # noqa: BLE001 - protobuf has several; whoever compiles the model says what is wrong with it
        return None


def seen(path: Path, most: int | None = None) -> SeenFile:
    """A file with its digest. Raises `OSError` or `ValueError` for what is no file, cannot be read, or is too long."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or (most is not None and found.st_size > most):
            raise OSError(f"{path} is no file that is read")
        return SeenFile(path, file_checksum(descriptor, found.st_size).hex(), _facts(found))
    finally:
        os.close(descriptor)


def _facts(found: os.stat_result) -> _Facts:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def locations_of(model: ModelProto) -> tuple[str, ...]:
    """The locations of every file that a tensor of the model lies in, wherever in the model the tensor is."""
    found: set[str] = set()
    for tensor in _tensors(model.graph):
        found.update(_location(tensor))
    for function in model.functions:
        for tensor in _of_nodes(function.node):
            found.update(_location(tensor))
    return tuple(sorted(found))


def _location(tensor: TensorProto) -> Iterator[str]:
    if tensor.data_location == tensor.EXTERNAL:
        yield from (entry.value for entry in tensor.external_data if entry.key == "location")


def _tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _of_nodes(graph.node)


def _of_nodes(nodes: Any) -> Iterator[TensorProto]:
    node: NodeProto
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            sparse = [
                *attribute.sparse_tensors,
                *([attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []),
            ]
            for one in sparse:
                yield from (one.values, one.indices)
            graphs = [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]
            for inner in graphs:
                yield from _tensors(inner)
