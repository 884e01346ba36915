"""store_at: only the storage of a temporary moves; what it holds of earlier iterations is not computed again.

    serial y < 64                               global t[66]
      global t[3]                                 serial y < 64
        serial p < 3                                serial p < 3
          t: t[p] = a[y + p] * 2          ->          t: t[y + p] = a[y + p] * 2  where max(p - 2, -y) >= 0
        serial d < 3                                serial d < 3
          s: b[y] += t[d]                             s: b[y] += t[y + d]

Storage outside the loop that computes makes a sliding window: here two of three rows are there already. `at` is the
loop whose body the buffer then lives in (empty: the whole program). Towards the inside it is `set_scope` with `at`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tilework.dims import Dim, dim, maximum
from tilework.fast_dataclass import dataclass
from tilework.loops.program import (
    Compute,
    Intrinsic,
    Loop,
    LoopProgram,
    Node,
    Storage,
    path,
    replace_node,
    rewrite,
    statements,
    walk,
)
from tilework.schedule.footprint import node_dims, read_buffers, reads_in_dims, written_buffers
from tilework.schedule.marks import marks_after
from tilework.schedule.moving import narrowed, only_life, plain_use, shifted
from tilework.schedule.primitive import Applied, Primitive, Setting
from tilework.schedule.rewriting import add_guard, own_nest, replace_variables
from tilework.schedule.verdict import Verdict, illegal, unknown


@dataclass(frozen=True)
class StoreAt(Primitive):
    """Legal out of serial loops, where one nest writes the buffer and neighbouring iterations provably compute the same
    values, shifted: then each is computed in the first iteration that needs it.
    """

    name: ClassVar[str] = "store_at"
    buffer: str
    at: str = ""

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        placed = self._placed(setting)
        if isinstance(placed, Verdict):
            return placed
        return marks_after(setting.program, placed, setting.numerics)

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        placed = self._placed(setting)
        assert isinstance(placed, LoopProgram)
        return Applied(placed)

    def _placed(self, setting: Setting) -> LoopProgram | Verdict:
        program = setting.program
        life = only_life(program, self.buffer, self.name)
        if isinstance(life, Verdict):
            return life
        loop = setting.loop(self.at) if self.at else None
        if loop is not None and path(life.body, loop):
            return narrowed(program, life, loop)
        if loop is not None and not path(loop, life):
            return illegal(1520, f"{self.buffer} lives neither around {self.at} nor inside it", life, loop)
        top: Node = program.body if loop is None else loop.body
        over = [n.variable for n in path(top, life) if isinstance(n, Loop)]
        if not over and life is top:
            return illegal(1520, f"{self.buffer} lives there already", life)
        special = plain_use(self.buffer, life)
        if special is not None:
            return special
        if self.buffer in reads_in_dims(life):
            return unknown(f"{self.buffer} is read by an index or a guard", life)
        for variable in reversed(over):
            crossing = next(n for n in walk(program.body) if isinstance(n, Loop) and n.variable == variable)
            moved = self._across(program, crossing, setting.loop(variable))
            if isinstance(moved, Verdict):
                return moved
            program = moved
        # the buffer now lives right outside the last loop; let it live in the whole body
        inner = only_life(program, self.buffer, self.name)
        assert isinstance(inner, Storage)
        names = {e for extent in inner.buffer.shape for e in extent.names()}
        around = setting.loop(self.at) if loop is not None else None
        allowed = {s.name for s in program.symbols}
        if around is not None:
            allowed |= {around.variable, *(n.variable for n in setting.enclosing(around))}
        if not names <= allowed:
            return unknown(f"the size of {self.buffer} depends on a loop inside", life)
        if inner.buffer.scope != "global" and any(extent.value is None for extent in inner.buffer.shape):
            return illegal(1522, f"{inner.buffer.scope} storage has a constant size; {self.buffer} would not", life)
        bare = rewrite(program.body, lambda n: n.body if isinstance(n, Storage) and n.buffer is inner.buffer else n)
        if around is None:
            return program.with_body(Storage(inner.buffer, bare))
        there = next(n for n in walk(bare) if isinstance(n, Loop) and n.variable == around.variable)
        return program.with_body(replace_node(bare, there, replace(there, body=Storage(inner.buffer, there.body))))

    def _across(self, program: LoopProgram, loop: Loop, shown: Loop) -> LoopProgram | Verdict:
        """The buffer's life moved from inside a loop to right around it; `shown` is the loop before the step."""
        life = only_life(program, self.buffer, self.name)
        assert isinstance(life, Storage)
        x = loop.variable
        if loop.kind not in ("serial", "unrolled"):
            return illegal(1520, f"iterations of the {loop.kind} loop {x} cannot keep values for each other", shown)
        writers = [s for s in statements(life) if any(t.buffer == self.buffer for t in s.targets)]
        if not writers:
            return unknown(f"nobody writes {self.buffer}", shown)
        own = own_nest(program, writers)
        if not path(loop.body, own) or any(isinstance(n, Intrinsic) for n in path(loop.body, own)):
            return unknown(f"what computes {self.buffer} is not inside {x}", shown)
        private = {n.buffer.name for n in walk(own) if isinstance(n, Storage)}
        sources = read_buffers(own) - private
        rest = written_buffers(loop.body)
        if (written_buffers(own) - private) - {self.buffer} or sources & (rest - private):
            return unknown(f"iterations of {x} may change what {self.buffer} is computed from", shown)
        above = [n for n in path(loop.body, own) if isinstance(n, Loop) and n is not own]
        if any(x in n.extent.names() or n.extent.loads() for n in above) or any(
            x in s.reduction for s in statements(own)
        ):
            return unknown(f"{self.buffer} is not computed alike in every iteration of {x}", shown)
        found = self._shift(own, writers, life, x)
        if found is None:
            return unknown(f"no values that iterations of {x} compute are provably the same", shown)
        steps, names = found
        shape = life.buffer.shape
        new = [-dim(x)]
        for step, name, extent in zip(steps, names, shape, strict=True):
            if step:
                new.append(dim(name) - (extent - step))
        guarded = add_guard(own, maximum(*new))
        body = shifted(replace_node(loop.body, own, guarded), self.buffer, [dim(x) * -step for step in steps])
        body = rewrite(body, lambda n: n.body if isinstance(n, Storage) and n.buffer is life.buffer else n)
        larger = tuple(extent + (loop.extent - 1) * step for extent, step in zip(shape, steps, strict=True))
        there = Storage(replace(life.buffer, shape=larger), Loop(x, loop.extent, loop.kind, body))
        return program.with_body(replace_node(program.body, loop, there))

    def _shift(
        self, own: Node, writers: list[Compute], life: Storage, x: str
    ) -> tuple[tuple[int, ...], tuple[str, ...]] | None:
        """Per dimension how far the values of the next iteration are shifted, and the loop that walks over it."""
        loops = {n.variable: n for n in walk(own) if isinstance(n, Loop)}
        every = [entry for node in walk(own) for entry in node_dims(node)]
        steps: list[int] = []
        names: list[str] = []
        table: dict[str, Dim] = {x: dim(x) + 1}
        for d, extent in enumerate(life.buffer.shape):
            entries = {next(t.index[d] for t in w.targets if t.buffer == self.buffer) for w in writers}
            entry = entries.pop()
            name = next(iter(entry.names()), "")
            step = 0
            if not entries and entry == dim(name or 0) and name in loops and loops[name].extent == extent:
                for found in every:
                    slope, along = found.coefficient(x), found.coefficient(name)
                    if slope and along and slope % along == 0:
                        step = slope // along
                        break
            if step < 0 or (step and (extent.value is None or step > extent.value or name in table)):
                return None
            if step:
                table[name] = dim(name) - step
            steps.append(step)
            names.append(name)
        moved = replace_variables(own, table, {name: (name,) for name in table})
        for before, after in zip(walk(own), walk(moved), strict=True):
            if not self._same(before, after):
                return None
        return tuple(steps), tuple(names)

    def _same(self, before: Node, after: Node) -> bool:
        """Whether a node of the next iteration, shifted, is the same but for where it stores."""
        if isinstance(before, Compute) and isinstance(after, Compute):
            before = replace(before, targets=tuple(t for t in before.targets if t.buffer != self.buffer))
            after = replace(after, targets=tuple(t for t in after.targets if t.buffer != self.buffer))
        return node_dims(before) == node_dims(after)


PRIMITIVE = StoreAt
