"""The ground of the interpreter's source: lines, buffers in scope, checked accesses, values."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from tilework.dims import Atom, Dim, Extreme, FloorDiv, Loaded, Mod
from tilework.dtypes import DType
from tilework.errors import LoopProgramError
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Call, Constant, Expression, Index, Load, Parameter, walk
from tilework.loops.interpret_values import bitcaster, caster, function_text, held_type, index_maker
from tilework.loops.program import Buffer, Compute, LoopProgram
from tilework.loops.program import walk as walk_nodes


@dataclass(frozen=True)
class Site:
    """Where an access is, for messages: statement, buffer, enclosing loops, and whether data chose the index."""

    statement: str
    buffer: str
    loops: tuple[str, ...]
    loaded: bool


@dataclass(frozen=True)
class Held:
    """A buffer in scope: its Python name, extents and strides as Python texts, and the type its values are held in."""

    buffer: Buffer
    name: str
    extents: tuple[str, ...]
    strides: tuple[str, ...]
    dtype: DType


@dataclass(frozen=True)
class Concurrent:
    """A loop whose iterations must not touch each other's elements: the tables of who read and wrote what."""

    variable: str
    name: str
    kind: str
    tables: Mapping[str, tuple[str, str]]
    """Readers and writers (names of dicts) of each buffer (by its Python name) that the loop shares and writes."""


class Emitter:
    """Emits the source of one program for given symbol values."""

    def __init__(self, program: LoopProgram, symbols: Mapping[str, int], precise: bool) -> None:
        self.program = program
        self.precise = precise
        self.sites: list[Site] = []
        self.held: list[Held] = []
        self.pool: dict[str, Any] = {}
        self._symbols = {name: str(value) for name, value in symbols.items()}
        self._lines: list[str] = []
        self._indent = 1
        self._count = 0
        self._loops: dict[str, str] = {}
        self._buffers: dict[str, Held] = {}
        self._concurrent: list[Concurrent] = []
        self._memo: dict[object, str] = {}
        self._statement = ""
        found = [n for n in walk_nodes(program.body) if isinstance(n, Compute)]
        self._accumulated = {t.buffer for n in found if n.accumulate is not None for t in n.targets}

    # -- writing -------------------------------------------------------------------------------------------------------
    def _line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    def _fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _assign(self, text: str) -> str:
        name = self._fresh("t")
        self._line(f"{name} = {text}")
        return name

    def _pooled(self, value: object) -> str:
        name = self._fresh("K")
        self.pool[name] = value
        return name

    @contextmanager
    def _block(self, head: str) -> Generator[None]:
        """An indented block; what is computed inside is forgotten after it."""
        memo = dict(self._memo)
        self._line(head)
        self._indent += 1
        start = len(self._lines)
        yield
        if len(self._lines) == start:
            self._line("pass")
        self._indent -= 1
        self._memo = memo

    def _declare(self, buffer: Buffer, emit: bool = True) -> Held:
        extents = tuple(self._dim(extent) for extent in buffer.shape)
        strides: list[str] = []
        step = "1"
        for extent in reversed(extents):
            strides.append(step)
            step = str(int(step) * int(extent)) if step.isdigit() and extent.isdigit() else f"{step}*{extent}"
        held = Held(buffer, self._fresh("b"), extents, tuple(reversed(strides)), held_type(buffer.dtype, self.precise))
        self.held.append(held)
        self._buffers[buffer.name] = held
        if emit:
            self._line(f"{held.name} = [None] * ({step})")
            if buffer.name in self._accumulated:
                self._line(f"wide_{held.name} = {{}}")
        return held

    # -- accesses ------------------------------------------------------------------------------------------------------
    def _buffer(self, name: str) -> Held:
        found = self._buffers.get(name)
        if found is None:
            raise LoopProgramError(1310, f"buffer {name} is not in scope", where=f"statement {self._statement}")
        return found

    def _site(self, buffer: str, index: tuple[Dim, ...]) -> int:
        self.sites.append(Site(self._statement, buffer, tuple(self._loops), any(i.loads() for i in index)))
        return len(self.sites) - 1

    def _at(self) -> str:
        return f"({''.join(v + ', ' for v in self._loops.values())})"

    def _report(self, fault: str, buffer: str, index: tuple[Dim, ...], *facts: str) -> str:
        return f"monitor.{fault}({self._site(buffer, index)}, {', '.join(facts)}, {self._at()})"

    def _element(self, buffer: str, index: tuple[Dim, ...]) -> str:
        """The place of an element in the flat list, after checking every index."""
        key = ("place", buffer, index)
        if key in self._memo:
            return self._memo[key]
        held = self._buffer(buffer)
        if len(index) != len(held.extents):
            raise LoopProgramError(
                1310,
                f"{buffer} has {len(held.extents)} dimensions, not {len(index)}",
                where=f"statement {self._statement}",
            )
        parts = [self._dim(i) for i in index]
        if parts:
            test = " and ".join(f"0 <= {p} < {e}" for p, e in zip(parts, held.extents, strict=True))
            tuples = ["(" + "".join(p + ", " for p in side) + ")" for side in (parts, held.extents)]
            self._line(f"if not ({test}): {self._report('outside', buffer, index, *tuples)}")
        place = " + ".join(p if s == "1" else f"{p}*{s}" for p, s in zip(parts, held.strides, strict=True)) or "0"
        self._memo[key] = name = self._assign(place)
        return name

    def _claim(self, buffer: str, index: tuple[Dim, ...], place: str) -> None:
        """Note a write, for the loops whose iterations may not share it."""
        held = self._buffer(buffer)
        for argument in self.program.arguments:
            if argument.buffer is held.buffer and argument.access == "read":
                raise LoopProgramError(1310, f"{buffer} is read-only", where=f"statement {self._statement}")
        for loop in self._concurrent:
            if held.name in loop.tables:
                readers, writers = loop.tables[held.name]
                v = loop.name
                self._line(
                    f"if {writers}.setdefault({place}, {v}) != {v} or {readers}.get({place}, {v}) != {v}: "
                    f"{self._report('race', buffer, index, place, repr(loop.variable))}"
                )

    def _note_read(self, buffer: str, index: tuple[Dim, ...], place: str) -> None:
        held = self._buffer(buffer)
        for loop in self._concurrent:
            if held.name in loop.tables:
                readers, writers = loop.tables[held.name]
                v = loop.name
                self._line(
                    f"if {writers}.get({place}, {v}) != {v}: "
                    f"{self._report('race', buffer, index, place, repr(loop.variable))}"
                )
                self._line(f"if {readers}.setdefault({place}, {v}) != {v}: {readers}[{place}] = -1")

    def _read(self, buffer: str, index: tuple[Dim, ...]) -> str:
        key = ("read", buffer, index)
        if key in self._memo:
            return self._memo[key]
        place = self._element(buffer, index)
        self._note_read(buffer, index, place)
        self._memo[key] = value = self._assign(f"{self._buffer(buffer).name}[{place}]")
        self._line(f"if {value} is None: {self._report('unwritten', buffer, index, place)}")
        return value

    # -- values --------------------------------------------------------------------------------------------------------
    def _constant(self, node: Constant) -> str:
        value = np.asarray(node.value).astype(node.dtype.numpy).astype(held_type(node.dtype, self.precise).numpy)
        return self._pooled(value[()])

    def _value(self, expression: Expression, memo: dict[int, str], parameters: Mapping[str, str] | None = None) -> str:
        for node in walk(expression):
            if id(node) in memo:
                continue
            match node:
                case Constant():
                    text = self._constant(node)
                case Load(buffer=buffer, index=index):
                    text = self._read(buffer, index)
                case Index(value=value, dtype=dtype):
                    text = self._assign(f"{self._pooled(index_maker(dtype, self.precise))}({self._dim(value)})")
                case Parameter(name=name):
                    if parameters is None or name not in parameters:
                        raise LoopProgramError(1310, f"parameter {name} outside its reducer", where=self._statement)
                    text = parameters[name]
                case Call():
                    text = self._call(node, [memo[id(a)] for a in node.arguments])
                case _:
                    raise LoopProgramError(1310, f"{type(node).__name__} is no expression", where=self._statement)
            memo[id(node)] = text
        return memo[id(expression)]

    def _call(self, node: Call, arguments: list[str]) -> str:
        source = node.arguments[-1].dtype
        if node.function == "cast":
            return self._assign(self._converted(arguments[0], source, node.dtype))
        if node.function == "bitcast":
            return self._assign(f"{self._pooled(bitcaster(source, node.dtype, self.precise))}({arguments[0]})")
        text = function_text(node.function, held_type(source, self.precise), arguments, self._pooled)
        return self._assign(text)

    def _dim(self, value: Dim) -> str:
        if not value.terms:
            return str(value.constant)
        if value in self._memo:
            return self._memo[value]
        text = ""
        for monomial, coefficient in value.terms:
            factors = [self._atom(atom) for atom in monomial]
            if abs(coefficient) != 1:
                factors.insert(0, str(abs(coefficient)))
            sign = "-" if coefficient < 0 else "+" if text else ""
            text += f" {sign} " + "*".join(factors)
        if value.constant:
            text += f" {'-' if value.constant < 0 else '+'} {abs(value.constant)}"
        text = text.strip()
        if text.isidentifier() or text.isdigit():
            return text
        name = self._assign(text)
        self._memo[value] = name
        return name

    def _atom(self, atom: Atom) -> str:
        match atom:
            case str():
                found = self._loops.get(atom) or self._symbols.get(atom)
                if found is None:
                    raise LoopProgramError(1310, f"{atom} has no value here", where=f"statement {self._statement}")
                return found if not found.startswith("-") else f"({found})"
            case FloorDiv(numerator=above, denominator=below):
                return f"({self._dim(above)} // {self._divisor(below)})"
            case Mod(value=above, modulus=below):
                return f"({self._dim(above)} % {self._divisor(below)})"
            case Extreme(name=name, arguments=arguments):
                return f"{name}({', '.join(self._dim(a) for a in arguments)})"
            case Loaded(buffer=buffer, index=index):
                return f"int({self._read(buffer, index)})"

    def _divisor(self, value: Dim) -> str:
        return str(value.constant) if not value.terms else f"monitor.positive({self._dim(value)})"

    def _converted(self, value: str, source: DType, target: DType) -> str:
        code = caster(source, target, self.precise)
        return value if code is None else f"{self._pooled(code)}({value})"
