"""rfactor: a reduction loop's iterations keep partial results of their own, which are combined at the end.

    serial i < 64                        serial i < 64
      serial k < 8                         register part[16]
        vectorized l < 16                    vectorized l.init < 16
          c: c[i] += a[i, 16*k + l]   ->       c.init: part[l.init] = 0
                                             serial k < 8
                                               vectorized l < 16
                                                 c: part[l] += a[i, 16*k + l]
                                             vectorized l.back < 16
                                               c.back: c[i] += part[l.back]

It is `cache_write` over reduction axes (here `l`): see there.
"""

from __future__ import annotations

from typing import ClassVar

from tilework.fast_dataclass import dataclass
from tilework.loops.program import Scope
from tilework.schedule.primitive import Applied, Primitive, Setting
from tilework.schedule.primitives.cache_write import CacheWrite
from tilework.schedule.verdict import Verdict, illegal


@dataclass(frozen=True)
class Rfactor(Primitive):
    """Legal where `cache_write` over these axes is. `at`: the loop inside which the partial results live."""

    name: ClassVar[str] = "rfactor"
    statement: str
    at: str
    buffer: str
    axes: tuple[str, ...] = ()
    scope: Scope = "register"

    def _write(self) -> CacheWrite:
        return CacheWrite(self.statement, self.at, self.buffer, self.axes, self.scope)

    def check(self, setting: Setting) -> Verdict:
        """As `cache_write`; it needs at least one axis."""
        if not self.axes:
            return illegal(1505, "rfactor needs the reduction loops that keep results apart")
        return self._write().check(setting)

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        return self._write().apply(setting)


PRIMITIVE = Rfactor
