"""`If`, `Loop` and `Scan` whose course is known only when the model runs: their bodies become subgraphs.

A `Loop` that runs a known number of times (its condition is never false) is a `scan` over the numbers of its trips; any
other is a `while`. What a subgraph returns must have the same type on every course.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from tilework import dtypes
from tilework.dims import Dim, dim
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.operand import Operand, from_value
from tilework.graph.graph import Graph, Value

if TYPE_CHECKING:
    from onnx import GraphProto

Run: TypeAlias = "Callable[[GraphProto, Sequence[Operand], Emitter], list[Operand]]"
"""Imports a subgraph's nodes with an emitter, given its inputs; returns its outputs."""


class Skipped(Exception):  # noqa: N818 - no error of its own
    """A subgraph could not be imported; its faults are listed already."""


def run_if(node: OnnxNode, run: Run) -> list[Operand]:
    """An `If` whose condition is computed: the results of the branch that runs."""
    emit = node.emit
    predicate = _truth(emit, node.value(0))
    inners = [emit.inside(name) for name in ("then_branch", "else_branch")]
    results = [run(node.graph(i.builder.name), (), i) for i in inners]
    graphs: list[Graph] = []
    if len(results[0]) != len(results[1]):
        raise NodeFault(1117, f"its branches have {len(results[0])} and {len(results[1])} outputs")
    _same_types(emit, results[0], results[1], "its branches return")
    for inner, found in zip(inners, results, strict=True):
        graphs.append(inner.build([_own(inner, operand) for operand in found]))
    return _applied(emit, "if", [predicate], {}, graphs)


def run_loop(node: OnnxNode, run: Run) -> list[Operand]:
    """A `Loop`: (most trips, go on at the start, state...) with a body (trip, go on, state...)."""
    body = node.graph("body")
    count = len(node.operands) - 2
    if len(body.input) != count + 2:
        raise NodeFault(1117, f"its body has {len(body.input)} inputs, {count + 2} are needed")
    if _always(node, body):
        return _counted_loop(node, body, run)
    if len(body.output) > count + 1:
        raise NodeFault(1126, "how many rows its scan outputs have is known only when the loop has run")
    return _conditional_loop(node, body, run)


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


def _counted_loop(node: OnnxNode, body: GraphProto, run: Run) -> list[Operand]:
    emit = node.emit
    (trips,) = node.known(0, "the number of trips").reshape(-1)
    numbers = emit.iota((_not_negative(trips),), 0, dtypes.int64)
    state = [node.value(n) for n in range(2, len(node.operands))]
    inner = emit.inside("body")
    formals = [_formal(inner, value) for value in state]
    number = inner.builder.input(inner.builder.fresh("trip"), dtypes.int64)
    go_on = inner.scalar(True, dtypes.boolean)
    results = run(body, [from_value("", v) for v in (number, go_on, *formals)], inner)[1:]
    _same_types(emit, results[: len(state)], [from_value("", v) for v in state], "its body's state is")
    graph = inner.build([_own(inner, operand) for operand in results])
    attributes = {"state_count": len(state), "reverse": False}
    return _applied(emit, "scan", [*state, numbers], attributes, [graph])


def _not_negative(trips: Dim) -> Dim:
    return dim(max(trips.constant, 0)) if trips.is_constant else trips


def _conditional_loop(node: OnnxNode, body: GraphProto, run: Run) -> list[Operand]:
    """State: the trip, whether to go on, and the loop's own."""
    emit = node.emit
    most = emit.reshape(node.value(0), ()) if node.has(0) else None
    first = emit.scalar(0, dtypes.int64)
    start = _truth(emit, node.value(1)) if node.has(1) else emit.scalar(True, dtypes.boolean)
    state = [first, start, *(node.value(n) for n in range(2, len(node.operands)))]
    asked = emit.inside("condition")
    formals = [_formal(asked, value) for value in state]
    go_on = formals[1] if most is None else asked.apply("and", formals[1], asked.compare("LT", formals[0], most))
    condition = asked.build([go_on])
    inner = emit.inside("body")
    formals = [_formal(inner, value) for value in state]
    results = run(body, [from_value("", value) for value in formals], inner)
    _same_types(emit, results[1:], [from_value("", v) for v in state[2:]], "its body's state is")
    following = [inner.apply("add", formals[0], 1), _truth(inner, _own(inner, results[0]))]
    graph = inner.build([*following, *(_own(inner, operand) for operand in results[1:])])
    return _applied(emit, "while", state, {}, [condition, graph])[2:]


def run_scan(node: OnnxNode, run: Run) -> list[Operand]:
    """A `Scan` (version 9 on): (state..., scanned...), any axes and directions."""
    emit, body = node.emit, node.graph("body")
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
    inner = emit.inside("body")
    formals = [_formal(inner, value) for value in values[:count]]
    formals += [
        inner.builder.input(inner.builder.fresh("row"), v.tensor.dtype, *v.tensor.shape[1:]) for v in values[count:]
    ]
    results = run(body, [from_value("", value) for value in formals], inner)
    _same_types(emit, results[:count], [from_value("", v) for v in values[:count]], "its body's state is")
    graph = inner.build([_own(inner, operand) for operand in results])
    found = _applied(emit, "scan", values, {"state_count": count, "reverse": False}, [graph])
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


# -- pieces ------------------------------------------------------------------------------------------------------------
def _truth(emit: Emitter, value: Value) -> Value:
    if value.tensor.dtype != dtypes.boolean or value.tensor.size != 1:
        raise NodeFault(1119, f"its condition is {value.type}, it must be one boolean")
    return emit.reshape(value, ())


def _formal(inner: Emitter, value: Value) -> Value:
    return inner.builder.input(inner.builder.fresh("state"), value.tensor.dtype, *value.tensor.shape)


def _own(inner: Emitter, operand: Operand) -> Value:
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


def _applied(
    emit: Emitter, operator: str, inputs: Sequence[Value], attributes: dict[str, int | bool], graphs: Sequence[Graph]
) -> list[Operand]:
    found = emit.builder.apply_all(operator, inputs, attributes, location=emit.location, subgraphs=graphs)
    return [from_value("", value) for value in found]
