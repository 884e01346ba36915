"""Symbolic integers as LLVM text: what a driver computes from the symbols in its frame."""

from __future__ import annotations

from tilework.codegen.cpu.frame_layout import frame_layout
from tilework.dims import Dim, Extreme, FloorDiv, Loaded, Mod, Monomial
from tilework.errors import CodegenError
from tilework.fast_dataclass import dataclass, field
from tilework.plan.plan import Plan


@dataclass
class DriverValues:
    """Values of a plan's driver: computed in its entry block, or, where they depend on the number of a trip or on a
    size that the call measures, where they are needed.
    """

    plan: Plan
    name: str
    lines: list[str] = field(default_factory=list[str])
    count: int = 0

    def __post_init__(self) -> None:
        self.layout = frame_layout(self.plan)
        self.entry: list[str] = []
        self.dims: dict[Dim, str] = {}
        self.trips: dict[str, str] = {}
        self.measured = {symbol.name for symbol in self.plan.symbols if symbol.measured}

    def new(self) -> str:
        """A new register."""
        self.count += 1
        return f"%t{self.count}"

    def label(self, stem: str) -> str:
        """A new name of a block."""
        self.count += 1
        return f"{stem}{self.count}"

    def value(self, dim: Dim, lines: list[str]) -> str:
        """The dim as an i64 operand; computed in the entry block when all it depends on has its value there."""
        if dim.value is not None:
            return str(dim.value)
        inside = dim.names() & (self.trips.keys() | self.measured)
        if not inside:
            if dim not in self.dims:
                self.dims[dim] = self._compute(dim, self.entry)
            return self.dims[dim]
        return self._compute(dim, lines)

    def emit(self, lines: list[str], text: str) -> str:
        """Append an instruction; its result."""
        name = self.new()
        lines.append(f"  {name} = {text}")
        return name

    def _compute(self, dim: Dim, lines: list[str]) -> str:
        total = str(dim.constant) if dim.constant or not dim.terms else ""
        for monomial, coefficient in dim.terms:
            term = self._term(monomial, coefficient, lines)
            total = term if not total else self.emit(lines, f"add i64 {total}, {term}")
        return total

    def _term(self, monomial: Monomial, coefficient: int, lines: list[str]) -> str:
        """A term of a sum; in the entry block it is computed once, as offsets are sums of the same ones."""
        known = Dim(((monomial, coefficient),))
        if lines is self.entry and known in self.dims:
            return self.dims[known]
        factor = ""
        if coefficient != 1:
            factor = self._term(monomial, 1, lines)
            factor = self.emit(lines, f"mul i64 {factor}, {coefficient}")
        else:
            for atom in monomial:
                operand = self._atom(atom, lines)
                factor = operand if not factor else self.emit(lines, f"mul i64 {factor}, {operand}")
        if lines is self.entry:
            self.dims[known] = factor
        return factor

    def _atom(self, atom: object, lines: list[str]) -> str:
        match atom:
            case str() if atom in self.trips:
                return self.trips[atom]
            case str():
                if atom not in self.layout.symbols:
                    raise CodegenError(1651, f"the symbol {atom} has no place in the frame")
                if atom in self.measured:
                    at = self.emit(lines, f"getelementptr i64, ptr %frame, i64 {self.layout.symbols[atom]}")
                    return self.emit(lines, f"load i64, ptr {at}")
                key = Dim((((atom,), 1),))
                if key not in self.dims:
                    at = self.emit(self.entry, f"getelementptr i64, ptr %frame, i64 {self.layout.symbols[atom]}")
                    self.dims[key] = self.emit(self.entry, f"load i64, ptr {at}")
                return self.dims[key]
            case FloorDiv(numerator=numerator, denominator=denominator):
                return self._floor_division(numerator, denominator, lines)[0]
            case Mod(value=value, modulus=modulus):
                return self._floor_division(value, modulus, lines)[1]
            case Extreme(name=name, arguments=arguments):
                operands = [self.value(argument, lines) for argument in arguments]
                found = operands[0]
                for operand in operands[1:]:
                    relation = "sgt" if name == "max" else "slt"
                    test = self.emit(lines, f"icmp {relation} i64 {found}, {operand}")
                    found = self.emit(lines, f"select i1 {test}, i64 {found}, i64 {operand}")
                return found
            case Loaded():
                raise CodegenError(1651, f"{atom} cannot be read while a plan computes its sizes")
            case _:
                raise CodegenError(1651, f"{atom} is no part of a size")

    def _floor_division(self, numerator: Dim, denominator: Dim, lines: list[str]) -> tuple[str, str]:
        """Quotient and remainder, rounded towards minus infinity.

        A divisor below 1 (never in a verified plan) counts as 1, so that nothing traps.
        """
        a, b = self.value(numerator, lines), self.value(denominator, lines)
        if denominator.value is None:
            positive = self.emit(lines, f"icmp sgt i64 {b}, 0")
            b = self.emit(lines, f"select i1 {positive}, i64 {b}, i64 1")
        remainder = self.emit(lines, f"srem i64 {a}, {b}")
        quotient = self.emit(lines, f"sdiv i64 {a}, {b}")
        below = self.emit(lines, f"icmp slt i64 {remainder}, 0")
        step = self.emit(lines, f"zext i1 {below} to i64")
        lifted = self.emit(lines, f"add i64 {remainder}, {b}")
        return (
            self.emit(lines, f"sub i64 {quotient}, {step}"),
            self.emit(lines, f"select i1 {below}, i64 {lifted}, i64 {remainder}"),
        )
