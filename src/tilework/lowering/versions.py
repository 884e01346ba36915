"""Parts of a program that are emitted twice, under a condition: whole tiles without guards, streaming stores."""

from __future__ import annotations

from collections.abc import Callable

from tilework.dims import Dim
from tilework.loops.program import (
    AsyncCopy,
    AsyncWait,
    Barrier,
    Compute,
    Intrinsic,
    Loop,
    LoopProgram,
    Node,
    Prefetch,
    Sequence,
    Storage,
    children,
    walk,
)  # fmt: skip
from tilework.lowering import parallel
from tilework.lowering.builder import Scope
from tilework.lowering.cells import Cells
from tilework.lowering.expressions import Expressions
from tilework.lowering.indices import Indices
from tilework.lowering.memory import Memory
from tilework.lowering.registers import Block, Branch, Value
from tilework.lowering.state import State
from tilework.lowering.statements import Statements
from tilework.lowering.whole_tiles import corner_values, has_serial_loops, worth_two_versions
from tilework.numerics import Numerics

MAX_TRIED = 6
"""So many guards of broken tiles may be open before no further versions are made."""


class Versions:
    """What the walk over the tree stands on: the lowering's parts, facts of nodes, and emission in two versions."""

    def __init__(
        self, program: LoopProgram, numerics: Numerics, checked: bool, streaming: frozenset[str], last_level: int
    ) -> None:
        self.last_level = last_level
        self.state = state = State(program, numerics, checked=checked, streaming=streaming)
        self.indices = Indices(state)
        self.cells = Cells(state, self.indices)
        self.memory = Memory(state, self.indices, self.cells)
        self.expressions = Expressions(state, self.indices, self.memory)
        self.statements = Statements(state, self.indices, self.memory, self.cells, self.expressions)
        self._versioned: frozenset[str] = frozenset()
        self._corners: dict[int, dict[Dim, Dim]] = {}
        self._tried: set[Dim] = set()
        """Guards that are tested one by one, as the tile is known not to be whole."""
        self._masked = False
        """Whether this is a version with masks: nothing in it has versions of its own."""
        self._written: dict[int, frozenset[str]] = {}
        self._common: dict[int, frozenset[Dim]] = {}

    # -- facts of nodes ------------------------------------------------------------------------------------------------
    def written(self, node: Node) -> frozenset[str]:
        """Buffers that something below a node writes."""
        found = self._written.get(id(node))
        if found is None:
            names: set[str] = set()
            for below in walk(node):
                if isinstance(below, Compute):
                    names.update(access.buffer for access in below.targets)
                elif isinstance(below, AsyncCopy):
                    names.add(below.target.buffer)
            found = self._written[id(node)] = frozenset(names)
        return found

    def common(self, node: Node) -> frozenset[Dim]:
        """Guards that every statement below a node has and that name nothing bound below it."""
        found = self._common.get(id(node))
        if found is not None:
            return found
        if isinstance(node, Compute):
            reduced = set(node.reduction) if node.init is not None else set[str]()
            found = frozenset(g for g in node.guards if not g.loads() and not g.names() & reduced)
        elif isinstance(node, AsyncCopy):
            found = frozenset(g for g in node.guards if not g.loads())
        elif isinstance(node, (Loop, Storage, Intrinsic)):
            found = self.common(node.body)
            if isinstance(node, Loop):
                found = frozenset(g for g in found if node.variable not in g.names())
        elif isinstance(node, Sequence) and node.children:
            parts = [
                self.common(child) for child in node.children if not isinstance(child, (Prefetch, Barrier, AsyncWait))
            ]
            found = parts[0].intersection(*parts[1:]) if parts else frozenset[Dim]()
        else:
            found = frozenset[Dim]()
        self._common[id(node)] = found
        return found

    # -- whole tiles ---------------------------------------------------------------------------------------------------
    def tile(self, node: Loop | Storage, emit: Callable[[], None]) -> None:
        """What `emit` emits for a node, in two versions where guards are the same for a whole tile."""
        state = self.state
        corners = self._corners_of(node)
        assumed = self.statements.assumed
        open_guards = [g for g in corners if g not in assumed and g not in self._tried]
        if not open_guards or state.lane is not None or (parallel.outlined(node) and not state.function.region):
            emit()
            return
        conditions: tuple[list[Dim], list[Dim]] = ([], [])
        known: list[Dim] = []
        values: dict[Dim, Value] = {}
        masks = [guard for guard in open_guards if self._is_mask(guard, node)]
        for guard in sorted(open_guards, key=str):
            holds = self.indices.holds(corners[guard])
            if holds is True:
                known.append(guard)
            elif holds is not False:
                values[guard] = holds
                follows = any(self._follows(corners[guard], corners[mask]) for mask in masks)
                conditions[0 if guard in masks or follows else 1].append(guard)
        parts: list[tuple[list[Dim], Value]] = []
        for guards in conditions:
            condition: Value | None = None
            for guard in guards:
                condition = state.builder.both(condition, values[guard])
            if condition is not None:
                parts.append((guards, condition))
        assumed.update(known)
        if (
            not parts
            or self._masked
            or len(self._tried) > MAX_TRIED
            or not worth_two_versions(node)
            or self._decided_inside(node, corners)
        ):
            emit()
        else:
            self._tile_versions(node, parts, emit)
        assumed.difference_update(known)

    def _tile_versions(
        self, node: Loop | Storage, parts: list[tuple[list[Dim], Value]], emit: Callable[[], None]
    ) -> None:
        """A version for each way in which a tile is whole.

        `parts`: guards that would be masks, then those that would be branches, and when they hold for all of the tile.
        """
        if not parts:
            emit()
            return
        (guards, condition), *rest = parts
        assumed, masks = self.statements.assumed, any(self._is_mask(guard, node) for guard in guards)

        def version(first: bool) -> None:
            if first:
                assumed.update(guards)
                self._tile_versions(node, rest, emit)
                assumed.difference_update(guards)
                return
            before = self._masked
            self._tried.update(guards)
            self._masked = before or masks
            if masks and has_serial_loops(node):  # seldom run, and large
                emit()
            else:
                self._tile_versions(node, rest, emit)
            self._masked = before
            self._tried.difference_update(guards)

        self._two_versions(condition, version)

    def _decided_inside(self, node: Node, corners: dict[Dim, Dim]) -> bool:
        """Whether a straight line below has further guards that would be masks: it has versions anyway, and all is
        tested there, instead of versions of versions. (Loops that carry sums lose registers where they are merged.)
        """
        return any(self._decides(below, corners) for below in children(node))

    def _decides(self, node: Node, corners: dict[Dim, Dim]) -> bool:
        if not isinstance(node, (Loop, Storage)):
            return self._decided_inside(node, corners)
        found = self._corners_of(node)
        further = found.keys() - corners.keys() - self.statements.assumed - self._tried
        if not any(self._is_mask(guard, node) and self._open(found[guard]) for guard in further):
            return self._decided_inside(node, corners)
        return not has_serial_loops(node) and worth_two_versions(node)

    def _is_mask(self, guard: Dim, node: Node) -> bool:
        return any(isinstance(n, Loop) and n.kind == "vectorized" and n.variable in guard.names() for n in walk(node))

    def _follows(self, guard: Dim, mask: Dim) -> bool:
        """Whether a guard's least value is no less than 0 where a mask's is: it counts vectors, that one elements."""
        return any(self.state.nonnegative(guard * lanes - mask) for lanes in (1, 2, 4, 8, 16, 32, 64))

    def _open(self, guard: Dim) -> bool:
        """Whether it is not known if a guard holds, whatever the loops inside are at."""
        here = guard.substitute(self.state.environment)
        return not self.state.nonnegative(here) and not self.state.nonnegative(-here - 1)

    def _corners_of(self, node: Loop | Storage) -> dict[Dim, Dim]:
        found = self._corners.get(id(node))
        if found is None:
            found = self._corners[id(node)] = corner_values(node)
        return found

    # -- streaming -----------------------------------------------------------------------------------------------------
    def _streaming_buffers(self, node: Loop) -> list[str]:
        """Streaming buffers that a loop writes, where it is the outermost such loop of its function; else none."""
        state = self.state
        if not state.streaming or node.variable in self._versioned or state.lane is not None:
            return []
        return sorted(n for n in self.written(node.body) & state.streaming if n not in self.cells.layouts)

    def versions(self, node: Loop, emit: Callable[[], None]) -> None:
        """What `emit` emits for a loop, twice where it writes streaming buffers: past the caches, and plain.

        It streams where every such buffer is aligned to 64 bytes and not smaller than the last cache.
        """
        names = self._streaming_buffers(node)
        if not names:
            emit()
            return
        state, builder = self.state, self.state.builder
        condition: Value | None = None
        for name in names:
            large = builder.compare(
                "sge", self.indices.value(state.buffers[name].bytes), builder.integer(self.last_level)
            )
            address = builder.op("ptrtoint", "i64", state.base(name))
            low = builder.op("and", "i64", address, builder.integer(63))
            aligned = builder.compare("eq", low, builder.integer(0))
            condition = builder.both(condition, builder.both(large, aligned))
        versioned = self._versioned
        self._versioned = versioned | {n.variable for n in walk(node) if isinstance(n, Loop)}
        assert condition is not None
        if condition.constant is False:
            emit()
        else:

            def version(first: bool) -> None:
                state.streams = first
                emit()
                if first:
                    builder.effect("fence", ())
                state.streams = False

            self._two_versions(condition, version)
        self._versioned = versioned

    def _two_versions(self, condition: Value, emit: Callable[[bool], None]) -> None:
        """A branch with `emit(True)` on one side and `emit(False)` on the other; cells are merged."""
        builder, function = self.state.builder, self.state.function
        before, epochs = dict(function.cells), dict(function.epochs)
        blocks: list[Block] = []
        ends: list[dict[tuple[str, tuple[int, ...]], Value]] = []
        for first in (True, False):
            function.cells = dict(before)
            function.epochs = dict(epochs)
            scope = Scope(branch=True)
            builder.scopes.append(scope)
            emit(first)
            builder.scopes.pop()
            blocks.append(scope.block)
            ends.append(function.cells)
        item = Branch(condition, blocks[0], blocks[1])
        for key in list(dict.fromkeys([*ends[0], *ends[1]])):
            empty = before.get(key)
            empty = empty if empty is not None else self.cells.empty(self.cells.layouts[key[0]])
            a, b = ends[0].get(key, empty), ends[1].get(key, empty)
            if a is not b:
                merged = builder.fresh(a.kind, a.lanes)
                item.merged.append((merged, a, b))
                function.cells[key] = merged
        builder.scopes[-1].block.items.append(item)
