"""Boxes of buffers: what of an argument a kernel touches, which boxes share elements, and what boxes have written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product

from tilework.dims import Bounds, Dim
from tilework.errors import Fault
from tilework.plan.buffers import PlanBuffer
from tilework.plan.findings import at
from tilework.plan.order import Order
from tilework.plan.proof import nonnegative
from tilework.plan.signature import Box, KernelBuffer
from tilework.plan.steps import KernelStep, LibraryStep

_Ranges = tuple[tuple[int, int], ...]


def boxes_of(step: KernelStep | LibraryStep, formal: KernelBuffer) -> tuple[Box, ...]:
    """What a call's kernel touches of a buffer, over the plan's symbols; empty where that may be all."""
    values = {symbol.name: value for symbol, value in zip(step.kernel.symbols, step.symbols, strict=True)}
    rank = len(formal.shape)
    fitting = (box for box in formal.boxes if len(box.start) == len(box.extents) == rank)
    return tuple(box.substitute(values) for box in fitting)


def meeting(
    one: Iterable[Box], other: Sequence[Box], bounds: Bounds, samples: Sequence[Mapping[str, int]]
) -> Mapping[str, int] | None:
    """Values of the symbols at which some boxes share an element with some others; None where they never do."""
    known = set[str]().union(*samples)
    for first in one:
        for second in other:
            if any(nonnegative(gap, bounds) for gap in _gaps(first, second)):
                continue
            if any(value.names() - known for value in (*_sizes(first), *_sizes(second))):
                return {}
            for values in samples or [{}]:
                pairs = zip(_ranges(first, values), _ranges(second, values), strict=True)
                if all(max(low, start) < min(high, stop) for (low, high), (start, stop) in pairs):
                    return values
    return None


def _gaps(one: Box, other: Box) -> Iterator[Dim]:
    """What is between two boxes along each dimension, in either order: they are apart if one is not negative."""
    for a, m, b, n in zip(one.start, one.extents, other.start, other.extents, strict=True):
        yield b - a - m
        yield a - b - n


def _sizes(box: Box) -> tuple[Dim, ...]:
    return (*box.start, *box.extents)


def _ranges(box: Box, values: Mapping[str, int]) -> _Ranges:
    """First and last but one index along each dimension."""
    starts = [int(entry.evaluate(values)) for entry in box.start]
    return tuple((a, a + int(n.evaluate(values))) for a, n in zip(starts, box.extents, strict=True))


def unwritten_boxes(order: Order, samples: Sequence[Mapping[str, int]]) -> Iterator[Fault]:
    """Faults 1408: reads of a buffer that kernels write in boxes, before all that is read is sure to be written.

    Looked at for the sample values of the symbols. A buffer of the same alias set counts as the whole where it covers
    all of the buffer's bytes, and as a reader of all wherever it meets them.
    """
    known = {symbol.name for symbol in order.plan.symbols if not symbol.measured}
    for members in order.plan.alias_sets.values():
        sizes = [size for b in members for size in (*b.shape, b.offset)]
        for buffer in members:
            boxes = [box for _, writes, found in _accesses(order, buffer) for box in found if writes]
            if boxes and not any(value.names() - known for value in (*sizes, *(n for b in boxes for n in _sizes(b)))):
                for values in samples or [{}]:
                    fault = _unwritten(order, buffer, members, values)
                    if fault is not None:
                        yield fault
                        break


def _accesses(order: Order, buffer: PlanBuffer) -> Iterator[tuple[int, bool, tuple[Box, ...]]]:
    """What is done to a buffer: the node, whether it writes (else it reads), and the boxes (none: all of it)."""
    for access in order.accesses.get(buffer.name, ()):
        step = order.nodes[access.node].step
        if not isinstance(step, (KernelStep, LibraryStep)):
            yield from ((access.node, writes, ()) for writes in (False, True) if (access.reads, access.writes)[writes])
            continue
        for name, formal in zip(step.arguments, step.kernel.buffers, strict=True):
            if name == buffer.name and formal.access in ("read", "accumulate"):
                yield access.node, False, boxes_of(step, formal)
            if name == buffer.name and formal.access != "read":
                yield access.node, True, boxes_of(step, formal)


def _unwritten(
    order: Order, buffer: PlanBuffer, members: Sequence[PlanBuffer], values: Mapping[str, int]
) -> Fault | None:
    shape = tuple((0, int(extent.evaluate(values))) for extent in buffer.shape)
    low = int(buffer.offset.evaluate(values))
    high = low + int(buffer.bytes.evaluate(values))
    if low == high:
        return None
    reads: list[tuple[int, str, list[_Ranges]]] = []
    writes: list[tuple[int, list[_Ranges]]] = []
    for member in members:
        start = int(member.offset.evaluate(values))
        stop = start + int(member.bytes.evaluate(values))
        for node, writing, boxes in _accesses(order, member):
            own = member is buffer or (start, stop, member.shape) == (low, high, buffer.shape)
            ranges = [_ranges(box, values) for box in boxes] if own and boxes else [shape]
            if not writing and start < high and low < stop:
                reads.append((node, member.name, ranges))
            elif writing and start <= low and high <= stop and (own or not boxes):
                writes.append((node, ranges))
    everything = [ranges for _, found in writes for ranges in found] + [r for _, _, found in reads for r in found]
    cuts = [sorted({end for ranges in [shape, *everything] for end in ranges[d]}) for d in range(len(shape))]
    for cell in product(*(list(pairwise(places)) for places in cuts)):
        nodes = [node for node, found in writes if any(_holds(ranges, cell) for ranges in found)]
        for node, name, found in reads:
            if any(_holds(ranges, cell) for ranges in found) and not order.sure(nodes, node):
                text = f"reads elements {[a for a, _ in cell]} to {[b for _, b in cell]} of buffer {name}{at(values)}, "
                where = order.nodes[node]
                path = where.path if where.step is None else f"step {where.path} {where.step.name}"
                return Fault(1408, path, text + "which nothing is sure to have written")
    return None


def _holds(outer: _Ranges, inner: _Ranges) -> bool:
    return all(a <= c and d <= b for (a, b), (c, d) in zip(outer, inner, strict=True))
