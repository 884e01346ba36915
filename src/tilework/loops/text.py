"""The text form of loop programs, for people and for `loops.parse`.

    program matmul
      symbol M in 1..
      read a: float32[M, 64]
      read b: float32[64, 16]
      write c: float32[M, 16]

      parallel i < M
        serial j < 16
          serial k < 64
            c: c[i, j] += a[i, k] * b[k, j]  init 0.0 over k

A storage line (`register t: float32[8]`) opens a buffer for the rest of its block. Literals have the type of what they
meet (`float32(2.0)` says another). What an expression uses twice is written once as `let`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as ListLike

from tilework.dims import Dim
from tilework.dtypes import DType
from tilework.loops.expressions import Call, Constant, Expression, Index, Load, Parameter, children, walk
from tilework.loops.functions import FUNCTIONS
from tilework.loops.program import (
    Access,
    AsyncCopy,
    AsyncWait,
    Barrier,
    Buffer,
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
from tilework.loops.reducers import is_built_in
from tilework.loops.words import INFIX, NEGATION, PRIMARY, REDUCER_SIGNS, dim_text, index_text, name_text

_DEEPEST = 20
"""Parentheses and calls within each other before a part is written as a `let`."""
_LONGEST = 1000
"""Characters of one expression before a part is written as a `let`."""


def program_text(program: LoopProgram) -> str:
    """The text of a program; `loops.parse.parse_program` reads it back to the same form."""
    lines = [f"program {name_text(program.name)}"]
    for symbol in program.symbols:
        measured = "measured " if symbol.measured else ""
        upper = "" if symbol.upper is None else str(symbol.upper)
        step = f" step {symbol.multiple}" if symbol.multiple != 1 else ""
        lines.append(f"  symbol {measured}{name_text(symbol.name)} in {symbol.lower}..{upper}{step}")
    for argument in program.arguments:
        scope = "" if argument.buffer.scope == "global" else f" in {argument.buffer.scope}"
        lines.append(f"  {argument.access} {_declared(argument.buffer)}{scope}")
    for reducer in program.reducers.values():
        if not is_built_in(reducer):
            lines.extend("  " + line for line in reducer_lines(reducer))
    lines.append("")
    lines.extend("  " + line for _, line in node_lines(program.body, program.buffers))
    return "\n".join(lines) + "\n"


def node_lines(root: Node, buffers: Mapping[str, Buffer]) -> Iterator[tuple[Node, str]]:
    """The lines of a tree, each with the node that it belongs to. `buffers` gives literals their types."""
    stack: list[tuple[Node, int, bool]] = [(root, 0, True)]
    while stack:
        node, depth, last = stack.pop()
        margin = "  " * depth
        match node:
            case Sequence():
                flat = _flat(node)
                if not flat:
                    yield node, margin + "pass"
                ends = [False] * (len(flat) - 1) + [last]
                stack.extend((child, depth, end) for child, end in reversed(list(zip(flat, ends, strict=False))))
            case Loop():
                yield node, f"{margin}{node.kind} {name_text(node.variable)} < {dim_text(node.extent)}"
                stack.append((node.body, depth + 1, True))
            case Intrinsic():
                yield node, f"{margin}intrinsic {name_text(node.instruction)}"
                stack.append((node.body, depth + 1, True))
            case Storage() if not last:
                # Its life ends before the block does: a block of its own shows where.
                yield node, margin + "block"
                stack.append((node, depth + 1, True))
            case Storage():
                yield node, f"{margin}{node.buffer.scope} {_declared(node.buffer)}"
                stack.append((node.body, depth, True))
            case _:
                for line in leaf_lines(node, buffers):
                    yield node, margin + line


def _flat(node: Node) -> list[Node]:
    if not isinstance(node, Sequence):
        return [node]
    return [leaf for child in node.children for leaf in _flat(child)]


def _declared(buffer: Buffer) -> str:
    return f"{name_text(buffer.name)}: {buffer.dtype}{index_text(buffer.shape)}"


def leaf_lines(node: Compute | Prefetch | Barrier | AsyncCopy | AsyncWait, buffers: Mapping[str, Buffer]) -> list[str]:
    """The lines of a statement: `let`s, then the statement itself."""
    match node:
        case Compute():
            return statement_lines(node, buffers)
        case Prefetch():
            intent = " for write" if node.write else " once" if node.once else ""
            return [f"prefetch {name_text(node.name)}: {_access(node.target)}{intent}{_guards(node.guards)}"]
        case AsyncCopy():
            copied = f"{_access(node.target)} = {_access(node.source)}"
            return [f"copy {name_text(node.name)}: {copied}  group {name_text(node.group)}{_guards(node.guards)}"]
        case AsyncWait():
            return [f"wait {name_text(node.group)} pending {node.pending}"]
        case Barrier():
            return [f"barrier {name_text(node.scope)}"]


def statement_lines(node: Compute, buffers: Mapping[str, Buffer]) -> list[str]:
    """The lines of one statement."""
    types = [node.accumulate or (buffers[t.buffer].dtype if t.buffer in buffers else None) for t in node.targets]
    lets, values = values_text(node.values, types)
    sign = "=" if node.reducer is None else _sign(node.reducer)
    line = f"{name_text(node.name)}: {_several(list(map(_access, node.targets)))} {sign} {values}"
    if node.init is not None:
        line += "  init " + _several([_literal(c, t) for c, t in zip(node.init, types, strict=False)])
    if node.reduction:
        line += ("" if node.init is not None else " ") + f" over {', '.join(map(name_text, node.reduction))}"
    line += _guards(node.guards)
    if node.accumulate is not None:
        line += f"  in {node.accumulate}"
    return [*lets, line]


def values_text(values: tuple[Expression, ...], types: ListLike[DType | None]) -> tuple[list[str], str]:
    """The `let` lines of some values and their text; `types` are those that bare literals have."""
    printer = _ExpressionText(values)
    found = [printer.text(value, expected) for value, expected in zip(values, types, strict=False)]
    return printer.lets, _several(found)


def reducer_lines(reducer: Reducer) -> list[str]:
    """The lines that define a reducer."""
    sides = [
        f"({', '.join(f'{name_text(p.name)}: {p.dtype}' for p in side)})" for side in (reducer.left, reducer.right)
    ]
    printer = _ExpressionText(reducer.combine)
    combine = [printer.text(c, p.dtype) for c, p in zip(reducer.combine, reducer.left, strict=True)]
    identity = [_literal(c, p.dtype) for c, p in zip(reducer.identity, reducer.left, strict=True)]
    return [
        f"reducer {name_text(reducer.name)} {' '.join(sides)}{'' if reducer.relaxable else ' ordered'}",
        *("  " + line for line in printer.lets),
        f"  combine {_several(combine)}",
        f"  identity {_several(identity)}",
    ]


def expression_text(expression: Expression, expected: DType | None = None) -> str:
    """One expression on one line (with `let`s before it, separated by semicolons, where it shares parts)."""
    printer = _ExpressionText((expression,))
    text = printer.text(expression, expected)
    return "; ".join([*printer.lets, text])


def _sign(reducer: Reducer) -> str:
    return f"{REDUCER_SIGNS.get(reducer.name) or name_text(reducer.name)}="


def _several(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _access(access: Access) -> str:
    return name_text(access.buffer) + index_text(access.index)


def _guards(guards: tuple[Dim, ...]) -> str:
    return "  where " + " and ".join(f"{dim_text(g)} >= 0" for g in guards) if guards else ""


def _literal(node: Constant, expected: DType | None) -> str:
    if isinstance(node.value, bool):
        text = "true" if node.value else "false"
    else:
        text = repr(node.value)
    bare = node.dtype == expected or (isinstance(node.value, bool) and node.dtype.kind == "boolean")
    return text if bare else f"{node.dtype}({text})"


class _ExpressionText:
    """Prints the expressions of one statement; `lets` grows as shared or large parts are met."""

    def __init__(self, roots: tuple[Expression, ...]) -> None:
        self.lets: list[str] = []
        self._parts: dict[int, tuple[str, int, int]] = {}
        uses: dict[int, int] = {}
        seen: set[int] = set()
        for root in roots:
            uses[id(root)] = uses.get(id(root), 0) + 1
            for node in walk(root):
                if id(node) not in seen:
                    seen.add(id(node))
                    for child in children(node):
                        uses[id(child)] = uses.get(id(child), 0) + 1
        self._uses = uses

    def text(self, expression: Expression, expected: DType | None) -> str:
        """The text of a whole value whose literals may leave out the type `expected`."""
        for node in walk(expression):
            if id(node) not in self._parts and not isinstance(node, Constant):
                self._parts[id(node)] = self._part(node)
        return self._operand(expression, expected)[0]

    def _operand(self, node: Expression, expected: DType | None) -> tuple[str, int, int]:
        return (_literal(node, expected), PRIMARY, 0) if isinstance(node, Constant) else self._parts[id(node)]

    def _part(self, node: Expression) -> tuple[str, int, int]:
        """Text, how tightly it binds, and how deep it is nested."""
        match node:
            case Load():
                return name_text(node.buffer) + index_text(node.index), PRIMARY, 0
            case Index():
                suffix = "" if node.dtype.name == "int64" else f", {node.dtype}"
                return f"index({dim_text(node.value)}{suffix})", PRIMARY, 0
            case Parameter():
                return name_text(node.name), PRIMARY, 0
            case Call():
                text, binding, depth = self._call(node)
            case _:
                return f"<{type(node).__name__}>", PRIMARY, 0
        if self._uses[id(node)] > 1 or depth >= _DEEPEST or len(text) > _LONGEST:
            self.lets.append(f"let %{len(self.lets) + 1} = {text}")
            return f"%{len(self.lets)}", PRIMARY, 0
        return text, binding, depth

    def _call(self, node: Call) -> tuple[str, int, int]:
        function, arguments = node.function, node.arguments
        parts = [self._operand(a, t) for a, t in zip(arguments, literal_types(function, arguments), strict=True)]
        depth = max((depth for _, _, depth in parts), default=0) + 1
        if function in INFIX and len(parts) == 2:
            sign, binding = INFIX[function]
            left = _within(parts[0], binding + 1 if binding == 1 else binding)
            return f"{left} {sign} {_within(parts[1], binding + 1)}", binding, depth
        if function == "negate" and not isinstance(arguments[0], Constant):
            return "-" + _within(parts[0], NEGATION), NEGATION, depth
        inside = [text for text, _, _ in parts]
        if function in ("cast", "bitcast"):
            inside.append(str(node.dtype))
        return f"{function}({', '.join(inside)})", PRIMARY, depth


def literal_types(function: str, arguments: tuple[Expression, ...]) -> list[DType | None]:
    """The type that a bare literal has at each operand: that of the first operand (branch) that is no literal."""
    known = FUNCTIONS.get(function)
    if known is None:
        return [None] * len(arguments)
    start = 1 if known.rule == "select" else 0
    model = next((a.dtype for a in arguments[start:] if not isinstance(a, Constant)), None)
    return [None] * start + [model] * (len(arguments) - start)


def _within(part: tuple[str, int, int], binding: int) -> str:
    return part[0] if part[1] >= binding else f"({part[0]})"
