"""Sequences and optionals while a model is imported: lists of tensor values whose lengths are known.

None of them reaches the graph. Wherever values pass through subgraphs or the boundary they are taken apart into tensors
(`flattened`), and put together again by what they were (`Structure`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.operand import Operand
from tilework.frontends.onnx.tensors import ONNX_NAMES


@dataclass(frozen=True, eq=False)
class TensorSequence:
    """A sequence: tensors of one element type, of any shapes. `dtype` is None for an empty one of unknown type."""

    name: str
    dtype: DType | None
    elements: tuple[Operand, ...]

    def __str__(self) -> str:
        return f"a sequence of {len(self.elements)} tensors of {self.dtype}"


@dataclass(frozen=True, eq=False)
class Maybe:
    """An optional: a tensor, a sequence, or nothing."""

    name: str
    content: Operand | TensorSequence | None

    def __str__(self) -> str:
        return f"an optional that holds {self.content if self.content is not None else 'nothing'}"


Held: TypeAlias = "Operand | TensorSequence | Maybe"
"""What a name of a model may stand for."""


@dataclass(frozen=True)
class Structure:
    """What a value is beside its tensors: `kind` is tensor, sequence or optional; `parts` are what it holds."""

    kind: str
    parts: tuple[Structure, ...] = ()
    dtype: DType | None = None

    def __str__(self) -> str:
        if self.kind == "tensor":
            return "a tensor"
        if self.kind == "sequence":
            return f"a sequence of {len(self.parts)}"
        return f"an optional with {self.parts[0]}" if self.parts else "an empty optional"


TENSOR = Structure("tensor")


def structure(held: Held) -> Structure:
    """What a value is beside its tensors."""
    if isinstance(held, Operand):
        return TENSOR
    if isinstance(held, TensorSequence):
        return Structure("sequence", (TENSOR,) * len(held.elements), held.dtype)
    return Structure("optional", () if held.content is None else (structure(held.content),))


def flattened(held: Held) -> tuple[Operand, ...]:
    """The tensors of a value, in order."""
    if isinstance(held, Operand):
        return (held,)
    if isinstance(held, TensorSequence):
        return held.elements
    return () if held.content is None else flattened(held.content)


def rebuilt(kind: Structure, tensors: Iterator[Operand], name: str = "") -> Held:
    """The value of some structure from its tensors, as many taken as it needs."""
    if kind.kind == "tensor":
        return next(tensors)
    if kind.kind == "sequence":
        return TensorSequence(name, kind.dtype, tuple(next(tensors) for _ in kind.parts))
    content = rebuilt(kind.parts[0], tensors) if kind.parts else None
    assert not isinstance(content, Maybe)
    return Maybe(name, content)


def all_rebuilt(kinds: Sequence[Structure], tensors: Sequence[Operand]) -> list[Held]:
    """Several values from all their tensors."""
    left = iter(tensors)
    return [rebuilt(kind, left) for kind in kinds]


def type_name(held: Held) -> str | None:
    """How the package onnx spells the type of a value; None where nothing is known of it."""
    if isinstance(held, Operand):
        if held.opaque:
            return held.opaque
        return f"tensor({ONNX_NAMES.get(held.dtype, held.dtype.name)})"
    if isinstance(held, TensorSequence):
        return None if held.dtype is None else f"seq(tensor({ONNX_NAMES.get(held.dtype, held.dtype.name)}))"
    inner = None if held.content is None else type_name(held.content)
    return None if inner is None else f"optional({inner})"
