"""vector_nest: cheap stages inlined, then each nest gets lanes along contiguous memory and threads along its outside.

A first general recipe: it needs no knowledge of the operator, only of how a nest walks memory. Stages that are cheap to
recompute are inlined, and the others come under the loops that all share (`_stages.py`). Then for each nest

1. adjacent loops that walk every buffer contiguously are fused, so that short rows do not cost a loop each;
2. the loop whose lanes cost least (`_lanes.py`) is split by the machine's lanes and vectorised, behind the reduction
   loops, in tiles of rows and vectors with partial results in registers (`_tiles.py`); sums of products of narrow
   numbers are arranged for the machine's dot products instead, where it has some (`_dot_products.py`);
3. the outermost independent loop is parallel.
"""

from __future__ import annotations

from itertools import dropwhile, pairwise

from tilework.candidates.candidate import Candidate
from tilework.candidates.region import Region
from tilework.dims import Dim
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Index, walk
from tilework.loops.program import Loop, statements
from tilework.loops.program import walk as walk_tree
from tilework.lowering.streams import streamed
from tilework.machine.cpu import CpuMachine
from tilework.memory.placement import typical
from tilework.numerics import Numerics
from tilework.recipes.cpu._access import addresses, layouts_for, reduced_by
from tilework.recipes.cpu._dot_products import for_dot_products, tensorised
from tilework.recipes.cpu._epilogues import result_with_readers, with_epilogue
from tilework.recipes.cpu._lanes import best_lanes
from tilework.recipes.cpu._packing import copied, copyable
from tilework.recipes.cpu._parts import in_parts
from tilework.recipes.cpu._stages import distributed, nests_inside, outermost_loops, own_loops, together, worth_inlining
from tilework.recipes.cpu._tails import other_pieces, tails_apart
from tilework.recipes.cpu._tiles import with_lanes
from tilework.recipes.cpu._transposes import with_turned_tiles
from tilework.recipes.cpu._wide_copies import with_wide_copies
from tilework.schedule.iterators import kind
from tilework.schedule.nests import each_nest
from tilework.schedule.primitives.compute_inline import ComputeInline
from tilework.schedule.primitives.fuse import Fuse
from tilework.schedule.primitives.parallel import Parallel
from tilework.schedule.rewriting import band
from tilework.schedule.schedule import Schedule

ENOUGH = 16
"""Iterations of a parallel loop that give every thread a fair share."""


@dataclass(frozen=True)
class VectorNest:
    """Offers one candidate for every region; where a nest has no loop worth lanes it stays scalar."""

    name: str = "vector_nest"

    def candidates(self, region: Region, machine: CpuMachine, numerics: Numerics) -> tuple[Candidate, ...]:
        """One candidate, always."""
        found = region.definition
        packable = frozenset(found.buffers[name] for name in region.constants)
        schedule = vectorised(Schedule(found.program, machine, numerics, origin=found.program), packable)
        typical_sizes = {symbol.name: region.usual.get(symbol.name, typical(symbol)) for symbol in region.symbols}
        large = streamed(schedule.program, machine.last_level_bytes, typical_sizes)
        note = _note(schedule) + (", stores past the caches where results are large" if large else "")
        return (Candidate("direct", self.name, lambda: schedule, numerics=numerics.level, streaming=large, note=note),)


def _note(schedule: Schedule) -> str:
    """What became of the nests, for `explain`."""
    nests = outermost_loops(schedule.program.body)
    scalar = sum(not any(isinstance(n, Loop) and n.kind == "vectorized" for n in walk_tree(nest)) for nest in nests)
    if scalar == 0:
        return "lanes along the cheapest loop of each nest"
    return f"{scalar} of {len(nests)} nests scalar: no loop is worth lanes"


def vectorised(schedule: Schedule, packable: frozenset[str] = frozenset()) -> Schedule:
    """Inline what is cheap to recompute, then treat every nest. `packable` arguments may take any layout."""
    for statement in [s.name for s in statements(schedule.program.body)]:
        if worth_inlining(schedule.setting, statement):
            schedule = schedule.attempt(ComputeInline(statement)) or schedule
    schedule = distributed(together(schedule))
    return each_nest(schedule, lambda part, tops: _treated_nest(part, tops, packable))


def _treated_nest(schedule: Schedule, tops: tuple[str, ...], packable: frozenset[str]) -> Schedule:
    """Treat one outermost loop, with the statements in it."""
    if is_done(schedule, tops[-1]):
        return schedule
    if schedule.outside is not None:
        packable -= schedule.outside.shared
    if len(nests_inside(schedule, tops)) > 1:
        for statement in nests_inside(schedule, tops):
            schedule = nest(schedule, statement, packable, apart=True)
        return tensorised(all_threads(schedule, tops[-1]))
    schedule, parts = in_parts(schedule, tops[-1])
    for statement in parts:
        schedule = tensorised(all_threads(nest(schedule, statement, packable), statement))
    return schedule


def is_done(schedule: Schedule, statement: str) -> bool:
    """Whether a statement has become part of another, or of another's nest, which was treated before it."""
    program = schedule.program
    if all(found.name != statement for found in statements(program.body)):
        return True
    return any(loop.kind != "serial" for loop in schedule.setting.enclosing(schedule.setting.statement(statement)))


# -- one nest ----------------------------------------------------------------------------------------------------------
def nest(
    schedule: Schedule, statement: str, packable: frozenset[str] = frozenset(), *, apart: bool = False
) -> Schedule:
    """Fuse and vectorise the nest of one statement, each where it is legal and pays.

    Where the nest is not perfect, only the loops around all of it are treated; with `apart`, only those that hold
    nothing but the statement.
    """
    result = "" if apart else result_with_readers(schedule, statement)
    if not apart:
        schedule = _fused(schedule, statement)
    around = _treated(schedule, statement, apart)
    if not around:
        return schedule
    found = schedule.setting.statement(statement)
    program = schedule.program
    inside = [loop.variable for loop in around]
    kinds = {loop.variable: kind(program, loop, inside) for loop in around}
    arranged = for_dot_products(schedule, statement, around, kinds, packable)
    if arranged is not None:
        return arranged
    turned = with_turned_tiles(schedule, found, around, kinds)
    if turned is not None:
        return turned
    candidates = copyable(schedule, found) - packable
    chosen = best_lanes(schedule, found, around, kinds, packable, candidates)
    if chosen is None:
        return schedule
    schedule, wide = with_wide_copies(schedule, statement, chosen)
    found = schedule.setting.statement(statement)
    schedule, copies = copied(schedule, found, chosen, candidates)
    for name, layout in layouts_for(schedule.program, found, chosen, packable).items():
        schedule = schedule.transform_layout(name, str(layout))
    found = schedule.setting.statement(statement)
    schedule = with_lanes(schedule, found, _treated(schedule, statement, apart), kinds, chosen, packable, copies)
    if result:
        schedule = with_epilogue(schedule, result)
    for copy in copies:
        schedule = all_threads(tails_apart(schedule, copy.buffer), copy.buffer)
    if found.reduction and not apart:
        schedule = tails_apart(schedule, statement)
    for made in wide:
        schedule = threads(nest(schedule, made), made)
    return schedule


def _treated(schedule: Schedule, statement: str, apart: bool) -> tuple[Loop, ...]:
    around = schedule.setting.enclosing(schedule.setting.statement(statement))
    if not around:
        return ()
    return own_loops(around, schedule.setting.statement(statement)) if apart else band(around[0])


def all_threads(schedule: Schedule, statement: str) -> Schedule:
    """Make every piece of a statement's nest parallel."""
    schedule = threads(schedule, statement)
    for piece in other_pieces(schedule, statement):
        schedule = schedule.attempt(Parallel(piece.variable)) or schedule
    return schedule


def threads(schedule: Schedule, statement: str) -> Schedule:
    """Make the outermost independent loop parallel; fused with those inside it while there is too little to share."""
    while True:
        found = schedule.setting.enclosing(schedule.setting.statement(statement))
        around = list(dropwhile(lambda loop: loop.extent == 1, found))
        if not around or around[0].extent == 0 or around[0].kind != "serial" or not _independent(schedule, around[0]):
            return schedule
        if any(loop.extent != 1 for loop in around[1:]) and least(around[0].extent) < ENOUGH:
            # a loop of one iteration on the way is taken along
            inner = around[1]
            if inner.kind == "serial" and _independent(schedule, inner):
                fused = schedule.attempt(Fuse(around[0].variable, inner.variable))
                if fused is not None and _independent(fused, fused.setting.loop(_joined(fused, around[0]))):
                    schedule = fused
                    continue
        return schedule.parallel(around[0].variable)


def least(extent: Dim) -> int:
    """Iterations where every free extent is 1: a free batch is often that."""
    least = extent.substitute(dict.fromkeys(extent.names(), 1)).value
    return 1 if least is None else least


def _joined(fused: Schedule, outer: Loop) -> str:
    """The loop that one became in the last step."""
    (name,) = fused.forwards[-1][outer.variable]
    return name


def _independent(schedule: Schedule, loop: Loop) -> bool:
    return kind(schedule.program, loop) == "independent"


def _fused(schedule: Schedule, statement: str) -> Schedule:
    """Fuse neighbouring loops while every address stays affine in the fused one."""
    while True:
        found = schedule.setting.statement(statement)
        around = schedule.setting.enclosing(found)
        for outer, inner in reversed(list(pairwise(around))):
            if reduced_by(found, (outer, inner)):
                continue
            trial = schedule.attempt(Fuse(outer.variable, inner.variable))
            if trial is None:
                continue
            moved = trial.setting.statement(statement)
            stores, loads = addresses(trial.program, moved)
            (name,) = trial.forwards[-1][outer.variable]
            numbers = [n.value for v in moved.values for n in walk(v) if isinstance(n, Index)]
            if all(address.affine_in({name}) for address in (*stores, *loads, *moved.guards, *numbers)):
                schedule = trial
                break
        else:
            return schedule


RECIPE = VectorNest()
