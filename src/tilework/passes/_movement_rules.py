"""Rules for operators that only move elements: those that move nothing, undo each other, or are a reshape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tilework.dims import Dim, dim
from tilework.graph.graph import Attribute, Node
from tilework.graph.types import TensorType
from tilework.ops.operator import TypeFaults
from tilework.ops.registry import operator
from tilework.passes._arithmetic_rules import RewriteRule, result_is
from tilework.passes._rewriting import Outcome, Scope


def _shape(scope: Scope, name: str) -> tuple[Dim, ...]:
    found = scope.tensor(name)
    return () if found is None else found.shape


def _below(node: Node, scope: Scope, kind: str) -> Node | None:
    """The operand's node, where it applies that operator."""
    found = scope.producer(node.inputs[0])
    return found if found is not None and found.operator == kind and not found.black_box else None


def _numbers(node: Node, name: str) -> tuple[int, ...]:
    found = node.attributes[name]
    return tuple(int(v) for v in found if isinstance(v, (int, Dim))) if isinstance(found, tuple) else ()


def _is_each(node: Node, name: str, value: int) -> bool:
    """Whether all entries of an attribute are that integer (or it is left out)."""
    found = node.attributes.get(name, ())
    return isinstance(found, tuple) and all(entry == value for entry in found)


def _changed(node: Node, scope: Scope, kind: str, source: str, attributes: Mapping[str, Attribute]) -> Node | None:
    """The node as another operator on another operand; None where its type rule does not give the same result."""
    operands = [scope.value(name).type for name in (source, *node.inputs[1:])]
    try:
        found = operator(kind).infer(operands, attributes)
    except TypeFaults:
        return None
    if found != tuple(value.type for value in node.outputs):
        return None
    return replace(
        node, operator=kind, inputs=(source, *node.inputs[1:]), attributes=MappingProxyType(dict(attributes))
    )


def _as_reshape(node: Node, scope: Scope) -> Outcome:
    """The node as a reshape of its operand, or as the operand itself."""
    (source,) = node.inputs
    same = result_is(node, scope, source)
    return same if same is not None else _changed(node, scope, "reshape", source, {"shape": node.output.tensor.shape})


def _reshape(node: Node, scope: Scope) -> Outcome:
    below = _below(node, scope, "reshape")
    if below is None:
        return result_is(node, scope, node.inputs[0])
    (source,) = below.inputs
    back = result_is(node, scope, source)
    return back if back is not None else _changed(node, scope, "reshape", source, node.attributes)


def _transpose(node: Node, scope: Scope) -> Outcome:
    order = _numbers(node, "permutation")
    shape = _shape(scope, node.inputs[0])
    moved = [d for d in order if shape[d] != 1]
    if moved == sorted(moved):
        return _as_reshape(node, scope)
    below = _below(node, scope, "transpose")
    if below is None:
        return None
    first = _numbers(below, "permutation")
    both: tuple[Attribute, ...] = tuple(first[d] for d in order)
    if both == tuple(range(len(both))):
        return result_is(node, scope, below.inputs[0])
    return _changed(node, scope, "transpose", below.inputs[0], {"permutation": both})


def _broadcast(node: Node, scope: Scope) -> Outcome:
    places = _numbers(node, "broadcast_dimensions")
    source, target = _shape(scope, node.inputs[0]), node.output.tensor.shape
    placed = dict(zip(places, source, strict=True))
    if list(places) == sorted(places) and all(placed.get(d, dim(1)) == extent for d, extent in enumerate(target)):
        return _as_reshape(node, scope)  # nothing is repeated: only dimensions of extent 1 are new
    below = _below(node, scope, "broadcast_in_dim")
    if below is None:
        return None
    both: tuple[Attribute, ...] = tuple(places[d] for d in _numbers(below, "broadcast_dimensions"))
    return _changed(node, scope, "broadcast_in_dim", below.inputs[0], {**node.attributes, "broadcast_dimensions": both})


def _slice(node: Node, scope: Scope) -> Outcome:
    whole = node.attributes["limit_indices"] == _shape(scope, node.inputs[0])
    if whole and _is_each(node, "start_indices", 0) and _is_each(node, "strides", 1):
        return result_is(node, scope, node.inputs[0])
    return None


def _pad(node: Node, scope: Scope) -> Outcome:
    if all(_is_each(node, name, 0) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")):
        return result_is(node, scope, node.inputs[0])
    return None


def _reverse(node: Node, scope: Scope) -> Outcome:
    dimensions = _numbers(node, "dimensions")
    shape = _shape(scope, node.inputs[0])
    if all(shape[d] == 1 for d in dimensions):
        return result_is(node, scope, node.inputs[0])
    below = _below(node, scope, "reverse")
    if below is not None and set(_numbers(below, "dimensions")) == set(dimensions):
        return result_is(node, scope, below.inputs[0])
    return None


def _concatenate(node: Node, scope: Scope) -> Outcome:
    (dimension,) = (int(v) for v in (node.attributes["dimension"],) if isinstance(v, (int, Dim)))
    kept = tuple(name for name in node.inputs if _shape(scope, name)[dimension] != 0)
    if len(kept) <= 1:
        return result_is(node, scope, (kept or node.inputs)[0])
    return replace(node, inputs=kept) if len(kept) < len(node.inputs) else None


def _reduce(node: Node, scope: Scope) -> Outcome:
    """A reduction of single elements is a reshape; but a floating sum starts from +0.0, which turns -0.0 into +0.0."""
    source = scope.tensor(node.inputs[0])
    if not isinstance(source, TensorType):
        return None
    dimensions = _numbers(node, "dimensions")
    if not dimensions:
        return result_is(node, scope, node.inputs[0])
    alone = all(source.shape[d] == 1 for d in dimensions)
    rounded = node.attributes["reducer"] == "sum" and source.dtype.is_floating
    return _as_reshape(node, scope) if alone and not rounded else None


MOVEMENTS: Mapping[str, RewriteRule] = MappingProxyType(
    {
        "reshape": _reshape,
        "transpose": _transpose,
        "broadcast_in_dim": _broadcast,
        "slice": _slice,
        "pad": _pad,
        "reverse": _reverse,
        "concatenate": _concatenate,
        "reduce": _reduce,
    }
)
"""The rule of each operator."""
