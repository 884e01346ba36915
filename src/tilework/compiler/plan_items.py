"""What a plan is made of, in order: kernels, values that need none, and control steps with lists of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from tilework.compiler.blocks import Block, Control
from tilework.compiler.kernels import RegionKernel
from tilework.compiler.stacking import ProgramKernel, RowKernels, stored_row, zeros
from tilework.decisions.windows import Windows
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Graph, Value


@dataclass(frozen=True, eq=False)
class StackedRows:
    """How a repetition collects one of its results: a row stored each trip, into zeros where the number is known."""

    zeros: ProgramKernel | None
    stored_row: ProgramKernel


@dataclass(frozen=True, eq=False)
class PlanControl:
    """A control node with the items of each of its subgraphs."""

    control: Control
    blocks: tuple[PlanBlock, ...]
    stacked: tuple[StackedRows, ...] = ()


PlanItem: TypeAlias = "RegionKernel | Value | PlanControl"
"""A kernel; a value that is where its operands are (of a view, or `PlanBlock.windows` has it); or control flow."""


@dataclass(frozen=True, eq=False)
class PlanBlock:
    """A closed graph and its items, and which values share memory."""

    graph: Graph
    items: tuple[PlanItem, ...]
    windows: Windows


def planned_block(block: Block, kernels: Mapping[str, RegionKernel], rows: RowKernels) -> PlanBlock:
    """The block with kernels (by region name) in place of regions; a region without one is a view or window."""
    items: list[PlanItem] = []
    for item in block.items:
        if isinstance(item, Control):
            inner = tuple(planned_block(b, kernels, rows) for b in item.blocks)
            items.append(PlanControl(item, inner, tuple(_stacked(item, rows))))
        else:
            items.append(kernels.get(item.name) or item.root.output)
    return PlanBlock(block.graph, tuple(items), block.windows)


def _stacked(item: Control, kernels: RowKernels) -> Iterator[StackedRows]:
    """The kernels that collect what a repetition returns besides its state."""
    if item.node.operator == "if":
        return
    body = item.blocks[-1].graph
    for result, returned in zip(item.collected, body.outputs[item.state_count :], strict=True):
        rows, row = result.tensor, body.values[returned].tensor
        if item.trip:
            store = stored_row(row, rows, item.position(rows.shape[0]), body.symbols)
            yield StackedRows(kernels(zeros(rows, body.symbols)), kernels(store))
        else:
            yield StackedRows(None, kernels(stored_row(row, rows, rows.shape[0] - 1, body.symbols)))
