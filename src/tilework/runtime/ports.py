"""What an executable takes and gives, as its callers see it."""

from __future__ import annotations

from dataclasses import dataclass

from tilework.graph.types import OpaqueType, TensorType


@dataclass(frozen=True)
class Port:
    """An input or output as the user knows it. Dimensions are integers or expressions in the model's own symbols.

    Strings and maps, which black boxes take or return, have an opaque type.
    """

    name: str
    type: TensorType | OpaqueType

    @property
    def tensor(self) -> TensorType:
        """The type of an array. Raises `TypeError` for strings and maps."""
        if not isinstance(self.type, TensorType):
            raise TypeError(f"{self.name} is no array: {self.type}")
        return self.type


@dataclass(frozen=True)
class CoreResult:
    """An output of the core entry: where it is and what shape it has. The caller owns the memory."""

    address: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class StepTime:
    """How long one step took, in seconds."""

    name: str
    origin: str
    seconds: float
