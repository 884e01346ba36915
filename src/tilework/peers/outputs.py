"""When the outputs of two engines count as equal.

Two engines add in different orders, so that floating values may differ by a share of the largest value there is
(`RELATIVE`), or by next to nothing (`ABSOLUTE`). Everything else, and where values are not finite, has to be the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from tilework.fast_dataclass import dataclass

Array: TypeAlias = "np.ndarray[Any, Any]"

RELATIVE, ABSOLUTE = 2e-5, 1e-6


@dataclass(frozen=True)
class Compared:
    """One output beside a peer's: the largest difference, infinite where shapes, types or non-finite values differ, how
    large it may be, and why it is infinite.
    """

    name: str
    difference: float
    allowed: float
    reason: str = ""

    @property
    def equal(self) -> bool:
        return self.difference <= self.allowed

    def as_json(self) -> dict[str, Any]:
        """The same for JSON, which has no infinity."""
        shown = self.difference if math.isfinite(self.difference) else None
        return {"difference": shown, "allowed": self.allowed, "equal": self.equal, "reason": self.reason}

    def __str__(self) -> str:
        if self.reason:
            return f"{self.name}: DIFFERENT, {self.reason}"
        word = "equal" if self.equal else "DIFFERENT"
        return f"{self.name}: {word}, largest difference {self.difference:.3g} of {self.allowed:.3g} allowed"


def compare(ours: Mapping[str, Array], reference: Mapping[str, Array]) -> tuple[Compared, ...]:
    """Each of our outputs beside the peer's in the same place, whose name may be another."""
    found = [_compared(*pair) for pair in zip(ours, ours.values(), reference.values(), strict=False)]
    if len(ours) != len(reference):
        text = f"it gives {len(ours)} arrays, the peer {len(reference)}"
        found.append(Compared("outputs", math.inf, 0.0, text))
    return tuple(found)


def tolerance(reference: Array) -> float:
    """How far an output may be from the reference: 2e-5 of its largest finite value or 1e-6; 0 unless floating."""
    if not _floating(reference):
        return 0.0
    wide = _wide(reference)
    finite = np.abs(wide[np.isfinite(wide)])
    return max(RELATIVE * float(finite.max(initial=0.0)), ABSOLUTE)


def _compared(name: str, ours: Array, reference: Array) -> Compared:
    allowed = tolerance(reference)
    if ours.shape != reference.shape:
        return Compared(name, math.inf, allowed, f"its shape is {ours.shape}, the peer's {reference.shape}")
    if ours.dtype != reference.dtype and not ours.dtype.kind == reference.dtype.kind == "U":
        return Compared(name, math.inf, allowed, f"its type is {ours.dtype}, the peer's {reference.dtype}")
    if not _floating(reference):
        if reference.dtype.kind in "biu":
            return Compared(name, _largest(ours.astype(object), reference.astype(object), ours != reference), allowed)
        apart = int(np.count_nonzero(ours != reference))
        return Compared(name, float(apart), allowed, f"{apart} elements differ" if apart else "")
    mine, theirs = _wide(ours), _wide(reference)
    finite = np.isfinite(theirs)
    odd = int(np.count_nonzero(finite != np.isfinite(mine)))
    if odd or not np.array_equal(mine[~finite], theirs[~finite], equal_nan=True):
        return Compared(name, math.inf, allowed, "NaN or infinities are elsewhere")
    return Compared(name, float(np.abs(mine[finite] - theirs[finite]).max(initial=0.0)), allowed)


def _largest(ours: Array, reference: Array, unlike: Array) -> float:
    """The largest difference of integers, exactly."""
    return max((abs(int(a) - int(b)) for a, b in zip(ours[unlike], reference[unlike], strict=True)), default=0) * 1.0


def _floating(array: Array) -> bool:
    return array.dtype.kind in "fcV"  # V: bfloat16 and other types that NumPy has no kind for


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
