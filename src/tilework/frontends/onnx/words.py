"""Strings while a model is imported: positions in a list of words wherever the words are known.

Strings from outside stay outside: a black box before the graph turns them into positions in the list that a consumer
looks them up in, and one after the graph turns positions into the strings that a model returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tilework import dtypes
from tilework.dims import Dim, dim
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.operand import STRINGS, Operand
from tilework.frontends.onnx.tensors import STRING_ELEMENTS
from tilework.graph.graph import Value
from tilework.graph.types import OpaqueType, TensorType, ValueType

if TYPE_CHECKING:
    from onnx import TensorProto

PROVIDER = "tilework.frontends.onnx"
REFERENCE = "onnx.reference"
"""Who runs the black boxes."""

MAY_FAIL = frozenset({"Cast", "CastMap", "DictVectorizer", "ZipMap"})
"""Black boxes that do not take everything of their operands' types."""


def of_strings(operator: str) -> str:
    """The key, in the table of converters, of what an operator does with strings that also has a form for numbers."""
    return f"{operator} of strings"


def takes_strings(node: OnnxNode) -> bool:
    """Whether strings go into a node, or come out of one that makes them of numbers."""
    into = any(operand is not None and operand.words is not None for operand in node.operands)
    return into or (node.operator == "Cast" and node.given("to") and node.integer("to") == STRING_ELEMENTS)


def spoken(places: Value, words: Sequence[str]) -> Operand:
    """Strings by their positions in a list."""
    return Operand("", dtypes.int64, places.tensor.shape, value=places, words=tuple(words))


def outside(name: str, value: Value, shape: tuple[Dim, ...]) -> Operand:
    """Strings or maps that come from outside."""
    assert isinstance(value.type, OpaqueType)
    return Operand(name, dtypes.int64, shape, value=value, words=() if value.type.kind == STRINGS else None)


def stored_strings(tensor: TensorProto) -> Operand:
    """The operand of a stored tensor of strings. Raises `NodeFault` 1109 where their number does not fit the shape."""
    texts = [text.decode("utf-8", "replace") for text in tensor.string_data]
    words = tuple(dict.fromkeys(texts))
    shape = tuple(tensor.dims)
    if any(extent < 0 for extent in shape) or int(np.prod(shape, dtype=object)) != len(texts):
        raise NodeFault(1109, f"string{list(shape)} has {len(texts)} stored strings")
    place = {word: position for position, word in enumerate(words)}
    array = np.array([place[text] for text in texts], np.int64).reshape(shape)
    return Operand(tensor.name, dtypes.int64, tuple(map(dim, shape)), array=array, words=words)


def positions(emit: Emitter, operand: Operand) -> Value:
    """The positions of strings whose words are known. Raises `NodeFault` 1115 for others."""
    if is_outside(operand):
        raise NodeFault(1115, f"{operand.name!r} is {operand}, of which the words are not known")
    return emit.emit(Operand("", operand.dtype, operand.shape, value=operand.value, array=operand.array))


def is_outside(operand: Operand) -> bool:
    """Whether strings or maps come from outside, so that no words are known."""
    return operand.value is not None and isinstance(operand.value.type, OpaqueType)


def place_of_words(node: OnnxNode, position: int, keys: Sequence[str]) -> Value:
    """The position (int64) of each string of an input among keys of which the last of equal ones counts, or their
    number where it is none of them.
    """
    operand, emit = node.operand(position), node.emit
    if operand.words is None:
        raise NodeFault(1119, f"input {position} ({operand.name!r}) is {operand}, it must hold strings")
    if is_outside(operand):
        kind = TensorType(operand.shape, dtypes.int64)
        (found,) = boxed(emit, "PlaceOfStrings", [operand], [kind], words=tuple(keys))
        return found
    table = {key: place for place, key in enumerate(keys)}
    moved = np.array([table.get(word, len(keys)) for word in operand.words] or [len(keys)], np.int64)
    return emit.apply("take", emit.constant(moved), positions(emit, operand), dimension=0)


def presented(emit: Emitter, operand: Operand) -> Value:
    """The value of a model's output: strings are written out by a black box."""
    if not operand.opaque:
        return emit.emit(operand)
    if is_outside(operand):
        assert operand.value is not None
        return operand.value
    (found,) = box(emit, "StringsAtPlaces", [positions(emit, operand)], [OpaqueType(STRINGS)], words=operand.words)
    return found


def boxed(
    emit: Emitter, operator: str, operands: Sequence[Operand], kinds: Sequence[ValueType], **attributes: object
) -> tuple[Value, ...]:
    """The results of a black box (one of `black_boxes.FUNCTIONS`)."""
    values: list[Value] = []
    for operand in operands:
        value = operand.value if is_outside(operand) else emit.emit(operand)
        assert value is not None
        values.append(value)
    return box(emit, operator, values, kinds, operands[0].name, PROVIDER, **attributes)


def box(
    emit: Emitter, operator: str, values: Sequence[Value], kinds: Sequence[ValueType], name: str = "",
    provider: str = PROVIDER, **attributes: object,
) -> tuple[Value, ...]:  # fmt: skip
    """The results of a black box of `black_boxes.FUNCTIONS`.

    In a body of control flow, where no box can run, it stands in the outermost graph that has its operands: that may
    be more often than the body runs, so what fails for some strings stays where it is, and is refused.
    """
    home, inside = emit, list[Emitter]()
    while operator not in MAY_FAIL and home.around is not None and not any(map(home.builder.defines, values)):
        inside.append(home)
        home = home.around
    names = [home.builder.fresh(f"{name or operator} ({operator})") for _ in kinds]
    found = home.builder.black_box(
        operator, provider, *values, results=kinds, location=emit.location, names=names, **attributes
    )
    for inner in inside:
        for value in found:
            inner.builder.capture(value)
    return found


def places(emit: Emitter, operand: Operand) -> Value:
    """The number of each element among all elements of strings from outside, whose sizes this tells."""
    key = id(operand)
    if key not in emit.made:
        assert operand.value is not None
        kind = TensorType(operand.shape, dtypes.int64)
        fixed = tuple(-1 if extent.value is None else extent.value for extent in operand.shape)
        (found,) = box(emit, "PlacesOfElements", [operand.value], [kind], operand.name, extents=fixed)
        emit.made[key] = (operand, found)
    return emit.made[key][1]
