"""From a path, bytes or a `ModelProto` to a parsed model, with a coded error for everything that is none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tilework.errors import FrontendError, MissingPackageError
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.external import DataFolder

if TYPE_CHECKING:
    from onnx import ModelProto

Source: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | ModelProto | LoadedModel"
"""What a model can be given as."""

LARGEST_MESSAGE = 2**31 - 1
"""Bytes that one protobuf message may have."""

DEEPEST = 30
"""Subgraphs inside subgraphs that are followed; protobuf itself stops at about 32."""


@dataclass(frozen=True)
class LoadedModel:
    """A parsed model, the folder its data files may lie in (None: given without a path), and how messages call it.

    `overridden`: initialisers that are listed among the inputs and taken as such.
    """

    proto: ModelProto
    folder: DataFolder | None
    called: str
    overridden: frozenset[str] = frozenset()


def load(source: Source) -> LoadedModel:
    """Parse a model.

    Args:
        source: a path of an ONNX file, its bytes, a parsed `ModelProto` (which is not changed), or what this returned.

    Raises:
        MissingPackageError: 1007, without the package onnx.
        FrontendError: 1101 (file not readable), 1102 (no ONNX model), 1104 (nested too deep).
    """
    if isinstance(source, LoadedModel):
        return source
    try:
        from onnx import ModelProto
    except ImportError:
        raise MissingPackageError(
            1007, "reading ONNX models needs the package onnx", hint="install it: pip install 'tilework[onnx]'"
        ) from None
    if isinstance(source, ModelProto):
        return LoadedModel(source, None, "the model given")
    if isinstance(source, (bytes, bytearray, memoryview)):
        return LoadedModel(_parse(bytes(source), "the bytes given"), None, "the bytes given")
    if source == "":
        raise FrontendError(1101, "the path of the model is empty", hint="pass the path of an ONNX file")
    path = Path(source)
    try:
        size = path.stat().st_size
        if size > LARGEST_MESSAGE:
            raise _too_long(str(path), size)
        with path.open("rb") as file:
            content = file.read(LARGEST_MESSAGE + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FrontendError(1101, f"cannot read {str(path)!r}: {reason}") from None
    return LoadedModel(_parse(content, str(path)), DataFolder.of(path), str(path))


def _parse(content: bytes, called: str) -> ModelProto:
    from google.protobuf.message import DecodeError
    from onnx import ModelProto

    if not content:
        raise FrontendError(1102, f"{called}: there are no bytes in it")
    if len(content) > LARGEST_MESSAGE:
        raise _too_long(called, len(content))
    try:
        return ModelProto.FromString(content)
    except (DecodeError, RecursionError, ValueError):
        depth, broken_at = scan(content)
        if depth > DEEPEST:
            raise FrontendError(1104, f"{called}: subgraphs lie {depth} deep, {DEEPEST} is the limit") from None
        cut = "" if broken_at is None else f"; the first field that makes no sense begins at byte {broken_at}"
        raise FrontendError(1102, f"{called}: {len(content)} bytes that are no ONNX model{cut}") from None


def _too_long(called: str, size: int) -> FrontendError:
    text = f"{called}: {size} bytes are more than an ONNX file can hold (2 GiB)"
    return FrontendError(1102, text, hint="store the tensors as external data")


# -- reading the bytes by hand, to say what is wrong with them ---------------------------------------------------------
_MODEL = {7: "graph"}
_CHILDREN: dict[str, dict[int, str]] = {
    "model": _MODEL,
    "graph": {1: "node"},
    "node": {5: "attribute"},
    "attribute": {6: "graph", 11: "graph"},
}


def scan(content: bytes) -> tuple[int, int | None]:
    """How deep graphs lie in each other, and the position of the first top-level field that cannot be read."""
    deepest = 0
    broken_at: int | None = None
    left: list[tuple[int, int, str, int]] = [(0, len(content), "model", 0)]
    while left:
        position, end, kind, depth = left.pop()
        while position < end:
            start = position
            field = _field(content, position, end)
            if field is None:
                if kind == "model":
                    broken_at = start
                break
            number, body, position = field
            child = _CHILDREN[kind].get(number)
            if child is not None and body is not None:
                inner = depth + (child == "graph")
                deepest = max(deepest, inner)
                left.append((body[0], body[1], child, inner))
    return deepest, broken_at


def _field(content: bytes, position: int, end: int) -> tuple[int, tuple[int, int] | None, int] | None:
    """Number, byte range (of a length-delimited field) and end of the field at a position; None where there is none."""
    key = _varint(content, position, end)
    if key is None or key[0] >> 3 == 0:
        return None
    tag, position = key
    match tag & 7:
        case 0:
            found = _varint(content, position, end)
            return None if found is None else (tag >> 3, None, found[1])
        case 1 | 5 as wire:
            position += 8 if wire == 1 else 4
            return (tag >> 3, None, position) if position <= end else None
        case 2:
            size = _varint(content, position, end)
            if size is None or size[1] + size[0] > end:
                return None
            return tag >> 3, (size[1], size[1] + size[0]), size[1] + size[0]
        case _:
            return None


def _varint(content: bytes, position: int, end: int) -> tuple[int, int] | None:
    value = 0
    for shift in range(0, 70, 7):
        if position >= end:
            return None
        byte = content[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    return None
