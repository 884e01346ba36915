"""parallel: the loop's iterations may run on different threads, in any order.

serial i < 512             parallel i < 512
  s: a[i, j] = ...   ->      s: a[i, j] = ...
"""

from __future__ import annotations

from typing import ClassVar

from tilework.fast_dataclass import dataclass
from tilework.schedule.marking import Marking
from tilework.schedule.marks import Mark


@dataclass(frozen=True)
class Parallel(Marking):
    """Legal for an independent loop only: threads that combine into one element race, whatever the numerics."""

    name: ClassVar[str] = "parallel"
    mark: ClassVar[Mark] = "parallel"
    loop: str


PRIMITIVE = Parallel
