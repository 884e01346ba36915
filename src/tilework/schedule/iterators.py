"""Iterator kinds: what may be known of a loop from the form of its accesses alone.

A loop is **independent** when different iterations touch different elements of everything that any of them writes
(storage that lives inside an iteration aside). It is a **reduction** when it only combines values through relaxable
reducers. Everything else is **ordered**: its order may matter, and this layer does not find out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from tilework.dims import Dim, FloorDiv, Loaded, Mod, dim
from tilework.loops.program import (
    AsyncCopy,
    AsyncWait,
    Barrier,
    Loop,
    LoopProgram,
    Node,
    Storage,
    statements,
    walk,
)  # fmt: skip
from tilework.schedule.footprint import side_of

IteratorKind = Literal["independent", "reduction", "ordered"]
Element = tuple[Dim, ...]


def kind(program: LoopProgram, loop: Loop, varying: Iterable[str] = ()) -> IteratorKind:
    """The kind of a loop while the loops inside it (and those named in `varying`, outside it) run freely.

    A loop of at most one iteration has no order.
    """
    if loop.extent.value is not None and loop.extent.value <= 1:
        return "independent"
    if any(isinstance(node, (Barrier, AsyncCopy, AsyncWait)) for node in walk(loop.body)):
        return "ordered"
    free = {node.variable: node.extent for node in walk(loop) if isinstance(node, Loop)}
    for name in varying:
        if name not in free and name in program.extents:
            free[name] = program.extents[name]
    written = _written_outside(loop)
    if not written:
        return "independent"
    accesses = _accesses(loop.body)
    buffers = program.buffers
    conflicted = {
        name
        for name in written
        if not separated([e for b, e in accesses if b == name], loop.variable, free, buffers[name].shape)
    }
    if not conflicted:
        return "independent"
    found = list(statements(loop.body))
    for statement in found:
        targets = {target.buffer for target in statement.targets}
        if not targets & conflicted:
            continue
        if not targets <= conflicted:
            return "ordered"  # one result of each iteration would hold a partial result of the others
        relaxable = statement.reducer is not None and statement.reducer.relaxable
        if not relaxable or (statement.init is not None and loop.variable not in statement.reduction):
            return "ordered"
    # a partial result that anybody reads, or that two statements write, has an order
    read = {buffer for buffer, _ in _read_elements(loop.body)}
    for name in conflicted:
        writers = [s for s in found if any(t.buffer == name for t in s.targets)]
        if len(writers) != 1 or name in read:
            return "ordered"
    return "reduction"


def _written_outside(loop: Loop) -> set[str]:
    inside = {node.buffer.name for node in walk(loop.body) if isinstance(node, Storage)}
    return {t.buffer for s in statements(loop.body) for t in s.targets} - inside


def _read_elements(body: Node) -> list[tuple[str, Element]]:
    """Every element that an expression, an index or a guard reads (not a reduction's read of its own target)."""
    found: list[tuple[str, Element]] = []
    for statement in statements(body):
        found.extend((load.buffer, load.index) for load in statement.loads)
        found.extend((load.buffer, load.index) for load in statement.loaded)
    for node in walk(body):
        sizes = (node.extent,) if isinstance(node, Loop) else node.buffer.shape if isinstance(node, Storage) else ()
        found.extend((load.buffer, load.index) for entry in sizes for load in entry.loads())
    return found


def _accesses(body: Node) -> list[tuple[str, Element]]:
    """Every element accessed below: writes and reads."""
    writes = [(t.buffer, t.index) for s in statements(body) for t in s.targets]
    return writes + _read_elements(body)


def separated(elements: Sequence[Element], variable: str, free: dict[str, Dim], shape: Sequence[Dim]) -> bool:
    """Whether equal elements imply equal values of `variable`, over all accesses of one buffer.

    True when one expression, the same in all accesses up to what does not move it, determines the variable; or when
    the boxes of different values lie beside each other in some dimension.
    """
    if not elements:
        return True
    first = elements[0]
    if any(len(e) != len(shape) for e in elements):
        return False
    alike = [_alike(e, first, variable, free) for e in elements[1:]]
    same = [d for d in range(len(first)) if all(d in found for found in alike)]
    if determines([first[d] for d in same], variable, free):
        return True
    inside = {name: extent for name, extent in free.items() if name != variable}
    for d, extent in enumerate(shape):
        side = side_of([e[d] for e in elements], inside, extent)
        if side is None or side.size.value is None or not side.start.affine_in((variable,)):
            continue
        if abs(side.start.coefficient(variable)) >= side.size.value:
            return True
    return False


def _alike(element: Element, first: Element, variable: str, free: dict[str, Dim]) -> set[int]:
    """Dimensions in which two elements are one expression, up to names of other loops over as many iterations.

    Pieces of a loop that was cut walk over the same positions in loops of other names.
    """
    found = {d for d in range(len(first)) if element[d] == first[d]}
    names = {name: name for d in found for name in first[d].names()}
    for d in range(len(first)):
        if d in found:
            continue
        here, there = sorted(element[d].names() - first[d].names()), sorted(first[d].names() - element[d].names())
        if len(here) != 1 or len(there) != 1 or variable in (here[0], there[0]):
            continue
        new, old = here[0], there[0]
        kept = {name: name for name in first[d].names() & element[d].names()}
        wanted = {**kept, new: old}
        together = {**names, **wanted}
        clash = any(names.get(name, to) != to for name, to in wanted.items())
        if clash or len(set(together.values())) != len(together) or free.get(new) is None or free[new] != free.get(old):
            continue
        if element[d].substitute({new: dim(old)}) == first[d]:
            found.add(d)
            names = together
    return found


def determines(index: Sequence[Dim], variable: str, free: dict[str, Dim]) -> bool:
    """Whether the values of the dims fix `variable` while every variable in `free` varies over its extent."""
    known: set[object] = set()
    entries = list(dict.fromkeys(index))
    changed = True
    while changed and variable not in known:
        changed = False
        for entry in entries:
            for atom in _recoverable(entry, known, free):
                if atom not in known:
                    known.add(atom)
                    changed = True
        for atom in list(known):
            # quotient and remainder of one dim by the same number give the dim itself
            if isinstance(atom, FloorDiv) and _remainder(atom) in known and atom.numerator not in entries:
                entries.append(atom.numerator)
                changed = True
    return variable in known


def _recoverable(entry: Dim, known: set[object], free: dict[str, Dim]) -> list[object]:
    """Atoms that the value of one dim fixes: a mixed-radix reading of its terms."""
    terms: list[tuple[int, object, Dim | None]] = []
    for monomial, coefficient in entry.terms:
        if len(monomial) != 1:
            if any(_moves(atom, free) for atom in monomial):
                return []
            continue
        (atom,) = monomial
        if atom in known or not _moves(atom, free):
            continue
        if isinstance(atom, Loaded):
            return []
        terms.append((abs(coefficient), atom, _extent(atom, free)))
    terms.sort(key=lambda term: term[0])
    reach = 0  # the largest value that the smaller terms can make together
    for position, (coefficient, _, extent) in enumerate(terms):
        if coefficient <= reach:
            return []
        if position == len(terms) - 1:
            break
        size = None if extent is None else extent.value
        if size is None:
            return []
        reach += coefficient * max(size - 1, 0)
    return [atom for _, atom, _ in terms]


def _remainder(quotient: FloorDiv) -> object:
    """The remainder that belongs to a quotient, as dims write it: coefficients are reduced by the modulus."""
    found = quotient.numerator % quotient.denominator
    whole = len(found.terms) == 1 and not found.constant and found.terms[0][1] == 1 and len(found.terms[0][0]) == 1
    return found.terms[0][0][0] if whole else Mod(quotient.numerator, quotient.denominator)


def _moves(atom: object, free: dict[str, Dim]) -> bool:
    if isinstance(atom, str):
        return atom in free
    return bool(Dim((((atom,), 1),)).names() & free.keys()) or isinstance(atom, Loaded)  # type: ignore[arg-type]


def _extent(atom: object, free: dict[str, Dim]) -> Dim | None:
    """How many values an atom takes (0 upwards), where that is known."""
    if isinstance(atom, str):
        return free[atom]
    if isinstance(atom, Mod):
        return atom.modulus
    if isinstance(atom, FloorDiv) and atom.denominator.is_constant:
        bounds = {name: (0, math.inf if e.value is None else e.value - 1) for name, e in free.items()}
        low, high = atom.numerator.bounds(bounds)
        if low >= 0 and not math.isinf(high):
            return dim(int(high) // int(atom.denominator) + 1)
        if len(atom.numerator.terms) == 1 and not atom.numerator.constant:
            (monomial, coefficient) = atom.numerator.terms[0]
            if len(monomial) == 1 and isinstance(monomial[0], str) and coefficient == 1 and monomial[0] in free:
                return free[monomial[0]].ceildiv(atom.denominator)
    return None
