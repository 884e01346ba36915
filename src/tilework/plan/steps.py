"""The steps of a plan. Each names a queue, the events it waits for and the events it signals when it is done.

Steps of a queue run in the order of the plan. A control step (`Branch`, `Repeat`) stands in its own queue and in every
queue that a step inside it names: it starts when all of those have reached it, and they go on when it is done. A trip
of a `Repeat` starts when the one before is done. An event is signalled by one step, and is seen by later steps of the
same list and of lists inside them; inside a `Repeat`, once a trip.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from tilework.dims import Dim
from tilework.fast_dataclass import dataclass
from tilework.loops.program import LoopProgram
from tilework.plan.guard import Guard
from tilework.plan.protocols import BlackBox
from tilework.plan.signature import KernelSignature


@dataclass(frozen=True, eq=False)
class KernelStep:
    """A generated kernel. `arguments` are plan buffers, one per buffer of the signature, workspaces included; `symbols`
    are the values of the signature's symbols, in terms of the plan's. `meaning` is the loop program that it computes:
    its arguments are buffers of the signature by name. `origin` is the user's own name for it, used in messages;
    `fault_origins` are those of its faults, by their number, where they differ; `fault_reasons` say what went wrong.
    """

    name: str
    kernel: KernelSignature
    arguments: tuple[str, ...]
    symbols: tuple[Dim, ...]
    meaning: LoopProgram
    queue: str = "main"
    waits: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()
    origin: str = ""
    fault_origins: tuple[str, ...] = ()
    fault_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class LibraryStep:
    """A call of `function` in a `library`, otherwise as a `KernelStep`."""

    name: str
    library: str
    function: str
    kernel: KernelSignature
    arguments: tuple[str, ...]
    symbols: tuple[Dim, ...]
    meaning: LoopProgram
    queue: str = "main"
    waits: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()
    origin: str = ""


@dataclass(frozen=True, eq=False)
class CopyStep:
    """Copy all elements of `source` to `target`: the same type and number of elements, in any two spaces."""

    name: str
    source: str
    target: str
    queue: str = "main"
    waits: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()
    origin: str = ""


@dataclass(frozen=True)
class Extent:
    """Binds a measured symbol to the extent of a black box's result number `output` along `dimension`."""

    symbol: str
    output: int
    dimension: int


@dataclass(frozen=True, eq=False)
class BlackBoxStep:
    """A black box on plan buffers. `measures` bind symbols to extents of its results; outputs whose shape needs one are
    allocated by this step. Boxes that are `ordered` have effects, and happen in the order of the plan.
    """

    name: str
    box: BlackBox
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    measures: tuple[Extent, ...] = ()
    ordered: bool = False
    queue: str = "main"
    waits: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()
    origin: str = ""


@dataclass(frozen=True)
class Reading:
    """Binds a measured symbol to the integer (or boolean) element number `element` of a buffer."""

    symbol: str
    buffer: str
    element: int = 0


@dataclass(frozen=True)
class Sized:
    """Binds a measured symbol to what an expression of symbols is worth when the step runs: `rows` to `rows + 1`."""

    symbol: str
    value: Dim


@dataclass(frozen=True, eq=False)
class Allocate:
    """Bind measured symbols to values that earlier steps have computed, then allocate the `buffers` (measured places
    and outputs) whose sizes need them. A value outside its symbol's bounds ends the call. With `keep` the buffers hold
    what they held before, as many bytes of it as still fit; otherwise their contents are undefined.
    """

    name: str
    readings: tuple[Reading | Sized, ...]
    buffers: tuple[str, ...] = ()
    keep: bool = False
    queue: str = "main"
    waits: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()
    origin: str = ""


@dataclass(frozen=True, eq=False)
class Carry:
    """Hand values on under new extents: bind the symbols of `sizes` (all expressions are evaluated before any symbol is
    bound), allocate the targets whose sizes steps measure, and copy each source of `pairs` to its target. The extents
    of a source are taken from before, those of a target from after. No source is the memory of a target.
    """

    name: str
    pairs: tuple[tuple[str, str], ...]
    sizes: tuple[Sized, ...] = ()
    queue: str = "main"
    waits: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()
    origin: str = ""


@dataclass(frozen=True, eq=False)
class Check:
    """End the call with the error `code`, and the message of the first guard that does not hold."""

    name: str
    guards: tuple[Guard, ...]
    code: int = 1803
    queue: str = "main"
    waits: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()
    origin: str = ""


@dataclass(frozen=True, eq=False)
class Branch:
    """Run `then` if the only element of the boolean `predicate` is true, else `otherwise`."""

    name: str
    predicate: str
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...] = ()
    queue: str = "main"
    waits: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()
    origin: str = ""


@dataclass(frozen=True, eq=False)
class Repeat:
    """Run `body` while fewer than `trips` have run (None: no limit) and the only element of the boolean `condition` is
    true (empty name: no condition; looked at before each trip). `iteration` is the name under which symbol values in
    the body see the number of the trip, from 0 (empty: they do not).
    """

    name: str
    body: tuple[Step, ...]
    trips: Dim | None = None
    condition: str = ""
    iteration: str = ""
    queue: str = "main"
    waits: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()
    origin: str = ""


Step: TypeAlias = KernelStep | LibraryStep | CopyStep | BlackBoxStep | Allocate | Carry | Check | Branch | Repeat


@dataclass(frozen=True)
class Touch:
    """What a step itself (not the steps inside it) does to one buffer."""

    buffer: str
    reads: bool
    writes: bool


def touches(step: Step) -> tuple[Touch, ...]:
    """What a step itself does to buffers, each access once. (The condition of a `Repeat` is read here too.)"""
    match step:
        case KernelStep() | LibraryStep():
            pairs = zip(step.arguments, step.kernel.buffers, strict=False)
            return tuple(Touch(name, k.access in ("read", "accumulate"), k.access != "read") for name, k in pairs)
        case CopyStep():
            return Touch(step.source, True, False), Touch(step.target, False, True)
        case BlackBoxStep():
            read = (Touch(name, True, False) for name in step.inputs)
            return (*read, *(Touch(name, False, True) for name in step.outputs))
        case Allocate():
            return (
                *(Touch(reading.buffer, True, False) for reading in step.readings if isinstance(reading, Reading)),
                *(Touch(name, False, True) for name in step.buffers if step.keep),  # what is kept was written before
            )
        case Carry():
            read = (Touch(source, True, False) for source, _ in step.pairs)
            return (*read, *(Touch(target, False, True) for _, target in step.pairs))
        case Check():
            return ()
        case Branch():
            return (Touch(step.predicate, True, False),)
        case Repeat():
            return (Touch(step.condition, True, False),) if step.condition else ()


def bodies(step: Step) -> tuple[tuple[str, tuple[Step, ...]], ...]:
    """The named lists of steps inside a control step."""
    match step:
        case Branch():
            return ("then", step.then), ("else", step.otherwise)
        case Repeat():
            return (("body", step.body),)
        case _:
            return ()


def walk(steps: tuple[Step, ...], prefix: str = "") -> Iterator[tuple[str, Step]]:
    """Every step with its path (`"3"`, `"3.then.0"`), outer before inner, in the order of the plan."""
    for position, step in enumerate(steps):
        where = f"{prefix}{position}"
        yield where, step
        for arm, body in bodies(step):
            yield from walk(body, f"{where}.{arm}.")


def queues_of(step: Step) -> tuple[str, ...]:
    """The queues that a step stands in: its own, and those of all steps inside it."""
    found = {step.queue: None}
    for _, body in bodies(step):
        for inner in body:
            found.update(dict.fromkeys(queues_of(inner)))
    return tuple(found)


def measured_by(step: Step) -> tuple[str, ...]:
    """Symbols that a step itself binds."""
    match step:
        case Allocate():
            return tuple(reading.symbol for reading in step.readings)
        case Carry():
            return tuple(size.symbol for size in step.sizes)
        case BlackBoxStep():
            return tuple(extent.symbol for extent in step.measures)
        case _:
            return ()
