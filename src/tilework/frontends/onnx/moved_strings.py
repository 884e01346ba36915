"""Strings moved about: what moves are numbers, each the place of a string, as operators on numbers move them.

The places are those in one pool: all elements of the tensors of strings that come from outside, then the words that are
known. A black box after the movement picks the strings; where nothing comes from outside they stay places in words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from tilework import dtypes
from tilework.dims import Dim, dim, product
from tilework.frontends.onnx.containers import Held
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.operand import STRINGS, Operand, from_value
from tilework.frontends.onnx.words import box, is_outside, outside, places, positions, spoken
from tilework.graph.types import OpaqueType, TensorType

MOVERS = frozenset({
    "Compress", "Concat", "ConcatFromSequence", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements",
    "GatherND", "Identity", "OneHot", "Pad", "Reshape", "ReverseSequence", "Scatter", "ScatterElements", "ScatterND",
    "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unique", "Unsqueeze", "Where",
})  # fmt: skip
"""Operators that move elements whatever they are. `Unique` compares them: it moves ranks, which compare as strings."""

Convert: TypeAlias = "Callable[[OnnxNode], Sequence[Held | None]]"


def moves_strings(node: OnnxNode) -> bool:
    """Whether a node of ai.onnx does nothing with strings but move them."""
    return node.operator in MOVERS and any(given is not None and given.words is not None for given in node.operands)


def moved(node: OnnxNode, convert: Convert) -> list[Held | None]:
    """The results of a node of `MOVERS`, with `convert` for what it does with numbers."""
    if node.given("reduction") and node.text("reduction") != "none":
        raise NodeFault(1108, f"attribute 'reduction' is {node.text('reduction')!r}, strings are only replaced")
    first = node.operands[0]
    if node.operator == "Identity" and first is not None and is_outside(first):
        return [first]
    if node.operator == "Unique":
        return _unique(node, convert)
    operands = list(node.operands)
    if node.operator == "Pad" and not node.has(2):
        operands[2:3] = [Operand("", dtypes.int64, (), array=np.zeros((), np.int64), words=("",))]
    pool = _Pool(node.emit, [given for given in operands if given is not None and given.words is not None])
    found = convert(node.on([None if given is None else pool.placed(given) for given in operands]))
    return [pool.picked(result) if isinstance(result, Operand) else result for result in found]


def _unique(node: OnnxNode, convert: Convert) -> list[Held | None]:
    """What is distinct among the ranks of the strings."""
    operand, emit = node.operand(0), node.emit
    words = tuple(sorted(set(operand.words or ())))
    if is_outside(operand):
        assert operand.value is not None
        kinds = [TensorType(operand.shape, dtypes.int64), OpaqueType(STRINGS)]
        ranks, texts = box(emit, "RankedStrings", [operand.value], kinds, operand.name)
    else:
        rank = {word: place for place, word in enumerate(words)}
        known = np.array([rank[word] for word in operand.words or ()] or [0], np.int64)
        ranks, texts = emit.apply("take", emit.constant(known), positions(emit, operand), dimension=0), None
    found = list(convert(node.on([from_value("", ranks)])))
    assert isinstance(found[0], Operand)
    value = emit.emit(found[0])
    if texts is None:
        found[0] = spoken(value, words)
    else:
        (distinct,) = box(emit, "StringsAtPlaces", [value, texts], [OpaqueType(STRINGS)], words=())
        found[0] = outside("", distinct, found[0].shape)
    return found


def refuse_given_strings(node: OnnxNode) -> None:
    """Raise `NodeFault` 1115 for a loop with strings as state, or that takes them apart row by row."""
    for place, given in enumerate(node.operands):
        if given is not None and given.opaque:
            raise NodeFault(
                1115,
                f"input {place} of the {node.operator}, {given.name!r}, is {given}: strings are no state of a loop and "
                "are not scanned; read them in the body by their name from around it, or pass numbers (indices of the "
                "strings) through the loop and gather the strings behind it",
            )


class _Pool:
    """The strings that one node moves."""

    def __init__(self, emit: Emitter, operands: Sequence[Operand]) -> None:
        self._emit = emit
        self._sources = list({id(given): given for given in operands if is_outside(given)}.values())
        self._starts: dict[int, Dim] = {}
        total = dim(0)
        for source in self._sources:
            self._starts[id(source)] = total
            total = total + product(source.shape)
        words: list[str] = []
        for known in (given for given in operands if not is_outside(given)):
            self._starts.setdefault(id(known), total + len(words))
            words += known.words or ()
        self._words = tuple(words)

    def placed(self, operand: Operand) -> Operand:
        """Strings as places in the pool; what holds numbers stays."""
        if operand.words is None:
            return operand
        emit = self._emit
        own = places(emit, operand) if is_outside(operand) else positions(emit, operand)
        start = self._starts[id(operand)]
        return from_value("", own if start == 0 else emit.apply("add", own, emit.extent(start, dtypes.int64)))

    def picked(self, found: Operand) -> Operand:
        """The strings at places in the pool."""
        value = self._emit.emit(found)
        if not self._sources:
            return spoken(value, self._words)
        given = [source.value for source in self._sources if source.value is not None]
        (texts,) = box(self._emit, "StringsAtPlaces", [value, *given], [OpaqueType(STRINGS)], words=self._words)
        return outside("", texts, found.shape)


class ReturnedStrings:
    """Strings that the subgraphs of one node return, as places in one pool that all of them share.

    Words count up from 0, strings from outside down from -1: what is known of either grows from subgraph to subgraph.
    """

    def __init__(self) -> None:
        self._sources: dict[int, tuple[Operand, Dim]] = {}
        self._size = dim(0)
        self._words: list[str] = []

    def placed(self, emit: Emitter, operand: Operand, graph: str) -> Operand:
        """Strings that a subgraph of this name returns, as places. Raises `NodeFault` 1115 for those that it makes of
        strings from outside: no box runs in it.
        """
        if is_outside(operand):
            if operand.value is not None and emit.builder.defines(operand.value):
                raise NodeFault(
                    1115,
                    f"its subgraph {graph!r} returns {operand.name!r} ({operand}), made in it of strings from "
                    "outside; subgraphs only return such strings as they are: make it around the node, or pass numbers "
                    "(indices of the strings) through the node and gather the strings behind it",
                )
            if id(operand) not in self._sources:
                self._sources[id(operand)] = (operand, self._size)
                self._size = self._size + product(operand.shape)
            first = emit.extent(dim(-1) - self._sources[id(operand)][1], dtypes.int64)
            return from_value("", emit.apply("subtract", first, places(emit, operand)))
        start = len(self._words)
        self._words += operand.words or ()
        own = positions(emit, operand)
        return from_value("", emit.apply("add", own, start) if start else own)

    def picked(self, emit: Emitter, found: Operand) -> Operand:
        """The strings at places that the node returns."""
        value = emit.emit(found)
        if not self._sources:
            return spoken(value, self._words)
        back = emit.apply("subtract", -1, value)
        on = emit.apply("add", value, emit.extent(self._size, dtypes.int64))
        place = emit.apply("select", emit.compare("LT", value, 0), back, on)
        given = [source.value for source, _ in self._sources.values() if source.value is not None]
        kinds = [OpaqueType(STRINGS)]
        (texts,) = box(emit, "StringsAtPlaces", [place, *given], kinds, words=tuple(self._words))
        return outside("", texts, found.shape)
