"""What would point upwards, as protocols: defined here, provided by higher floors, passed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from tilework.fast_dataclass import dataclass

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Artifact_co = TypeVar("Artifact_co", covariant=True)
Choice_contra = TypeVar("Choice_contra", contravariant=True)


class BlackBox(Protocol):
    """An operation with no definition in index notation: a frontend provides it, the runtime calls it.

    `identity` says what it computes, attributes included, the same in every process: plans are printed and read with
    it. `operator` is the user's name for the operation, `provider` who runs it (`"onnx.reference"`, `"aten"`), and
    `reason` why it is not compiled.
    """

    @property
    def identity(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def provider(self) -> str: ...
    @property
    def reason(self) -> str: ...

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """The results on read-only inputs, as new arrays; called with the interpreter lock held."""
        ...


class Allocator(Protocol):
    """Memory for arenas, outputs and measured buffers: the runtime asks, numpy or torch provides."""

    def allocate(self, size: int, alignment: int, space: str) -> int:
        """The address of `size` bytes (> 0), a multiple of `alignment`; raises `MemoryError` when there are none."""
        ...

    def release(self, address: int) -> None:
        """Give back what `allocate` returned."""
        ...


class Specialiser(Protocol[Artifact_co]):
    """The second tier: the runtime counts the shapes it is called with and asks, the compiler provides."""

    def specialise(self, symbols: Mapping[str, int]) -> Artifact_co | None:
        """What serves these values of the symbols from now on; None where the general one does as well."""
        ...


@dataclass(frozen=True)
class Cost:
    """What something takes: seconds, whether that was `measured` or `predicted`, and what bounds it."""

    seconds: float
    source: Literal["measured", "predicted"]
    bound: Literal["compute", "memory", "latency"]


class CostSource(Protocol[Choice_contra]):
    """Prices for choices: decisions ask; records or the roofline answer."""

    def cost(self, choice: Choice_contra) -> Cost | None:
        """What a choice costs, or None where this source cannot say."""
        ...
