"""vector_nest: cheap stages inlined, then each nest gets lanes along contiguous memory and threads along its outside.

A first general recipe: it needs no knowledge of the operator, only of how a nest walks memory. For each nest

1. adjacent loops that walk every buffer contiguously are fused, so that short rows do not cost a loop each;
2. the loop whose lanes read and write neighbouring elements is split by the machine's lanes and vectorised, behind the
   reduction loops, several vectors at a time, with partial results in registers;
3. the outermost independent loop is parallel.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from tilework.candidates.candidate import Candidate
from tilework.candidates.region import Region
from tilework.dims import Dim, dim, product
from tilework.layout import Layout, permuted
from tilework.loops.expressions import Call, Index, Load, walk
from tilework.loops.functions import FUNCTIONS
from tilework.loops.program import Buffer, Compute, Loop, LoopProgram, Node, children, statements
from tilework.lowering.streams import streamed
from tilework.machine.cpu import CpuMachine
from tilework.memory.placement import typical
from tilework.numerics import Numerics
from tilework.schedule.iterators import kind
from tilework.schedule.primitives.cache_write import CacheWrite
from tilework.schedule.primitives.compute_at import ComputeAt
from tilework.schedule.primitives.compute_inline import ComputeInline
from tilework.schedule.primitives.fuse import Fuse
from tilework.schedule.primitives.reorder import Reorder
from tilework.schedule.primitives.vectorize import Vectorize
from tilework.schedule.rewriting import band
from tilework.schedule.schedule import Schedule

_WORTH = 6
"""Cost of lanes (see `_lanes`) beyond which a scalar loop is as good."""
_TOLERATED = 0.1
"""Share of empty lanes that is not worth another choice."""
ENOUGH = 16
"""Iterations of a parallel loop that give every thread a fair share."""
VECTORS = 4
"""Most vectors beside each other in a tile of sums."""
ALONE = 8
"""Vectors beside each other where no row uses them again."""
MOST_LANES = 64
"""Lanes that one vectorised loop may have."""
LARGEST_ROWS = 8
"""Most rows of a tile of sums."""


@dataclass(frozen=True)
class VectorNest:
    """Offers one candidate for every region; where a nest has no loop worth lanes it stays scalar."""

    name: str = "vector_nest"

    def candidates(self, region: Region, machine: CpuMachine, numerics: Numerics) -> tuple[Candidate, ...]:
        """One candidate, always."""
        found = region.definition
        packable = frozenset(found.buffers[name] for name in region.constants)
        schedule = vectorised(Schedule(found.program, machine, numerics), packable)
        typical_sizes = {symbol.name: typical(symbol) for symbol in region.symbols}
        large = streamed(schedule.program, machine.last_level_bytes, typical_sizes)
        note = "lanes along contiguous memory" + (", stores past the caches where results are large" if large else "")
        return (Candidate("direct", self.name, lambda: schedule, numerics=numerics.level, streaming=large, note=note),)


def vectorised(schedule: Schedule, packable: frozenset[str] = frozenset()) -> Schedule:
    """Inline what is cheap to recompute, then treat every nest. `packable` arguments may take any layout."""
    for statement in [s.name for s in statements(schedule.program.body)]:
        if worth_inlining(schedule.program, statement):
            schedule = schedule.attempt(ComputeInline(statement)) or schedule
    schedule = _together(schedule)
    for tops in [[s.name for s in statements(loop)] for loop in _nests(schedule.program.body)]:
        if len(_nests_inside(schedule, tops)) > 1:
            for statement in _nests_inside(schedule, tops):
                schedule = nest(schedule, statement, packable, apart=True)
        else:
            schedule = nest(schedule, tops[-1], packable)
        schedule = _threads(schedule, tops[-1])
    return schedule


ROW_BYTES = 1 << 14
"""Bytes of a temporary that may live inside a loop: half of a small first-level cache."""


def _together(schedule: Schedule) -> Schedule:
    """Bring the nests of a computation under the loops that all of them share, so that a row is walked while it is near.

    Stages before the last move to the innermost of the last one's loops where none computes anything twice.
    """
    mains = [_main(loop) for loop in _nests(schedule.program.body)]
    if len(mains) < 2:
        return schedule
    last = schedule.setting.statement(mains[-1])
    around = band(schedule.setting.enclosing(last)[0])
    for loop in reversed(around):
        trial = schedule
        for name in reversed(mains[:-1]):
            moved = trial.attempt(ComputeAt(name, loop.variable))
            if moved is None or not _once(schedule, moved, name, loop.variable):
                break
            trial = moved
        else:
            return trial
    return schedule


def _once(before: Schedule, after: Schedule, statement: str, at: str) -> bool:
    """Whether a stage that moved into a loop still computes each element once, and keeps few of them there."""
    buffer = before.setting.statement(statement).target.buffer
    old, new = before.program.buffers[buffer], after.program.buffers[buffer]
    around = after.setting.enclosing(after.setting.loop(at))
    trips = product([after.setting.loop(at).extent, *(loop.extent for loop in around)])
    kept = new.bytes.value
    return new.size * trips == old.size and kept is not None and kept <= ROW_BYTES


def _nests_inside(schedule: Schedule, names: list[str]) -> list[str]:
    """The statements of a nest whose own innermost loops hold nothing else; one for a start and its sum."""
    found: list[str] = []
    for name in names:
        statement = schedule.setting.statement(name)
        around = schedule.setting.enclosing(statement)
        if around and _own(around, statement):
            found.append(name)
    return found


def _own(around: tuple[Loop, ...], statement: Compute) -> tuple[Loop, ...]:
    """The innermost loops around a statement that hold nothing but it."""
    inner: Node = statement
    found: list[Loop] = []
    for loop in reversed(around):
        if loop.body is not inner:
            break
        found.insert(0, loop)
        inner = loop
    return tuple(found)


def _nests(node: Node) -> list[Loop]:
    """The outermost loops, in order."""
    if isinstance(node, Loop):
        return [node]
    return [loop for child in children(node) for loop in _nests(child)]


def _main(loop: Loop) -> str:
    """The statement that a nest is for: the last one, which its other statements prepare."""
    return list(statements(loop))[-1].name


def worth_inlining(program: LoopProgram, name: str) -> bool:
    """Whether recomputing a stage at its readers costs less than storing it.

    A stage that only moves elements is free. One that computes is worth it when a single statement reads it at one
    place, and reads every element once: as many iterations as elements.
    """
    found = next(s for s in statements(program.body) if s.name == name)
    if len(found.targets) != 1 or found.reducer is not None:
        return False
    buffer = found.target.buffer
    calls = [node for node in walk(found.values[0]) if isinstance(node, Call)]
    sites = [
        (reader, load)
        for reader in statements(program.body)
        for value in reader.values
        for load in walk(value)
        if isinstance(load, Load) and load.buffer == buffer
    ]
    if not any(FUNCTIONS[c.function].transcendental for c in calls if c.function in FUNCTIONS) and len(calls) <= 1:
        return all(_moves_only(calls) or not _reuses(program, reader, load) for reader, load in sites)
    return len(sites) == 1 and not _reuses(program, *sites[0])


def _moves_only(calls: list[Call]) -> bool:
    return not calls


def _reuses(program: LoopProgram, reader: Compute, load: Load) -> bool:
    """Whether the reader has loops that do not move the load: it reads elements more than once."""
    moved = {name for entry in load.index for name in entry.names()}
    loops = [node for node in _loops_around(program, reader) if node.extent != 1]
    return any(node.variable not in moved for node in loops)


def _loops_around(program: LoopProgram, statement: Compute) -> tuple[Loop, ...]:
    return Schedule(program).setting.enclosing(statement)


# -- one nest ----------------------------------------------------------------------------------------------------------
def _flat(buffer: Buffer, index: tuple[Dim, ...]) -> Dim:
    total = dim(0)
    for entry, stride in zip(index, buffer.strides, strict=True):
        total = total + entry * stride
    return total


def _addresses(program: LoopProgram, statement: Compute) -> tuple[list[Dim], list[Dim]]:
    """Flat element addresses of the stores and of the loads."""
    buffers = program.buffers
    stores = [_flat(buffers[t.buffer], t.index) for t in statement.targets]
    loads = [
        _flat(buffers[node.buffer], node.index)
        for value in statement.values
        for node in walk(value)
        if isinstance(node, Load)
    ]
    return stores, loads


def _step(address: Dim, variable: str) -> int | None:
    """The flat step along a loop; None where the address is not affine in it or the step is symbolic."""
    if variable not in address.names():
        return 0
    if not address.affine_in({variable}):
        return None
    return address.coefficient(variable) or None


def nest(
    schedule: Schedule, statement: str, packable: frozenset[str] = frozenset(), *, apart: bool = False
) -> Schedule:
    """Fuse and vectorise the nest of one statement, each where it is legal and pays.

    Where the nest is not perfect, only the loops around all of it are treated; with `apart`, only those that hold
    nothing but the statement.
    """
    if not apart:
        schedule = _fused(schedule, statement)
    around = _treated(schedule, statement, apart)
    if not around:
        return schedule
    found = schedule.setting.statement(statement)
    program = schedule.program
    inside = [loop.variable for loop in around]
    kinds = {loop.variable: kind(program, loop, inside) for loop in around}
    chosen = _lanes(schedule, found, around, kinds, packable)
    if chosen is None:
        return schedule
    for name, layout in _layouts(schedule.program, found, chosen, packable).items():
        schedule = schedule.transform_layout(name, str(layout))
    found = schedule.setting.statement(statement)
    return _with_lanes(schedule, found, _treated(schedule, statement, apart), kinds, chosen)


def _treated(schedule: Schedule, statement: str, apart: bool) -> tuple[Loop, ...]:
    around = schedule.setting.enclosing(schedule.setting.statement(statement))
    if not around:
        return ()
    return _own(around, schedule.setting.statement(statement)) if apart else band(around[0])


def _threads(schedule: Schedule, statement: str) -> Schedule:
    """Make the outermost independent loop parallel; fused with those inside it while there is too little to share."""
    while True:
        around = [
            loop for loop in schedule.setting.enclosing(schedule.setting.statement(statement)) if loop.extent != 1
        ]
        if not around or around[0].extent == 0 or around[0].kind != "serial" or not _independent(schedule, around[0]):
            return schedule
        known = around[0].extent.value
        if len(around) > 1 and (known is None or known < ENOUGH) and around[1].kind == "serial":
            inner = around[1].extent.value
            if inner is not None and _independent(schedule, around[1]):
                fused = schedule.attempt(Fuse(around[0].variable, around[1].variable))
                if fused is not None:
                    schedule = fused
                    continue
        return schedule.parallel(around[0].variable)


def _independent(schedule: Schedule, loop: Loop) -> bool:
    return kind(schedule.program, loop) == "independent"


def _fused(schedule: Schedule, statement: str) -> Schedule:
    """Fuse neighbouring loops while every address stays affine in the fused one."""
    while True:
        found = schedule.setting.statement(statement)
        around = schedule.setting.enclosing(found)
        for outer, inner in reversed(list(pairwise(around))):
            if outer.variable in found.reduction or inner.variable in found.reduction:
                continue
            trial = schedule.attempt(Fuse(outer.variable, inner.variable))
            if trial is None:
                continue
            moved = trial.setting.statement(statement)
            stores, loads = _addresses(trial.program, moved)
            (name,) = trial.forwards[-1][outer.variable]
            numbers = [n.value for v in moved.values for n in walk(v) if isinstance(n, Index)]
            if all(address.affine_in({name}) for address in (*stores, *loads, *moved.guards, *numbers)):
                schedule = trial
                break
        else:
            return schedule


def _lanes(
    schedule: Schedule, found: Compute, around: tuple[Loop, ...], kinds: dict[str, str], packable: frozenset[str]
) -> str | None:
    """The loop to vectorise: the one whose lanes cost least, inner loops first among equals; None where none will do.

    A load costs nothing where neighbouring lanes read neighbouring elements, or all the same one; a constant can be
    stored so that they do. Results cost less where a reduction writes each of them once.
    """
    if any(load for target in found.targets for entry in target.index for load in entry.loads()):
        return None
    program = schedule.program
    stores, _ = _addresses(program, found)
    reduces = bool(found.reduction)
    best: tuple[int, bool, int] | None = None
    chosen: str | None = None
    for position, loop in enumerate(around):
        if loop.extent.value is not None and loop.extent.value < 2:
            continue
        cost = 0
        for load in _loads(found):
            step = _step(_flat(program.buffers[load.buffer], load.index), loop.variable)
            if step not in (0, 1) and _packed(program, found, load, loop.variable, packable) is None:
                cost += 2
        # masks that change from step to step, and lanes that a last vector leaves empty
        cost += sum(loop.variable in guard.names() for guard in found.guards)
        cost += 1 if _wasted(schedule, loop) > _TOLERATED else 0
        if kinds[loop.variable] == "independent":
            cost += 0 if all(_step(address, loop.variable) == 1 for address in stores) else 1 if reduces else 2
        elif kinds[loop.variable] == "reduction" and schedule.numerics.reassociate:
            cost += 1
        else:
            continue
        rank = (cost, kinds[loop.variable] == "reduction", -position)
        if cost <= _WORTH and (best is None or rank < best):
            best, chosen = rank, loop.variable
    return chosen


def _slow(statement: Compute) -> bool:
    """Whether a statement computes long chains: functions that are polynomials in the code."""
    calls = [node.function for value in statement.values for node in walk(value) if isinstance(node, Call)]
    return any(FUNCTIONS[name].transcendental for name in calls if name in FUNCTIONS)


def _wasted(schedule: Schedule, loop: Loop) -> float:
    """The share of lanes that stay empty."""
    extent = loop.extent.value
    if extent is None:
        return 0.0
    lanes = (schedule.machine.vector_bits if schedule.machine is not None else 128) // 32
    return 1 - extent / (-(-extent // lanes) * lanes)


def _loads(statement: Compute) -> list[Load]:
    return list(statement.loads)


def _packed(program: LoopProgram, found: Compute, load: Load, lane: str, packable: frozenset[str]) -> Layout | None:
    """The layout in which neighbouring lanes read neighbouring elements of a constant; None where there is none."""
    others = [
        other
        for statement in statements(program.body)
        for other in _loads(statement)
        if other.buffer == load.buffer and other.index != load.index
    ]
    if load.buffer not in packable or others:
        return None
    moved = [position for position, entry in enumerate(load.index) if lane in entry.names()]
    if len(moved) != 1 or load.index[moved[0]].coefficient(lane) != 1 or not load.index[moved[0]].affine_in({lane}):
        return None
    return permuted((*(d for d in range(len(load.index)) if d != moved[0]), moved[0]))


def _layouts(program: LoopProgram, found: Compute, lane: str, packable: frozenset[str]) -> dict[str, Layout]:
    """The layouts that constants should have for the lanes chosen."""
    wanted: dict[str, Layout] = {}
    for load in _loads(found):
        if _step(_flat(program.buffers[load.buffer], load.index), lane) not in (0, 1):
            layout = _packed(program, found, load, lane, packable)
            if layout is not None:
                wanted[load.buffer] = layout
    return wanted


def _with_lanes(
    schedule: Schedule, found: Compute, around: tuple[Loop, ...], kinds: dict[str, str], chosen: str
) -> Schedule:
    """Split the chosen loop by the machine's lanes and move the lanes innermost."""
    loop = next(node for node in around if node.variable == chosen)
    widest = max((schedule.program.buffers[b].dtype.bits for b in _buffers(found)), default=32)
    lanes = max(2, (schedule.machine.vector_bits if schedule.machine is not None else 128) // max(widest, 8))
    extent = loop.extent.value
    if extent is not None and extent < lanes:
        lanes = 1 << (extent - 1).bit_length()
    if not found.reduction and _slow(found) and lanes < MOST_LANES and (extent is None or extent >= 4 * lanes):
        lanes *= 2  # two vectors beside each other: one computes while the other waits
    outer, inner = f"{chosen}.outer", f"{chosen}.lanes"
    trial = schedule.split(chosen, lanes, outer, inner, tail="mask")
    order = [node.variable for node in around]
    reductions = [v for v in order if v in found.reduction]
    free = [v for v in order if v not in reductions]
    lanes_reduce = chosen in reductions
    sums = len(reductions) == len(found.reduction) and all(kinds[v] != "ordered" for v in reductions)
    if not (reductions and sums and schedule.numerics.reassociate):
        reordered = trial.attempt(Reorder(*(outer if v == chosen else v for v in order), inner))
        return (reordered.attempt(Vectorize(inner)) if reordered is not None else None) or schedule
    # a tile of several rows and vectors: sums then do not wait for each other, and what is loaded is used again
    row = None if lanes_reduce else _rows(schedule.program, found, around, kinds, chosen)
    pieces = trial.setting.loop(outer).extent.value
    if row is not None:
        rows, count = _tile(schedule, row.extent.value, pieces)
    else:
        # nothing is used again: many vectors side by side read memory in long pieces
        rows, count = 1, min(VECTORS if lanes_reduce else ALONE, pieces or ALONE)
    vectors: tuple[str, ...] = ()
    if count > 1:
        trial = trial.split(outer, count, f"{chosen}.block", f"{chosen}.vector")
        vectors, outer = (f"{chosen}.vector",), f"{chosen}.block"
    free = [outer if v == chosen else v for v in free]
    reductions = [outer if v == chosen else v for v in reductions]
    if row is not None and rows > 1:
        trial = trial.split(row.variable, rows, f"{row.variable}.block", f"{row.variable}.row")
        free = [f"{row.variable}.block" if v == row.variable else v for v in free]
        vectors = (f"{row.variable}.row", *vectors)
    reordered = trial.attempt(Reorder(*free, *reductions, *vectors, inner))
    if reordered is None:
        return schedule
    trial = reordered
    for vector in vectors:
        trial = trial.unroll(vector)
    vectorised = trial.attempt(Vectorize(inner))
    if vectorised is None:
        return schedule
    axes = (*vectors, inner) if lanes_reduce else ()
    above = schedule.setting.enclosing(around[0])
    at = free[-1] if free else above[-1].variable if above else ""
    cells = CacheWrite(found.name, at, f"{found.name}.cells", axes)
    return vectorised.attempt(cells) or vectorised


def _rows(
    program: LoopProgram, found: Compute, around: tuple[Loop, ...], kinds: dict[str, str], chosen: str
) -> Loop | None:
    """The loop whose iterations use the same vectors: loads that move with the lanes do not move with it."""
    vectors = [load for load in _loads(found) if any(chosen in entry.names() for entry in load.index)]
    best: Loop | None = None
    for loop in around:
        if loop.variable == chosen or kinds[loop.variable] != "independent" or loop.extent == 1:
            continue
        if any(loop.variable in entry.names() for load in vectors for entry in load.index):
            continue
        if best is None or loop.extent.value is None or (best.extent.value or 0) <= loop.extent.value:
            best = loop
    return best if vectors else None


def _tile(schedule: Schedule, rows: int | None, pieces: int | None) -> tuple[int, int]:
    """Rows and vectors of a tile: as many sums as registers hold beside the vectors kept and one more."""
    registers = schedule.machine.vector_registers if schedule.machine is not None else 16
    best = (1, 1)
    score = 0.0
    for vectors in range(1, VECTORS + 1):
        if pieces is not None and vectors > pieces:
            break
        for tall in range(1, LARGEST_ROWS + 1):
            if tall * vectors + vectors + 1 > registers or (rows is not None and tall > rows):
                break
            # loads a multiply-add; what a last, partly empty tile wastes counts against it
            work = tall * vectors / (tall + vectors)
            if rows is not None:
                work *= rows / (-(-rows // tall) * tall)
            if pieces is not None:
                work *= pieces / (-(-pieces // vectors) * vectors)
            if work > score + 1e-9:
                best, score = (tall, vectors), work
    return best


def _buffers(statement: Compute) -> set[str]:
    found = {target.buffer for target in statement.targets}
    for value in statement.values:
        found |= {node.buffer for node in walk(value) if isinstance(node, Load)}
    return found


RECIPE = VectorNest()
