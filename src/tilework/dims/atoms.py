"""The atoms of symbolic integers: whatever is no name, and no sum or product, stands in a polynomial as one factor.

Atoms are data; arithmetic on dims makes them, in normal form.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from tilework.fast_dataclass import dataclass

if TYPE_CHECKING:
    from tilework.dims.polynomial import Dim  # an atom holds dims, and a dim atoms: one type, told in two files


class Compound:
    """What the atoms that are no names have in common."""

    @cached_property
    def key(self) -> str:
        """Orders it among the factors of a term: behind the names. Kept, as sums are sorted again and again."""
        return f"~{self}"


@dataclass(frozen=True)
class FloorDiv(Compound):
    """`numerator // denominator`, rounded towards minus infinity; the denominator is positive."""

    numerator: Dim
    denominator: Dim

    def __str__(self) -> str:
        return f"{operand_text(self.numerator)} // {operand_text(self.denominator)}"


@dataclass(frozen=True)
class Mod(Compound):
    """`value % modulus`, in `0 .. modulus - 1`; the modulus is positive."""

    value: Dim
    modulus: Dim

    def __str__(self) -> str:
        return f"{operand_text(self.value)} % {operand_text(self.modulus)}"


@dataclass(frozen=True)
class Extreme(Compound):
    """The largest (`name == "max"`) or smallest (`"min"`) of some dims."""

    name: str
    arguments: tuple[Dim, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class Loaded(Compound):
    """An integer element of a buffer: what makes an index or a guard depend on data."""

    buffer: str
    index: tuple[Dim, ...]

    def __str__(self) -> str:
        return f"{self.buffer}[{', '.join(map(str, self.index))}]"


Atom: TypeAlias = "str | FloorDiv | Mod | Extreme | Loaded"
Monomial: TypeAlias = "tuple[Atom, ...]"


def parts_of(atom: FloorDiv | Mod | Extreme | Loaded) -> tuple[Dim, ...]:
    """The dims that an atom is made of."""
    if isinstance(atom, FloorDiv):
        return (atom.numerator, atom.denominator)
    if isinstance(atom, Mod):
        return (atom.value, atom.modulus)
    return atom.arguments if isinstance(atom, Extreme) else atom.index


def operand_text(value: Dim) -> str:
    """How an operand of a division or remainder is written: in brackets where it needs them."""
    simple = not value.terms or (
        len(value.terms) == 1
        and not value.constant
        and value.terms[0][1] == 1
        and len(value.terms[0][0]) == 1
        and isinstance(value.terms[0][0][0], (str, Extreme, Loaded))
    )
    return str(value) if simple and value.constant >= 0 else f"({value})"


def factor_text(atom: Atom, in_product: bool) -> str:
    """How a factor of a term is written."""
    return f"({atom})" if in_product and isinstance(atom, (FloorDiv, Mod)) else str(atom)


def atom_key(atom: Atom) -> str:
    """Orders the factors of a term: names first."""
    return atom if isinstance(atom, str) else atom.key


def monomial_key(item: tuple[Monomial, int]) -> tuple[str, ...]:
    """Orders the terms of a sum."""
    monomial = item[0]
    for atom in monomial:
        if type(atom) is not str:
            return tuple(map(atom_key, monomial))
    return monomial  # type: ignore[return-value] - names are their own keys
