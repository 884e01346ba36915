"""The interpreter's memory: an array of bytes for each arena, input, output and measured buffer.

Bytes that hold no value that is still needed are poisoned, so that a plan that uses a buffer outside its life computes
what no right plan does: floating elements become NaN, integers -1 or their largest value.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilework.errors import PlanError
from tilework.fast_dataclass import dataclass
from tilework.plan.buffers import ArenaPlace, PlanBuffer
from tilework.plan.order import Order, bits
from tilework.plan.plan import Plan, alias_key
from tilework.plan.protocols import Array

POISON = 0xFF


@dataclass
class _Tenant:
    """An alias set in an arena: the nodes of its life, and whether it holds values now."""

    members: tuple[PlanBuffer, ...]
    life: int
    live: bool = False


class PoisonedMemory:
    """Bytes by memory name (`PlanBuffer.memory`), and who lives where."""

    def __init__(self, plan: Plan, order: Order, symbols: Mapping[str, int]) -> None:
        self.plan = plan
        self.symbols = symbols
        self.bytes: dict[str, Array] = {}
        self.done = 0
        self.tenants: dict[int, list[_Tenant]] = {}
        self.by_memory: dict[str, list[_Tenant]] = {}
        for members in plan.alias_sets.values():
            if not isinstance(members[0].place, ArenaPlace):
                continue
            tenant = _Tenant(members, order.life(member.name for member in members))
            self.by_memory.setdefault(members[0].memory, []).append(tenant)
            for node in bits(tenant.life):
                self.tenants.setdefault(node, []).append(tenant)

    def allocate(self, memory: str, size: int, keep: bool = False) -> None:
        """New poisoned memory under this name, in place of any there was, of which `keep` keeps what fits."""
        found = np.full(max(size, 0), POISON, np.uint8)
        if keep and memory in self.bytes:
            held = self.bytes[memory][:size]
            found[: len(held)] = held
        self.bytes[memory] = found

    def holds(self, memory: str, array: Array) -> None:
        """Memory with the contents of an array, in row-major order."""
        self.bytes[memory] = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8).copy()

    def array(self, name: str) -> Array:
        """A buffer as an array over its bytes."""
        buffer = self.plan.buffer_named[name]
        shape = tuple(int(extent.evaluate(self.symbols)) for extent in buffer.shape)
        low, high = self._range(buffer)
        whole = self.bytes.get(buffer.memory)
        if whole is None:
            raise PlanError(1418, f"buffer {name} is used before it is allocated")
        if low < 0 or high > len(whole):
            raise PlanError(1415, f"buffer {name} has bytes {low} to {high} of {len(whole)} in {buffer.memory}")
        return whole[low:high].view(buffer.dtype.numpy).reshape(shape)

    def poison(self, name: str) -> None:
        """Poison the bytes of a buffer."""
        buffer = self.plan.buffer_named[name]
        low, high = self._range(buffer)
        self.bytes[buffer.memory][low:high] = POISON

    def begin_trip(self, inside: int) -> None:
        """The nodes `inside` a loop are about to run once more."""
        self.done &= ~inside

    def ran(self, nodes: int) -> None:
        """Nodes have run, or never will: buffers whose whole life is over are poisoned."""
        self.done |= nodes
        touched = {id(tenant): tenant for node in bits(nodes) for tenant in self.tenants.get(node, ())}
        for tenant in touched.values():
            tenant.live = bool(tenant.life & ~self.done)
        for tenant in touched.values():
            if not tenant.live:
                self._bury(tenant)

    def _bury(self, dead: _Tenant) -> None:
        neighbours = self.by_memory[dead.members[0].memory]
        # A buffer that took over the bytes in place is alive: they are its own now.
        alive = [self._range(b) for t in neighbours if t is not dead and t.live for b in t.members if self._sized(b)]
        for member in filter(self._sized, dead.members):
            low, high = self._range(member)
            if all(high <= a or b <= low for a, b in alive):
                self.bytes[member.memory][low:high] = POISON

    def _sized(self, buffer: PlanBuffer) -> bool:
        return all(name in self.symbols for extent in buffer.shape for name in extent.names())

    def _range(self, buffer: PlanBuffer) -> tuple[int, int]:
        if not self._sized(buffer):
            raise PlanError(1416, f"the size of buffer {buffer.name} is not measured yet")
        low = int(buffer.offset.evaluate(self.symbols))
        return low, low + int(buffer.bytes.evaluate(self.symbols))


def set_bytes(plan: Plan, name: str, symbols: Mapping[str, int]) -> int:
    """Bytes that the memory of a buffer's alias set needs."""
    members = plan.alias_sets[alias_key(plan.buffer_named[name])]
    return max(int((member.offset + member.bytes).evaluate(symbols)) for member in members)


def poisoned(array: Array, where: Array) -> Array:
    """A copy of an array, the elements where a mask says so poisoned."""
    found = array.copy()
    found.view(np.uint8).reshape(*array.shape, array.dtype.itemsize)[where] = POISON
    return found
