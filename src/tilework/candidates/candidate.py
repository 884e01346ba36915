"""`Candidate` and the `Recipe` protocol: one way to compute a region, and who offers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from tilework.candidates.region import Region
from tilework.dims import ZERO, Dim
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass, field
from tilework.machine.cpu import CpuMachine
from tilework.numerics import Level, Numerics
from tilework.schedule.schedule import Schedule

if TYPE_CHECKING:
    import numpy as np

    from tilework.layout import Layout


@dataclass(frozen=True)
class Cost:
    """Predicted or measured time of one run, in nanoseconds at the sizes it was asked for."""

    nanoseconds: float
    origin: Literal["measured", "predicted"]


@dataclass(frozen=True)
class Prepared:
    """What a kernel reads in place of a constant: computed from it once, while compiling. `name` says what, for names
    of constants; `suits` whether the candidate may be taken for these contents.
    """

    name: str
    compute: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
    suits: Callable[[np.ndarray[Any, Any]], bool]


@dataclass(frozen=True, eq=False)
class Candidate:
    """One way to compute a region: an algorithm and how to build its kernel.

    `schedule()` builds the scheduled loop program, whose arguments are the region's inputs and then its outputs, in
    order. Layouts are None where the boundary is row-major. `numerics` is the least strict level it needs.
    """

    algorithm: str
    recipe: str
    schedule: Callable[[], Schedule]
    inputs: tuple[Layout | None, ...] = ()
    outputs: tuple[Layout | None, ...] = ()
    accumulate: DType | None = None
    workspace: Dim = ZERO
    numerics: Level = "strict"
    cost: Cost | None = None
    streaming: frozenset[str] = frozenset()
    """Results so large that their stores should go past the caches."""
    prepared: Mapping[str, Prepared] = field(default_factory=dict[str, Prepared])
    """Arguments, by name, that are made from the region's constants."""
    note: str = ""
    """Why it is as it is, for `explain`."""


class Recipe(Protocol):
    """Offers candidates for the regions it knows how to run; one file in `recipes/<target>/` with `RECIPE`."""

    name: str

    def candidates(self, region: Region, machine: CpuMachine, numerics: Numerics) -> tuple[Candidate, ...]:
        """The ways to run a region, best guess first; empty when the recipe does not know it."""
        ...
