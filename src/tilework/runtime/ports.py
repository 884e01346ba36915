"""What an executable takes and gives, as its callers see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from tilework.errors import CallError
from tilework.fast_dataclass import dataclass, field
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


StepKind: TypeAlias = Literal["kernel", "library", "copy", "allocation", "check", "black box"]
"""What a step that runs is."""


@dataclass(frozen=True)
class StepTime:
    """How long one step took, in seconds.

    `origin` is the user's own name for it. `start` is when it began, on the clock of `time.perf_counter`; `sizes` are
    what the symbols of the plan were worth then.
    """

    name: str
    origin: str
    seconds: float
    start: float = 0.0
    kind: StepKind = "kernel"
    queue: str = "main"
    sizes: Mapping[str, int] = field(default_factory=dict[str, int], compare=False)


def arguments_by_name(inputs: Sequence[Port], arrays: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, each by the name of its input and in the inputs' order.

    Raises `CallError` 1701 where one is missing, unknown or given twice.
    """
    names = [port.name for port in inputs]
    unknown = [name for name in named if name not in names]
    if unknown or len(arrays) + len(named) != len(names) or any(name in names[: len(arrays)] for name in named):
        given = f"{len(arrays)} by position and {', '.join(named) or 'none'} by name"
        raise CallError(1701, f"the inputs are {', '.join(names)}; given are {given}")
    return {name: named[name] if name in named else arrays[place] for place, name in enumerate(names)}
