"""A loop program as Python source that keeps every check: what `loops.interpret` compiles and runs.

A buffer is a flat list of numpy scalars; None stands for an element that nobody has written.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from tilework.dims import Dim
from tilework.dtypes import DType
from tilework.loops.interpret_emitter import Concurrent, Emitter
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
    Reducer,
    Sequence,
    Storage,
)  # fmt: skip
from tilework.loops.program import walk as walk_nodes

_CONCURRENT = ("parallel", "block.x", "block.y", "block.z", "thread.x", "thread.y", "thread.z", "warp")
_DEPTH = 12
"""Loops written into each other before a function is made of the rest: Python allows 20."""


class Source(Emitter):
    """Emits the source of one program for given symbol values."""

    def __init__(self, program: LoopProgram, symbols: Mapping[str, int], precise: bool) -> None:
        super().__init__(program, symbols, precise)
        self._functions: list[str] = []
        self._depth = 0
        self._text = self._program_text()

    def compiled(self, monitor: object) -> Callable[..., None]:
        """The program as a function of its arguments' lists."""
        environment: dict[str, Any] = {**self.pool, "monitor": monitor}
        exec(compile(self._text, f"<loop program {self.program.name}>", "exec"), environment)
        main: Callable[..., None] = environment["main"]
        return main

    def _program_text(self) -> str:
        names: list[str] = []
        for argument in self.program.arguments:
            held = self._declare(argument.buffer, emit=False)
            names.append(held.name)
            if argument.buffer.name in self._accumulated:
                self._line(f"wide_{held.name} = {{}}")
        self._node(self.program.body)
        body = self._lines or ["    pass"]
        return "\n".join([*self._functions, f"def main({', '.join(names)}):", *body, ""])

    # -- nodes: each returns the barriers that reach beyond it ---------------------------------------------------------
    def _node(self, node: Node) -> frozenset[str]:
        match node:
            case Sequence(children=nodes):
                found: frozenset[str] = frozenset()
                for child in nodes:
                    found |= self._node(child)
                return found
            case Intrinsic(body=body):
                return self._node(body)
            case Storage(buffer=buffer, body=body):
                outer = dict(self._buffers)
                self._memo = {}
                self._declare(buffer)
                found = self._node(body)
                self._buffers = outer
                return found
            case Loop():
                return self._loop(node)
            case Barrier(scope=scope):
                if not any(scope in self._absorbs(i) for i in range(len(self._concurrent))):
                    return frozenset()
                self._line(f"yield {scope!r}")
                return frozenset((scope,))
            case _:
                self._memo = {}
                self._leaf(node)
                return frozenset()

    def _absorbs(self, number: int) -> frozenset[str]:
        """The barrier scopes that end at the enclosing concurrent loop of this number: no loop outside takes part."""
        kinds = [loop.kind for loop in self._concurrent]
        kind, outside = kinds[number], kinds[:number]
        found: set[str] = set()
        if kind.startswith("block") and not any(k.startswith("block") for k in outside):
            found.add("grid")
        if kind.startswith("thread") or kind == "warp":
            if not any(k.startswith("thread") or k == "warp" for k in outside):
                found.add("block")
            within = outside[len(outside) - outside[::-1].index("warp") :] if "warp" in outside else outside
            if kind != "warp" and not any(k.startswith("thread") for k in within):
                found.add("warp")
        return frozenset(found)

    def _loop(self, loop: Loop) -> frozenset[str]:
        self._memo = {}
        extent = self._dim(loop.extent)
        variable = self._fresh("v")
        concurrent = loop.kind in _CONCURRENT
        if concurrent:
            self._enter(loop, variable)
        self._loops[loop.variable] = variable
        threads = concurrent and any(isinstance(n, Barrier) for n in walk_nodes(loop.body))
        open_scopes: frozenset[str] = frozenset()
        if threads:
            open_scopes = self._threads(loop, variable, extent)
        else:
            order = f"monitor.shuffled({extent})" if concurrent else f"range({extent})"
            with self._block(f"for {variable} in {order}:"):
                self._depth += 1
                if self._depth >= _DEPTH:
                    name, names, open_scopes = self._outline(loop.body)
                    self._line(f"{'yield from ' if open_scopes else ''}{name}({names})")
                else:
                    open_scopes = self._node(loop.body)
                self._depth -= 1
        del self._loops[loop.variable]
        if concurrent:
            self._concurrent.pop()
        return open_scopes

    def _enter(self, loop: Loop, variable: str) -> None:
        written = {
            target.buffer
            for n in walk_nodes(loop.body)
            if isinstance(n, (Compute, AsyncCopy))
            for target in (n.targets if isinstance(n, Compute) else (n.target,))
        }
        tables: dict[str, tuple[str, str]] = {}
        for name in sorted(written & self._buffers.keys()):
            held = self._buffers[name]
            pair = (self._fresh("r"), self._fresh("w"))
            self._line(f"{pair[0]} = {{}}; {pair[1]} = {{}}")
            tables[held.name] = pair
        self._concurrent.append(Concurrent(loop.variable, variable, loop.kind, tables))

    def _threads(self, loop: Loop, variable: str, extent: str) -> frozenset[str]:
        name, names, scopes = self._outline(loop.body)
        absorbed = self._absorbs(len(self._concurrent) - 1)
        tables = [t for pair in self._concurrent[-1].tables.values() for t in pair]
        function = name if scopes else self._pooled_generator(name)
        rounds = (
            f"monitor.rounds([{function}({names}) for {variable} in range({extent})], "
            f"{self._pooled(absorbed)}, ({''.join(t + ', ' for t in tables)}))"
        )
        rest = scopes - absorbed
        self._line(f"yield from {rounds}" if rest else f"monitor.drain({rounds})")
        return rest

    def _pooled_generator(self, name: str) -> str:
        self._functions.append(f"def {name}_(*a):\n    {name}(*a)\n    yield from ()")
        return f"{name}_"

    def _outline(self, body: Node) -> tuple[str, str, frozenset[str]]:
        """A function of a loop's body over everything in scope: its name, its arguments, its open barriers."""
        lines, indent, depth, memo = self._lines, self._indent, self._depth, self._memo
        self._lines, self._indent, self._depth, self._memo = [], 1, 0, {}
        scope = [*self._loops.values(), *(h.name for h in self._buffers.values())]
        scope += [f"wide_{h.name}" for h in self._buffers.values() if h.buffer.name in self._accumulated]
        scope += [t for c in self._concurrent for pair in c.tables.values() for t in pair]
        scope += sorted({t for h in self._buffers.values() for t in h.extents if not t.isdigit() and t.isidentifier()})
        scopes = self._node(body)
        names = ", ".join(dict.fromkeys(scope))
        name = self._fresh("f")
        self._functions.append("\n".join([f"def {name}({names}):", *(self._lines or ["    pass"])]))
        self._lines, self._indent, self._depth, self._memo = lines, indent, depth, memo
        return name, names, scopes

    # -- statements ----------------------------------------------------------------------------------------------------
    def _leaf(self, node: Compute | Prefetch | AsyncCopy | AsyncWait) -> None:
        match node:
            case Prefetch():
                pass
            case AsyncWait(group=group, pending=pending):
                self._line(f"monitor.wait({self._flight(group)}, {pending})")
            case AsyncCopy(name=name, target=target, source=source, group=group, guards=guards):
                self._statement = name
                with self._guarded(list(guards)):
                    taken = self._read(source.buffer, source.index)
                    place = self._element(target.buffer, target.index)
                    self._claim(target.buffer, target.index, place)
                    origin = self._memo[("place", source.buffer, source.index)]
                    del taken
                    self._line(
                        f"monitor.start_copy({self._flight(group)}, {self._buffer(target.buffer).name}, {place}, "
                        f"{self._buffer(source.buffer).name}, {origin})"
                    )
            case Compute():
                self._compute(node)

    def _flight(self, group: str) -> str:
        threads = [c.name for c in self._concurrent if c.kind.startswith("thread") or c.kind == "warp"]
        return f"({group!r}, {''.join(t + ', ' for t in threads)})"

    def _compute(self, node: Compute) -> None:
        self._statement = node.name
        reduced = set(node.reduction)
        starts = node.reducer is not None and node.init is not None
        outer = [g for g in node.guards if not starts or not g.names() & reduced]
        inner = [g for g in node.guards if starts and g.names() & reduced]
        with self._guarded(outer):
            if starts and node.init is not None:
                first = " and ".join(f"{self._dim(Dim((((v,), 1),)))} == 0" for v in node.reduction) or "True"
                with self._block(f"if {first}:"):
                    for access, start in zip(node.targets, node.init, strict=True):
                        place = self._element(access.buffer, access.index)
                        self._claim(access.buffer, access.index, place)
                        self._put(access.buffer, place, self._constant(start), start.dtype, node.accumulate)
            with self._guarded(inner):
                values = [self._value(v, {}) for v in node.values]
                places = [self._element(a.buffer, a.index) for a in node.targets]
                types = [v.dtype for v in node.values]
                if node.reducer is not None:
                    values = self._combine(node, node.reducer, values, places)
                    types = [c.dtype for c in node.reducer.combine]
                for access, place, value, dtype in zip(node.targets, places, values, types, strict=True):
                    self._claim(access.buffer, access.index, place)
                    self._put(access.buffer, place, value, dtype, node.accumulate)

    @contextmanager
    def _guarded(self, guards: list[Dim]) -> Generator[None]:
        plain = [g for g in guards if not g.loads()]
        test = " and ".join(f"{self._dim(g)} >= 0" for g in plain) or "True"
        with self._block(f"if {test}:"):
            yield from self._nested_guards([g for g in guards if g.loads()])

    def _nested_guards(self, guards: list[Dim]) -> Generator[None]:
        if not guards:
            yield
            return
        with self._block(f"if {self._dim(guards[0])} >= 0:"):
            yield from self._nested_guards(guards[1:])

    def _combine(self, node: Compute, reducer: Reducer, values: list[str], places: list[str]) -> list[str]:
        parameters: dict[str, str] = {}
        for access, place, left in zip(node.targets, places, reducer.left, strict=True):
            held = self._buffer(access.buffer)
            self._note_read(access.buffer, access.index, place)
            old = self._assign(f"{held.name}[{place}]")
            self._line(f"if {old} is None: {self._report('unwritten', access.buffer, access.index, place)}")
            if node.accumulate is not None:
                kept = self._assign(f"wide_{held.name}.get({place})")
                widened = self._converted(old, held.buffer.dtype, node.accumulate)
                old = self._assign(f"{kept}[0] if {kept} is not None and {kept}[1] is {old} else {widened}")
            parameters[left.name] = old
        for right, value, expression in zip(reducer.right, values, node.values, strict=True):
            parameters[right.name] = self._assign(self._converted(value, expression.dtype, right.dtype))
        memo: dict[int, str] = {}
        return [self._value(c, memo, parameters) for c in reducer.combine]

    def _put(self, buffer: str, place: str, value: str, dtype: DType, accumulate: DType | None) -> None:
        held = self._buffer(buffer)
        stored = self._converted(value, dtype, held.buffer.dtype)
        if accumulate is not None:
            stored = self._assign(stored)
            wide = self._converted(value, dtype, accumulate)
            self._line(f"wide_{held.name}[{place}] = ({wide}, {stored})")
        self._line(f"{held.name}[{place}] = {stored}")
