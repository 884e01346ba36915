"""What is in an arena when: for each moment of a placed plan, at given sizes, who lives where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from tilework.dims import Dim, maximum
from tilework.errors import UsageError
from tilework.fast_dataclass import dataclass
from tilework.plan.buffers import ArenaPlace
from tilework.plan.order import Node, bits, order_of
from tilework.plan.plan import Plan


@dataclass(frozen=True)
class Tenant:
    """Buffers on one piece of an arena: bytes from `offset`, a whole number of alignments, and the moments (numbers
    from 0) from the `first` to the `last` at which they hold values that are needed.
    """

    names: tuple[str, ...]
    offset: int
    bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class Occupancy:
    """An arena of so many `bytes` over the `moments` of its plan, in an order of execution; each moment has the name of
    its step.
    """

    arena: str
    bytes: int
    moments: tuple[str, ...]
    tenants: tuple[Tenant, ...]

    @cached_property
    def live(self) -> tuple[int, ...]:
        """Bytes in use at each moment. Tenants that take over each other's bytes in place are counted once."""
        at: list[list[tuple[int, int]]] = [[] for _ in self.moments]
        for tenant in self.tenants:
            for moment in range(tenant.first, tenant.last + 1):
                at[moment].append((tenant.offset, tenant.offset + tenant.bytes))
        return tuple(map(_covered, at))

    @property
    def lower_bound(self) -> int:
        """The most bytes in use at any moment: in this order of steps no arena is smaller."""
        return max(self.live, default=0)


def occupancies(plan: Plan, sizes: Mapping[str, int]) -> tuple[Occupancy, ...]:
    """Each arena of a placed plan at these values of its symbols; measured symbols count at their upper bounds, as they
    do in the plan.

    Raises `UsageError` 1005 for a symbol without a value.
    """
    order = order_of(plan)
    values = dict(sizes) | {s.name: s.upper for s in plan.symbols if s.measured and s.upper is not None}
    position = {node: index for index, node in enumerate(order.linear)}
    moments = tuple(_named(order.nodes[node]) for node in order.linear)
    found: list[Occupancy] = []
    for arena in plan.arenas:
        tenants: list[Tenant] = []
        for members in plan.alias_sets.values():
            place = members[0].place
            if not isinstance(place, ArenaPlace) or place.arena != arena.name:
                continue
            when = [position[node] for node in bits(order.life(member.name for member in members))]
            start = min(_value(member.offset, values) for member in members)
            end = _value(maximum(*(member.offset + member.bytes for member in members)), values)
            if when and end > start:
                size = -(-(end - start) // arena.alignment) * arena.alignment
                tenants.append(Tenant(tuple(m.name for m in members), start, size, min(when), max(when)))
        found.append(Occupancy(arena.name, _value(arena.bytes, values), moments, tuple(tenants)))
    return tuple(found)


def _value(count: Dim, values: Mapping[str, int]) -> int:
    missing = sorted(count.names() - values.keys())
    if missing:
        raise UsageError(1005, f"{', '.join(missing)} has no value", where="sizes")
    return int(count.evaluate(values))


def _named(node: Node) -> str:
    return node.step.name if node.step is not None else node.path


def _covered(ranges: Sequence[tuple[int, int]]) -> int:
    """Bytes in one range or more."""
    covered = end = 0
    for low, high in sorted(ranges):
        covered += max(0, high - max(low, end))
        end = max(end, high)
    return covered
