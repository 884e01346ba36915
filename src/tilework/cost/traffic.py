"""Bytes that move between the levels of memory, by a model of what stays in a cache while loops run.

A node whose footprint fits into a cache brings each of its lines once. A loop whose body fits brings each line of the
loop once: what the loop does not move is still there in the next iteration. Where not even the body fits, every
iteration brings its lines anew. (Least-recently-used replacement, seen loop by loop; no conflicts, no prefetching.)
"""

from __future__ import annotations

from collections.abc import Mapping

from tilework.cost.accesses import accesses_in
from tilework.cost.counts import AccessCount, Footprints
from tilework.fast_dataclass import dataclass
from tilework.loops.program import Loop, LoopProgram, Node, children
from tilework.machine.cpu import Cache


@dataclass(frozen=True)
class Traffic:
    """Bytes between one level and the next smaller (or the registers), by buffer.

    `source` is where they come from: `L1` .. `L3`, or `memory`. Written lines are brought first and go back later.
    """

    source: str
    fetched: Mapping[str, int]
    written: Mapping[str, int]

    @property
    def fetched_bytes(self) -> int:
        return sum(self.fetched.values())

    @property
    def written_bytes(self) -> int:
        return sum(self.written.values())

    @property
    def bytes(self) -> int:
        return self.fetched_bytes + self.written_bytes


def traffic(
    program: LoopProgram,
    caches: tuple[Cache, ...],
    accesses: tuple[AccessCount, ...],
    footprints: Footprints,
    streaming: frozenset[str] = frozenset(),
) -> tuple[Traffic, ...]:
    """Traffic out of every level, the nearest first: to registers from `L1`, to the first cache from `L2`, ...

    Stores to `streaming` buffers larger than every cache go past them: into memory, and nothing is brought first.
    """
    largest = max((cache.bytes for cache in caches), default=0)
    past = {n for n in streaming if int(program.buffers[n].bytes) >= largest and n not in _read(program)}
    written = {access.buffer for access in accesses_in(program.body) if access.kind != "read"}
    loads: dict[str, int] = {}
    stores: dict[str, int] = {}
    for access in accesses:
        if access.scope in ("register", "fragment"):
            continue
        share = access.issued_bytes // 2 if access.kind == "update" else access.issued_bytes
        if access.kind != "write":
            loads[access.buffer] = loads.get(access.buffer, 0) + share
        if access.kind != "read":
            stores[access.buffer] = stores.get(access.buffer, 0) + share
    ordered = sorted(caches, key=lambda cache: cache.level)
    found = [Traffic(f"L{ordered[0].level}" if ordered else "memory", loads, stores)]
    for number, cache in enumerate(ordered):
        source = f"L{ordered[number + 1].level}" if number + 1 < len(ordered) else "memory"
        model = _Model(footprints, cache.bytes)
        fetched = model.fetched(program.body, ())
        line = footprints.line_bytes
        brought = {name: lines * line for name, lines in fetched.items()}
        back = {n: size for n, size in brought.items() if n in written and (n not in past or source == "memory")}
        found.append(Traffic(source, {n: size for n, size in brought.items() if n not in past}, back))
    return tuple(found)


def _read(program: LoopProgram) -> set[str]:
    return {access.buffer for access in accesses_in(program.body) if access.kind != "write"}


class _Model:
    def __init__(self, footprints: Footprints, capacity: int) -> None:
        self._footprints = footprints
        self._capacity = capacity

    def fetched(self, node: Node, around: tuple[Loop, ...]) -> dict[str, int]:
        """Lines brought in one run of a node, by buffer."""
        below = children(node)
        if not below or self._fits(node, around):
            return self._lines(node, around)
        if isinstance(node, Loop):
            inside = (*around, node)
            if self._fits(node.body, inside):
                return self._lines(node, around)
            extent = node.extent.value
            times = extent if extent is not None else max(1, node.extent.constant)
            return {name: lines * times for name, lines in self.fetched(node.body, inside).items()}
        total: dict[str, int] = {}
        for child in below:
            for name, lines in self.fetched(child, around).items():
                total[name] = total.get(name, 0) + lines
        return total

    def _fits(self, node: Node, around: tuple[Loop, ...]) -> bool:
        return self._footprints.bytes(node, around) <= self._capacity

    def _lines(self, node: Node, around: tuple[Loop, ...]) -> dict[str, int]:
        return {name: part.lines for name, part in self._footprints.of(node, around).items()}
