"""Structural equality of loop programs.

Nodes and expressions compare by identity everywhere else; here two programs are the same when they have the same form.
Sharing of subexpressions and nesting of sequences do not count.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import cast

from tilework.loops.expressions import Call, Constant, Expression, Index, Load, Parameter, walk
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


def same_program(a: LoopProgram, b: LoopProgram) -> bool:
    """Whether two programs have the same form."""
    return difference(a, b) is None


def same_node(a: Node, b: Node) -> bool:
    """Whether two trees have the same form."""
    return _Comparison().nodes(a, b, "body") is None


def same_expression(a: Expression, b: Expression) -> bool:
    """Whether two expressions have the same form."""
    found = _Comparison()
    return found.form(a) == found.form(b)


def difference(a: LoopProgram, b: LoopProgram) -> str | None:
    """Where two programs first differ, in words; None where they do not."""
    for what, left, right in (("name", a.name, b.name), ("arguments", a.arguments, b.arguments)):
        if left != right:
            return f"{what}: {left} and {right}"
    if a.symbols != b.symbols:
        return f"symbols: {', '.join(map(str, a.symbols))} and {', '.join(map(str, b.symbols))}"
    return _Comparison().nodes(a.body, b.body, "body")


class _Comparison:
    """Numbers every form it meets, so that equal forms get equal numbers (and deep expressions need no recursion)."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._forms: dict[int, int] = {}
        self._kept: list[Expression] = []

    def form(self, expression: Expression) -> int:
        for node in walk(expression):
            if id(node) in self._forms:
                continue
            match node:
                case Constant(value=value, dtype=dtype):
                    key: Hashable = ("constant", dtype, repr(value))
                case Load(buffer=buffer, index=index, dtype=dtype):
                    key = ("load", buffer, index, dtype)
                case Index(value=value, dtype=dtype):
                    key = ("index", value, dtype)
                case Parameter(name=name, dtype=dtype):
                    key = ("parameter", name, dtype)
                case Call(function=function, arguments=arguments, dtype=dtype):
                    key = (function, dtype, tuple(self._forms[id(a)] for a in arguments))
                case _:
                    key = ("other", id(node))
            self._forms[id(node)] = self._numbers.setdefault(key, len(self._numbers))
            self._kept.append(node)  # ids stay taken while they are keys
        return self._forms[id(expression)]

    def forms(self, expressions: Iterable[Expression] | None) -> tuple[int, ...] | None:
        return None if expressions is None else tuple(self.form(e) for e in expressions)

    def reducer(self, found: Reducer | None) -> Hashable:
        if found is None:
            return None
        return (
            found.name, self.forms(found.left), self.forms(found.right), self.forms(found.combine),
            self.forms(found.identity), found.relaxable,
        )  # fmt: skip

    def nodes(self, a: Node, b: Node, where: str) -> str | None:
        """Where two trees first differ."""
        left, right = _flat(a), _flat(b)
        if len(left) != len(right):
            return f"{where}: {len(left)} nodes and {len(right)}"
        for number, (x, y) in enumerate(zip(left, right, strict=True)):
            here = f"{where}[{number}]" if len(left) > 1 else where
            if type(x) is not type(y):
                return f"{here}: {type(x).__name__} and {type(y).__name__}"
            for what, p, q in zip(_LABELS[type(x).__name__], self._facts(x), self._facts(y), strict=True):
                if p != q:
                    return f"{here}: {what} {_shown(p)} and {_shown(q)}"
            if isinstance(x, (Loop, Storage, Intrinsic)) and isinstance(y, (Loop, Storage, Intrinsic)):
                found = self.nodes(x.body, y.body, f"{here}.{_facts_name(x)}")
                if found is not None:
                    return found
        return None

    def _facts(self, node: Node) -> tuple[Hashable, ...]:
        match node:
            case Loop():
                return node.variable, node.extent, node.kind
            case Storage():
                return (node.buffer,)
            case Intrinsic():
                return (node.instruction,)
            case Compute():
                return (
                    node.name, node.targets, self.forms(node.values), self.reducer(node.reducer), self.forms(node.init),
                    node.reduction, node.guards, node.accumulate,
                )  # fmt: skip
            case Prefetch():
                return node.name, node.target, node.guards, node.write
            case AsyncCopy():
                return node.name, node.target, node.source, node.group, node.guards
            case AsyncWait():
                return node.group, node.pending
            case Barrier():
                return (node.scope,)
            case Sequence():
                return ()


_LABELS = {
    "Loop": ("variable", "extent", "kind"),
    "Storage": ("buffer",),
    "Intrinsic": ("instruction",),
    "Compute": ("name", "targets", "values", "reducer", "init", "reduction", "guards", "accumulate"),
    "Prefetch": ("name", "target", "guards", "write"),
    "AsyncCopy": ("name", "target", "source", "group", "guards"),
    "AsyncWait": ("group", "pending"),
    "Barrier": ("scope",),
}


def _facts_name(node: Loop | Storage | Intrinsic) -> str:
    if isinstance(node, Loop):
        return node.variable
    return node.buffer.name if isinstance(node, Storage) else node.instruction


def _shown(fact: object) -> str:
    if not isinstance(fact, tuple):
        return str(fact)
    parts = cast("tuple[object, ...]", fact)
    return f"({', '.join(map(_shown, parts))})"


def _flat(node: Node) -> list[Node]:
    if not isinstance(node, Sequence):
        return [node]
    return [leaf for child in node.children for leaf in _flat(child)]
