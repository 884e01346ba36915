"""`Loop` and `Scan` whose course is known only when the model runs: their bodies become subgraphs.

A `Loop` that runs a known number of times (its condition is never false) is a `scan` over the numbers of its trips; any
other is a `while`. What a subgraph returns must have the same type on every course.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from tilework import dtypes
from tilework.dims import Dim, dim
from tilework.errors import Fault
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.operand import Operand, from_value
from tilework.frontends.onnx.unify import Unified, equal
from tilework.graph.graph import Attribute, Graph, Value

if TYPE_CHECKING:
    from onnx import GraphProto

Run: TypeAlias = "Callable[[GraphProto, Sequence[Operand], Emitter], list[Operand]]"
"""Imports a subgraph's nodes with an emitter, given its inputs; returns its outputs."""


class Skipped(Exception):  # noqa: N818 - no error of its own
    """A subgraph could not be imported; its faults are listed already."""


class Refused(Exception):  # noqa: N818 - no error of its own
    """A node could not be imported for these faults of its subgraphs."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__()
        self.faults = tuple(faults)


class WithoutMeaning(Refused):
    """A branch, or the body of a loop, cannot be imported for sizes such as these, and may never run for them."""


def run_loop(node: OnnxNode, run: Run) -> list[Operand]:
    """A `Loop`: (most trips, go on at the start, state...) with a body (trip, go on, state...)."""
    body = node.graph("body")
    count = len(node.operands) - 2
    if len(body.input) != count + 2:
        raise NodeFault(1117, f"its body has {len(body.input)} inputs, {count + 2} are needed")
    if len(body.output) < count + 1:
        raise NodeFault(1117, f"its body has {len(body.output)} outputs, {count + 1} are needed")
    try:
        if _always(node, body):
            found = _counted_loop(node, body, run)
            if found is not None:
                return found
        return _conditional_loop(node, body, run)
    except WithoutMeaning as reason:
        if len(body.output) > count + 1 or _surely_runs(node):
            raise
        return _never_run(node, reason)


def _surely_runs(node: OnnxNode) -> bool:
    """Whether a loop has a first trip whatever the data are."""
    trips, starts = (node.operand(place).known() if node.has(place) else None for place in (0, 1))
    runs = not node.has(0) or (trips is not None and trips.size == 1 and node.symbols.is_positive(trips.reshape(-1)[0]))
    return runs and (not node.has(1) or (starts is not None and starts.size == 1 and starts.reshape(-1)[0] == 1))


def _never_run(node: OnnxNode, reason: WithoutMeaning) -> list[Operand]:
    """A loop whose body has no types at these sizes: the state as it starts; a first trip is an error."""
    emit = node.emit
    own = [node.value(n) for n in range(2, len(node.operands))]
    runs = truth(emit, node.value(1)) if node.has(1) else emit.scalar(True, dtypes.boolean)
    if node.has(0):
        runs = emit.apply("and", runs, emit.compare("GT", emit.reshape(node.value(0), ()), 0))
    asked, inner = emit.inside("condition"), emit.inside("body")
    first = formal(asked, runs)
    for emitter, values in ((asked, own), (inner, [runs, *own])):
        for value in values:
            formal(emitter, value)
    text = "; ".join(f"{fault.where}: {fault.message}" for fault in reason.faults)
    none = [inner.apply("no_value", shape=v.tensor.shape, dtype=v.tensor.dtype, reason=text) for v in own]
    body = inner.build([inner.scalar(False, dtypes.boolean), *none])
    return applied(emit, "while", [runs, *own], {}, [asked.build([first]), body])[1:]


MOST_COUNTED = 1 << 20
"""Trips up to which their numbers are a tensor, of which each trip takes one."""


def _always(node: OnnxNode, body: GraphProto) -> bool:
    """Whether a loop's condition is never false, and it is known how often it runs."""
    if not node.has(0) or node.operand(0).known() is None:
        return False
    if node.has(1):
        known = node.operand(1).known()
        if known is None or known.size != 1 or known.reshape(-1)[0] != 1:
            return False
    if body.output[0].name == body.input[1].name:
        return True
    makers = {name: inner for inner in body.node for name in inner.output}
    name = body.output[0].name
    while name in makers and makers[name].op_type == "Identity":
        name = makers[name].input[0]
    if name == body.input[1].name:
        return True
    for tensor in body.initializer:
        if tensor.name == name:
            return _is_true(tensor)
    maker = makers.get(name)
    if maker is None or maker.op_type != "Constant" or not maker.attribute:
        return False
    return maker.attribute[0].name == "value" and _is_true(maker.attribute[0].t)


def _is_true(tensor: object) -> bool:
    from tilework.frontends.onnx.tensors import to_array

    array = to_array(tensor, None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return array.size == 1 and bool(array.reshape(-1)[0])


def _counted_loop(node: OnnxNode, body: GraphProto, run: Run) -> list[Operand] | None:
    """The results of a loop that runs a known number of times; None where its state changes its size, or where the
    numbers of its trips take too much memory.
    """
    emit = node.emit
    (trips,) = node.known(0, "the number of trips").reshape(-1)
    if trips.is_constant and trips.constant > MOST_COUNTED:
        return None
    numbers = emit.iota((_not_negative(trips),), 0, dtypes.int64)
    state = [node.value(n) for n in range(2, len(node.operands))]
    inner = emit.inside("body")
    formals = [formal(inner, value) for value in state]
    number = inner.trip = inner.builder.input(inner.builder.fresh("trip"), dtypes.int64)
    go_on = inner.scalar(True, dtypes.boolean)
    results = run(body, [from_value("", v) for v in (number, go_on, *formals)], inner)[1:]
    shapes = [value.tensor.shape for value in state]
    if _new_extents(emit, results[: len(state)], state, shapes, ()):
        return None
    _check_rows(inner, results[len(state) :])
    graph = inner.build([owned(inner, operand) for operand in results])
    attributes: dict[str, Attribute] = {"state_count": len(state), "reverse": False}
    return applied(emit, "scan", [*state, numbers], attributes, [graph])


def _not_negative(trips: Dim) -> Dim:
    return dim(max(trips.constant, 0)) if trips.is_constant else trips


def _conditional_loop(node: OnnxNode, body: GraphProto, run: Run) -> list[Operand]:
    """State: the trip, whether to go on, and the loop's own, whose sizes may change from trip to trip."""
    emit = node.emit
    most = emit.reshape(node.value(0), ()) if node.has(0) else None
    first = emit.scalar(0, dtypes.int64)
    start = truth(emit, node.value(1)) if node.has(1) else emit.scalar(True, dtypes.boolean)
    own = [node.value(n) for n in range(2, len(node.operands))]
    state = [first, start, *own]
    shapes, changing = [value.tensor.shape for value in own], list[Dim]()
    while True:
        inner = emit.inside("body")
        inner.measures.extend(map(str, changing))
        formals = [formal(inner, value) for value in state[:2]]
        inner.trip = formals[0]
        formals += [formal(inner, value, shape) for value, shape in zip(own, shapes, strict=True)]
        results = run(body, [from_value("", value) for value in formals], inner)
        found = _new_extents(emit, results[1 : 1 + len(own)], own, shapes, changing)
        if not found:
            break
        changing += found
    rows = results[1 + len(own) :]
    _check_rows(inner, rows)
    following = [inner.apply("add", formals[0], 1), truth(inner, owned(inner, results[0]))]
    graph = inner.build([*following, *(owned(inner, operand) for operand in results[1:])])
    asked = emit.inside("condition")
    asked.measures.extend(map(str, changing))
    formals = [formal(asked, value) for value in state[:2]]
    for value, shape in zip(own, shapes, strict=True):
        formal(asked, value, shape)
    go_on = formals[1] if most is None else asked.apply("and", formals[1], asked.compare("LT", formals[0], most))
    condition = asked.build([go_on])
    attributes: dict[str, Attribute] = {}
    if changing:
        attributes["extents"] = tuple(emit.measured_symbol(f"{node.proto.name or 'loop'} size") for _ in changing)
    if rows:
        limit = node.operand(0).known() if node.has(0) else None
        upper = None if limit is None or not limit.reshape(-1)[0].is_constant else limit.reshape(-1)[0].constant
        trips = emit.measured_symbol(f"{node.proto.name or 'loop'} trips", None if upper is None else max(upper, 0))
        attributes["rows"] = (trips,)
    return applied(emit, "while", state, attributes, [condition, graph])[2:]


def _new_extents(
    emit: Emitter,
    results: Sequence[Operand],
    state: Sequence[Value],
    shapes: list[tuple[Dim, ...]],
    changing: Sequence[Dim],
) -> list[Dim]:
    """New symbols for extents that a body returns otherwise than it takes them; `shapes` get them.

    Free dims that stand in one place are taken to be equal where they may be, as anywhere else.
    """
    found: list[Dim] = []
    for number, (result, value) in enumerate(zip(results, state, strict=True)):
        if result.dtype != value.tensor.dtype or result.rank != value.tensor.rank:
            text = f"its body's state is {result} and {value.type}: of which type is known only when the model runs"
            raise NodeFault(1120, text)
        for place, (one, other) in enumerate(zip(result.shape, shapes[number], strict=True)):
            if other in changing or _stays(emit, one, other):
                continue
            symbol = emit.symbols.measured(f"{value.name}_{place}")
            shapes[number] = (*shapes[number][:place], symbol, *shapes[number][place + 1 :])
            found.append(symbol)
    return found


def _stays(emit: Emitter, one: Dim, other: Dim) -> bool:
    if one == other:
        return True
    if any(map(emit.symbols.is_measured, one.names() | other.names())) or (one.is_constant and other.is_constant):
        return False
    try:
        return equal(emit.symbols, one, other, "sizes of a state")
    except NodeFault:
        return False
    except Unified as learnt:  # n and 2 n would be equal if n were 0; but the state may as well grow
        if isinstance(learnt.value, int) and not (one.is_constant or other.is_constant):
            return False
        raise


def _check_rows(inner: Emitter, rows: Sequence[Operand]) -> None:
    for row in rows:
        if any(extent.names() & set(inner.measures) for extent in row.shape):
            raise NodeFault(1126, f"its rows are {row}, of other sizes from trip to trip")


def run_scan(node: OnnxNode, run: Run) -> list[Operand]:
    """A `Scan`: (state..., scanned...), any axes and directions; before version 9 a stack of them, one a batch."""
    emit, body = node.emit, node.graph("body")
    if node.opset < 9:
        return _batched_scan(node, body, run)
    scanned = node.integer("num_scan_inputs")
    count = len(node.operands) - scanned
    collected = len(body.output) - count
    if scanned < 1 or count < 0 or collected < 0 or len(body.input) != len(node.operands):
        raise NodeFault(1117, f"its body has {len(body.input)} inputs and {len(body.output)} outputs")
    values = node.values()
    axes = node.integers("scan_input_axes", (0,) * scanned)
    backwards = node.integers("scan_input_directions", (0,) * scanned)
    if len(axes) != scanned or len(backwards) != scanned:
        raise NodeFault(1108, f"scan_input_axes and scan_input_directions must have {scanned} entries")
    for n, (axis, back) in enumerate(zip(axes, backwards, strict=True), count):
        rank = values[n].tensor.rank
        place = node.axis(axis, rank, "scan_input_axes")
        moved = emit.transpose(values[n], (place, *(d for d in range(rank) if d != place)))
        values[n] = emit.reverse(moved, (0,) if back else ())
    found = _scanned(emit, values, count, lambda given, inner: run(body, given, inner))
    out_axes = node.integers("scan_output_axes", (0,) * collected)
    out_backwards = node.integers("scan_output_directions", (0,) * collected)
    if len(out_axes) != collected or len(out_backwards) != collected:
        raise NodeFault(1108, f"scan_output_axes and scan_output_directions must have {collected} entries")
    for n, (axis, back) in enumerate(zip(out_axes, out_backwards, strict=True), count):
        rows = emit.reverse(emit.emit(found[n]), (0,) if back else ())
        rank = rows.tensor.rank
        place = node.axis(axis, rank, "scan_output_axes")
        order = [*range(1, place + 1), 0, *range(place + 1, rank)]
        found[n] = from_value("", emit.transpose(rows, order))
    return found


def _batched_scan(node: OnnxNode, body: GraphProto, run: Run) -> list[Operand]:
    """Version 8: (lengths, state..., scanned...), each with a batch before its other dimensions: a scan of scans."""
    emit, scanned = node.emit, node.integer("num_scan_inputs")
    values = [node.value(position) for position in range(1, len(node.operands))]
    count = len(values) - scanned
    if node.has(0):
        raise NodeFault(1123, "the lengths of its sequences are given, which is not supported")
    if scanned < 1 or count < 0 or len(body.input) != len(values) or len(body.output) < count:
        raise NodeFault(1117, f"its body has {len(body.input)} inputs and {len(body.output)} outputs")
    backwards = node.integers("directions", (0,) * scanned)
    if len(backwards) != scanned or any(value.tensor.rank < (n >= count) + 1 for n, value in enumerate(values)):
        raise NodeFault(1119, f"directions {backwards} and {', '.join(str(v.type) for v in values)} do not fit")

    def one(given: Sequence[Operand], inner: Emitter) -> list[Operand]:
        slices = [inner.emit(operand) for operand in given]
        for n, back in enumerate(backwards, count):
            slices[n] = inner.reverse(slices[n], (0,) if back else ())
        return _scanned(inner, slices, count, lambda rows, innermost: run(body, rows, innermost))

    return _scanned(emit, values, 0, one)


def _scanned(
    emit: Emitter, values: Sequence[Value], count: int, body: Callable[[Sequence[Operand], Emitter], list[Operand]]
) -> list[Operand]:
    """A `scan` with so many states, over dimension 0 of the other values."""
    inner = emit.inside("body")
    formals = [formal(inner, value) for value in values[:count]]
    formals += [
        inner.builder.input(inner.builder.fresh("row"), v.tensor.dtype, *v.tensor.shape[1:]) for v in values[count:]
    ]
    results = body([from_value("", value) for value in formals], inner)
    _same_types(emit, results[:count], [from_value("", v) for v in values[:count]], "its body's state is")
    _check_rows(inner, results[count:])
    graph = inner.build([owned(inner, operand) for operand in results])
    return applied(emit, "scan", values, {"state_count": count, "reverse": False}, [graph])


# -- pieces ------------------------------------------------------------------------------------------------------------
def truth(emit: Emitter, value: Value) -> Value:
    """A condition without dimensions."""
    if value.tensor.dtype != dtypes.boolean or value.tensor.size != 1:
        raise NodeFault(1119, f"its condition is {value.type}, it must be one boolean")
    return emit.reshape(value, ())


def formal(inner: Emitter, value: Value, shape: Sequence[Dim] | None = None) -> Value:
    """A new input of a subgraph for a state that starts with a value."""
    extents = value.tensor.shape if shape is None else shape
    return inner.builder.input(inner.builder.fresh("state"), value.tensor.dtype, *extents)


def owned(inner: Emitter, operand: Operand) -> Value:
    """The operand as a value that the subgraph itself defines: what comes from around it is passed through."""
    value = inner.emit(operand)
    if inner.builder.defines(value):
        return value
    return inner.apply("reshape", value, shape=value.tensor.shape)


def _same_types(emit: Emitter, found: Sequence[Operand], wanted: Sequence[Operand], what: str) -> None:
    """Free dims that stand in one place on both sides are taken to be equal; `NodeFault` 1120 where types differ."""
    for a, b in zip(found, wanted, strict=True):
        if a.dtype != b.dtype or a.rank != b.rank:
            raise NodeFault(1120, f"{what} {a} and {b}: of which type is known only when the model runs")
        for one, two in zip(a.shape, b.shape, strict=True):
            if one != two and one.is_constant and two.is_constant:
                raise NodeFault(1120, f"{what} {a} and {b}: of which size is known only when the model runs")
        emit.equal_shapes(a.shape, b.shape)


def applied(
    emit: Emitter, operator: str, inputs: Sequence[Value], attributes: Mapping[str, Attribute], graphs: Sequence[Graph]
) -> list[Operand]:
    """The results of an operator with subgraphs."""
    found = emit.builder.apply_all(operator, inputs, attributes, location=emit.location, subgraphs=graphs)
    return [from_value("", value) for value in found]
