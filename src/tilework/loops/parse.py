"""Reading the text form of loop programs (see `loops.text`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from tilework.dims import Dim, Symbol
from tilework.dtypes import DType
from tilework.errors import TileworkError
from tilework.fast_dataclass import dataclass, field
from tilework.loops.expressions import Constant, Expression, Parameter
from tilework.loops.parse_expressions import Scope as Names
from tilework.loops.parse_expressions import parse_dim_at, parse_expression, parse_index, parse_literal, parse_type
from tilework.loops.program import (
    Access,
    Argument,
    AsyncCopy,
    AsyncWait,
    Barrier,
    Buffer,
    BufferAccess,
    Compute,
    Intrinsic,
    Loop,
    LoopKind,
    LoopProgram,
    Node,
    Prefetch,
    Reducer,
    Scope,
    Storage,
    sequence,
)  # fmt: skip
from tilework.loops.reducers import BUILT_IN
from tilework.loops.reducers import reducer as built_in_reducer
from tilework.loops.tokens import Cursor, fail, tokens_of
from tilework.loops.words import KINDS, REDUCER_SIGNS, SCOPES

_DEEPEST = 400
"""Loops and storage within each other."""
_SIGNED = {sign: name for name, sign in REDUCER_SIGNS.items()}
_Part = TypeVar("_Part")


def parse_program(text: str) -> LoopProgram:
    """The program that a text states. Raises `ParseError` 1303 with line and column."""
    return _Parser(text).program()


@dataclass
class _Block:
    """Lines of one indentation: the nodes so far, inside the storage opened in this block."""

    indent: int
    close: Callable[[Node], Node]
    nodes: list[Node] = field(default_factory=list[Node])
    storage: list[tuple[Buffer, list[Node], Buffer | None]] = field(
        default_factory=list[tuple[Buffer, list[Node], "Buffer | None"]]
    )


class _Parser:
    def __init__(self, text: str) -> None:
        self._lines: list[tuple[int, int, str]] = []
        for number, line in enumerate(text.split("\n"), 1):
            stripped = line.rstrip("\r").strip(" ")
            if stripped and not stripped.startswith("#"):
                self._lines.append((number, len(line) - len(line.lstrip(" ")), line.rstrip("\r")))
        self._place = 0
        self._buffers: dict[str, Buffer] = {}
        self._reducers: dict[str, Reducer] = {}
        self._lets: dict[str, Expression] = {}

    def _cursor(self) -> Cursor | None:
        if self._place >= len(self._lines):
            return None
        number, _, line = self._lines[self._place]
        return Cursor(tokens_of(line, number), number)

    def program(self) -> LoopProgram:
        cursor = self._cursor()
        if cursor is None:
            fail(1, 1, "expected 'program', found nothing")
        cursor.expect("program")
        name = cursor.name()
        cursor.end()
        self._place += 1
        symbols: list[Symbol] = []
        arguments: list[Argument] = []
        while (cursor := self._cursor()) is not None and cursor.following.text != ":":
            if cursor.accept("symbol"):
                symbols.append(_symbol(cursor))
            elif cursor.token.text in ("read", "write", "accumulate") and cursor.token.kind == "word":
                access = cast(BufferAccess, cursor.next().text)
                buffer = self._declared(cursor, "global")
                if cursor.accept("in"):
                    buffer = Buffer(buffer.name, buffer.shape, buffer.dtype, _scope(cursor))
                cursor.end()
                arguments.append(Argument(buffer, access))
                self._buffers[buffer.name] = buffer
            elif cursor.accept("reducer"):
                self._reducer(cursor)
                continue
            else:
                break
            self._place += 1
        return LoopProgram(name, tuple(arguments), self._body(), tuple(symbols))

    # -- blocks --------------------------------------------------------------------------------------------------------
    def _body(self) -> Node:
        blocks = [_Block(-1, lambda node: node)]
        opened = True
        depth = 0
        while self._place < len(self._lines):
            number, indent, _ = self._lines[self._place]
            if opened:
                if indent <= blocks[-1].indent:
                    fail(number, indent + 1, "expected an indented block")
                blocks[-1].indent = indent
                opened = False
            while indent < blocks[-1].indent and len(blocks) > 1:
                depth -= 1 + len(blocks[-1].storage)
                self._close(blocks)
            if indent != blocks[-1].indent:
                fail(number, indent + 1, "this line's indentation is that of no block above")
            cursor = self._cursor()
            if cursor is None:
                break
            close = self._line(cursor, blocks[-1])
            cursor.end()
            self._place += 1
            if close is not None:
                blocks.append(_Block(indent, close))
                opened = True
            depth += 1 if close is not None else 0
            if depth + len(blocks[-1].storage) > _DEEPEST:
                fail(number, indent + 1, "too deeply nested")
        last = self._lines[-1][0]
        if opened and len(blocks) > 1:
            fail(last + 1, 1, "expected an indented block, found the end")
        if self._lets:
            fail(last + 1, 1, "expected a statement after 'let', found the end")
        while len(blocks) > 1:
            self._close(blocks)
        return self._finished(blocks[0])

    def _close(self, blocks: list[_Block]) -> None:
        if self._lets:
            number, indent, _ = self._lines[min(self._place, len(self._lines) - 1)]
            fail(number, indent + 1, "expected a statement after 'let'")
        block = blocks.pop()
        target = blocks[-1]
        _last(target).append(block.close(self._finished(block)))

    def _finished(self, block: _Block) -> Node:
        nodes = block.nodes if not block.storage else block.storage[-1][1]
        body = sequence(*nodes)
        for number in range(len(block.storage) - 1, -1, -1):
            buffer, _, hidden = block.storage[number]
            self._buffers.pop(buffer.name, None)
            if hidden is not None:
                self._buffers[buffer.name] = hidden
            before = block.storage[number - 1][1] if number else block.nodes
            body = sequence(*before, Storage(buffer, body))
        return body

    def _line(self, cursor: Cursor, block: _Block) -> Callable[[Node], Node] | None:
        """Read one line into the block; what makes a node of the block below it, where the line opens one."""
        token = cursor.token
        keyword = token.text if token.kind == "word" and cursor.following.text != ":" else ""
        if self._lets and (keyword not in ("", "let")):
            cursor.expected("a statement after 'let'")
        if keyword in KINDS:
            kind = cast(LoopKind, cursor.next().text)
            variable = cursor.name("a loop variable")
            cursor.expect("<")
            extent = parse_dim_at(cursor)
            return lambda body: Loop(variable, extent, kind, body)
        if keyword in SCOPES:
            buffer = self._declared(cursor, _scope(cursor))
            block.storage.append((buffer, [], self._buffers.get(buffer.name)))
            self._buffers[buffer.name] = buffer
            return None
        match keyword:
            case "block":
                cursor.next()
                return lambda body: body
            case "intrinsic":
                cursor.next()
                instruction = cursor.name("an instruction")
                return lambda body: Intrinsic(instruction, body)
            case "pass":
                cursor.next()
            case "let":
                cursor.next()
                self._let(cursor, self._names())
            case "prefetch" | "copy" | "wait" | "barrier":
                cursor.next()
                _last(block).append(self._effect(keyword, cursor))
            case _:
                _last(block).append(self._statement(cursor))
        return None

    # -- statements ----------------------------------------------------------------------------------------------------
    def _names(self) -> Names:
        return Names(self._buffers, {}, self._lets)

    def _let(self, cursor: Cursor, names: Names) -> None:
        token = cursor.token
        if token.kind != "let":
            cursor.expected("a name like %1")
        cursor.next()
        cursor.expect("=")
        value = parse_expression(cursor, names, None)
        if token.text in names.lets:
            cursor.fail(f"{token.text} is defined twice")
        names.lets[token.text] = value

    def _effect(self, keyword: str, cursor: Cursor) -> Node:
        if keyword == "barrier":
            # a scope is often a word of the language ("block")
            return Barrier(cursor.next().text if cursor.token.kind == "word" else cursor.name("a scope"))
        if keyword == "wait":
            group = cursor.name("a group")
            cursor.expect("pending")
            return AsyncWait(group, cursor.integer())
        name = cursor.name("a statement's name")
        cursor.expect(":")
        target = _access(cursor)
        if keyword == "prefetch":
            write = cursor.accept("for")
            if write:
                cursor.expect("write")
            once = not write and cursor.accept("once")
            return Prefetch(name, target, _guards(cursor), write, once)
        cursor.expect("=")
        source = _access(cursor)
        cursor.expect("group")
        group = cursor.name("a group")
        return AsyncCopy(name, target, source, group, _guards(cursor))

    def _statement(self, cursor: Cursor) -> Compute:
        name = cursor.name("a statement")
        cursor.expect(":")
        several = cursor.accept("(")
        targets = [_access(cursor)]
        while several and not cursor.accept(")"):
            cursor.expect(",")
            targets.append(_access(cursor))
        for target in targets:
            if target.buffer not in self._buffers:
                cursor.fail(f"no buffer is called {target.buffer!r} here")
        sign = self._sign(cursor)
        # The accumulation type stands at the end of the line and gives literals their type: look ahead.
        accumulate = _accumulation(cursor)
        types = [accumulate or self._buffers[target.buffer].dtype for target in targets]
        names = self._names()
        values = _several(cursor, types, lambda t: parse_expression(cursor, names, t))
        init: tuple[Constant, ...] | None = None
        if cursor.accept("init"):
            init = tuple(_several(cursor, types, lambda t: parse_literal(cursor, names, t)))
        over: list[str] = []
        if cursor.accept("over"):
            over.append(cursor.name("a loop variable"))
            while cursor.accept(","):
                over.append(cursor.name("a loop variable"))
        guards = _guards(cursor)
        if cursor.accept("in"):
            parse_type(cursor)
        self._lets = {}
        reducer = None if sign is None else self._found_reducer(cursor, sign, types[0])
        return Compute(name, tuple(targets), tuple(values), reducer, init, tuple(over), guards, accumulate)

    def _sign(self, cursor: Cursor) -> str | None:
        """`=`, or a reducer's name or sign and `=`."""
        if cursor.accept("="):
            return None
        if cursor.token.kind == "sign" and cursor.token.text in _SIGNED:
            name = _SIGNED[cursor.next().text]
        elif cursor.token.text in BUILT_IN:
            name = cursor.next().text
        else:
            name = cursor.name("'=' or a reducer")
        cursor.expect("=")
        return name

    def _found_reducer(self, cursor: Cursor, name: str, dtype: DType) -> Reducer:
        if name in self._reducers:
            return self._reducers[name]
        try:
            return built_in_reducer(name, dtype)
        except TileworkError as error:
            cursor.fail(error.message)

    def _reducer(self, cursor: Cursor) -> None:
        name = cursor.name("a reducer's name")
        left, right = _parameters(cursor), _parameters(cursor)
        relaxable = not cursor.accept("ordered")
        cursor.end()
        names = Names({}, {p.name: p for p in (*left, *right)}, {})
        types = [p.dtype for p in left]
        combine: list[Expression] = []
        self._place += 1
        while (below := self._cursor()) is not None:
            if below.accept("let"):
                self._let(below, names)
            elif below.accept("combine"):
                combine = _several(below, types, lambda t, at=below: parse_expression(at, names, t))
            else:
                below.expect("identity")
                identity = _several(below, types, lambda t, at=below: parse_literal(at, names, t))
                below.end()
                if not combine:
                    below.fail(f"reducer {name} has no 'combine'")
                self._place += 1
                self._reducers[name] = Reducer(name, left, right, tuple(combine), tuple(identity), relaxable)
                return
            below.end()
            self._place += 1
        fail(cursor.line, 1, f"reducer {name} has no 'identity'")

    def _declared(self, cursor: Cursor, scope: Scope) -> Buffer:
        name = cursor.name("a buffer's name")
        cursor.expect(":")
        dtype = parse_type(cursor)
        return Buffer(name, parse_index(cursor), dtype, scope)


def _last(block: _Block) -> list[Node]:
    return block.storage[-1][1] if block.storage else block.nodes


def _scope(cursor: Cursor) -> Scope:
    if cursor.token.text not in SCOPES:
        cursor.expected("a scope")
    return cast(Scope, cursor.next().text)


def _symbol(cursor: Cursor) -> Symbol:
    measured = cursor.accept("measured")
    name = cursor.name("a symbol")
    cursor.expect("in")
    lower = cursor.integer()
    cursor.expect("..")
    upper = cursor.integer() if cursor.token.kind == "number" or cursor.token.text == "-" else None
    multiple = cursor.integer() if cursor.accept("step") else 1
    cursor.end()
    return Symbol(name, lower, upper, multiple, measured)


def _parameters(cursor: Cursor) -> tuple[Parameter, ...]:
    cursor.expect("(")
    found: list[Parameter] = []
    while True:
        name = cursor.name("a parameter")
        cursor.expect(":")
        found.append(Parameter(name, parse_type(cursor)))
        if cursor.accept(")"):
            return tuple(found)
        cursor.expect(",")


def _access(cursor: Cursor) -> Access:
    return Access(cursor.name("a buffer"), parse_index(cursor))


def _guards(cursor: Cursor) -> tuple[Dim, ...]:
    found: list[Dim] = []
    if cursor.accept("where"):
        while True:
            found.append(parse_dim_at(cursor))
            cursor.expect(">=")
            if cursor.integer() != 0:
                cursor.fail("a guard is compared with 0")
            if not cursor.accept("and"):
                break
    return tuple(found)


def _accumulation(cursor: Cursor) -> DType | None:
    rest = cursor.rest()
    if len(rest) >= 3 and rest[-3].kind == "word" and rest[-3].text == "in":
        return parse_type(Cursor(rest[-2:], cursor.line))
    return None


def _several(cursor: Cursor, types: Sequence[DType], part: Callable[[DType], _Part]) -> list[_Part]:
    """One part, or as many as there are types between parentheses."""
    if len(types) == 1:
        return [part(types[0])]
    cursor.expect("(")
    found: list[_Part] = []
    for number, dtype in enumerate(types):
        if number:
            cursor.expect(",")
        found.append(part(dtype))
    cursor.expect(")")
    return found
