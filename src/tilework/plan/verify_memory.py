"""Which bytes of a plan meet: ranges inside their memory, alignment, alias sets, overlaps of lives, races."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilework.dims import Dim, symbol_bounds
from tilework.errors import Fault
from tilework.plan.boxes import boxes_of, meeting
from tilework.plan.buffers import ArenaPlace, ConstantPlace, InputPlace, OutputPlace, PlanBuffer
from tilework.plan.order import Order
from tilework.plan.proof import divisible, nonnegative
from tilework.plan.signature import Box, KernelBuffer
from tilework.plan.steps import KernelStep, LibraryStep
from tilework.plan.verify_order import Samples, where_is


def memory_faults(order: Order, samples: Samples) -> Iterator[Fault]:
    """Faults 1405, 1406, 1407, 1412, 1415 of a plan whose names are all known."""
    checker = _Checker(order, samples)
    for buffer in order.plan.buffers:
        yield from checker.inside(buffer)
    yield from checker.alias_sets()
    for node, found in enumerate(order.nodes):
        if isinstance(found.step, (KernelStep, LibraryStep)):
            yield from checker.arguments(where_is(order, node), found.step)
    yield from checker.races()
    yield from checker.overlaps()


class _Checker:
    def __init__(self, order: Order, samples: Samples) -> None:
        self.order = order
        self.plan = order.plan
        self.samples = samples
        self.bounds = symbol_bounds(order.plan.symbols)
        self.met: dict[tuple[Dim, Dim, Dim, Dim], Mapping[str, int] | None] = {}

    def counterexample(self, value: Dim) -> Mapping[str, int] | None:
        """Values of the symbols at which `value >= 0` is wrong; None where it is proved, or holds at every sample."""
        if value.is_constant:
            return {} if value.constant < 0 else None
        if nonnegative(value, self.bounds):
            return None
        return next((values for values in self.samples if value.evaluate(values) < 0), None)

    def meeting(self, a: PlanBuffer, b: PlanBuffer) -> Mapping[str, int] | None:
        """Values of the symbols at which two buffers of one memory share a byte; None where they never do."""
        key = (a.offset, a.bytes, b.offset, b.bytes)
        if key not in self.met:
            self.met[key] = self.ranges_meeting(*key)
        return self.met[key]

    def ranges_meeting(self, start: Dim, size: Dim, other: Dim, other_size: Dim) -> Mapping[str, int] | None:
        """As `meeting`, of bytes `start` to `start + size` and those of the other."""
        if 0 in (size, other_size):
            return None
        if all(value.is_constant for value in (start, size, other, other_size)):
            first, second = start.constant, other.constant
            return {} if first < second + other_size.constant and second < first + size.constant else None
        gaps = [other - start - size, start - other - other_size]
        if self.samples:  # the one that holds at a sample is the one worth proving
            gaps = [gap for gap in gaps if gap.evaluate(self.samples[-1]) >= 0]
        if any(nonnegative(gap, self.bounds) for gap in gaps):
            return None
        for values in self.samples:
            first, second = start.evaluate(values), other.evaluate(values)
            one, two = size.evaluate(values), other_size.evaluate(values)
            if one > 0 and two > 0 and first < second + two and second < first + one:
                return values
        return None

    # -- one buffer ----------------------------------------------------------------------------------------------------
    def inside(self, buffer: PlanBuffer) -> Iterator[Fault]:
        """The bytes of a buffer are inside its memory, and aligned there."""
        where = f"buffer {buffer.name}"
        plan = self.plan
        match buffer.place:
            case InputPlace(position=position):
                size = plan.inputs[position].type.bytes
            case OutputPlace(position=position):
                size = plan.outputs[position].type.bytes
            case ArenaPlace(arena=name):
                size = plan.arena_named[name].bytes
                granted = plan.arena_named[name].alignment
                if granted % buffer.alignment:
                    text = f"is at multiples of {buffer.alignment} bytes, its arena {name} only of {granted}"
                    yield Fault(1405, where, text)
            case _:
                return
        if not divisible(buffer.offset, buffer.alignment):
            for values in self.samples:
                if buffer.offset.evaluate(values) % buffer.alignment:
                    text = f"its offset {buffer.offset} is no multiple of {buffer.alignment}{_at(values)}"
                    yield Fault(1405, where, text)
                    break
        for value, text in (
            (buffer.offset, f"starts at offset {buffer.offset}, before its memory ({buffer.memory})"),
            (
                size - buffer.offset - buffer.bytes,
                f"ends at {buffer.offset + buffer.bytes}, after its memory ({buffer.memory}, {size} bytes)",
            ),
        ):
            values = self.counterexample(value)
            if values is not None:
                yield Fault(1415, where, text + _at(values))

    def alias_sets(self) -> Iterator[Fault]:
        for key, members in self.plan.alias_sets.items():
            first = members[0]
            for other in members[1:]:
                if other.memory != first.memory or other.space != first.space:
                    text = f"{first.name} is in {first.memory} ({first.space}), {other.name} in {other.memory}"
                    yield Fault(1412, f"alias {key}", text)

    def arguments(self, where: str, step: KernelStep | LibraryStep) -> Iterator[Fault]:
        """Buffers of one kernel call that share bytes, one of them written, must be a pair that it allows."""
        buffers = [self.plan.buffer_named[name] for name in step.arguments]
        formals = step.kernel.buffers
        allowed = {frozenset(pair) for pair in step.kernel.may_alias}
        for i, a in enumerate(buffers):
            for j in range(i):
                b = buffers[j]
                if (formals[i].access == formals[j].access == "read") or a.memory != b.memory:
                    continue
                values = self.meeting(a, b)
                if values is None or (a is b and self.touch_apart(step, formals[i], formals[j], a)):
                    continue
                pair = f"{formals[j].name} ({b.name}) and {formals[i].name} ({a.name})"
                if frozenset((formals[i].name, formals[j].name)) not in allowed:
                    text = f"{pair} share bytes{_at(values)}, which kernel {step.kernel.name} does not allow"
                    yield Fault(1412, where, text)
                elif a.offset != b.offset or a.dtype.itemsize != b.dtype.itemsize:
                    yield Fault(
                        1412, where, f"{pair} may be the same memory, but not shifted or of other element sizes"
                    )

    def touch_apart(
        self, step: KernelStep | LibraryStep, one: KernelBuffer, other: KernelBuffer, buffer: PlanBuffer
    ) -> bool:
        """Whether a call touches elements of one buffer as two arguments of its kernel, and none as both."""
        if not len(one.shape) == len(other.shape) == len(buffer.shape):
            return False
        whole = (Box((Dim(),) * len(buffer.shape), buffer.shape),)
        first, second = boxes_of(step, one) or whole, boxes_of(step, other) or whole
        return meeting(first, second, self.bounds, self.samples) is None

    # -- two buffers ---------------------------------------------------------------------------------------------------
    def races(self) -> Iterator[Fault]:
        """Accesses to the same bytes, one of them a write, that nothing orders."""
        order = self.order
        if order.total:
            return
        for members in self.plan.alias_sets.values():
            if isinstance(members[0].place, ConstantPlace):
                continue
            accesses = [(buffer, access) for buffer in members for access in order.accesses.get(buffer.name, ())]
            for i, (a, first) in enumerate(accesses):
                for b, second in accesses[:i]:
                    if first.node == second.node or not (first.writes or second.writes):
                        continue
                    if order.apart(first.node, second.node) or (a is not b and self.meeting(a, b) is None):
                        continue
                    names = a.name if a is b else f"{a.name} and {b.name}, the same memory"
                    text = f"and {where_is(order, second.node)} touch {names}; one writes, and nothing orders them"
                    yield Fault(1407, where_is(order, first.node), text)

    def overlaps(self) -> Iterator[Fault]:
        """Buffers that share bytes while both hold values."""
        by_memory: dict[str, list[tuple[PlanBuffer, ...]]] = {}
        for members in self.plan.alias_sets.values():
            if isinstance(members[0].place, (ArenaPlace, InputPlace, OutputPlace)):
                by_memory.setdefault(members[0].memory, []).append(members)
        for groups in by_memory.values():
            if len(groups) > 1:
                yield from self.overlaps_in(groups)

    def overlaps_in(self, groups: list[tuple[PlanBuffer, ...]]) -> Iterator[Fault]:
        order = self.order
        lives = [order.life(buffer.name for buffer in members) for members in groups]
        followers = [order.followers(life) for life in lives]
        position = {node: index for index, node in enumerate(order.linear)}
        spans: list[tuple[int, int, int]] = []
        for index, life in enumerate(lives):
            if life:
                times = [position[node] for node in range(life.bit_length()) if (life >> node) & 1]
                spans.append((min(times), max(times), index))
        spans.sort()
        active: list[tuple[int, int]] = []
        for start, stop, index in spans:
            if order.total:  # otherwise a span that is over may still run beside this one
                active = [(end, other) for end, other in active if end >= start]
            for _, other in active:
                if lives[index] & ~followers[other] == 0 or lives[other] & ~followers[index] == 0:
                    continue
                yield from self.clash(groups[other], groups[index], lives[other], lives[index])
            active.append((stop, index))

    def clash(
        self, one: tuple[PlanBuffer, ...], two: tuple[PlanBuffer, ...], first: int, second: int
    ) -> Iterator[Fault]:
        for a in one:
            for b in two:
                values = self.meeting(a, b)
                if values is None or self.in_place(one, two, first, second) or self.in_place(two, one, second, first):
                    continue
                text = (
                    f"and buffer {b.name} share bytes of {a.memory}{_at(values)}, and neither is done before the other"
                )
                yield Fault(1406, f"buffer {a.name}", text)

    def in_place(self, old: tuple[PlanBuffer, ...], new: tuple[PlanBuffer, ...], first: int, second: int) -> bool:
        """Whether `new` takes over the bytes of `old` in a step that reads one and writes the other in place."""
        order = self.order
        common = first & second
        if common.bit_count() != 1:
            return False
        node = common.bit_length() - 1
        step = order.nodes[node].step
        if not isinstance(step, (KernelStep, LibraryStep)):
            return False
        if second & ~order.followers(first & ~common) or (second & ~common) & ~order.followers(first):
            return False
        olds, news = {b.name: b for b in old}, {b.name: b for b in new}
        pairs = {frozenset(pair) for pair in step.kernel.may_alias}
        reads = [(f, olds[n]) for n, f in zip(step.arguments, step.kernel.buffers, strict=True) if n in olds]
        writes = [(f, news[n]) for n, f in zip(step.arguments, step.kernel.buffers, strict=True) if n in news]
        return all(formal.access == "read" for formal, _ in reads) and all(
            frozenset((r.name, w.name)) in pairs and a.offset == b.offset and a.dtype.itemsize == b.dtype.itemsize
            for r, a in reads
            for w, b in writes
        )


def _at(values: Mapping[str, int]) -> str:
    return f" at {', '.join(f'{name} = {value}' for name, value in values.items())}" if values else ""
