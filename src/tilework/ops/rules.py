"""What type rules share: reading operands and attributes while collecting every fault, and joining shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from tilework.dims import Dim
from tilework.dtypes import DType
from tilework.errors import Fault
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, TokenType, ValueType
from tilework.ops.operator import TypeFaults

FLOATING = ("floating",)
INTEGER = ("signed", "unsigned")
REAL = ("signed", "unsigned", "floating")
NUMBER = (*REAL, "complex")
LOGICAL = ("boolean", "signed", "unsigned")
ANY = ("boolean", *NUMBER)


class Rule:
    """One run of a type rule: collects faults; `finish` raises them all at once.

    Readers of attributes record a fault and return a harmless value where an attribute is wrong, so that the rule can
    go on and find the rest; they take note of the names they read, and `finish` reports every other name as unknown.
    """

    def __init__(self, name: str, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> None:
        self.name = name
        self.faults: list[Fault] = []
        self._operands = operands
        self._attributes = attributes
        self._known: set[str] = set()

    def fault(self, code: int, message: str) -> None:
        """Record a fault."""
        self.faults.append(Fault(code, "", f"{self.name}: {message}"))

    def stop(self, code: int, message: str) -> NoReturn:
        """Record a fault after which the rule cannot go on, and raise all."""
        self.fault(code, message)
        raise TypeFaults(self.faults)

    def check(self) -> None:
        """Raise what was found so far, if anything."""
        if self.faults:
            raise TypeFaults(self.faults)

    def finish(self) -> None:
        """Report attributes that the rule does not know, and raise every fault, if there is one."""
        for name in self._attributes:
            if name not in self._known:
                known = ", ".join(sorted(self._known)) or "none"
                self.fault(1224, f"attribute {name!r} is unknown (it takes: {known})")
        self.check()

    # -- operands ------------------------------------------------------------------------------------------------------
    def tensors(self, least: int, most: int | None = -1) -> tuple[TensorType, ...]:
        """The operands, all tensors, `least` to `most` of them (`most` -1: exactly `least`; None: no limit)."""
        self.count(least, most)
        return self._tensors(0)

    def token_and_tensors(self, count: int) -> tuple[TensorType, ...]:
        """The tensors after a leading token, `count` of them."""
        self.count(count + 1)
        if not isinstance(self._operands[0], TokenType):
            self.fault(1221, f"operand 0 is {self._operands[0]}, it must be a token")
        return self._tensors(1)

    def _tensors(self, first: int) -> tuple[TensorType, ...]:
        found: list[TensorType] = []
        for position, operand in enumerate(self._operands[first:], first):
            if isinstance(operand, TensorType):
                found.append(operand)
            else:
                what = "a token" if isinstance(operand, TokenType) else str(operand)
                self.fault(1221, f"operand {position} is {what}, it must be a tensor")
        if len(found) != len(self._operands) - first:
            self.check()
        return tuple(found)

    def count(self, least: int, most: int | None = -1) -> None:
        """Stop unless the number of operands is in range."""
        got = len(self._operands)
        most = least if most == -1 else most
        if got < least or (most is not None and got > most):
            wanted = f"{least}" if most == least else f"{least} or more" if most is None else f"{least} to {most}"
            self.stop(1220, f"takes {wanted} operand{'' if wanted == '1' else 's'}, it got {got}")

    def kind(self, operand: TensorType, kinds: Sequence[str], what: str = "operand") -> None:
        """A fault unless the operand's elements are of one of these kinds."""
        if operand.dtype.kind not in kinds:
            self.fault(1222, f"{what} has elements of {operand.dtype}, it must be {' or '.join(kinds)}")

    def same_dtype(self, operands: Sequence[TensorType], what: str = "operands") -> None:
        """A fault unless all have one element type."""
        found = list(dict.fromkeys(operand.dtype for operand in operands))
        if len(found) > 1:
            self.fault(1222, f"{what} must have one element type, they have {', '.join(map(str, found))}")

    def scalar(self, operand: TensorType, what: str) -> None:
        """A fault unless the operand has no dimensions."""
        if operand.rank:
            self.fault(1223, f"{what} must be a scalar, it is {operand}")

    def broadcast(self, operands: Sequence[TensorType]) -> tuple[Dim, ...]:
        """The shape that numpy's rule gives: dims from the right, equal or literally 1."""
        rank = max((operand.rank for operand in operands), default=0)
        shape: list[Dim] = []
        for axis in range(rank):
            found: list[Dim] = []
            for operand in operands:
                place = axis - rank + operand.rank
                if place >= 0 and operand.shape[place] != 1 and operand.shape[place] not in found:
                    found.append(operand.shape[place])
            if len(found) > 1:
                shapes = " and ".join(f"[{', '.join(map(str, o.shape))}]" for o in operands)
                hint = ""
                if not all(extent.is_constant for extent in found):
                    hint = "; symbolic dimensions broadcast only if they are the same expression or literally 1"
                self.fault(1223, f"shapes {shapes} do not broadcast: {' and '.join(map(str, found))} differ{hint}")
            shape.append(found[0] if found else Dim((), 1))
        return tuple(shape)

    # -- attributes ----------------------------------------------------------------------------------------------------
    def has(self, name: str) -> bool:
        """Whether an optional attribute is given (and from now on it is known)."""
        self._known.add(name)
        return name in self._attributes

    def integers(self, name: str, length: int | None = None, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """A tuple of plain integers, of this length."""
        found = self._tuple(name, length, default)
        if found is None:
            return (0,) * (length or 0)
        result: list[int] = []
        for entry in found:
            value = entry.value if isinstance(entry, Dim) else entry
            if isinstance(value, int) and not isinstance(value, bool):
                result.append(value)
            else:
                self.fault(1224, f"attribute {name!r} must hold integers, it holds {entry}")
                result.append(0)
        return tuple(result)

    def dims(self, name: str, length: int | None = None, default: tuple[Dim, ...] | None = None) -> tuple[Dim, ...]:
        """A tuple of symbolic integers, of this length; plain integers are taken too."""
        found = self._tuple(name, length, default)
        if found is None:
            return (Dim(),) * (length or 0)
        result: list[Dim] = []
        for entry in found:
            if isinstance(entry, Dim):
                result.append(entry)
            elif isinstance(entry, int) and not isinstance(entry, bool):
                result.append(Dim((), entry))
            else:
                self.fault(1224, f"attribute {name!r} must hold integers or dims, it holds {entry}")
                result.append(Dim())
        return tuple(result)

    def shape(self, name: str) -> tuple[Dim, ...]:
        """A tuple of dims, none of them a negative integer."""
        found = self.dims(name)
        for extent in found:
            if extent.value is not None and extent.value < 0:
                self.fault(1225, f"attribute {name!r} has the negative extent {extent}")
        return found

    def integer(self, name: str, default: int | None = None) -> int:
        """One plain integer."""
        found = self._one(name, default)
        value = found.value if isinstance(found, Dim) else found
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if found is not None:
            self.fault(1224, f"attribute {name!r} must be an integer, it is {found}")
        return 0

    def axis(self, name: str, rank: int, default: int | None = None) -> int:
        """One dimension number, 0 to rank - 1 (0 where it is none)."""
        found = self.integer(name, default)
        if not 0 <= found < rank:
            self.fault(1225, f"attribute {name!r} is {found}, it must be a dimension of a tensor of rank {rank}")
            return 0
        return found

    def axes(self, name: str, rank: int, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """Distinct dimension numbers, each 0 to rank - 1."""
        found = self.integers(name, None, default)
        good: list[int] = []
        for entry in found:
            if not 0 <= entry < rank:
                self.fault(1225, f"attribute {name!r} names dimension {entry} of a tensor of rank {rank}")
            elif entry in good:
                self.fault(1225, f"attribute {name!r} names dimension {entry} twice")
            else:
                good.append(entry)
        return tuple(good)

    def flag(self, name: str, default: bool | None = None) -> bool:
        """True or False."""
        found = self._one(name, default)
        if found is not None and not isinstance(found, bool):
            self.fault(1224, f"attribute {name!r} must be true or false, it is {found}")
        return found is True

    def choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        """One of some words."""
        found = self._one(name, default)
        if isinstance(found, str) and found in choices:
            return found
        if found is not None:
            self.fault(1225, f"attribute {name!r} is {found!r}, it must be one of {', '.join(choices)}")
        return choices[0]

    def text(self, name: str, default: str | None = None) -> str:
        """Any text."""
        found = self._one(name, default)
        if found is not None and not isinstance(found, str):
            self.fault(1224, f"attribute {name!r} must be text, it is {found}")
        return found if isinstance(found, str) else ""

    def dtype(self, name: str, fallback: DType) -> DType:
        """An element type (`fallback` lets the rule go on where it is missing)."""
        found = self._one(name, None)
        if isinstance(found, DType):
            return found
        if found is not None:
            self.fault(1224, f"attribute {name!r} must be an element type, it is {found!r}")
        return fallback

    def _one(self, name: str, default: Attribute | None) -> Attribute | None:
        self._known.add(name)
        found = self._attributes.get(name, default)
        if found is None:
            self.fault(1224, f"attribute {name!r} is missing")
        return found

    def _tuple(self, name: str, length: int | None, default: Attribute | None) -> tuple[Attribute, ...] | None:
        found = self._one(name, default)
        if found is None:
            return None
        if not isinstance(found, tuple):
            self.fault(1224, f"attribute {name!r} must be a tuple, it is {found!r}")
            return None
        if length is not None and len(found) != length:
            self.fault(1225, f"attribute {name!r} has {len(found)} entries, it must have {length}")
            return None
        return found
