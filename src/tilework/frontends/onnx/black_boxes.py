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
    table = {word: place for place, word in enumerate(words)}
    texts = _texts(node, 0, operands[0])
    found = np.fromiter((table.get(entry, len(words)) for entry in texts), np.int64, texts.size)
    return (found.reshape(np.shape(_as_array(operands[0]))),)


def _text(entry: object) -> str:
    return entry if isinstance(entry, str) else entry.decode() if isinstance(entry, bytes) else ""


def _strings_at_places(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    """The strings at places among all elements of the other operands, one after the other, then `words`."""
    words = np.array([*_words(node, "words"), ""], object)[:-1]
    texts = np.concatenate([*(_texts(node, place, given) for place, given in enumerate(operands[1:], 1)), words])
    return (texts[operands[0]],)


def _places_of_elements(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    """The number of each element, of a tensor of strings that has the extents asked for (-1: any)."""
    shape, name = np.shape(_as_array(operands[0])), node.inputs[0]
    wanted = node.attributes["extents"]
    assert isinstance(wanted, tuple)
    if len(shape) != len(wanted) or any(one not in (-1, own) for one, own in zip(wanted, shape, strict=True)):
        asked = ", ".join("any" if one == -1 else str(one) for one in wanted)
        raise CallError(1705, f"{name} has the shape {shape}, it must have [{asked}]", where=name)
    return (np.arange(np.prod(shape, dtype=np.int64)).reshape(shape),)


def _ranked_strings(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    """The place of each string among the distinct ones in ascending order, and those."""
    distinct, ranks = np.unique(_texts(node, 0, operands[0]), return_inverse=True)
    return ranks.astype(np.int64).reshape(np.shape(_as_array(operands[0]))), distinct


def _texts(node: Node, place: int, given: Any) -> Any:
    """The strings of an operand, one after the other."""
    array = _as_array(given)
    if array.dtype.kind not in "OUST":
        name = node.inputs[place]
        raise CallError(1702, f"{name} has elements of {array.dtype}, it takes strings", where=name)
    flat = np.empty(array.size, object)
    flat[:] = [_text(entry) for entry in array.reshape(-1).tolist()]
    return flat


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


def _cast(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    """Numbers as words, or words as numbers of the type `dtype`."""
    kind = str(node.attributes["dtype"])
    given = _as_array(operands[0])
    if kind == "string":
        found = np.empty(given.shape, object)
        found.reshape(-1)[:] = [_in_words(number) for number in given.reshape(-1)]
        return (found,)
    read: Callable[[str], Any] = float if kind.startswith("float") else _truth if kind == "bool" else _whole
    numbers = [read(text.strip()) for text in _texts(node, 0, operands[0])]
    return (np.array(numbers, kind).reshape(given.shape),)


def _in_words(number: Any) -> str:
    """A number in plain notation: as few digits as tell it from its neighbours, no point behind a whole one.

    The specification asks for plain notation; what is no finite number is spelled as it is read.
    """
    kind = number.dtype
    if kind.kind == "b" or np.issubdtype(kind, np.integer):
        return str(int(number))
    if kind not in (np.float16, np.float32, np.float64):
        number = np.float32(number)
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "INF" if number > 0 else "-INF"
    return np.format_float_positional(number, trim="-")


def _whole(text: str) -> int:
    """What stands before the point."""
    try:
        return int(text)
    except ValueError:
        return int(float(text))


def _truth(text: str) -> bool:
    return text.lower() == "true" if text.lower() in ("true", "false") else float(text) != 0


def _string_normalizer(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    """Words without those to be left out, in small or capital letters; one empty word where none is left."""
    change = {"LOWER": _small, "UPPER": _capital}.get(str(node.attributes["change"]), str)
    alike: Callable[[str], str] = str if node.attributes["case_sensitive"] else _small
    stops = {alike(word) for word in _words(node, "stops")}
    rank = _as_array(operands[0]).ndim
    texts = _texts(node, 0, operands[0]).tolist()
    left = [change(text) for text in texts if alike(text) not in stops] or ([""] if texts else [])
    return (np.array([*left, ""], object)[:-1].reshape((-1,) if rank == 1 else (1, -1)),)


def _small(text: str) -> str:
    """Letter by letter: none becomes two (the one capital of which Python makes two is a dotted I)."""
    return "".join(letter.lower()[0] for letter in text)


def _capital(text: str) -> str:
    return "".join(letter.upper() if len(letter.upper()) == 1 else letter for letter in text)


def _words(node: Node, name: str) -> tuple[str, ...]:
    found = node.attributes[name]
    assert isinstance(found, tuple)
    return tuple(map(str, found))


def _fresh_key(node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    del node, operands
    return (np.array([secrets.randbits(64)], np.uint64),)


FUNCTIONS: Mapping[str, Function] = {
    "Cast": _cast, "CastMap": _cast_map, "DictVectorizer": _dict_vectorizer, "Equal": _by_reference,
    "FreshKey": _fresh_key,
    "Identity": _identity, "PlaceOfStrings": _place_of_strings, "PlacesOfElements": _places_of_elements,
    "RankedStrings": _ranked_strings, "RegexFullMatch": _by_reference,
    "StringConcat": _by_reference, "StringNormalizer": _string_normalizer, "StringSplit": _by_reference,
    "StringsAtPlaces": _strings_at_places, "ZipMap": _zip_map,
}  # fmt: skip
