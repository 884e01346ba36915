"""What black boxes of ONNX models do, in Python: everything on strings and maps that stands around a graph."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, cast

import numpy as np

from tilework.errors import CallError
from tilework.graph.graph import Node

Function: TypeAlias = Callable[[Node, Sequence[Any]], Sequence[Any]]


def _place_of_strings(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    """Each string's position among `words` (the last of equal ones), their number for any other."""
    words = _words(node, "words")
    given = np.asarray(operands[0], None if isinstance(operands[0], np.ndarray) else object)
    if given.dtype.kind not in "OUST":
        raise CallError(1702, f"{node.inputs[0]} has elements of {given.dtype}, it takes strings", where=node.inputs[0])
    table = {word: place for place, word in enumerate(words)}
    flat = (_text(entry) for entry in given.reshape(-1).tolist())
    found = np.fromiter((table.get(entry, len(words)) for entry in flat), np.int64, given.size)
    return (found.reshape(given.shape),)


def _text(entry: object) -> str:
    return entry if isinstance(entry, str) else entry.decode() if isinstance(entry, bytes) else ""


def _strings_at_places(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    words = np.array([*_words(node, "words"), ""], object)[:-1]
    return (words[operands[0]],)


def _zip_map(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    """A dictionary for each row of scores."""
    keys = node.attributes["keys"]
    assert isinstance(keys, tuple)
    rows = np.atleast_2d(operands[0])
    if rows.shape[1] != len(keys):
        raise ValueError(f"rows have {rows.shape[1]} columns, there are {len(keys)} keys")
    return ([dict(zip(keys, row, strict=True)) for row in rows.tolist()],)


def _dict_vectorizer(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    """One row: the value of each key of the vocabulary, zero (or an empty string) for those that are not there."""
    given = _map(node, operands[0])
    keys = node.attributes["keys"]
    assert isinstance(keys, tuple)
    text = str(node.attributes["dtype"]) == "string"
    row = [given.get(key, "" if text else 0) for key in keys]
    return (np.array([row], object if text else str(node.attributes["dtype"])),)


def _cast_map(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    """One row of a map's values in the order of its keys, or each at the position that its key says."""
    given = _map(node, operands[0])
    kind, length = str(node.attributes["dtype"]), node.attributes["length"]
    read: Callable[[Any], Any] = _written if kind == "string" else float if kind == "float32" else int
    values = {int(key): read(value) for key, value in given.items()}
    if length == -1:
        row = [values[key] for key in sorted(values)]
    else:
        assert isinstance(length, int)
        if values and not 0 <= min(values) <= max(values) < length:
            raise ValueError(f"keys must be from 0 to {length - 1}, there are {min(values)} to {max(values)}")
        row = [values.get(key, "" if kind == "string" else 0) for key in range(length)]
    return (np.array([row], object if kind == "string" else kind).reshape(1, -1),)


def _written(value: object) -> str:
    """A number with six digits after the point, as ONNX Runtime writes it."""
    return value if isinstance(value, str) else f"{value:.6f}"


def _map(node: Node, given: object) -> Mapping[Any, Any]:
    """A map; a list of one counts as its element."""
    found = given
    if isinstance(found, list) and len(cast("list[object]", found)) == 1:
        (found,) = cast("list[object]", found)
    if not isinstance(found, Mapping):
        text = f"{node.inputs[0]} is a {type(cast('object', found)).__name__}, it takes a dictionary"
        raise CallError(1702, text, where=node.inputs[0])
    return cast("Mapping[Any, Any]", found)


def _identity(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    del node
    return tuple(operands)


@lru_cache(maxsize=64)  # evaluators do not change; making one takes longer than a small node
def _evaluator(node: str, opset: int) -> Any:
    """ONNX's reference for a node of ai.onnx, given as the hexadecimal digits of its message."""
    from onnx import NodeProto, helper
    from onnx.reference import ReferenceEvaluator

    proto = NodeProto.FromString(bytes.fromhex(node))
    inputs = [helper.make_empty_tensor_value_info(name) for name in dict.fromkeys(proto.input) if name]
    outputs = [helper.make_empty_tensor_value_info(name) for name in proto.output if name]
    graph = helper.make_graph([proto], "node", inputs, outputs)
    return ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]))


def _by_reference(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    """What ONNX's reference makes of strings; an output that nobody wants is None."""
    evaluator = _evaluator(str(node.attributes["node"]), int(str(node.attributes["opset"])))
    names = list(evaluator.proto_.graph.node[0].input)
    outputs = list(evaluator.proto_.graph.node[0].output)
    found = evaluator.run(None, {name: _as_array(value) for name, value in zip(names, operands, strict=True)})
    results = dict(zip([name for name in outputs if name], found, strict=True))
    listed = [results.get(name) for name in outputs]
    listed += [None] * (len(node.outputs) - len(listed))
    return [value.astype(object) if value is not None and value.dtype.kind in "UT" else value for value in listed]


def _as_array(value: Any) -> Any:
    return cast("Any", value) if isinstance(value, np.ndarray) else np.array(value, object)


def _words(node: Node, name: str) -> tuple[str, ...]:
    found = node.attributes[name]
    assert isinstance(found, tuple)
    return tuple(map(str, found))


def _fresh_key(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    del node, operands
    return (np.array([secrets.randbits(64)], np.uint64),)


FUNCTIONS: Mapping[str, Function] = {
    "Cast": _by_reference, "CastMap": _cast_map, "DictVectorizer": _dict_vectorizer, "Equal": _by_reference,
    "FreshKey": _fresh_key,
    "Identity": _identity, "PlaceOfStrings": _place_of_strings, "RegexFullMatch": _by_reference,
    "StringConcat": _by_reference, "StringNormalizer": _by_reference, "StringSplit": _by_reference,
    "StringsAtPlaces": _strings_at_places, "ZipMap": _zip_map,
}  # fmt: skip
