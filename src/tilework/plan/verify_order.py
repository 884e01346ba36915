"""What of a plan depends on happens-before: values are written before they are read, memory is there, no races."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tilework.errors import Fault
from tilework.plan.buffers import ArenaPlace, ConstantPlace, PlanBuffer
from tilework.plan.findings import at
from tilework.plan.order import Order
from tilework.plan.plan import alias_key, needs_allocation
from tilework.plan.steps import Allocate, BlackBoxStep, Carry, Check, KernelStep, LibraryStep, Repeat, Sized

Samples = Sequence[Mapping[str, int]]


def order_faults(order: Order, samples: Samples) -> Iterator[Fault]:
    """Faults 1407, 1408, 1413, 1416, 1418 of a plan whose names are all known."""
    yield from _reads(order)
    yield from _parts(order, samples)
    yield from _symbols(order)
    yield from _allocations(order)
    yield from _effects(order)


def where_is(order: Order, node: int) -> str:
    """A node for a message."""
    found = order.nodes[node]
    if found.step is None:
        return found.path
    return f"step {found.path} {found.step.name}" + (f" ({found.step.origin})" if found.step.origin else "")


def _reads(order: Order) -> Iterator[Fault]:
    plan = order.plan
    for name, accesses in order.accesses.items():
        key = alias_key(plan.buffer_named[name])
        for access in accesses:
            if not access.reads or order.written(key, access.node):
                continue
            if access.node == order.end:
                outputs = ", ".join(output.name for output in plan.outputs if output.buffer == name)
                yield Fault(1413, f"output {outputs}", f"no step is sure to have written buffer {name} at the end")
            else:
                yield Fault(
                    1408, where_is(order, access.node), f"reads buffer {name}, which nothing is sure to have written"
                )


def _parts(order: Order, samples: Samples) -> Iterator[Fault]:
    """Where buffers are parts of others, every byte that is read must have been written, by whichever part.

    Looked at for the sample values of the symbols; sizes that the call measures are left out.
    """
    plan = order.plan
    known = {symbol.name for symbol in plan.symbols if not symbol.measured}
    for members in plan.alias_sets.values():
        if len({(b.offset, b.bytes) for b in members}) < 2 or any(b.bytes.names() - known for b in members):
            continue
        for values in samples:
            fault = _unwritten(order, members, values)
            if fault is not None:
                yield fault
                break


def _unwritten(order: Order, members: tuple[PlanBuffer, ...], values: Mapping[str, int]) -> Fault | None:
    """The first read of bytes that nothing is sure to have written, at some values of the symbols."""
    ranges: dict[str, tuple[int, int]] = {}
    for buffer in members:
        start = int(buffer.offset.evaluate(values))
        ranges[buffer.name] = start, start + int(buffer.bytes.evaluate(values))
    cuts = sorted({place for ends in ranges.values() for place in ends})
    writers = {
        (low, high): [
            access.node
            for name, (first, last) in ranges.items() if first <= low and high <= last
            for access in order.accesses.get(name, ()) if access.writes
        ]
        for low, high in pairwise(cuts)
    }  # fmt: skip
    for name, (first, last) in ranges.items():
        for access in order.accesses.get(name, ()):
            for (low, high), nodes in writers.items() if access.reads else ():
                if first <= low and high <= last and not order.sure(nodes, access.node):
                    text = f"reads bytes {low - first} to {high - first} of buffer {name}{at(values)}, "
                    return Fault(1408, where_is(order, access.node), text + "which nothing is sure to have written")
    return None


def _symbols(order: Order) -> Iterator[Fault]:
    """Measured symbols must have been measured where a step or a buffer that it touches needs them."""
    plan = order.plan
    measured = {symbol.name for symbol in plan.symbols if symbol.measured}
    if not measured:
        return
    needed: dict[int, set[str]] = {}
    for name, accesses in order.accesses.items():
        names = {found for extent in plan.buffer_named[name].shape for found in extent.names()} & measured
        for access in accesses if names else ():
            needed.setdefault(access.node, set()).update(names)
    for node, found in enumerate(order.nodes):
        if isinstance(found.step, (KernelStep, LibraryStep)):
            needed.setdefault(node, set()).update(n for value in found.step.symbols for n in value.names() & measured)
        elif isinstance(found.step, Repeat) and found.step.trips is not None:
            needed.setdefault(node, set()).update(found.step.trips.names() & measured)
        elif isinstance(found.step, Check):
            needed.setdefault(node, set()).update(n for g in found.step.guards for n in g.value.names() & measured)
        elif isinstance(found.step, (Allocate, Carry)):
            sizes = found.step.sizes if isinstance(found.step, Carry) else found.step.readings
            values = [size.value for size in sizes if isinstance(size, Sized)]
            needed.setdefault(node, set()).update(n for value in values for n in value.names() & measured)
    for output in plan.outputs:
        needed.setdefault(order.end, set()).update(n for extent in output.type.shape for n in extent.names() & measured)
    for node, names in sorted(needed.items()):
        for name in sorted(names):
            if not order.measured(name, node):
                yield Fault(1416, where_is(order, node), f"needs symbol {name}, which nothing is sure to have measured")


def _allocations(order: Order) -> Iterator[Fault]:
    plan = order.plan
    for name, accesses in order.accesses.items():
        buffer = plan.buffer_named[name]
        if not needs_allocation(plan, buffer):
            continue
        for access in accesses:
            if not order.allocated(alias_key(buffer), access.node):
                yield Fault(1418, where_is(order, access.node), f"buffer {name} is not sure to be allocated before")
    for node, found in enumerate(order.nodes):
        for name in getattr(found.step, "buffers", ()):
            buffer = plan.buffer_named[name]
            if not needs_allocation(plan, buffer):
                kind = "in an arena" if isinstance(buffer.place, ArenaPlace) else "there before the plan starts"
                kind = "a constant" if isinstance(buffer.place, ConstantPlace) else kind
                yield Fault(1418, where_is(order, node), f"allocates buffer {name}, which is {kind}")


def _effects(order: Order) -> Iterator[Fault]:
    nodes = [i for i, node in enumerate(order.nodes) if isinstance(node.step, BlackBoxStep) and node.step.ordered]
    for first, second in pairwise(nodes):
        if not order.apart(first, second):
            text = f"has effects, and so has {where_is(order, first)}: nothing says which comes first"
            yield Fault(1407, where_is(order, second), text)
