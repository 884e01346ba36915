"""A region's computation: the definitions of its nodes, joined over shared buffers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tilework.compute.notation import Computation, Stage
from tilework.compute.plain import plain_program
from tilework.dims import Dim, Loaded, dim, loaded
from tilework.dtypes import DType
from tilework.errors import CodegenError
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Node, Value
from tilework.loops.expressions import Expression, Index, Load, constant, rewrite, substitute, walk
from tilework.loops.program import Buffer, LoopProgram
from tilework.ops.registry import operator

if TYPE_CHECKING:
    from tilework.candidates.region import Region, Within

_IDENTIFIER = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, eq=False)
class Joined:
    """A region's computation, and which buffer holds which value."""

    computation: Computation
    buffers: dict[str, str]
    """Buffer name by value name."""
    nodes: dict[str, Node]
    """Stage name to the node that it belongs to."""

    @cached_property
    def program(self) -> LoopProgram:
        """The default loop program of the computation: where every schedule of it starts."""
        return plain_program(self.computation)


def joined(region: Region) -> Joined:
    """Define every node over buffers named by position (`x0`, `x1`, ... enter; `v0`, ... are defined inside), so that
    equal regions have equal computations whatever the user called their values.

    Raises `CodegenError` 1650 for an operator that has no definition.
    """
    buffers: dict[str, Buffer] = {}
    names: dict[str, str] = {}

    def make(value: Value, name: str) -> Buffer:
        found = Buffer(name, value.tensor.shape, value.tensor.dtype)
        buffers[value.name] = found
        names[value.name] = name
        return found

    inputs = tuple(make(value, f"x{position}") for position, value in enumerate(region.inputs))
    for value in region.there.values():  # nothing reads them, but the definition wants to see them
        buffers.setdefault(value.name, Buffer("there", value.tensor.shape, value.tensor.dtype))
    literals = {
        make(item.value, f"s{position}").name: item.array.reshape(()) for position, item in enumerate(region.scalars)
    }
    stages: list[Stage] = []
    nodes: dict[str, Node] = {}
    count = 0
    for node in region.nodes:
        results: list[Buffer] = []
        for value in node.outputs:
            results.append(make(value, f"v{count}"))
            count += 1
        definition = operator(node.operator).define(
            [buffers[name] for name in node.inputs], results, node.attributes, region.symbols
        )
        made = definition.stages
        if node is region.root and region.there:  # one stage an operand
            made = tuple(stage for position, stage in enumerate(made) if position not in region.there)
        stages.extend(made)
        nodes.update((stage.name, node) for stage in made)
    outputs = tuple(buffers[value.name] for value in region.outputs)
    stages = [_with_literals(stage, literals) for stage in stages]
    if region.within:
        boxes = {names[name]: box for name, box in region.within.items()}
        inputs, outputs = (tuple(_whole(b, boxes) for b in each) for each in (inputs, outputs))
        stages = [_in_wholes(stage, boxes) for stage in stages]
    return Joined(Computation(region.name, inputs, outputs, tuple(stages), region.symbols), names, nodes)


def _whole(buffer: Buffer, boxes: Mapping[str, Within]) -> Buffer:
    """What a buffer is a box of, by the same name."""
    return replace(buffer, shape=boxes[buffer.name].shape) if buffer.name in boxes else buffer


def _in_wholes(stage: Stage, boxes: Mapping[str, Within]) -> Stage:
    """The stage over the arrays that some of its buffers are boxes of: the same elements, at indices of those."""

    def shifted(buffer: str, index: Iterable[Dim]) -> tuple[Dim, ...]:
        return tuple(entry + first for entry, first in zip(index, boxes[buffer].corner, strict=True))

    def leaf(node: Expression) -> Expression:
        if isinstance(node, Load) and node.buffer in boxes:
            return Load(node.buffer, shifted(node.buffer, node.index), node.dtype)
        return node

    values = tuple(rewrite(value, leaf, {}) for value in stage.values)
    moved = [target.name for target in stage.targets if target.name in boxes]
    if not moved:
        return replace(stage, values=values)
    assert len(stage.targets) == 1, "targets of one stage share an index"
    return replace(stage, targets=(_whole(stage.target, boxes),), values=values, index=shifted(moved[0], stage.where))


def _with_literals(stage: Stage, literals: dict[str, Any]) -> Stage:
    """The stage with loads of one-element constants replaced by their values."""
    if not literals:
        return stage
    memo: dict[int, Expression] = {}

    def leaf(node: Expression) -> Expression:
        if isinstance(node, Load) and node.buffer in literals:
            return literal(literals[node.buffer], node.dtype)
        return node

    used = {load.buffer for entry in _dims(stage) for load in entry.loads()} & literals.keys()
    if used:
        stage = _with_literal_dims(stage, literals)
    return replace(stage, values=tuple(rewrite(value, leaf, memo) for value in stage.values))


def literal(value: np.ndarray[Any, Any], dtype: DType) -> Expression:
    """A one-element array as a literal."""
    if dtype.kind == "complex":
        raise CodegenError(1650, f"a {dtype} literal cannot be written into code yet")
    return constant(bool(value) if dtype.kind == "boolean" else int(value) if dtype.is_integer else float(value), dtype)


def _dims(stage: Stage) -> Iterable[Dim]:
    yield from stage.guards
    yield from stage.where
    for value in stage.values:
        for node in walk(value):
            if isinstance(node, Load):
                yield from node.index
            elif isinstance(node, Index):
                yield node.value


def _with_literal_dims(stage: Stage, literals: dict[str, Any]) -> Stage:
    def move(found: Loaded) -> Dim:
        return dim(int(literals[found.buffer])) if found.buffer in literals else loaded(found.buffer, found.index)

    return replace(
        stage,
        values=tuple(substitute(value, {}, move) for value in stage.values),
        index=None if stage.index is None else tuple(entry.substitute({}, move) for entry in stage.index),
        guards=tuple(guard.substitute({}, move) for guard in stage.guards),
    )
