"""Operators on strings: black boxes, before or after what is compiled. ONNX's reference runs most of them."""

from __future__ import annotations

from collections.abc import Sequence

from tilework import dtypes
from tilework.dims import Dim, dim
from tilework.dtypes import DType
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, Result
from tilework.frontends.onnx.operand import STRINGS, Operand, from_value
from tilework.frontends.onnx.tensors import STRING_ELEMENTS, element_type
from tilework.frontends.onnx.words import REFERENCE, box, of_strings, outside, presented
from tilework.graph.types import OpaqueType, TensorType, ValueType

_Made = tuple[DType | None, tuple[Dim, ...]]
"""What a black box makes: elements of a type (None: strings), and their shape."""


_READ = frozenset({
    "bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
})  # fmt: skip
"""Types of numbers that NumPy has."""


def _by_reference(node: OnnxNode, results: Sequence[_Made]) -> tuple[Result | None, ...]:
    """The results of the node as ONNX's reference computes them."""
    emit = node.emit
    values = [presented(emit, node.operand(place)) for place in range(len(node.operands))]
    kinds: list[ValueType] = [
        OpaqueType(STRINGS) if kind is None else TensorType(shape, kind) for kind, shape in results
    ]
    found = box(
        emit, node.operator, values, kinds, node.outputs[0] if node.outputs else "", REFERENCE,
        node=node.proto.SerializeToString().hex(), opset=node.opset,
    )  # fmt: skip
    made: list[Result | None] = []
    for place, (value, (kind, shape)) in enumerate(zip(found, results, strict=True)):
        held = outside("", value, shape) if kind is None else from_value("", value)
        made.append(held if node.wants_output(place) else None)
    return tuple(made)


def _strings(node: OnnxNode, position: int) -> Operand:
    operand = node.operand(position)
    if operand.words is None:
        raise NodeFault(1119, f"input {position} ({operand.name!r}) is {operand}, it must hold strings")
    return operand


def _concat(node: OnnxNode) -> tuple[Result | None, ...]:
    shape = node.emit.joined_shape(_strings(node, 0).shape, _strings(node, 1).shape)
    return _by_reference(node, [(None, shape)])


def _split(node: OnnxNode) -> tuple[Result | None, ...]:
    """The parts of each string along a new last dimension, as long as the most parts; and how many each has."""
    shape = _strings(node, 0).shape
    longest = node.symbols.free(f"{node.outputs[0]} (parts)", "parts")
    return _by_reference(node, [(None, (*shape, longest)), (dtypes.int64, shape)])


def _normalizer(node: OnnxNode) -> tuple[Result | None, ...]:
    """Words without those to be left out; one empty word where none is left."""
    operand = _strings(node, 0)
    if operand.rank not in (1, 2) or (operand.rank == 2 and operand.shape[0].value not in (None, 1)):
        raise NodeFault(1119, f"the input {operand} must have the shape [C] or [1, C]")
    left = node.symbols.free(f"{node.outputs[0]} (words)", "words")
    shape = (left,) if operand.rank == 1 else (dim(1), left)
    change = node.choice("case_change_action", "NONE", ("NONE", "LOWER", "UPPER"))
    texts, emit = presented(node.emit, operand), node.emit
    (found,) = box(
        emit, "StringNormalizer", [texts], [OpaqueType(STRINGS)], node.outputs[0], change=change,
        case_sensitive=node.flag("is_case_sensitive"), stops=tuple(node.texts("stopwords", ())),
    )  # fmt: skip
    return (outside("", found, shape),)


def _full_match(node: OnnxNode) -> tuple[Result | None, ...]:
    return _by_reference(node, [(dtypes.boolean, _strings(node, 0).shape)])


def _equal(node: OnnxNode) -> tuple[Result | None, ...]:
    shape = node.emit.joined_shape(_strings(node, 0).shape, _strings(node, 1).shape)
    return _by_reference(node, [(dtypes.boolean, shape)])


def _cast(node: OnnxNode) -> tuple[Result | None, ...]:
    """Numbers as words, and words as numbers: of types that NumPy does not have by way of one that it has."""
    to, operand, emit = node.integer("to"), node.operand(0), node.emit
    given = [presented(emit, operand)]
    if to == STRING_ELEMENTS:
        (found,) = box(emit, "Cast", given, [OpaqueType(STRINGS)], node.outputs[0], dtype="string")
        return (outside("", found, operand.shape),)
    kind = element_type(to)
    wide = kind if kind.name in _READ else dtypes.int64 if kind.is_integer else dtypes.float32
    (found,) = box(emit, "Cast", given, [TensorType(operand.shape, wide)], node.outputs[0], dtype=wide.name)
    return (from_value("", emit.convert(found, kind)),)


CONVERTERS: dict[str, Converter] = {
    "RegexFullMatch": _full_match, "StringConcat": _concat, "StringNormalizer": _normalizer, "StringSplit": _split,
    of_strings("Cast"): _cast, of_strings("Equal"): _equal,
}  # fmt: skip
