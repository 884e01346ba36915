"""Dimensions that an operator needs equal: proved, made so by giving one free symbol the other's value, or assumed.

What is assumed is checked at every call (`ops.shape.assume`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilework.dims import Dim, dim
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.symbols import SymbolTable


class Unified(Exception):  # noqa: N818 - a signal: the import starts again with what was learnt
    """A symbol that must have one value, or be the same as another symbol.

    `certain` is false where it is only taken to be so: extents that meet in an elementwise operator may also be 1.
    """

    def __init__(self, symbol: str, value: int | str, certain: bool = True) -> None:
        super().__init__(symbol, value, certain)
        self.symbol = symbol
        self.value = value
        self.certain = certain


def equal(symbols: SymbolTable, one: Dim, other: Dim, what: str) -> bool:
    """Whether two dims that must be equal are known to be; where not, it is to be assumed.

    Where they differ and one of them follows from the other as a plain symbol (n must be 1, or n must be m), raise
    `Unified`: the model runs for no other value. Raises `NodeFault` 1119 where they never are equal.
    """
    gap = symbols.simplify(one - other)
    if gap == 0:
        return True
    if gap.is_constant or symbols.decide_at_least(gap, 1) or symbols.decide_at_least(-gap, 1):
        raise NodeFault(1119, f"{what} must be equal: {one} and {other}")
    found = None if any(map(symbols.is_measured, gap.names())) else _solved(gap)
    if found is not None:
        raise found
    return False


def require_equal(symbols: SymbolTable, one: Dim, other: Dim, what: str) -> None:
    """As `equal`; raises `NodeFault` 1121 where it is not known."""
    if not equal(symbols, one, other, what):
        raise NodeFault(1121, f"{what} must be equal: {one} and {other}")


def require_shape(symbols: SymbolTable, shape: Sequence[Dim], wanted: Sequence[Dim], what: str) -> None:
    """As `require_equal` for every extent of a shape; `NodeFault` 1119 for another rank."""
    text = f"{what} is [{', '.join(map(str, shape))}], it must be [{', '.join(map(str, wanted))}]"
    if len(shape) != len(wanted):
        raise NodeFault(1119, text)
    for one, other in zip(shape, wanted, strict=True):
        try:
            require_equal(symbols, one, other, what)
        except NodeFault as fault:
            raise NodeFault(fault.code, text) from None


def require_one(symbols: SymbolTable, shape: Sequence[Dim], what: str) -> None:
    """As `require_shape`, for a shape of one element."""
    if any(extent.is_constant and extent != 1 for extent in shape):
        raise NodeFault(1119, f"{what} must be one number, it is [{', '.join(map(str, shape))}]")
    require_shape(symbols, shape, [dim(1)] * len(shape), what)


def require_divisible(extent: Dim, by: int, what: str) -> Dim:
    """The quotient of a dim that a positive integer divides; `NodeFault` 1119 or 1121 where it does not or may not."""
    if extent % by != 0:
        raise NodeFault(1119 if extent.is_constant else 1121, f"{what} ({extent}) must divide by {by}")
    return extent // by


def _solved(gap: Dim) -> Unified | None:
    """The value of a symbol with which the gap is 0: k x n - c = 0, or n - m = 0."""
    plain = [
        (monomial[0], factor) for monomial, factor in gap.terms if len(monomial) == 1 and isinstance(monomial[0], str)
    ]
    if len(plain) != len(gap.terms):
        return None
    if len(plain) == 1:
        ((name, factor),) = plain
        value, rest = divmod(-gap.constant, factor)
        return Unified(str(name), value) if rest == 0 and value >= 0 else None
    if len(plain) == 2 and not gap.constant:
        (first, p), (second, q) = plain
        if p == -q and abs(p) == 1:
            return Unified(str(second), str(first))
    return None
