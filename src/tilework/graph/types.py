"""Types of graph values: tensors with symbolic shapes, tokens that order effects, and what only black boxes know."""

from __future__ import annotations

import json
from typing import TypeAlias

from tilework.dims import Dim, IntLike, dim, product
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass


@dataclass(frozen=True)
class TensorType:
    """A tensor: `shape` in elements per dimension (each a symbolic integer), and the type of its elements."""

    shape: tuple[Dim, ...]
    dtype: DType

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Dim:
        """Number of elements."""
        return product(self.shape)

    @property
    def bytes(self) -> Dim:
        """Bytes of a dense copy."""
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class TokenType:
    """The state of the world that an effect (random numbers, an assert, a collective) takes and returns."""

    def __str__(self) -> str:
        return "token"


@dataclass(frozen=True)
class OpaqueType:
    """A value that is no tensor: black boxes alone take and return it. `kind` says in words what it is, such as
    `strings` or `sequence of maps`.
    """

    kind: str

    def __str__(self) -> str:
        return f"opaque {json.dumps(self.kind)}"


ValueType: TypeAlias = TensorType | TokenType | OpaqueType


def tensor(dtype: DType, *shape: IntLike) -> TensorType:
    """A tensor type from plain integers, names or dims."""
    return TensorType(tuple(dim(d) for d in shape), dtype)
