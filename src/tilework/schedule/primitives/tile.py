"""tile: two loops of a perfect nest are split and the pieces' loops put inside: a tile at a time.

serial i < 64               serial i.outer < 8
  serial j < 64       ->      serial j.outer < 4
    ...                         serial i.inner < 8
                                  serial j.inner < 16
"""

from __future__ import annotations

from typing import ClassVar

from tilework.fast_dataclass import dataclass
from tilework.schedule.primitive import Applied, Primitive, Reach, Setting
from tilework.schedule.primitives.reorder import Reorder
from tilework.schedule.primitives.split import Split
from tilework.schedule.verdict import LEGAL, Verdict


@dataclass(frozen=True)
class Tile(Primitive):
    """`split` of both loops, then `reorder`; legal where these are."""

    name: ClassVar[str] = "tile"
    looks_at: ClassVar[Reach] = "nest"
    first: str
    second: str
    first_factor: int
    second_factor: int

    def _steps(self) -> tuple[Primitive, ...]:
        a, b = self.first, self.second
        order = Reorder(f"{a}.outer", f"{b}.outer", f"{a}.inner", f"{b}.inner")
        return Split(a, self.first_factor), Split(b, self.second_factor), order

    def check(self, setting: Setting) -> Verdict:
        """The first verdict that is not legal, of the steps it stands for."""
        for step in self._steps():
            verdict = step.check(setting)
            if not verdict.legal:
                return verdict
            setting = Setting(step.apply(setting).program, setting.numerics, setting.machine)
        return LEGAL

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        forwards: dict[str, tuple[str, ...]] = {}
        for step in self._steps():
            done = step.apply(setting)
            forwards.update(done.forwards)
            setting = Setting(done.program, setting.numerics, setting.machine)
        return Applied(setting.program, forwards)


PRIMITIVE = Tile
