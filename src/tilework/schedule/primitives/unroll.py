"""unroll: the loop's iterations are written out one after another in the generated code.

serial i < 4            unrolled i < 4
  s: a[i] = ...   ->      s: a[i] = ...
"""

from __future__ import annotations

from typing import ClassVar

from tilework.fast_dataclass import dataclass
from tilework.schedule.marking import Marking
from tilework.schedule.marks import Mark


@dataclass(frozen=True)
class Unroll(Marking):
    """Order is kept; the extent must be a constant of at most 1024."""

    name: ClassVar[str] = "unroll"
    mark: ClassVar[Mark] = "unrolled"
    loop: str


PRIMITIVE = Unroll
