"""Sums of products of narrow numbers for the machine's dot products: groups along the reduction, lanes along columns.

The operand that moves with the lanes is a constant, and stored as the instruction reads it: for each block of columns
and each group of the reduction the groups of all columns, one after another (the columns of a last block and the
elements of a last group that are not there are zeros, and never part of a result). The other operand is read in place,
where its groups lie side by side; where the instruction wants wider elements, the rows of a tile are widened once.

    c[i, j] += a[i, k] * b[k, j]  ->  c[6 ib + i, 64 jb + 16 v + l] += a[6 ib + i, 4 kg + r] * b[jb, kg, 16 v + l, r]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilework.dims import Dim
from tilework.dtypes import holds
from tilework.fast_dataclass import dataclass
from tilework.layout import Layout, Part
from tilework.loops.expressions import Call, Expression, Load
from tilework.loops.program import Compute, Loop, walk
from tilework.machine.cpu import CpuMachine
from tilework.machine.instructions import DotProduct
from tilework.recipes.cpu._access import readers_of
from tilework.recipes.cpu._blocks import Tiles, in_blocks
from tilework.recipes.cpu._loop_order import order_of_sums
from tilework.recipes.cpu._tile_sizes import tile_sizes
from tilework.recipes.cpu._wide_copies import wide_rows
from tilework.schedule.primitive import Primitive
from tilework.schedule.primitives.cache_write import CacheWrite
from tilework.schedule.primitives.partition import Partition
from tilework.schedule.primitives.reorder import Reorder
from tilework.schedule.primitives.split import Split
from tilework.schedule.primitives.tensorize import Tensorize
from tilework.schedule.primitives.transform_layout import TransformLayout
from tilework.schedule.primitives.unroll import Unroll
from tilework.schedule.primitives.vectorize import Vectorize
from tilework.schedule.rewriting import instructions
from tilework.schedule.schedule import Schedule

SHORT = 8
"""Iterations that are too few to be cut into tiles of rows, if another loop has more or a symbol for its extent."""


@dataclass(frozen=True)
class _Plan:
    """Which instruction, and which loops are its groups, its lanes and the rows of a tile."""

    row: DotProduct
    spread: Load
    vector: Load
    groups: Loop
    lanes: Loop
    rows: Loop | None

    @property
    def widens(self) -> bool:
        """Whether the spread operand has to be stored in a wider type first."""
        return self.spread.dtype != self.row.memory[0]

    @property
    def rank(self) -> tuple[float, bool, bool]:
        return self.row.operations_per_cycle, not self.widens, self.row.accumulates


def for_dot_products(
    schedule: Schedule, statement: str, around: tuple[Loop, ...], kinds: dict[str, str], packable: frozenset[str]
) -> Schedule | None:
    """Arrange a sum of products so that `tensorised` finds dot products of the machine in it; None where it cannot."""
    machine = schedule.machine
    found = schedule.setting.statement(statement)
    if not isinstance(machine, CpuMachine) or not machine.dot_products:
        return None
    plans = sorted(_plans(schedule, machine, found, around, kinds, packable), key=lambda plan: plan.rank, reverse=True)
    for plan in plans:
        done = _arranged(schedule, machine, plan, statement, around)
        if done is not None:
            return done
    return None


def tensorised(schedule: Schedule) -> Schedule:
    """The schedule with every vectorised nest that means an instruction of the machine given to it."""
    machine = schedule.machine
    if not isinstance(machine, CpuMachine):
        return schedule
    body = schedule.program.body
    done_before = {id(n) for instruction in instructions(body) for n in walk(instruction)}
    for loop in [n for n in walk(body) if isinstance(n, Loop) and id(n) not in done_before]:
        if loop.kind != "vectorized" or not isinstance(loop.body, Loop):
            continue
        for row in machine.dot_products:
            if loop.extent == row.lanes and loop.body.extent == row.group:
                done = schedule.attempt(Tensorize(loop.variable, row.name))
                if done is not None:
                    schedule = done
                    break
    return schedule


# -- what fits ---------------------------------------------------------------------------------------------------------
def _plans(
    schedule: Schedule, machine: CpuMachine, found: Compute, around: tuple[Loop, ...], kinds: dict[str, str],
    packable: frozenset[str],
) -> Iterator[_Plan]:  # fmt: skip
    factors = _factors(found)
    if factors is None:
        return
    wide = found.values[0].dtype
    for spread, vector in (factors, factors[::-1]):
        lanes = _only_loop(around, vector, spread, kinds, "independent")
        groups = _shared_loop(around, vector, spread, found, kinds)
        if lanes is None or groups is None or vector.buffer not in packable or lanes.extent.value is None:
            continue
        if len(readers_of(schedule.program, vector.buffer)) != 1:
            continue
        rows = _only_loop(around, spread, vector, kinds, "independent")
        for row in machine.dot_products:
            fits = row.memory[1] == vector.dtype and row.result == wide and holds(row.memory[0], spread.dtype)
            if not fits or row.lanes != machine.lanes(row.result.bits):
                continue
            if not (row.exact or schedule.numerics.reassociate):
                continue
            plan = _Plan(row, spread, vector, groups, lanes, rows)
            if plan.widens and rows is None:
                continue
            if int(lanes.extent) * 2 >= row.lanes and int(groups.extent) >= 2 * row.group:
                yield plan


def _factors(found: Compute) -> tuple[Load, Load] | None:
    """The two loads whose product a statement sums."""
    if found.reducer is None or found.reducer.name != "sum" or not found.reduction or len(found.values) != 1:
        return None
    product = found.values[0]
    if not (isinstance(product, Call) and product.function == "multiply"):
        return None
    first, second = map(_load, product.arguments)
    return None if first is None or second is None or first.buffer == second.buffer else (first, second)


def _load(value: Expression) -> Load | None:
    if isinstance(value, Call) and value.function == "cast":
        (value,) = value.arguments
    return value if isinstance(value, Load) else None


def _place(load: Load, variable: str) -> int | None:
    """The one dimension whose index is this loop's variable and what other loops add to it; None where there is none
    such.
    """
    places = [d for d, entry in enumerate(load.index) if variable in entry.names()]
    if len(places) != 1:
        return None
    entry = load.index[places[0]]
    return places[0] if entry.affine_in({variable}) and entry.coefficient(variable) == 1 else None


def _only_loop(around: tuple[Loop, ...], moved: Load, still: Load, kinds: dict[str, str], wanted: str) -> Loop | None:
    """The longest loop that moves one load along one dimension and not the other."""
    best: Loop | None = None
    for loop in around:
        name = loop.variable
        if kinds[name] != wanted or loop.extent == 1 or any(name in entry.names() for entry in still.index):
            continue
        if _place(moved, name) is None:
            continue
        if best is None or _length(loop.extent) > _length(best.extent):
            best = loop
    return best


def _length(extent: Dim) -> tuple[bool, int]:
    """How long a loop is taken to be: longer than a short one, if its extent is a symbol, and no longer than it."""
    return (extent.value is None or extent.value > SHORT, 0 if extent.value is None else extent.value)


def _shared_loop(
    around: tuple[Loop, ...], vector: Load, spread: Load, found: Compute, kinds: dict[str, str]
) -> Loop | None:
    """The longest reduction loop along which both operands are read, the spread one element after element."""
    best: Loop | None = None
    for loop in around:
        name, extent = loop.variable, loop.extent.value
        if name not in found.reduction or kinds[name] != "reduction" or extent is None:
            continue
        if _place(vector, name) is None or _place(spread, name) != len(spread.index) - 1:
            continue
        if best is None or extent > int(best.extent):
            best = loop
    return best


# -- how it is arranged ------------------------------------------------------------------------------------------------
def _arranged(
    schedule: Schedule, machine: CpuMachine, plan: _Plan, statement: str, around: tuple[Loop, ...]
) -> Schedule | None:
    row, lanes, groups = plan.row, plan.lanes.variable, plan.groups.variable
    pieces = -(-int(plan.lanes.extent) // row.lanes)
    spare = 0 if row.accumulates else 1  # a product waits for its addition
    able = replace(machine, vector_registers=machine.vector_registers - spare, fma_pipes=max(1, int(row.rate)))
    rows, vectors = tile_sizes(able, 1 if plan.rows is None else plan.rows.extent.value, pieces)
    found = schedule.setting.statement(statement)
    order = [loop.variable for loop in around if loop.variable not in (lanes, groups)]
    free = [v for v in order if v not in found.reduction]
    reductions = order_of_sums(schedule, found, tuple(n for n in around if n.variable in found.reduction))
    reductions.remove(groups)
    reductions.append(f"{groups}.group")
    steps: list[Primitive] = [
        Split(groups, row.group, f"{groups}.group", f"{groups}.inner"),
        Split(lanes, row.lanes, f"{lanes}.outer", f"{lanes}.lanes", tail="mask"),
    ]
    block, inside = f"{lanes}.outer", list[str]()
    if vectors > 1:
        steps.append(Split(block, vectors, f"{lanes}.block", f"{lanes}.vector"))
        block, inside = f"{lanes}.block", [f"{lanes}.vector"]
    tall = "" if plan.rows is None else plan.rows.variable
    if rows > 1:
        steps.append(Split(tall, rows, f"{tall}.block", f"{tall}.row"))
        inside.insert(0, f"{tall}.row")
        free = [f"{v}.block" if v == tall else v for v in free]
        tall = f"{tall}.block"
    free.append(block)
    cut = _all(schedule, steps)
    if cut is None:
        return None
    whole = int(plan.groups.extent) % row.group == 0
    if whole and plan.rows is not None and not plan.widens:
        tiles = Tiles(around, plan.rows.variable, lanes, rows, vectors * row.lanes, tall, block, in_order=True)
        cut, free, reductions = in_blocks(cut, found, tiles, free, reductions)
    inner = f"{groups}.inner"
    steps = [Reorder(*free, *reductions, *inside, f"{lanes}.lanes", inner)]
    steps += [*map(Unroll, (*inside, inner)), Vectorize(f"{lanes}.lanes")]
    steps.append(CacheWrite(statement, free[-1], f"{statement}.cells"))
    steps.append(TransformLayout(plan.vector.buffer, str(_layout(plan, vectors))))
    done = _all(cut, steps)
    if done is not None and plan.widens:
        done = wide_rows(done, plan.spread, row.memory[0], tall)
    return done if done is None or whole else done.attempt(Partition(f"{groups}.group"))


def _all(schedule: Schedule, steps: list[Primitive]) -> Schedule | None:
    for step in steps:
        done = schedule.attempt(step)
        if done is None:
            return None
        schedule = done
    return schedule


def _layout(plan: _Plan, vectors: int) -> Layout:
    """Blocks of columns, whatever else there is, groups of the reduction, the columns of a block, the group."""
    columns, depth = _place(plan.vector, plan.lanes.variable), _place(plan.vector, plan.groups.variable)
    assert columns is not None
    assert depth is not None
    rank = len(plan.vector.index)
    others = [Part(d) for d in range(rank) if d not in (columns, depth)]
    blocks = (Part(columns, plan.row.lanes * vectors), Part(depth, plan.row.group))
    return Layout(rank, (Part(columns), *others, Part(depth), *blocks))
