"""Types of graph values: tensors with symbolic shapes, and tokens that order effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tilework.dims import Dim, IntLike, dim, product
from tilework.dtypes import DType


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


ValueType: TypeAlias = TensorType | TokenType


def tensor(dtype: DType, *shape: IntLike) -> TensorType:
    """A tensor type from plain integers, names or dims."""
    return TensorType(tuple(dim(d) for d in shape), dtype)
