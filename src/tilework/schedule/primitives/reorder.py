"""reorder: the named loops of one perfect nest take the given order; loops not named keep their places.

serial i < 4            serial k < 8
  serial k < 8    ->      serial i < 4
    ...                     ...
"""

from __future__ import annotations

from typing import ClassVar

from tilework.fast_dataclass import dataclass
from tilework.loops.program import Loop, replace_node
from tilework.schedule.iterators import kind
from tilework.schedule.marks import marks_after
from tilework.schedule.primitive import Applied, Primitive, Reach, Setting
from tilework.schedule.rewriting import band, nest
from tilework.schedule.verdict import LEGAL, Verdict, illegal, unknown


@dataclass(frozen=True)
class Reorder(Primitive):
    """Legal by iterator kinds: independent loops move freely; reduction loops move where reassociation is allowed;
    ordered loops keep their order among themselves and among reductions.
    """

    name: ClassVar[str] = "reorder"
    looks_at: ClassVar[Reach] = "nest"
    loops: tuple[str, ...]

    def __init__(self, *loops: str | tuple[str, ...], **named: tuple[str, ...]) -> None:
        given: list[str] = []
        for entry in loops or (named.get("loops", ()),):
            given.extend((entry,) if isinstance(entry, str) else entry)
        object.__setattr__(self, "loops", tuple(given))

    def _band(self, setting: Setting) -> tuple[Loop, ...] | None:
        """The perfect nest that holds all named loops, from the outermost of them."""
        wanted = [setting.loop(name) for name in self.loops]
        for top in wanted:
            chain = band(top)
            if all(any(loop is other for other in chain) for loop in wanted):
                last = max(position for position, loop in enumerate(chain) if any(loop is w for w in wanted))
                return chain[: last + 1]
        return None

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        if len(set(self.loops)) != len(self.loops):
            return illegal(1505, f"a loop is named twice in {', '.join(self.loops)}")
        wanted = [setting.loop(name) for name in self.loops]
        if len(wanted) < 2:
            return LEGAL
        chain = self._band(setting)
        if chain is None:
            return illegal(1508, f"{', '.join(self.loops)} are not the loops of one perfect nest", *wanted)
        inside = {loop.variable for loop in chain}
        for loop in chain:
            bad = loop.extent.names() & inside
            if bad:
                return unknown(f"the extent of {loop.variable} depends on {min(bad)}", loop)
        before = [loop.variable for loop in chain]
        after = [loop.variable for loop in self._order(chain)]
        kinds = {loop.variable: kind(setting.program, loop, inside) for loop in chain}
        fixed = {
            v for v, k in kinds.items() if k == "ordered" or (k == "reduction" and not setting.numerics.reassociate)
        }
        movable_reductions = {v for v, k in kinds.items() if k == "reduction"} - fixed
        # an ordered loop may not change places with a reduction either: it may read partial results
        dependent = fixed | movable_reductions if fixed else set[str]()
        if [v for v in before if v in dependent] != [v for v in after if v in dependent]:
            moved = [loop for loop in chain if loop.variable in dependent]
            names = ", ".join(loop.variable for loop in moved)
            return unknown(f"the order of {names} may matter (iterator kinds do not decide it)", *moved)
        return marks_after(setting.program, self.apply(setting).program, setting.numerics)

    def _order(self, chain: tuple[Loop, ...]) -> list[Loop]:
        by_name = {loop.variable: loop for loop in chain}
        following = iter(self.loops)
        return [by_name[next(following)] if loop.variable in self.loops else loop for loop in chain]

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        chain = self._band(setting)
        if chain is None:
            return Applied(setting.program)
        new = nest(tuple((loop.variable, loop.extent, loop.kind) for loop in self._order(chain)), chain[-1].body)
        return Applied(setting.program.with_body(replace_node(setting.program.body, chain[0], new)))


PRIMITIVE = Reorder
