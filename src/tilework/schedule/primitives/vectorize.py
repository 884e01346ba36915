"""vectorize: the loop's iterations become the lanes of vector instructions, each statement for all lanes at once.

serial j < 16              vectorized j < 16
  s: a[i, j] = ...   ->      s: a[i, j] = ...
"""

from __future__ import annotations

from typing import ClassVar

from tilework.fast_dataclass import dataclass
from tilework.schedule.marking import Marking
from tilework.schedule.marks import Mark


@dataclass(frozen=True)
class Vectorize(Marking):
    """Legal for an independent loop of at most 64 iterations, and for a reduction where reassociation is allowed."""

    name: ClassVar[str] = "vectorize"
    mark: ClassVar[Mark] = "vectorized"
    loop: str


PRIMITIVE = Vectorize
