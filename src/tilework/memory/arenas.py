"""Arenas of a whole plan: a draft plan goes in, the same plan with offsets and arena sizes comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilework.dims import Dim, maximum, symbol_bounds
from tilework.fast_dataclass import dataclass
from tilework.memory.lifetimes import from_order
from tilework.memory.placement import Placement, place
from tilework.plan.buffers import ArenaPlace, PlanBuffer
from tilework.plan.order import Order, order_of
from tilework.plan.plan import Plan, alias_key
from tilework.plan.steps import KernelStep, LibraryStep


@dataclass(frozen=True)
class PlacedPlan:
    """The plan with offsets; the placement of each arena (items are alias sets, `alias_key`), and which alias sets
    took over the bytes of another in place.
    """

    plan: Plan
    placements: Mapping[str, Placement]
    in_place: Mapping[str, str]


@dataclass
class _Group:
    """Alias sets that start at one offset: one, or several that take over each other's bytes."""

    keys: list[str]
    life: int
    size: Dim
    alignment: int


def place_arenas(
    plan: Plan, *, representative: Mapping[str, int] | None = None, reuse_in_place: bool = True
) -> PlacedPlan:
    """Give every arena buffer of a draft its offset, and every arena its bytes.

    In a draft the offset of an arena buffer counts from the start of its alias set, and arena sizes mean nothing. The
    result keeps buffers apart that are live together under happens-before over all queues, for every value of the
    symbols; a kernel's output takes over an input's bytes where its signature allows and nothing needs them any more
    (not with `reuse_in_place=False`). Raises `PlanError` 1422 for a buffer of unbounded size.
    """
    order = order_of(plan)
    bounds = symbol_bounds(plan.symbols)
    arenas: dict[str, dict[str, _Group]] = {arena.name: {} for arena in plan.arenas}
    for key, members in plan.alias_sets.items():
        if isinstance(members[0].place, ArenaPlace):
            size = maximum(*(member.offset + member.bytes for member in members)).simplify(bounds)
            life = order.life(member.name for member in members)
            group = _Group([key], life, size, max(member.alignment for member in members))
            arenas[members[0].place.arena][key] = group
    taken: dict[str, str] = {}
    if reuse_in_place:
        for groups in arenas.values():
            taken.update(_reuse(order, groups))
    placements: dict[str, Placement] = {}
    starts: dict[str, Dim] = {}
    alignments: dict[str, int] = {}
    for arena, by_key in arenas.items():
        groups = list({id(group): group for group in by_key.values()}.values())
        alignments[arena] = max([64, *(group.alignment for group in groups)])
        placements[arena] = place(
            [group.keys[0] for group in groups],
            [group.size for group in groups],
            from_order(order, [group.life for group in groups]),
            symbols=plan.symbols,
            representative=representative,
            alignment=alignments[arena],
        )
        for group in groups:
            starts.update(dict.fromkeys(group.keys, placements[arena].offsets[group.keys[0]]))
    buffers = tuple(_moved(buffer, starts) for buffer in plan.buffers)
    sizes = tuple(
        replace(arena, bytes=placements[arena.name].total, alignment=max(arena.alignment, alignments[arena.name]))
        for arena in plan.arenas
    )
    return PlacedPlan(plan.replace(buffers=buffers, arenas=sizes), placements, taken)


def _moved(buffer: PlanBuffer, starts: Mapping[str, Dim]) -> PlanBuffer:
    if not isinstance(buffer.place, ArenaPlace):
        return buffer
    return replace(buffer, place=ArenaPlace(buffer.place.arena, starts[alias_key(buffer)] + buffer.offset))


def _reuse(order: Order, groups: dict[str, _Group]) -> dict[str, str]:
    """Join groups where a step writes one over another that it is the last to read; new alias set -> old one."""
    taken: dict[str, str] = {}
    buffers = order.plan.buffer_named
    for node, found in enumerate(order.nodes):
        step = found.step
        if not isinstance(step, (KernelStep, LibraryStep)):
            continue
        actual = dict(zip((formal.name for formal in step.kernel.buffers), step.arguments, strict=False))
        access = {formal.name: formal.access for formal in step.kernel.buffers}
        for pair in step.kernel.may_alias:
            for source, target in (pair, pair[::-1]):
                if access.get(source) != "read" or access.get(target) != "write":
                    continue
                old, new = buffers[actual[source]], buffers[actual[target]]
                if _may_take_over(order, node, step, groups, old, new):
                    first, second = groups[alias_key(old)], groups[alias_key(new)]
                    taken[alias_key(new)] = alias_key(old)
                    first.keys.extend(second.keys)
                    first.life |= second.life
                    first.alignment = max(first.alignment, second.alignment)
                    for key in second.keys:
                        groups[key] = first
    return taken


def _may_take_over(
    order: Order, node: int, step: KernelStep | LibraryStep, groups: dict[str, _Group], old: PlanBuffer, new: PlanBuffer
) -> bool:
    first, second = groups.get(alias_key(old)), groups.get(alias_key(new))
    if first is None or second is None or first is second:
        return False
    if first.size != second.size or old.offset != new.offset or old.dtype.itemsize != new.dtype.itemsize:
        return False
    here = 1 << node
    if first.life & second.life != here or second.life & ~order.followers(first.life & ~here):
        return False
    if (second.life & ~here) & ~order.followers(first.life):
        return False
    # Everything of either group that this step touches must be a pair that the kernel allows.
    pairs = {frozenset(pair) for pair in step.kernel.may_alias}
    arguments = list(zip(step.kernel.buffers, step.arguments, strict=False))
    keys = [alias_key(order.plan.buffer_named[name]) for _, name in arguments]
    olds = [formal for (formal, _), key in zip(arguments, keys, strict=True) if key in first.keys]
    news = [formal for (formal, _), key in zip(arguments, keys, strict=True) if key in second.keys]
    return all(formal.access == "read" for formal in olds) and all(
        frozenset((a.name, b.name)) in pairs for a in olds for b in news
    )
