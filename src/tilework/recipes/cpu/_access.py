"""How statements walk memory: flat addresses, steps along a loop, and layouts that make a step one."""

from __future__ import annotations

from tilework.dims import Atom, Dim, Extreme, FloorDiv, dim
from tilework.layout import Layout, permuted
from tilework.loops.expressions import Load
from tilework.loops.program import Buffer, Compute, Loop, LoopProgram, statements


def flat_address(buffer: Buffer, index: tuple[Dim, ...]) -> Dim:
    """Elements from the start of a buffer to an element."""
    total = dim(0)
    for entry, stride in zip(index, buffer.strides, strict=True):
        total = total + entry * stride
    return total


def addresses(program: LoopProgram, statement: Compute) -> tuple[list[Dim], list[Dim]]:
    """Flat element addresses of the stores and of the loads."""
    buffers = program.buffers
    stores = [flat_address(buffers[t.buffer], t.index) for t in statement.targets]
    loads = [flat_address(buffers[load.buffer], load.index) for load in loads_of(statement)]
    return stores, loads


def step_along(address: Dim, variable: str) -> int | None:
    """The flat step along a loop; None where the address is not affine in it or the step is symbolic."""
    if variable not in address.names():
        return 0
    if not address.affine_in({variable}):
        return None
    return address.coefficient(variable) or None


def divides_along(address: Dim, variable: str, lanes: int) -> bool:
    """Whether neighbouring lanes read elements near each other because a loop is divided: x[i // 2], at an edge kept
    inside by a minimum or maximum. The lanes have to be a multiple of the divisor: all vectors are alike then.
    """
    divided = False
    for monomial, coefficient in address.terms:
        atoms = [atom for atom in monomial if variable in dim_of(atom).names()]
        if not atoms or atoms == [variable]:
            continue
        if len(monomial) > 1 or coefficient != 1:
            return False
        (atom,) = atoms
        if isinstance(atom, Extreme):
            moving = [argument for argument in atom.arguments if variable in argument.names()]
            if len(moving) != 1 or not divides_along(moving[0], variable, lanes):
                return False
        elif isinstance(atom, FloorDiv):
            by = atom.denominator.value
            if by is None or lanes % by or not 0 < atom.numerator.coefficient(variable) <= by:
                return False
        else:
            return False
        divided = True
    return divided


def dim_of(atom: Atom) -> Dim:
    """An atom as a dim."""
    return Dim((((atom,), 1),))


def reduced_by(statement: Compute, around: tuple[Loop, ...]) -> frozenset[str]:
    """The loops over which a statement combines values: those that it names, or, where it goes on with what is there,
    those that do not move its targets.
    """
    if statement.reducer is None or statement.init is not None:
        return frozenset(statement.reduction)
    moved = {name for target in statement.targets for entry in target.index for name in entry.names()}
    return frozenset(loop.variable for loop in around) - moved


def uses_again(statement: Compute, around: tuple[Loop, ...]) -> bool:
    """Whether a reduction combines elements for several results: a product, or windows that overlap."""
    loops = {loop.variable for loop in around if loop.extent != 1}
    reduced = loops & reduced_by(statement, around)
    free = loops - reduced
    for load in loads_of(statement):
        moved = {name for entry in load.index for name in entry.names()}
        windows = any(entry.names() & reduced and entry.names() & free for entry in load.index)
        if windows or (moved & reduced and free - moved):
            return True
    return False


def loads_of(statement: Compute) -> list[Load]:
    """The elements that a statement reads."""
    return list(statement.loads)


def readers_of(program: LoopProgram, buffer: str) -> list[Load]:
    """Every load of a buffer by a statement's values."""
    return [load for found in statements(program.body) for load in found.loads if load.buffer == buffer]


def packed_layout(program: LoopProgram, load: Load, lane: str, packable: frozenset[str]) -> Layout | None:
    """The layout in which neighbouring lanes read neighbouring elements of a constant; None where there is none."""
    if load.buffer not in packable or any(other.index != load.index for other in readers_of(program, load.buffer)):
        return None
    moved = [position for position, entry in enumerate(load.index) if lane in entry.names()]
    if len(moved) != 1 or load.index[moved[0]].coefficient(lane) != 1 or not load.index[moved[0]].affine_in({lane}):
        return None
    return permuted((*(d for d in range(len(load.index)) if d != moved[0]), moved[0]))


def layouts_for(program: LoopProgram, found: Compute, lane: str, packable: frozenset[str]) -> dict[str, Layout]:
    """The layouts that constants should have for the lanes chosen."""
    wanted: dict[str, Layout] = {}
    for load in loads_of(found):
        if step_along(flat_address(program.buffers[load.buffer], load.index), lane) not in (0, 1):
            layout = packed_layout(program, load, lane, packable)
            if layout is not None:
                wanted[load.buffer] = layout
    return wanted


def buffers_of(statement: Compute) -> set[str]:
    return {target.buffer for target in statement.targets} | {load.buffer for load in loads_of(statement)}
