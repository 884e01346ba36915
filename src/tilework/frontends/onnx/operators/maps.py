"""Operators on maps (ai.onnx.ml): black boxes at the ends of a model."""

from __future__ import annotations

from tilework import dtypes
from tilework.dims import dim
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, Result
from tilework.frontends.onnx.operand import STRINGS, from_value
from tilework.frontends.onnx.words import boxed, outside
from tilework.graph.types import OpaqueType, TensorType, ValueType

LONGEST = 2**28
"""Elements beyond which the length of a row is taken for damage."""

_VALUES = {"float": dtypes.float32, "double": dtypes.float64, "int64": dtypes.int64}


def _zip_map(node: OnnxNode) -> Result:
    """A map from labels to scores for each row."""
    words, numbers = node.texts("classlabels_strings", ()), node.integers("classlabels_int64s", ())
    if bool(words) == bool(numbers):
        raise NodeFault(1108, "one of classlabels_strings and classlabels_int64s must be given, and hold labels")
    value = node.value(0)
    if value.tensor.rank not in (1, 2):
        raise NodeFault(1119, f"the input {value.type} must have one or two dimensions")
    columns = value.tensor.shape[-1]
    keys = words or numbers
    if columns.is_constant and columns != len(keys):
        raise NodeFault(1119, f"the input {value.type} has {columns} columns, there are {len(keys)} labels")
    kind = OpaqueType(f"seq(map({'string' if words else 'int64'},tensor(float)))")
    (found,) = boxed(node.emit, "ZipMap", [from_value("", value)], [kind], keys=keys)
    return outside("", found, ())


def _of_map(node: OnnxNode) -> tuple[str, str]:
    """The types of keys and values of the map that is the first input."""
    operand = node.operand(0)
    if not operand.opaque.startswith("map("):
        raise NodeFault(1119, f"input 0 ({operand.name!r}) is {operand}, it must be a map")
    key, value = operand.opaque.removeprefix("map(").removesuffix(")").split(",", 1)
    return key, value.removeprefix("tensor(").removesuffix(")")


def _result(node: OnnxNode, operator: str, length: int, kind: str, **attributes: object) -> Result:
    """The row that a black box makes of a map: `length` elements, -1 for as many as there are."""
    extent = dim(length) if length >= 0 else node.symbols.free(f"{node.outputs[0]} (length)", "length")
    shape = (dim(1), extent)
    typed: ValueType = OpaqueType(STRINGS) if kind == "string" else TensorType(shape, _VALUES[kind])
    name = "string" if kind == "string" else _VALUES[kind].name
    (found,) = boxed(node.emit, operator, [node.operand(0)], [typed], dtype=name, length=length, **attributes)
    return outside("", found, shape) if kind == "string" else found


def _dict_vectorizer(node: OnnxNode) -> Result:
    """A row [1, vocabulary], as ONNX Runtime has it; the specification says that it has one dimension."""
    key, value = _of_map(node)
    keys = node.texts("string_vocabulary", ()) if key == "string" else node.integers("int64_vocabulary", ())
    if not keys:
        raise NodeFault(1108, f"the vocabulary for keys of {key} must be given, and hold something")
    return _result(node, "DictVectorizer", len(keys), value, keys=keys)


def _cast_map(node: OnnxNode) -> Result:
    key, _ = _of_map(node)
    if key != "int64":
        raise NodeFault(1119, f"a map with keys of {key} has no order")
    form = node.choice("map_form", "DENSE", ("DENSE", "SPARSE"))
    kind = {"TO_FLOAT": "float", "TO_STRING": "string", "TO_INT64": "int64"}[
        node.choice("cast_to", "TO_FLOAT", ("TO_FLOAT", "TO_STRING", "TO_INT64"))
    ]
    length = node.integer("max_map", 1) if form == "SPARSE" else -1
    if form == "SPARSE" and not 0 < length <= LONGEST:
        raise NodeFault(1108, f"max_map is {length}")
    return _result(node, "CastMap", length, kind)


CONVERTERS: dict[str, Converter] = {
    "ai.onnx.ml::CastMap": _cast_map, "ai.onnx.ml::DictVectorizer": _dict_vectorizer,
    "ai.onnx.ml::ZipMap": _zip_map,
}  # fmt: skip
