"""The rules of index notation: every fault of a computation at once."""

from __future__ import annotations

from collections.abc import Iterable

from tilework.compute.notation import Axis, Computation, Stage
from tilework.compute.plain import plain_program
from tilework.compute.reads import reads_of
from tilework.dims import Bounds, Dim, FloorDiv, Mod, dim, symbol_bounds
from tilework.errors import Fault, TileworkError, VerificationError
from tilework.loops.verify import faults_of as program_faults


def verify(computation: Computation) -> None:
    """Raise `VerificationError` with every fault of the computation; nothing where it has none.

    Codes 1350 (names), 1351 (scans), 1353 (writes that may meet), 1354 (order of stages), and those of loop programs
    (types, indices, ranges, reducers) for its default nest.
    """
    faults = faults_of(computation)
    if faults:
        raise VerificationError(f"computation {computation.name}", faults)


def faults_of(computation: Computation) -> list[Fault]:
    """Every fault of the computation."""
    faults = [*_names(computation), *_order(computation)]
    bounds = symbol_bounds(computation.symbols)
    for stage in computation.stages:
        faults += [*_shape(stage), *_scan(stage), *_unique_writes(stage, bounds)]
    if any(fault.code in (1350, 1351) for fault in faults):
        return faults  # there is no nest to look at
    try:
        faults += program_faults(plain_program(computation))
    except TileworkError as error:
        faults.append(Fault(error.code, error.where or computation.name, error.message))
    return faults


def _names(computation: Computation) -> Iterable[Fault]:
    seen: dict[str, str] = {}
    parts = [("symbol", s.name) for s in computation.symbols]
    parts += [("axis", a.name) for stage in computation.stages for a in stage.axes]
    for kind, name in parts:
        if name in seen:
            yield Fault(1350, f"{kind} {name}", f"a {seen[name]} has this name already")
        seen.setdefault(name, kind)
    names = [stage.name for stage in computation.stages]
    for name in dict.fromkeys(n for n in names if names.count(n) > 1):
        yield Fault(1350, f"stage {name}", "two stages have this name")
    buffers: dict[str, object] = {}
    listed = [*computation.inputs, *computation.outputs, *(t for stage in computation.stages for t in stage.targets)]
    for buffer in listed:
        if buffers.setdefault(buffer.name, buffer) != buffer:
            yield Fault(1350, f"buffer {buffer.name}", "two different buffers have this name")
    for group in (computation.inputs, computation.outputs):
        for number, buffer in enumerate(group):
            if buffer in group[:number]:
                yield Fault(1350, f"buffer {buffer.name}", "it is listed twice")


def _order(computation: Computation) -> Iterable[Fault]:
    """Stages read what exists: an input, an output or temporary that an earlier stage wrote."""
    written = {buffer.name for buffer in computation.inputs}
    outputs = {buffer.name for buffer in computation.outputs}
    anywhere = written | outputs | {t.name for stage in computation.stages for t in stage.targets}
    for stage in computation.stages:
        own = {target.name for target in stage.targets}
        recurrence = own if stage.reducer is None and any(axis.kind == "scan" for axis in stage.axes) else set[str]()
        for name in sorted(reads_of(stage) - written - recurrence):
            if name not in anywhere:
                yield Fault(1350, f"stage {stage.name}", f"it reads {name}, which is no input and no stage's target")
            elif name not in outputs or name not in own or stage.init is not None:
                yield Fault(1354, f"stage {stage.name}", f"it reads {name}, which no earlier stage has written")
        if stage.reducer is not None and stage.init is None:
            for name in sorted(own - written - outputs):
                yield Fault(1354, f"stage {stage.name}", f"it adds to {name}, which no earlier stage has written")
        written |= own
    for name in sorted(outputs - written):
        yield Fault(1354, f"output {name}", "no stage writes it")


def _shape(stage: Stage) -> Iterable[Fault]:
    where = f"stage {stage.name}"
    if not stage.targets:
        yield Fault(1350, where, "it has no target")
    if len(stage.values) != len(stage.targets):
        yield Fault(1350, where, f"it has {len(stage.values)} values for {len(stage.targets)} targets")
    if stage.init is not None and stage.reducer is None:
        yield Fault(1351, where, "it has an init and no reducer")
    if stage.reducer is None and stage.reduction_axes:
        yield Fault(1353, where, "it has reduction axes and no reducer")
    reduction = {axis.name for axis in stage.reduction_axes}
    if stage.init is not None and any(i.names() & reduction for i in stage.where):
        yield Fault(1353, where, "an init belongs to elements that no reduction axis chooses")
    if stage.init is not None and any(i.loads() for i in stage.where):
        yield Fault(1353, where, "an init belongs to elements that no data choose (a scatter has none)")


def _scan(stage: Stage) -> Iterable[Fault]:
    where = f"stage {stage.name}"
    scans = [axis for axis in stage.axes if axis.kind == "scan"]
    if stage.exclusive and (not scans or stage.reducer is None):
        yield Fault(1351, where, "only a scan with a reducer can be exclusive")
    if not scans or stage.reducer is None:
        return
    if len(scans) > 1:
        yield Fault(1351, where, f"it has {len(scans)} scan axes; one is the limit")
    if stage.reduction_axes:
        yield Fault(1351, where, "a scan has no reduction axes")
    if stage.init is None:
        yield Fault(1351, where, "a scan needs an init")
    if {target.name for target in stage.targets} & reads_of(stage):
        yield Fault(1351, where, "a scan with a reducer does not read its target")


def _unique_writes(stage: Stage, symbols: Bounds) -> Iterable[Fault]:
    """A statement without a reducer (or whose init is stored per element) writes each element once."""
    if stage.reducer is not None and stage.init is None:
        return
    axes = [axis for axis in stage.axes if axis.kind != "reduction"]
    if not injective(stage.where, axes, symbols):
        index = ", ".join(map(str, stage.where))
        yield Fault(1353, f"stage {stage.name}", f"[{index}] may be one element at two points of its axes")


def injective(index: tuple[Dim, ...], axes: list[Axis], symbols: Bounds) -> bool:
    """Whether different points of the axes provably have different indices; False where it cannot be shown.

    Entries are used one after another: an entry that depends on axes not yet known, as a sum whose strides nest within
    each other (i*8 + j with j < 8), or as quotient and remainder of one sum by one divisor, makes those axes known.
    """
    bounds = dict(symbols)
    for axis in axes:
        bounds[axis.name] = (0, max(0, axis.extent.bounds(bounds)[1] - 1))
    # an axis of one point needs no telling apart
    unknown = {axis.name for axis in axes if axis.extent != 1}
    extents = {axis.name: axis.extent for axis in axes}
    entries = [*index, *_joined(index)]
    progress = True
    while unknown and progress:
        progress = False
        for entry in entries:
            free = entry.names() & unknown
            if free and not entry.loads() and _tells_apart(entry, free, extents, bounds):
                unknown -= free
                progress = True
    return not unknown


def _joined(index: tuple[Dim, ...]) -> list[Dim]:
    """Values that are known because both their quotient and their remainder by one divisor are entries."""
    found: list[Dim] = []
    divided = {(a.numerator, a.denominator) for e in index for a in _only_atom(e) if isinstance(a, FloorDiv)}
    for entry in index:
        for atom in _only_atom(entry):
            if isinstance(atom, Mod) and any(_same_division(atom, above, below) for above, below in divided):
                found.extend(above for above, below in divided if _same_division(atom, above, below))
    return found


def _only_atom(entry: Dim) -> list[object]:
    plain = len(entry.terms) == 1 and entry.terms[0][1] == 1 and len(entry.terms[0][0]) == 1 and entry.constant == 0
    return [entry.terms[0][0][0]] if plain else []


def _same_division(atom: Mod, above: Dim, below: Dim) -> bool:
    return below == atom.modulus and above % below == Dim((((atom,), 1),))


def _tells_apart(entry: Dim, free: frozenset[str], extents: dict[str, Dim], bounds: Bounds) -> bool:
    """Whether a sum of known parts and strided axes has one value per point of those axes."""
    strides: dict[str, Dim] = {}
    for monomial, coefficient in entry.terms:
        inside = [atom for atom in monomial if isinstance(atom, str) and atom in free]
        if not inside:
            if Dim(((monomial, coefficient),)).names() & free:
                return False
            continue
        if len(inside) > 1 or inside[0] in strides:
            return False
        rest = list(monomial)
        rest.remove(inside[0])
        strides[inside[0]] = Dim(((tuple(rest), coefficient),)) if rest else dim(coefficient)
    if frozenset(strides) != free:
        return False
    if len(free) == 1:
        low, high = next(iter(strides.values())).bounds(bounds)
        return low > 0 or high < 0
    # smallest stride first: each stride must step over everything that the smaller ones reach
    if any(s.bounds(bounds)[0] <= 0 for s in strides.values()):
        return False
    left = dict(strides)
    reach = dim(0)
    while left:
        name = next((n for n, s in left.items() if (s - reach).bounds(bounds)[0] > 0 and _least(n, left, bounds)), None)
        if name is None:
            return False
        reach = reach + left.pop(name) * (extents[name] - 1)
    return True


def _least(name: str, strides: dict[str, Dim], bounds: Bounds) -> bool:
    return all((other - strides[name]).bounds(bounds)[0] >= 0 for other in strides.values())
