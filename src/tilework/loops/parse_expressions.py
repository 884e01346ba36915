"""Reading dims and scalar expressions from the text form of loop programs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from tilework import dtypes
from tilework.dims import Dim, dim, loaded, maximum, minimum
from tilework.dtypes import DType, dtype_named
from tilework.errors import TileworkError
from tilework.fast_dataclass import dataclass, field
from tilework.loops.expressions import Call, Constant, Expression, Index, Load, Parameter, bitcast, constant
from tilework.loops.functions import FUNCTIONS, result_type
from tilework.loops.program import Buffer
from tilework.loops.tokens import Cursor, Token
from tilework.loops.words import INFIX, NEGATION

_SIGNS = {sign: (function, binding) for function, (sign, binding) in INFIX.items()}
_TYPE_NAMES = {dtype.name for dtype in dtypes.ALL}


@dataclass(frozen=True)
class _Bare:
    """A literal whose type is that of what it meets."""

    token: Token
    value: float | int


_Operand: TypeAlias = "Expression | _Bare"


@dataclass
class Scope:
    """What names mean where an expression stands."""

    buffers: Mapping[str, Buffer]
    parameters: Mapping[str, Parameter] = field(default_factory=dict[str, Parameter])
    lets: dict[str, Expression] = field(default_factory=dict[str, Expression])


# -- symbolic integers -------------------------------------------------------------------------------------------------
def parse_dim_at(cursor: Cursor) -> Dim:
    """A symbolic integer."""
    try:
        return _dim_sum(cursor)
    except TileworkError as error:
        if error.code == 1303:
            raise
        cursor.fail(error.message)


def _dim_sum(cursor: Cursor) -> Dim:
    cursor.enter()
    total = -_dim_product(cursor) if cursor.accept("-") else _dim_product(cursor)
    while cursor.token.text in ("+", "-") and cursor.token.kind == "sign":
        total = total + _dim_product(cursor) if cursor.next().text == "+" else total - _dim_product(cursor)
    cursor.leave()
    return total


def _dim_product(cursor: Cursor) -> Dim:
    total = _dim_atom(cursor)
    while cursor.token.kind == "sign" and cursor.token.text in ("*", "//", "%"):
        match cursor.next().text:
            case "*":
                total = total * _dim_atom(cursor)
            case "//":
                total = total // _dim_atom(cursor)
            case _:
                total = total % _dim_atom(cursor)
    return total


def _dim_atom(cursor: Cursor) -> Dim:
    if cursor.token.kind == "number":
        return dim(cursor.integer())
    if cursor.token.text == "(":
        text, behind = cursor.group()
        known = cursor.sizes.get(text)
        if known is not None:  # long sizes repeat what they are made of
            cursor.skip(behind)
            return known
        cursor.next()
        inside = _dim_sum(cursor)
        cursor.expect(")")
        cursor.sizes[text] = inside
        return inside
    if cursor.token.text in ("max", "min") and cursor.token.kind == "word" and cursor.following.text == "(":
        pick = maximum if cursor.next().text == "max" else minimum
        cursor.next()
        return pick(*_listed(cursor, _dim_sum, ")"))
    name = cursor.name("a symbolic integer")
    if cursor.token.kind == "sign" and cursor.token.text == "[":
        return loaded(name, parse_index(cursor))
    return dim(name)


def _listed(cursor: Cursor, part: Callable[[Cursor], Dim], close: str) -> list[Dim]:
    found: list[Dim] = []
    if cursor.accept(close):
        return found
    while True:
        found.append(part(cursor))
        if cursor.accept(close):
            return found
        cursor.expect(",")


def parse_index(cursor: Cursor) -> tuple[Dim, ...]:
    """Dims between brackets."""
    cursor.expect("[")
    return tuple(_listed(cursor, parse_dim_at, "]"))


# -- scalar expressions ------------------------------------------------------------------------------------------------
def parse_expression(cursor: Cursor, scope: Scope, expected: DType | None) -> Expression:
    """An expression; a bare literal alone has the type `expected`."""
    found = _infix(cursor, scope, 1)
    if isinstance(found, _Bare):
        if expected is None:
            cursor.fail("a literal needs a type here: write float32(...)")
        return _typed(cursor, found, expected)
    return found


def parse_literal(cursor: Cursor, scope: Scope, expected: DType | None) -> Constant:
    """A literal."""
    found = parse_expression(cursor, scope, expected)
    if not isinstance(found, Constant):
        cursor.expected("a literal")
    return found


def parse_type(cursor: Cursor) -> DType:
    """The name of an element type."""
    name = cursor.token
    if name.kind != "word" or name.text not in _TYPE_NAMES:
        cursor.expected("a data type")
    cursor.next()
    return dtype_named(name.text)


def _typed(cursor: Cursor, literal: _Bare, dtype: DType) -> Constant:
    try:
        return constant(literal.value, dtype)
    except (TileworkError, OverflowError, ValueError):
        cursor.fail(f"{literal.token.text} is no {dtype}")


def _apply(cursor: Cursor, function: str, operands: list[_Operand]) -> Expression:
    known = FUNCTIONS.get(function)
    start = 1 if known is not None and known.rule == "select" else 0
    model = next((o.dtype for o in operands[start:] if not isinstance(o, (_Bare, Constant))), None)
    typed: list[Expression] = []
    for number, operand in enumerate(operands):
        if not isinstance(operand, _Bare):
            typed.append(operand)
        elif model is None or number < start:
            cursor.fail("a literal needs a type here: write float32(...)")
        else:
            typed.append(_typed(cursor, operand, model))
    try:
        return Call(function, tuple(typed), result_type(function, tuple(o.dtype for o in typed)))
    except TileworkError as error:
        cursor.fail(error.message)


def _infix(cursor: Cursor, scope: Scope, binding: int) -> _Operand:
    cursor.enter()
    left = _prefix(cursor, scope)
    while cursor.token.kind == "sign" and cursor.token.text in _SIGNS:
        function, tightness = _SIGNS[cursor.token.text]
        if tightness < binding:
            break
        cursor.next()
        right = _infix(cursor, scope, tightness + 1)
        left = _apply(cursor, function, [left, right])
        if tightness == 1:
            break  # comparisons do not chain
    cursor.leave()
    return left


def _prefix(cursor: Cursor, scope: Scope) -> _Operand:
    token = cursor.token
    if token.kind == "sign" and token.text == "-":
        cursor.next()
        number = _number(cursor)
        if number is not None:
            return _Bare(token, -number.value)
        return _apply(cursor, "negate", [_infix(cursor, scope, NEGATION)])
    number = _number(cursor)
    if number is not None:
        return number
    if cursor.accept("("):
        inside = _infix(cursor, scope, 1)
        cursor.expect(")")
        return inside
    if token.kind == "let":
        found = scope.lets.get(token.text)
        if found is None:
            cursor.fail(f"{token.text} is not defined above")
        cursor.next()
        return found
    if token.kind == "word" and token.text in ("true", "false"):
        cursor.next()
        return Constant(token.text == "true", dtypes.boolean)
    if token.kind == "word" and cursor.following.text == "(" and cursor.following.kind == "sign":
        return _call(cursor, scope)
    name = cursor.name("an expression")
    if cursor.token.kind == "sign" and cursor.token.text == "[":
        buffer = scope.buffers.get(name)
        if buffer is None:
            cursor.fail(f"no buffer is called {name!r} here")
        return Load(name, parse_index(cursor), buffer.dtype)
    parameter = scope.parameters.get(name)
    if parameter is None:
        cursor.fail(f"{name!r} is no parameter here (a buffer needs an index)")
    return parameter


def _number(cursor: Cursor) -> _Bare | None:
    token = cursor.token
    if token.kind == "number":
        cursor.next()
        if len(token.text) > 400:
            cursor.fail("this number is too long")
        if token.text.isdigit():
            return _Bare(token, int(token.text))
        value = float(token.text)
        if math.isinf(value):
            cursor.fail(f"{token.text} is too large")
        return _Bare(token, value)
    if token.kind == "word" and token.text in ("inf", "nan"):
        cursor.next()
        return _Bare(token, math.inf if token.text == "inf" else math.nan)
    return None


def _call(cursor: Cursor, scope: Scope) -> _Operand:
    token = cursor.next()
    cursor.expect("(")
    if token.text == "index":
        value = parse_dim_at(cursor)
        dtype = parse_type(cursor) if cursor.accept(",") else dtypes.int64
        cursor.expect(")")
        return Index(value, dtype)
    if token.text in ("cast", "bitcast"):
        value = parse_expression(cursor, scope, None)
        cursor.expect(",")
        dtype = parse_type(cursor)
        cursor.expect(")")
        if token.text == "cast":
            return Call("cast", (value,), dtype)
        try:
            return bitcast(value, dtype)
        except TileworkError as error:
            cursor.fail(error.message)
    if token.text in _TYPE_NAMES:
        literal = parse_literal(cursor, scope, dtype_named(token.text))
        cursor.expect(")")
        return literal
    operands: list[_Operand] = []
    if not cursor.accept(")"):
        while True:
            operands.append(_infix(cursor, scope, 1))
            if cursor.accept(")"):
                break
            cursor.expect(",")
    return _apply(cursor, token.text, operands)
