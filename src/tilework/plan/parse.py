"""Reading the text form of plans (see `plan.text`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilework.dims import Dim
from tilework.errors import ParseError, PlanError
from tilework.fast_dataclass import dataclass
from tilework.loops.parse import parse_program
from tilework.loops.parse_expressions import parse_dim_at
from tilework.loops.program import LoopProgram
from tilework.loops.tokens import Cursor, fail, tokens_of
from tilework.plan.guard import Guard
from tilework.plan.parse_tables import Tables, dims_at, guard_at, listed_at, names_at, symbol_at, typed_at
from tilework.plan.plan import Plan, Segment
from tilework.plan.protocols import BlackBox
from tilework.plan.signature import Box, KernelBuffer, KernelSignature
from tilework.plan.steps import (
    Allocate,
    BlackBoxStep,
    Branch,
    Carry,
    Check,
    CopyStep,
    Extent,
    KernelStep,
    LibraryStep,
    Reading,
    Repeat,
    Sized,
    Step,
)

_DEEPEST = 100
"""Control steps within each other."""
_NO_BOXES: Mapping[str, BlackBox] = {}
_Kernels = Mapping[int, tuple[KernelSignature, LoopProgram]]


def parse_plan(text: str, black_boxes: Mapping[str, BlackBox] = _NO_BOXES) -> Plan:
    """The plan that a text states; `black_boxes` are by identity.

    Raises `ParseError` 1419 with line and column, and `PlanError` 1420 for a black box that was not given.
    """
    try:
        return _Parser(text, black_boxes).plan()
    except ParseError as error:
        raise ParseError(1419, error.message, where=error.where) from None


def line_cursor(text: str, number: int, sizes: dict[str, Dim] | None = None) -> Cursor:
    """A reader of a line's tokens; lines may share the `sizes` that were read."""
    return Cursor(tokens_of(text, number), number, sizes)


@dataclass
class _Line:
    number: int
    indent: int
    text: str

    def cursor(self) -> Cursor:
        """A reader of the line's tokens."""
        return line_cursor(" " * self.indent + self.text, self.number)


class _Parser:
    def __init__(self, text: str, black_boxes: Mapping[str, BlackBox]) -> None:
        self.black_boxes = black_boxes
        self.lines: list[_Line] = []
        for number, raw in enumerate(text.splitlines(), 1):
            body = raw.strip()
            if body:
                self.lines.append(_Line(number, len(raw) - len(raw.lstrip(" ")), body))
        self.place = 0

    def next(self) -> _Line:
        line = self.lines[self.place]
        self.place += 1
        return line

    def at(self, indent: int) -> bool:
        """Whether the next line is part of a block at this indentation."""
        if self.place >= len(self.lines) or self.lines[self.place].indent < indent:
            return False
        line = self.lines[self.place]
        if line.indent > indent:
            fail(line.number, line.indent + 1, f"expected an indentation of {indent}")
        return True

    def plan(self) -> Plan:
        if not self.lines:
            fail(1, 1, "expected 'plan', found nothing")
        head = self.next()
        cursor = head.cursor()
        if head.indent:
            cursor.expected("'plan' without indentation")
        cursor.expect("plan")
        tables = Tables()
        name = cursor.name()
        cursor.end()
        while self.at(2):
            tables.read(self.next().cursor())
        segments: list[_Line] = []
        kernels: dict[int, tuple[KernelSignature, LoopProgram]] = {}
        start = self.place
        # Kernels stand after the segments that call them: they are read first.
        while self.at(0):
            line = self.next()
            cursor = line.cursor()
            if cursor.accept("kernel"):
                self.kernel(cursor, kernels)
            elif cursor.token.text == "segment":
                segments.append(line)
                self.skip()
            else:
                cursor.expected("'segment' or 'kernel'")
        end, self.place = self.place, start
        found: list[Segment] = []
        while self.place < end and self.at(0):
            cursor = self.next().cursor()
            if not cursor.accept("segment"):
                self.skip()
                continue
            kind = "captured" if cursor.accept("captured") else "interactive"
            if kind == "interactive":
                cursor.expect("interactive")
            cursor.end()
            found.append(Segment(kind, self.steps(2, kernels)))
        return Plan(
            name,
            tuple(tables.inputs),
            tuple(tables.outputs),
            tuple(tables.buffers),
            tuple(found),
            tuple(tables.symbols),
            tuple(tables.bindings),
            tuple(tables.guards),
            tuple(tables.arenas),
            tuple(tables.spaces),
            tuple(tables.devices),
            tuple(tables.queues),
        )

    def skip(self) -> None:
        """Leave out the block below the line just read."""
        while self.place < len(self.lines) and self.lines[self.place].indent:
            self.place += 1

    # -- kernels -----------------------------------------------------------------------------------------------------
    def kernel(self, cursor: Cursor, kernels: dict[int, tuple[KernelSignature, LoopProgram]]) -> None:
        number = cursor.integer()
        cursor.expect(":")
        signature = KernelSignature(cursor.name(), ())
        cursor.end()
        if number in kernels:
            cursor.fail(f"there are two kernels {number}")
        meaning: LoopProgram | None = None
        while self.at(2):
            line = self.next().cursor()
            if line.accept("meaning"):
                line.end()
                meaning = self.meaning(line)
            else:
                signature = _signature_line(signature, line)
        if meaning is None:
            cursor.fail(f"kernel {number} has no meaning")
        kernels[number] = signature, meaning

    def meaning(self, cursor: Cursor) -> LoopProgram:
        start = self.place
        while self.place < len(self.lines) and self.lines[self.place].indent >= 4:
            self.place += 1
        block = self.lines[start : self.place]
        if not block:
            cursor.fail("expected the loop program below")
        # Empty lines keep the numbers of lines in messages right.
        text: list[str] = []
        for line in block:
            text.extend("" for _ in range(line.number - 1 - len(text)))
            text.append(" " * (line.indent - 4) + line.text)
        return parse_program("\n".join(text) + "\n")

    # -- steps -------------------------------------------------------------------------------------------------------
    def steps(self, indent: int, kernels: _Kernels) -> tuple[Step, ...]:
        if indent > 4 * _DEEPEST:
            fail(self.lines[self.place - 1].number, 1, "too deeply nested")
        found: list[Step] = []
        while self.at(indent):
            found.append(self.step(self.next().cursor(), indent, kernels))
        return tuple(found)

    def step(self, cursor: Cursor, indent: int, kernels: _Kernels) -> Step:
        kind = cursor.token.text
        if kind not in ("call", "copy", "box", "allocate", "carry", "check", "branch", "repeat"):
            cursor.expected("a step")
        cursor.next()
        name = cursor.name()
        cursor.expect(":")
        step: Step
        if kind == "call":
            step = _call(cursor, name, kernels)
        elif kind == "copy":
            source = cursor.name()
            cursor.expect("to")
            step = CopyStep(name, source, cursor.name())
        elif kind == "box":
            step = self.box(cursor, name)
        elif kind == "allocate":
            buffers, keep = names_at(cursor), cursor.accept("keep")
            step = Allocate(name, _readings(cursor), buffers, keep)
        elif kind == "carry":
            pairs = listed_at(cursor, "(", ")", _pair)
            readings = _readings(cursor)
            step = Carry(name, pairs, tuple(one for one in readings if isinstance(one, Sized)))
            if len(step.sizes) != len(readings):
                cursor.fail("a carry measures expressions, no elements")
        elif kind == "check":
            code = cursor.integer()
            guards: list[Guard] = []
            while cursor.accept("guard"):
                guards.append(guard_at(cursor))
            step = Check(name, tuple(guards), code)
        elif kind == "branch":
            step = Branch(name, cursor.name(), ())
        else:
            trips = parse_dim_at(cursor) if cursor.accept("trips") else None
            condition = cursor.name() if cursor.accept("while") else ""
            step = Repeat(name, (), trips, condition, cursor.name() if cursor.accept("as") else "")
        step = _ending(cursor, step)
        if isinstance(step, Branch):
            return replace(step, then=self.arm("then", indent, kernels), otherwise=self.arm("else", indent, kernels))
        if isinstance(step, Repeat):
            return replace(step, body=self.steps(indent + 2, kernels))
        return step

    def arm(self, word: str, indent: int, kernels: _Kernels) -> tuple[Step, ...]:
        if not self.at(indent + 2):
            fail(self.lines[self.place - 1].number, 1, f"expected {word!r} below")
        cursor = self.next().cursor()
        cursor.expect(word)
        cursor.end()
        return self.steps(indent + 4, kernels)

    def box(self, cursor: Cursor, name: str) -> BlackBoxStep:
        identity = cursor.name()
        box = self.black_boxes.get(identity)
        if box is None:
            raise PlanError(1420, f"black box {identity!r} was not given", where=f"line {cursor.line}")
        inputs = names_at(cursor)
        cursor.expect("to")
        outputs = names_at(cursor)
        ordered = cursor.accept("ordered")
        measures: list[Extent] = []
        while cursor.accept("measures"):
            symbol = cursor.name()
            cursor.expect("dimension")
            dimension = cursor.integer()
            cursor.expect("of")
            measures.append(Extent(symbol, cursor.integer(), dimension))
        return BlackBoxStep(name, box, inputs, outputs, tuple(measures), ordered)


def _signature_line(kernel: KernelSignature, cursor: Cursor) -> KernelSignature:
    for access in ("read", "write", "accumulate", "workspace"):
        if cursor.accept(access):
            name, kind = typed_at(cursor)
            alignment = cursor.integer() if cursor.accept("aligned") else 1
            boxes: list[Box] = []
            while cursor.accept("box"):
                start = dims_at(cursor)
                cursor.expect("of")
                boxes.append(Box(start, dims_at(cursor)))
            formal = KernelBuffer(name, kind.shape, kind.dtype, access, alignment, tuple(boxes))
            kernel = replace(kernel, buffers=(*kernel.buffers, formal))
            cursor.end()
            return kernel
    if cursor.accept("symbol"):
        kernel = replace(kernel, symbols=(*kernel.symbols, symbol_at(cursor)))
    elif cursor.accept("alias"):
        pair = names_at(cursor)
        if len(pair) != 2:
            cursor.fail("an alias has two buffers")
        kernel = replace(kernel, may_alias=(*kernel.may_alias, (pair[0], pair[1])))
    elif cursor.accept("fault"):
        kernel = replace(kernel, faults=(*kernel.faults, cursor.name("a message")))
    elif cursor.accept("launch"):
        kernel = replace(kernel, launch=dims_at(cursor))
    else:
        cursor.expect("random")
        kernel = replace(kernel, random_counter=True)
    cursor.end()
    return kernel


def _pair(cursor: Cursor) -> tuple[str, str]:
    source = cursor.name()
    cursor.expect("to")
    return source, cursor.name()


def _readings(cursor: Cursor) -> tuple[Reading | Sized, ...]:
    found: list[Reading | Sized] = []
    while cursor.accept("measures"):
        symbol = cursor.name()
        if cursor.accept("as"):
            found.append(Sized(symbol, parse_dim_at(cursor)))
            continue
        cursor.expect("element")
        element = cursor.integer()
        cursor.expect("of")
        found.append(Reading(symbol, cursor.name(), element))
    return tuple(found)


def _call(cursor: Cursor, name: str, kernels: _Kernels) -> KernelStep | LibraryStep:
    cursor.expect("kernel")
    number = cursor.integer()
    if number not in kernels:
        cursor.fail(f"there is no kernel {number}")
    kernel, meaning = kernels[number]
    if not cursor.accept("library"):
        return KernelStep(name, kernel, names_at(cursor), dims_at(cursor), meaning)
    library = cursor.name()
    cursor.expect("function")
    function = cursor.name()
    return LibraryStep(name, library, function, kernel, names_at(cursor), dims_at(cursor), meaning)


def _ending(cursor: Cursor, step: Step) -> Step:
    cursor.expect("on")
    queue = cursor.name()
    waits = listed_at(cursor, "(", ")", Cursor.integer) if cursor.accept("waits") else ()
    signals = listed_at(cursor, "(", ")", Cursor.integer) if cursor.accept("signals") else ()
    origin = cursor.name() if cursor.accept("from") else ""
    ended = replace(step, queue=queue, waits=waits, signals=signals, origin=origin)
    if isinstance(ended, KernelStep) and cursor.accept("faults"):
        cursor.expect("from")
        ended = replace(ended, fault_origins=names_at(cursor))
    if isinstance(ended, KernelStep) and cursor.accept("saying"):
        ended = replace(ended, fault_reasons=names_at(cursor))
    cursor.end()
    return ended
