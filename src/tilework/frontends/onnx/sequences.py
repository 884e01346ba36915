"""Operators on sequences and optionals. They move tensor values about while the model is imported; none runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tilework.dims import Dim, dim
from tilework.frontends.onnx.containers import Held, Maybe, TensorSequence
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.moved_strings import moved
from tilework.frontends.onnx.node import OnnxNode, fixed_extent
from tilework.frontends.onnx.operand import Operand, from_array, from_value
from tilework.frontends.onnx.tensors import element_type
from tilework.frontends.onnx.unify import equal
from tilework.graph.graph import Value

if TYPE_CHECKING:
    from onnx import GraphProto

Bodies: TypeAlias = "Callable[[GraphProto, Sequence[Held]], list[Held]]"
"""Imports a subgraph in the node's place, given its inputs; returns its outputs."""

MOST_PARTS = 4096
"""Tensors of which a sequence may consist; each is a value of its own in the graph."""

MOST_TRIPS = 1024
"""Trips of a loop that are imported one by one."""


def run_on_sequences(node: OnnxNode, held: Sequence[Held | None], bodies: Bodies) -> list[Held]:
    """The results of a node of `SEQUENCE_OPERATORS`, or of an `Identity` of a sequence or an optional."""
    if node.operator == "SequenceMap":
        return _map(node, held, bodies)
    return [_OPERATORS[node.operator](node, held)]


# -- operands ----------------------------------------------------------------------------------------------------------
def _sequence(held: Sequence[Held | None], place: int = 0) -> TensorSequence:
    found = held[place] if place < len(held) else None
    if not isinstance(found, TensorSequence):
        raise NodeFault(1119, f"input {place} is {found}, it must be a sequence")
    return found


def _tensor(held: Sequence[Held | None], place: int) -> Operand:
    found = held[place] if place < len(held) else None
    if not isinstance(found, Operand):
        raise NodeFault(1119, f"input {place} is {found}, it must be a tensor")
    return found


def _position(node: OnnxNode, place: int, first: int, last: int) -> int | None:
    """A position in a sequence, counted from the front; None where it is known only when the model runs."""
    if node.operand(place).known() is None and node.operand(place).dtype.is_integer:
        return None
    found = node.one(place, "the position")
    if not found.is_constant:
        return None
    if not first <= found.constant <= last:
        raise NodeFault(1119, f"position {found} is outside the sequence: from {first} to {last} is inside")
    return found.constant - first if found.constant < 0 else found.constant


def _fixed_position(node: OnnxNode, place: int, first: int, last: int) -> int:
    found = _position(node, place, first, last)
    if found is None:
        text = f"the position ({node.operand(place).name!r}) in a sequence is known only when the model runs"
        raise NodeFault(1116, text, [node.operand(place)])
    return found


# -- sequences ---------------------------------------------------------------------------------------------------------
def _construct(node: OnnxNode, held: Sequence[Held | None]) -> Held:
    elements = tuple(_tensor(held, place) for place in range(len(held)))
    return TensorSequence("", elements[0].dtype, elements)


def _empty(node: OnnxNode, held: Sequence[Held | None]) -> Held:
    return TensorSequence("", element_type(node.integer("dtype", 1)), ())


def _insert(node: OnnxNode, held: Sequence[Held | None]) -> Held:
    sequence, tensor = _sequence(held), _tensor(held, 1)
    if sequence.dtype is not None and sequence.dtype != tensor.dtype:
        raise NodeFault(1119, f"{tensor} cannot be put into {sequence}")
    count = len(sequence.elements)
    if count >= MOST_PARTS:
        raise NodeFault(1124, f"a sequence of more than {MOST_PARTS} tensors")
    # -count stands for the front; the end is count
    place = _fixed_position(node, 2, -count, count) if node.has(2) else count
    return TensorSequence("", tensor.dtype, (*sequence.elements[:place], tensor, *sequence.elements[place:]))


def _erase(node: OnnxNode, held: Sequence[Held | None]) -> Held:
    sequence = _sequence(held)
    count = len(sequence.elements)
    if not count:
        raise NodeFault(1119, "nothing can be erased from an empty sequence")
    place = _fixed_position(node, 1, -count, count - 1) if node.has(1) else count - 1
    return TensorSequence("", sequence.dtype, sequence.elements[:place] + sequence.elements[place + 1 :])


def _at(node: OnnxNode, held: Sequence[Held | None]) -> Held:
    """The element at a position; where that is computed, and all have one shape, a row of the elements stacked."""
    sequence = _sequence(held)
    count = len(sequence.elements)
    if not count:
        raise NodeFault(1119, "an empty sequence has no element")
    place = _position(node, 1, -count, count - 1)
    if place is not None:
        return sequence.elements[place]
    emit = node.emit
    if any(element.shape != sequence.elements[0].shape for element in sequence.elements):
        _fixed_position(node, 1, -count, count - 1)
    stacked = emit.concatenate([emit.expand_dims(emit.emit(element), [0]) for element in sequence.elements], 0)
    return from_value("", emit.apply("take", stacked, emit.reshape(node.value(1), ()), dimension=0))


def _length(node: OnnxNode, held: Sequence[Held | None]) -> Held:
    return from_array("", np.array(len(_sequence(held).elements), np.int64))


def _split(node: OnnxNode, held: Sequence[Held | None]) -> Held:
    """Parts along one dimension: of sizes, all of one size but for the last, or of 1 (whose dimension may drop out)."""
    emit, value = node.emit, node.value(0)
    axis = node.axis(node.integer("axis", 0), value.tensor.rank)
    extent = value.tensor.shape[axis]
    drop = not node.has(1) and not node.flag("keepdims", True)
    if node.has(1) and node.operand(1).rank:
        sizes = list(node.dims(1, "the sizes"))
        if any(size.is_constant and size.constant < 0 for size in sizes):
            raise NodeFault(1119, f"sizes [{', '.join(map(str, sizes))}] must not be negative")
        equal(node.symbols, sum(sizes, dim(0)), extent, f"the sum of the sizes and dimension {axis}")
        wanted = list(value.tensor.shape)
        wanted[axis] = sum(sizes, dim(0))
        value = emit.assumed(value, wanted)
    else:
        sizes = _chunks(extent, fixed_extent(node.one(1, "the size"), "the size") if node.has(1) else 1)
    if len(sizes) > MOST_PARTS:
        raise NodeFault(1124, f"a sequence of {len(sizes)} tensors")
    parts: list[Value] = []
    start = dim(0)
    for size in sizes:
        part = emit.slice_axis(value, axis, start, start + size)
        parts.append(emit.drop_dims(part, [axis]) if drop else part)
        start = start + size
    return TensorSequence("", value.tensor.dtype, tuple(from_value("", part) for part in parts))


def _chunks(extent: Dim, size: int) -> list[Dim]:
    if size < 1:
        raise NodeFault(1119, f"parts of size {size}, it must be at least 1")
    whole = fixed_extent(extent, "the extent to split")
    if whole > size * MOST_PARTS:
        raise NodeFault(1124, f"a sequence of more than {MOST_PARTS} tensors")
    return [dim(min(size, whole - start)) for start in range(0, whole, size)]


def _concat(node: OnnxNode, held: Sequence[Held | None]) -> Held:
    sequence = _sequence(held)
    if not sequence.elements:
        raise NodeFault(1119, "an empty sequence has nothing to join")
    if any(element.words is not None for element in sequence.elements):
        (found,) = moved(node.on(sequence.elements), lambda places: [_joined(places)])
        assert isinstance(found, Operand)
        return found
    return _joined(node.on(sequence.elements))


def _joined(node: OnnxNode) -> Operand:
    """The operands side by side, along a dimension of theirs or a new one."""
    emit = node.emit
    new = node.flag("new_axis")
    first = node.value(0)
    axis = node.axis(node.integer("axis"), first.tensor.rank + new)
    fitted: list[Value] = []
    for value in node.values():
        if value.tensor.rank != first.tensor.rank:
            raise NodeFault(1119, f"elements {first.type} and {value.type} differ in rank")
        wanted = list(first.tensor.shape)
        if not new:
            wanted[axis] = value.tensor.shape[axis]
        for place, (one, other) in enumerate(zip(wanted, value.tensor.shape, strict=True)):
            equal(node.symbols, one, other, f"dimension {place} of the elements")
        value = emit.assumed(value, wanted)
        fitted.append(emit.expand_dims(value, [axis]) if new else value)
    return from_value("", emit.concatenate(fitted, axis))


def _map(node: OnnxNode, held: Sequence[Held | None], bodies: Bodies) -> list[Held]:
    """A body for each element; other sequences go along, tensors are the same for all."""
    body = node.graph("body")
    if len(body.input) != len(held) or len(body.output) != len(node.outputs):
        raise NodeFault(1117, f"its body has {len(body.input)} inputs and {len(body.output)} outputs")
    count = len(_sequence(held).elements)
    rows: list[list[Held]] = [[] for _ in range(count)]
    for place, operand in enumerate(held):
        if operand is None:
            raise NodeFault(1117, f"input {place} is missing")
        if isinstance(operand, TensorSequence) and len(operand.elements) != count:
            raise NodeFault(1119, f"input {place} is {operand}, the first has {count}")
        for number, row in enumerate(rows):
            row.append(operand.elements[number] if isinstance(operand, TensorSequence) else operand)
    results = [bodies(body, row) for row in rows]
    found: list[Held] = []
    for place, output in enumerate(body.output):
        elements = tuple(_tensor(row, place) for row in results)
        number = output.type.tensor_type.elem_type
        dtype = elements[0].dtype if elements else element_type(number) if number else None
        found.append(TensorSequence("", dtype, elements))
    return found


def unrolled_loop(node: OnnxNode, held: Sequence[Held | None], bodies: Bodies) -> list[Held]:
    """A `Loop` whose trips differ in more than values (sequences grow, rows lie where the trip's number says).

    Its body is imported once for each trip, as many as are known now.
    """
    body, emit = node.graph("body"), node.emit
    count = len(held) - 2
    collected = len(body.output) - 1 - count
    if len(body.input) != count + 2 or collected < 0:
        raise NodeFault(1117, f"its body has {len(body.input)} inputs and {len(body.output)} outputs")
    most = _now(node, node.operand(0)) if node.has(0) else None
    go_on = not node.has(1) or _now(node, node.operand(1)) != 0
    optional = [value.type.WhichOneof("value") == "optional_type" for value in body.input[2:]]
    state = [_given(held, place) for place in range(2, len(held))]
    rows: list[list[Value]] = [[] for _ in range(collected)]
    trip = 0
    while go_on and (most is None or trip < most):
        if trip == MOST_TRIPS:
            raise NodeFault(1124, f"a loop of more than {MOST_TRIPS} trips that differ")
        state = [_as_optional(value) if wrap else value for value, wrap in zip(state, optional, strict=True)]
        numbers = [from_array("", np.array(trip, np.int64)), from_array("", np.array(True))]
        results = bodies(body, [*numbers, *state])
        go_on = _now(node, _tensor(results, 0)) != 0
        state = results[1 : 1 + count]
        for place, row in enumerate(rows):
            row.append(emit.expand_dims(emit.emit(_tensor(results, 1 + count + place)), [0]))
        trip += 1
    if collected and not trip:
        raise NodeFault(1126, "the shape of rows that a loop of no trips collects is not known")
    return [*state, *(from_value("", emit.concatenate(row, 0)) for row in rows)]


def _as_optional(held: Held) -> Maybe:
    """A body may take an optional where it returns what is in one."""
    return held if isinstance(held, Maybe) else Maybe(held.name, held)


def _now(node: OnnxNode, operand: Operand) -> int:
    """A number of trips or a condition that is known at import."""
    known = operand.known()
    number: Dim | None = known.reshape(-1)[0] if known is not None and known.size == 1 else None
    if number is None or not number.is_constant:
        text = f"how often a loop runs ({operand.name!r}), whose trips differ, is known only when the model runs"
        raise NodeFault(1126, text, [operand])
    return number.constant


def _given(held: Sequence[Held | None], place: int) -> Held:
    found = held[place]
    if found is None:
        raise NodeFault(1117, f"input {place} is missing")
    return found


# -- optionals ---------------------------------------------------------------------------------------------------------
def _optional(node: OnnxNode, held: Sequence[Held | None]) -> Held:
    given = held[0] if held else None
    if isinstance(given, Maybe):
        raise NodeFault(1119, "an optional of an optional")
    if given is None and not node.given("type"):
        raise NodeFault(1108, "attribute 'type' is missing, and there is no input to take it from")
    return Maybe("", given)


def _get_element(node: OnnxNode, held: Sequence[Held | None]) -> Held:
    given = held[0] if held else None
    found = given.content if isinstance(given, Maybe) else given
    if found is None:
        raise NodeFault(1119, "an empty optional has no element")
    return found


def _has_element(node: OnnxNode, held: Sequence[Held | None]) -> Held:
    given = held[0] if held else None
    found = given.content if isinstance(given, Maybe) else given
    return from_array("", np.array(found is not None))


def _identity(node: OnnxNode, held: Sequence[Held | None]) -> Held:
    found = held[0]
    assert found is not None
    return found


_OPERATORS: Mapping[str, Callable[[OnnxNode, Sequence[Held | None]], Held]] = {
    "ConcatFromSequence": _concat, "Identity": _identity, "Optional": _optional, "OptionalGetElement": _get_element,
    "OptionalHasElement": _has_element, "SequenceAt": _at, "SequenceConstruct": _construct, "SequenceEmpty": _empty,
    "SequenceErase": _erase, "SequenceInsert": _insert, "SequenceLength": _length, "SplitToSequence": _split,
}  # fmt: skip

SEQUENCE_OPERATORS = frozenset({*_OPERATORS, "SequenceMap"}) - {"Identity"}
"""Operators of ai.onnx that take or return sequences or optionals."""
