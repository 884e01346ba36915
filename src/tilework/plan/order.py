"""Happens-before: which accesses of a plan are sure to come one after another, whatever the queues' speeds.

Every step is a node; a control step is two, its start and its end. Edges run along each queue, from signals to waits,
and from segment to segment. Sets of nodes are Python integers, bit n for node n.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise

from tilework.errors import Fault
from tilework.fast_dataclass import dataclass
from tilework.plan.buffers import ConstantPlace, InputPlace
from tilework.plan.plan import Plan, alias_key
from tilework.plan.steps import (
    Allocate,
    BlackBoxStep,
    Branch,
    Carry,
    Repeat,
    Step,
    bodies,
    measured_by,
    queues_of,
    touches,
)

Frames = tuple[tuple[int, str], ...]
"""The lists of steps around a node, outermost first: the start node of each control step, and the arm."""


@dataclass(frozen=True)
class Node:
    """A moment of the plan: `path` in words, the step (None: the plan's begin, end, or a segment's end)."""

    path: str
    step: Step | None
    frames: Frames


@dataclass(frozen=True)
class Access:
    """What the step at a node does to a buffer."""

    node: int
    reads: bool
    writes: bool


@dataclass(frozen=True, eq=False)
class Order:
    """The happens-before order of a plan's nodes; `faults` are the waits that break it. Node 0 is the begin."""

    plan: Plan
    nodes: tuple[Node, ...]
    successors: tuple[tuple[int, ...], ...]
    ends: Mapping[int, int]
    """The end node of each control step, by its start node."""
    accesses: Mapping[str, tuple[Access, ...]]
    """What is done to each buffer, by name."""
    faults: tuple[Fault, ...]

    @property
    def end(self) -> int:
        """The node after everything, where the outputs are read."""
        return len(self.nodes) - 1

    @cached_property
    def linear(self) -> tuple[int, ...]:
        """All nodes in one order that agrees with happens-before; shorter than `nodes` if waits form a cycle."""
        missing = [0] * len(self.nodes)
        for targets in self.successors:
            for target in targets:
                missing[target] += 1
        ready = [node for node in reversed(range(len(self.nodes))) if not missing[node]]
        found: list[int] = []
        while ready:
            node = ready.pop()
            found.append(node)
            for target in self.successors[node]:
                missing[target] -= 1
                if not missing[target]:
                    ready.append(target)
        return tuple(found)

    @cached_property
    def after(self) -> tuple[int, ...]:
        """For each node, the nodes that are sure to come after it (within one trip of the loops around both)."""
        found = [0] * len(self.nodes)
        for node in reversed(self.linear):
            mask = 0
            for target in self.successors[node]:
                mask |= found[target] | (1 << target)
            found[node] = mask
        return tuple(found)

    @cached_property
    def total(self) -> bool:
        """Whether all nodes stand in one line: any two of them are ordered."""
        line = self.linear
        return all(second in self.successors[first] for first, second in pairwise(line))

    @cached_property
    def exclusive(self) -> tuple[int, ...]:
        """For each node, the nodes in other arms of branches around it: in one trip only one of both runs."""
        arms: dict[tuple[int, str], int] = {}
        for index, node in enumerate(self.nodes):
            for frame in node.frames:
                arms[frame] = arms.get(frame, 0) | (1 << index)
        found: list[int] = []
        for node in self.nodes:
            mask = 0
            for start, arm in node.frames:
                if arm in ("then", "else"):
                    mask |= arms.get((start, "else" if arm == "then" else "then"), 0)
            found.append(mask)
        return tuple(found)

    @cached_property
    def _writes(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, list[int]] = {}
        for buffer in self.plan.buffers:
            nodes = [access.node for access in self.accesses.get(buffer.name, ()) if access.writes]
            found.setdefault(alias_key(buffer), []).extend(nodes)
        return {key: self._certain(nodes) for key, nodes in found.items()}

    @cached_property
    def _allocations(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, list[int]] = {}
        for index, node in enumerate(self.nodes):
            names: tuple[str, ...] = ()
            if isinstance(node.step, Allocate):
                names = node.step.buffers
            elif isinstance(node.step, Carry):
                names = tuple(target for _, target in node.step.pairs)
            elif isinstance(node.step, BlackBoxStep):
                names = node.step.outputs
            for name in names:
                if name in self.plan.buffer_named:
                    found.setdefault(alias_key(self.plan.buffer_named[name]), []).append(index)
        return {key: self._certain(nodes) for key, nodes in found.items()}

    @cached_property
    def _measurements(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, list[int]] = {}
        for index, node in enumerate(self.nodes):
            for symbol in measured_by(node.step) if node.step is not None else ():
                found.setdefault(symbol, []).append(index)
        return {key: self._certain(nodes) for key, nodes in found.items()}

    def _certain(self, nodes: Iterable[int]) -> tuple[int, ...]:
        """The nodes, and the ends of control steps inside which one of them is sure to have run."""
        found = dict.fromkeys(nodes)
        inside = {frame for node in found for frame in self.nodes[node].frames[-1:]}
        # Control steps are visited inner first: an inner one's end may make its outer one certain.
        for start in sorted(self.ends, reverse=True):
            step = self.nodes[start].step
            if isinstance(step, Branch):
                certain = (start, "then") in inside and (start, "else") in inside
            else:
                trips = step.trips.value if isinstance(step, Repeat) and step.trips is not None else None
                bare = isinstance(step, Repeat) and not step.condition
                certain = bare and trips is not None and trips > 0 and (start, "body") in inside
            if certain:
                end = self.ends[start]
                found[end] = None
                inside |= set(self.nodes[end].frames[-1:])
        return tuple(found)

    def _sure(self, nodes: tuple[int, ...], at: int) -> bool:
        """Whether one of the (certain) nodes has run whenever `at` runs."""
        frames = self.nodes[at].frames
        for node in nodes:
            inner = self.nodes[node].frames
            if inner == frames[: len(inner)] and (self.after[node] >> at) & 1:
                return True
        return False

    def sure(self, nodes: Iterable[int], at: int) -> bool:
        """Whether one of some nodes, whichever it is, has run whenever `at` runs."""
        return self._sure(self._certain(nodes), at)

    def written(self, key: str, at: int, within: Frames = ()) -> bool:
        """Whether the alias set `key` (see `alias_key`) is sure to be written before node `at`, within some frames."""
        nodes = self._writes.get(key, ())
        if within:
            nodes = tuple(node for node in nodes if self.nodes[node].frames[: len(within)] == within)
        return self._sure(nodes, at)

    def allocated(self, key: str, at: int) -> bool:
        """Whether a step has allocated the alias set before node `at`, or is it."""
        nodes = self._allocations.get(key, ())
        return at in nodes or self._sure(nodes, at)

    def measured(self, symbol: str, at: int) -> bool:
        """Whether a step has measured the symbol before node `at`, or is it (a step sees what itself measures)."""
        nodes = self._measurements.get(symbol, ())
        return at in nodes or self._sure(nodes, at)

    def before(self, first: int, second: int) -> bool:
        """Whether one node is sure to come before another."""
        return bool((self.after[first] >> second) & 1)

    def apart(self, first: int, second: int) -> bool:
        """Whether two nodes never run at the same time: one comes before the other, or only one of them runs."""
        return self.before(first, second) or self.before(second, first) or bool((self.exclusive[first] >> second) & 1)

    def life(self, members: Iterable[str]) -> int:
        """The nodes between which the buffers `members` (one alias set) hold values that are still needed.

        Those that access one of them; besides, start and end of every loop that carries the values from trip to trip
        or through its trips: any that is inside only part of the life, or reads before it writes.
        """
        names = tuple(members)
        accesses = [access for name in names for access in self.accesses.get(name, ())]
        mask = 0
        loops: set[Frames] = set()
        for access in accesses:
            mask |= 1 << access.node
            frames = self.nodes[access.node].frames
            loops.update(frames[: depth + 1] for depth, (_, arm) in enumerate(frames) if arm == "body")
        if loops:
            key = alias_key(self.plan.buffer_named[names[0]])
            for loop in loops:
                if not self._local(accesses, key, loop):
                    start = loop[-1][0]
                    mask |= (1 << start) | (1 << self.ends[start])
        return mask

    def _local(self, accesses: list[Access], key: str, loop: Frames) -> bool:
        for access in accesses:
            if self.nodes[access.node].frames[: len(loop)] != loop:
                return False
            if access.reads and not self.written(key, access.node, loop):
                return False
        return True

    def followers(self, life: int) -> int:
        """The nodes that come after every node of a life, or exclude it: where another may start to use its bytes."""
        mask = -1
        for node in bits(life):
            mask &= self.after[node] | self.exclusive[node]
        return mask

    def cycle(self) -> tuple[str, ...]:
        """Paths of nodes that wait for each other in a circle; empty where there is none."""
        stuck = set(range(len(self.nodes))) - set(self.linear)
        # Every stuck node has a stuck predecessor: walking backwards must come round.
        before: dict[int, int] = {}
        for node in stuck:
            before.update((target, node) for target in self.successors[node] if target in stuck)
        if not stuck:
            return ()
        seen: dict[int, None] = {}
        node = min(stuck)
        while node not in seen:
            seen[node] = None
            node = before[node]
        line = list(seen)
        return tuple(self.nodes[index].path for index in reversed(line[line.index(node) :]))


def bits(mask: int) -> Iterator[int]:
    """The nodes of a set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class _Builder:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.nodes: list[Node] = []
        self.successors: list[dict[int, None]] = []
        self.ends: dict[int, int] = {}
        self.accesses: dict[str, list[Access]] = {}
        self.faults: list[Fault] = []

    def node(self, path: str, step: Step | None, frames: Frames) -> int:
        self.nodes.append(Node(path, step, frames))
        self.successors.append({})
        return len(self.nodes) - 1

    def edge(self, first: int, second: int) -> None:
        self.successors[first][second] = None

    def access(self, name: str, node: int, reads: bool, writes: bool) -> None:
        found = self.accesses.setdefault(name, [])
        if found and found[-1].node == node:
            last = found.pop()
            reads, writes = reads or last.reads, writes or last.writes
        found.append(Access(node, reads, writes))

    def steps(
        self, steps: tuple[Step, ...], prefix: str, entry: int, leave: list[int], frames: Frames, outer: dict[int, int]
    ) -> None:
        """Nodes and edges of one list of steps, which starts after `entry`; the last nodes are added to `leave`."""
        last: dict[str, int] = {}
        starts: list[int] = []
        events: dict[int, int] = {}
        for position, step in enumerate(steps):
            where = f"{prefix}{position}"
            start = self.node(where, step, frames)
            starts.append(start)
            for touch in touches(step):
                self.access(touch.buffer, start, touch.reads, touch.writes)
            queues = queues_of(step)
            for queue in queues:
                self.edge(last.get(queue, entry), start)
            end = start
            if isinstance(step, (Branch, Repeat)):
                inner: list[int] = []
                for arm, body in bodies(step):
                    self.steps(body, f"{where}.{arm}.", start, inner, (*frames, (start, arm)), {**outer, **events})
                end = self.node(f"{where} done", step, frames)
                self.ends[start] = end
                for node in (start, *inner):
                    self.edge(node, end)
                if isinstance(step, Repeat):
                    for touch in touches(step):
                        self.access(touch.buffer, end, touch.reads, touch.writes)
            last.update(dict.fromkeys(queues, end))
            for event in step.signals:
                if event in events or event in outer:
                    self.faults.append(Fault(1402, where, f"event {event} is signalled by another step too"))
                events[event] = end
        leave.extend(dict.fromkeys(last.values()))
        self.waits(steps, starts, events, outer)

    def waits(self, steps: tuple[Step, ...], starts: list[int], events: dict[int, int], outer: dict[int, int]) -> None:
        for step, start in zip(steps, starts, strict=True):
            where = self.nodes[start].path
            for event in step.waits:
                signal = events.get(event, outer.get(event))
                if signal is None:
                    text = f"waits for event {event}, which no step signals that this step can see"
                    self.faults.append(Fault(1409, where, text))
                    continue
                self.edge(signal, start)
                if signal >= start:
                    text = f"waits for event {event}, which is signalled later in the plan ({self.nodes[signal].path})"
                    self.faults.append(Fault(1409, where, text))


def order_of(plan: Plan) -> Order:
    """The happens-before order of a plan, and the faults of its waits (codes 1402, 1409, 1410)."""
    builder = _Builder(plan)
    begin = builder.node("begin", None, ())
    for buffer in plan.buffers:
        if isinstance(buffer.place, (InputPlace, ConstantPlace)):
            builder.access(buffer.name, begin, False, True)
    for position, segment in enumerate(plan.segments):
        leave: list[int] = [begin]
        builder.steps(segment.steps, f"{position}.", begin, leave, (), {})
        begin, entry = builder.node(f"{position} done", None, ()), leave
        for node in entry if len(entry) == 1 else entry[1:]:
            builder.edge(node, begin)
    end = builder.node("end", None, ())
    builder.edge(begin, end)
    for output in plan.outputs:
        builder.access(output.buffer, end, True, False)
    order = Order(
        plan,
        tuple(builder.nodes),
        tuple(tuple(targets) for targets in builder.successors),
        builder.ends,
        {name: tuple(found) for name, found in builder.accesses.items()},
        (),
    )
    faults = tuple(builder.faults)
    cycle = order.cycle()
    if cycle:
        # The waits for later signals are what closes the circle: say it once.
        faults = tuple(fault for fault in faults if "later in the plan" not in fault.message)
        faults += (Fault(1410, cycle[0], f"steps wait for each other: {' -> '.join((*cycle, cycle[0]))}"),)
    return Order(plan, order.nodes, order.successors, order.ends, order.accesses, faults)
