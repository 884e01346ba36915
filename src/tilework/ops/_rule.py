"""Writing type rules that find every fault at once: operands and attributes read one by one, faults collected.

    rule = Rule("reduce", operands, attributes, count=1)
    operand = rule.tensor(0)
    dimensions = rule.dimensions("dimensions", operand)
    rule.finish()  # raises TypeFaults
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from tilework import dtypes
from tilework.dims import Dim, dim
from tilework.dtypes import DType
from tilework.errors import Fault
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.ops.operator import TypeFaults

REAL = ("signed", "unsigned", "floating")
"""Kinds with an order and arithmetic."""

_UNKNOWN = TensorType((), dtypes.float32)
_Choice = TypeVar("_Choice")


class Rule:
    """Operands and attributes of one application, with the faults found so far."""

    def __init__(
        self, name: str, operands: Sequence[ValueType], attributes: Mapping[str, Attribute], count: int | None = None
    ) -> None:
        self.name = name
        self.operands = operands
        self.attributes = attributes
        self.faults: list[Fault] = []
        self._read: set[str] = set()
        if count is not None and len(operands) != count:
            self.fault(1250, f"{name} takes {count} operand{'s' if count != 1 else ''}, not {len(operands)}")
            self.finish()

    # -- faults --------------------------------------------------------------------------------------------------------
    def fault(self, code: int, message: str) -> None:
        self.faults.append(Fault(code, "", message))

    @property
    def sound(self) -> bool:
        """Whether no fault was found yet."""
        return not self.faults

    def finish(self) -> None:
        """Raise `TypeFaults` with everything found; attributes that nothing read are faults too."""
        if self._read or self.sound:
            for name in self.attributes:
                if name not in self._read:
                    self.fault(1255, f"{self.name} has no attribute {name!r}")
        if self.faults:
            raise TypeFaults(self.faults)

    # -- operands ------------------------------------------------------------------------------------------------------
    def tensor(self, position: int, kinds: Sequence[str] | None = None, called: str = "operand") -> TensorType:
        """The tensor at a position, of one of some element kinds; a stand-in where it is a fault."""
        found = self.operands[position]
        if not isinstance(found, TensorType):
            self.fault(1251, f"{called} must be a tensor, not a {found}")
            return _UNKNOWN
        if kinds is not None and found.dtype.kind not in kinds:
            self.fault(1251, f"{called} has type {found.dtype}; {self.name} takes {', '.join(kinds)} elements")
        return found

    def same_dim(self, first: Dim, second: Dim, what: str) -> None:
        """Two dims must be equal."""
        if first != second:
            symbolic = not (first.is_constant and second.is_constant)
            hint = " (make both the same symbol, or a constant, where they are always equal)" if symbolic else ""
            self.fault(1253, f"{what}: {first} and {second} must be equal{hint}")

    # -- attributes ----------------------------------------------------------------------------------------------------
    def get(self, name: str, default: Attribute | None) -> Attribute | None:
        """An attribute as it is; a fault where it is missing and has no default."""
        self._read.add(name)
        found = self.attributes.get(name, default)
        if found is None:
            self.fault(1255, f"{self.name} needs the attribute {name!r}")
        return found

    def flag(self, name: str, default: bool = False) -> bool:
        found = self.get(name, default)
        if not isinstance(found, bool):
            self.fault(1255, f"{name} must be true or false, not {found!r}")
            return default
        return found

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer; 0 where it is a fault."""
        found = self.get(name, default)
        if found is None:
            return 0
        value = _integer(found)
        if value is None:
            self.fault(1255, f"{name} must be an integer, not {found!r}")
        return value or 0

    def choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        """One of some words; the first where it is a fault."""
        found = self.get(name, default)
        if found is not None and (not isinstance(found, str) or found not in choices):
            self.fault(1255, f"{name} must be one of {', '.join(choices)}, not {found!r}")
        return found if isinstance(found, str) and found in choices else choices[0]

    def integers(self, name: str, default: Attribute | None = None) -> tuple[int, ...] | None:
        """A tuple of integers; None where it is a fault."""
        found = self.get(name, default)
        if found is None:
            return None
        values = tuple(_integer(v) for v in found) if isinstance(found, tuple) else (None,)
        whole = tuple(v for v in values if v is not None)
        if len(whole) != len(values):
            self.fault(1255, f"{name} must be a tuple of integers, not {found!r}")
            return None
        return whole

    def positive_integers(self, name: str, count: int, default: int = 1) -> tuple[int, ...] | None:
        """`count` integers of at least 1 (`default` each where the attribute is left out); None where it is a fault."""
        found = self.integers(name, (default,) * count)
        if found is None:
            return None
        if len(found) != count:
            self.fault(1254, f"{name} has {len(found)} entries, {count} are needed")
            return None
        if any(value < 1 for value in found):
            self.fault(1254, f"{name} must be positive, not {found}")
            return None
        return found

    def dims(self, name: str, count: int) -> tuple[Dim, ...] | None:
        """`count` symbolic integers; None where it is a fault."""
        found = self.get(name, None)
        if found is None:
            return None
        values = tuple(_dim(v) for v in found) if isinstance(found, tuple) else (None,)
        whole = tuple(v for v in values if v is not None)
        if len(whole) != len(values):
            self.fault(1255, f"{name} must be a tuple of integers, not {found!r}")
            return None
        if len(whole) != count:
            self.fault(1254, f"{name} has {len(whole)} entries, {count} are needed")
            return None
        return whole

    def padding(self, name: str, count: int) -> tuple[tuple[Dim, Dim], ...] | None:
        """`count` pairs of low and high padding (zeros where the attribute is left out); None where it is a fault."""
        found = self.get(name, ((0, 0),) * count)
        pairs: list[tuple[Dim, Dim]] = []
        for entry in found if isinstance(found, tuple) else ():
            ends = tuple(_dim(v) for v in entry) if isinstance(entry, tuple) else ()
            if len(ends) == 2 and ends[0] is not None and ends[1] is not None:
                pairs.append((ends[0], ends[1]))
        if not isinstance(found, tuple) or len(pairs) != len(found):
            self.fault(1255, f"{name} must be a tuple of (low, high) pairs, not {found!r}")
            return None
        if len(pairs) != count:
            self.fault(1254, f"{name} has {len(pairs)} pairs, {count} are needed")
            return None
        return tuple(pairs)

    def dimension(self, name: str, rank: int) -> int:
        """The position of a dimension in 0 .. rank - 1; 0 where it is a fault."""
        found = self.integer(name)
        if not 0 <= found < rank:
            self.fault(1252, f"{name} is {found}; a tensor of rank {rank} has dimensions 0 to {rank - 1}")
            return 0
        return found

    def dimensions(self, name: str, rank: int, default: Attribute | None = None) -> tuple[int, ...]:
        """Distinct positions of dimensions; those that are sound where some are not."""
        found = self.integers(name, default)
        if found is None:
            return ()
        outside = [d for d in found if not 0 <= d < rank]
        if outside:
            self.fault(1252, f"{name} names {outside}; a tensor of rank {rank} has dimensions 0 to {rank - 1}")
        if len(set(found)) != len(found):
            self.fault(1252, f"{name} names a dimension twice: {found}")
        return tuple(dict.fromkeys(d for d in found if 0 <= d < rank))

    def permutation(self, name: str, rank: int) -> tuple[int, ...]:
        """Every dimension once, in some order (in order where the attribute is left out)."""
        found = self.dimensions(name, rank, tuple(range(rank)))
        if len(found) != rank:
            self.fault(1252, f"{name} must name each of {rank} dimensions once, not {self.attributes.get(name)!r}")
            return tuple(range(rank))
        return found


def _integer(value: object) -> int | None:
    if isinstance(value, Dim):
        return value.value
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _dim(value: object) -> Dim | None:
    if isinstance(value, Dim):
        return value
    return dim(value) if isinstance(value, int) and not isinstance(value, bool) else None


def integers_of(attributes: Mapping[str, object], name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
    """A tuple of integers of an application that has been checked."""
    found = attributes.get(name, default)
    return tuple(int(v) for v in found) if isinstance(found, (tuple, list)) else default  # pyright: ignore


def dims_of(attributes: Mapping[str, object], name: str, default: tuple[int, ...] = ()) -> tuple[Dim, ...]:
    """A tuple of symbolic integers of an application that has been checked."""
    found = attributes.get(name, default)
    return tuple(dim(v) for v in found) if isinstance(found, (tuple, list)) else ()  # pyright: ignore


def accumulator(dtype: DType) -> DType:
    """The type in which sums of this type are kept: float32 for narrower floating types, else the type itself."""
    return dtypes.float32 if dtype.is_floating and dtype.bits < 32 else dtype
