"""`If` whose condition is known only when the model runs: its branches become subgraphs.

Branches whose results have one type become an `if`. Where sizes differ (4 elements, or those that are chosen), the
results are the state of two loops of at most one trip, which may change its size: the first runs one branch where the
condition holds, the second the other where it does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilework import dtypes
from tilework.dims import Dim, dim
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.control import Refused, Run, WithoutMeaning, applied, formal, owned, truth
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.operand import Operand, from_value
from tilework.frontends.onnx.symbols import SymbolTable
from tilework.frontends.onnx.unify import equal
from tilework.graph.graph import Attribute, Value

_NAMES = ("then_branch", "else_branch")


def run_if(node: OnnxNode, run: Run) -> list[Operand]:
    """An `If` whose condition is computed: the results of the branch that runs."""
    emit = node.emit
    predicate = truth(emit, node.value(0))
    found = [_imported(node, run, name, emit.inside(name)) for name in _NAMES]
    fitting = [one.results for one in found if one.without is None]
    if not fitting:
        raise Refused([fault for one in found if one.without is not None for fault in one.without.faults])
    if len(fitting[0]) != len(fitting[-1]):
        raise NodeFault(1117, f"its branches have {len(fitting[0])} and {len(fitting[-1])} outputs")
    inside = {name for one in found for name in one.emitter.measures}
    kinds = _joined(emit.symbols, fitting[0], fitting[-1], inside)
    if not any(isinstance(extent, int) for kind in kinds for extent in kind.shape):
        graphs = [one.emitter.build(_returned(one, kinds)) for one in found]
        return applied(emit, "if", [predicate], {}, graphs)
    state = [emit.fill(0, kind.dtype, kind.with_extents([dim(0)] * _count(kinds))) for kind in kinds]
    for one, go in zip(found, (predicate, emit.apply("not", predicate)), strict=True):
        state = _at_most_once(node, run, one, go, state, kinds)
    return [from_value("", value) for value in state]


@dataclass(frozen=True)
class _Kind:
    """A result's type. A number stands for an extent in which branches differ, the same number for the same two."""

    dtype: DType
    shape: tuple[Dim | int, ...]

    def with_extents(self, extents: Sequence[Dim]) -> tuple[Dim, ...]:
        """The shape with extents for the numbers."""
        return tuple(extents[extent] if isinstance(extent, int) else extent for extent in self.shape)


def _count(kinds: Sequence[_Kind]) -> int:
    """How many extents branches differ in."""
    return 1 + max((extent for kind in kinds for extent in kind.shape if isinstance(extent, int)), default=-1)


@dataclass(frozen=True)
class _Branch:
    """What a branch returns, in the emitter of its subgraph, or why it does not fit these sizes."""

    name: str
    emitter: Emitter
    results: list[Operand]
    without: WithoutMeaning | None = None


def _imported(node: OnnxNode, run: Run, name: str, inner: Emitter) -> _Branch:
    try:
        return _Branch(name, inner, run(node.graph(name), (), inner))
    except WithoutMeaning as reason:
        return _Branch(name, node.emit.inside(name), [], reason)


def _joined(symbols: SymbolTable, found: Sequence[Operand], others: Sequence[Operand], inside: set[str]) -> list[_Kind]:
    """The types of what branches return. Symbols of `inside` are measured in a branch and mean nothing outside.

    Two free dims that stand in one place are taken to be equal. Raises `NodeFault` 1120 where types differ otherwise.
    """
    numbers: dict[tuple[Dim, Dim], int] = {}
    kinds: list[_Kind] = []
    for one, other in zip(found, others, strict=True):
        if one.dtype != other.dtype or one.rank != other.rank:
            text = f"its branches return {one} and {other}: of which type is known only when the model runs"
            raise NodeFault(1120, text)
        shape = [
            a if _is_same(symbols, a, b, inside) else numbers.setdefault((a, b), len(numbers))
            for a, b in zip(one.shape, other.shape, strict=True)
        ]
        kinds.append(_Kind(one.dtype, tuple(shape)))
    return kinds


def _is_same(symbols: SymbolTable, one: Dim, other: Dim, inside: set[str]) -> bool:
    names = one.names() | other.names()
    if names & inside:
        return False
    if frozenset((str(one), str(other))) == names and not any(map(symbols.is_measured, names)):
        return equal(symbols, one, other, "sizes that branches return")
    return symbols.simplify(one - other) == 0


def _returned(branch: _Branch, kinds: Sequence[_Kind]) -> list[Value]:
    """What a branch's subgraph returns. One that does not fit these sizes is an error where it runs."""
    emit = branch.emitter
    if branch.without is not None:
        text = "; ".join(f"{fault.where}: {fault.message}" for fault in branch.without.faults)
        none = [dim(0)] * _count(kinds)
        return [emit.apply("no_value", shape=kind.with_extents(none), dtype=kind.dtype, reason=text) for kind in kinds]
    values: list[Value] = []
    for operand, kind in zip(branch.results, kinds, strict=True):
        shape = [a if isinstance(b, int) else b for a, b in zip(operand.shape, kind.shape, strict=True)]
        values.append(emit.assumed(owned(emit, operand), shape))
    return values


def _at_most_once(
    node: OnnxNode, run: Run, branch: _Branch, go: Value, state: Sequence[Value], kinds: Sequence[_Kind]
) -> list[Value]:
    """What a branch returns if `go` is true, otherwise the state as it is."""
    emit = node.emit
    changing = [emit.symbols.measured(f"{branch.name}_size") for _ in range(_count(kinds))]
    asked, inner = emit.inside("condition"), emit.inside("body")
    wanted = go
    for emitter in (inner, asked):
        emitter.measures.extend(map(str, changing))
        wanted = formal(emitter, go)
        for value, kind in zip(state, kinds, strict=True):
            formal(emitter, value, kind.with_extents(changing))
    again = _imported(node, run, branch.name, inner) if branch.without is None else replace(branch, emitter=inner)
    body = inner.build([inner.scalar(False, dtypes.boolean), *_returned(again, kinds)])
    ends = tuple(emit.measured_symbol(f"{branch.name}_size") for _ in changing)
    attributes: dict[str, Attribute] = {"extents": ends}
    found = emit.builder.apply_all(
        "while", [go, *state], attributes, location=emit.location, subgraphs=[asked.build([wanted]), body]
    )
    return list(found[1:])
