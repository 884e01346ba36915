"""The slow, obvious way to run a loop program: the oracle of everything above it.

Values are computed element by element in their own types. Whatever compiled code may leave undefined is an error here:
reading an element nobody wrote, indices out of bounds, parallel iterations that touch the same element.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, TypeAlias, cast

import numpy as np

from tilework.dims import Dim
from tilework.dtypes import DType, dtype_of
from tilework.errors import LoopProgramError, RunError
from tilework.fast_dataclass import dataclass
from tilework.loops.interpret_emitter import Held, Site
from tilework.loops.interpret_source import Source
from tilework.loops.interpret_values import held_type
from tilework.loops.program import Argument, LoopProgram
from tilework.loops.scalar_values import round_float

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
_NO_SYMBOLS: Mapping[str, int] = {}


def interpret(
    program: LoopProgram,
    arrays: Mapping[str, Array],
    symbols: Mapping[str, int] = _NO_SYMBOLS,
    *,
    precise: bool = False,
    seed: int = 0,
) -> None:
    """Run a program; `arrays` (by argument buffer name, of the buffers' shapes and types) are changed in place.

    Symbols without a value take it from the arrays' shapes. `precise` computes every floating type in float64 (floating
    arrays may then be float64 too): what a bound on rounding errors is measured against. `seed` chooses the order in
    which parallel iterations run. Arrays are changed only if the run ends without an error; two arguments may be the
    very same array, but not overlap otherwise.

    Guards are tested in two rounds, those without loaded elements first, and only if all of them hold the others in
    order. Every load of a statement that runs is carried out, in both branches of a `select` too.

    Raises `LoopProgramError` 1310 (arrays or symbols do not fit), 1311 (index out of bounds), 1312 (element nobody
    wrote), 1313 (race), 1314 (barrier that not all threads reach), 1315 (divisor not positive), and `RunError` 1801
    (an index made from loaded elements is out of range).
    """
    values = _bind(program, arrays, symbols)
    source = Source(program, values, precise)
    lists: dict[int, list[Any]] = {}
    names: dict[str, list[Any]] = {}
    for argument in program.arguments:
        array = arrays[argument.buffer.name]
        key = _identity(array)
        if key not in lists:
            held = held_type(argument.buffer.dtype, precise).numpy
            lists[key] = list(array.astype(held).reshape(-1))
        names[argument.buffer.name] = lists[key]
    shared = {id(names[a.buffer.name]) for a in program.arguments if a.access != "write"}
    for argument in program.arguments:
        content = names[argument.buffer.name]
        if id(content) not in shared:
            content[:] = [None] * len(content)
    monitor = Monitor(source.sites, source.held, seed)
    main = source.compiled(monitor)
    with np.errstate(all="ignore"):
        main(*(names[argument.buffer.name] for argument in program.arguments))
    for argument in program.arguments:
        if argument.access != "read":
            held = held_type(argument.buffer.dtype, precise)
            _give_back(arrays[argument.buffer.name], names[argument.buffer.name], held)


def bind_symbols(
    program: LoopProgram, shapes: Mapping[str, tuple[int, ...]], symbols: Mapping[str, int] = _NO_SYMBOLS
) -> dict[str, int]:
    """The value of every symbol: those given, and those that are a whole dimension of an argument.

    Raises `LoopProgramError` 1310 where one is missing, contradicted, out of its bounds, or no integer of 64 bits.
    """
    values = _symbol_values(program, symbols)
    for argument in program.arguments:
        shape = shapes.get(argument.buffer.name)
        if shape is None or len(shape) != len(argument.buffer.shape):
            continue
        for extent, size in zip(argument.buffer.shape, shape, strict=True):
            name = _plain_name(extent)
            if name is not None:
                values.setdefault(name, size)
    for symbol in program.symbols:
        value = values.get(symbol.name)
        if value is None:
            raise LoopProgramError(1310, f"symbol {symbol.name} has no value", where=program.name)
        low, high = symbol.bounds
        if not low <= value <= high or value % symbol.multiple:
            raise LoopProgramError(1310, f"{symbol.name} = {value}, but {symbol}", where=program.name)
    return values


def _symbol_values(program: LoopProgram, symbols: object) -> dict[str, int]:
    """The values given, as integers: 1.5 is not cut to 1."""
    hint = "give a dictionary of whole numbers, as {'N': 1000}"
    if not isinstance(symbols, Mapping):
        text = f"symbols are given as a {type(symbols).__name__}"
        raise LoopProgramError(1310, text, where=program.name, hint=hint)
    values: dict[str, int] = {}
    for name, value in cast("Mapping[str, Any]", symbols).items():
        try:
            values[name] = operator.index(value)
        except TypeError:
            raise LoopProgramError(1310, f"{name} = {value!r} is no integer", where=program.name, hint=hint) from None
        if isinstance(value, bool) or abs(values[name]) >= 1 << 63:
            text = f"{name} = {value!r} is no extent of 64 bits"
            raise LoopProgramError(1310, text, where=program.name, hint=hint)
    return values


def _plain_name(extent: Dim) -> str | None:
    names = extent.names()
    return next(iter(names)) if len(names) == 1 and extent == Dim((((next(iter(names)),), 1),)) else None


def _bind(program: LoopProgram, arrays: Mapping[str, Array], symbols: Mapping[str, int]) -> dict[str, int]:
    missing = [a.buffer.name for a in program.arguments if a.buffer.name not in arrays]
    if missing:
        raise LoopProgramError(1310, f"no array is given for {', '.join(missing)}", where=program.name)
    values = bind_symbols(program, {name: array.shape for name, array in arrays.items()}, symbols)
    for argument in program.arguments:
        array = arrays[argument.buffer.name]
        shape = tuple(int(extent.evaluate(values)) for extent in argument.buffer.shape)
        if array.shape != shape:
            raise LoopProgramError(
                1310, f"{argument.buffer.name} has shape {array.shape}, not {shape}", where=program.name
            )
        dtype = argument.buffer.dtype
        if array.dtype != dtype.numpy and not (dtype.is_floating and array.dtype == np.float64):
            raise LoopProgramError(1310, f"{argument.buffer.name} holds {array.dtype}, not {dtype}", where=program.name)
    _check_overlap(program.arguments, arrays)
    return values


def _identity(array: Array) -> int:
    if not array.size:
        return id(array)
    return hash((array.__array_interface__["data"][0], array.shape, array.strides, str(array.dtype)))


def _check_overlap(arguments: tuple[Argument, ...], arrays: Mapping[str, Array]) -> None:
    for number, first in enumerate(arguments):
        for second in arguments[number + 1 :]:
            a, b = arrays[first.buffer.name], arrays[second.buffer.name]
            changed = (first.access, second.access) != ("read", "read")
            if changed and _identity(a) != _identity(b) and np.may_share_memory(a, b) and np.shares_memory(a, b):
                raise LoopProgramError(1310, f"{first.buffer.name} and {second.buffer.name} overlap in memory")


def _give_back(array: Array, content: list[Any], held: DType) -> None:
    written = [(i, v) for i, v in enumerate(content) if v is not None]
    if not written:
        return
    values = np.array([v for _, v in written], dtype=held.numpy)
    if array.dtype != held.numpy:
        values = round_float(values, dtype_of(array)) if held.is_floating else values.astype(array.dtype)
    if len(written) == array.size:
        array[...] = np.asarray(values).reshape(array.shape)
    else:
        for (place, _), value in zip(written, values, strict=True):
            array[np.unravel_index(place, array.shape)] = value


@dataclass
class _Copy:
    target: list[Any]
    place: int
    source: list[Any]
    taken: int
    value: Any


class Monitor:
    """What a running program calls: faults, orders, barriers, copies in flight."""

    def __init__(self, sites: list[Site], held: list[Held], seed: int) -> None:
        self._sites = sites
        self._held = held
        self._random = random.Random(seed)
        self._flights: dict[tuple[Any, ...], list[_Copy]] = {}

    def shuffled(self, extent: int) -> list[int]:
        """The iterations of a parallel loop in some order."""
        order = list(range(extent))
        self._random.shuffle(order)
        return order

    def _where(self, site: Site, values: tuple[int, ...]) -> str:
        at = ", ".join(f"{name} = {value}" for name, value in zip(site.loops, values, strict=True))
        return f"statement {site.statement}" + (f" at {at}" if at else "")

    def outside(self, number: int, index: tuple[int, ...], shape: tuple[int, ...], values: tuple[int, ...]) -> NoReturn:
        site = self._sites[number]
        text = f"{site.buffer}[{', '.join(map(str, index))}] is outside its shape [{', '.join(map(str, shape))}]"
        if site.loaded:
            raise RunError(1801, text, where=self._where(site, values))
        raise LoopProgramError(1311, text, where=self._where(site, values))

    def unwritten(self, number: int, place: int, values: tuple[int, ...]) -> NoReturn:
        site = self._sites[number]
        raise LoopProgramError(
            1312, f"element {place} of {site.buffer} is read, and nothing wrote it", where=self._where(site, values)
        )

    def race(self, number: int, place: int, variable: str, values: tuple[int, ...]) -> NoReturn:
        site = self._sites[number]
        raise LoopProgramError(
            1313, f"iterations of {variable} touch the same element {place} of {site.buffer}, one of them writing it",
            where=self._where(site, values),
        )  # fmt: skip

    def positive(self, value: int) -> int:
        if value <= 0:
            raise LoopProgramError(1315, f"an index divides by {value}")
        return value

    def start_copy(self, key: tuple[Any, ...], target: list[Any], place: int, source: list[Any], taken: int) -> None:
        """The element is undefined from now until it arrives, as late as the waits allow."""
        self._flights.setdefault(key, []).append(_Copy(target, place, source, taken, source[taken]))
        target[place] = None

    def wait(self, key: tuple[Any, ...], pending: int) -> None:
        flights = self._flights.get(key, [])
        while len(flights) > pending:
            copy = flights.pop(0)
            if copy.source[copy.taken] is not copy.value or copy.target[copy.place] is not None:
                raise LoopProgramError(
                    1313, f"a copy of group {key[0]} has its source or target written before it arrives"
                )
            copy.target[copy.place] = copy.value

    def rounds(
        self, threads: list[Iterator[str]], absorbed: frozenset[str], tables: tuple[dict[int, int], ...]
    ) -> Iterator[str]:
        """Run threads from barrier to barrier; yields the barriers that also concern threads outside."""
        while threads:
            waiting: list[Iterator[str]] = []
            scopes: set[str] = set()
            for number in self.shuffled(len(threads)):
                scope = next(threads[number], None)
                if scope is not None:
                    waiting.append(threads[number])
                    scopes.add(scope)
            if waiting and (len(waiting) < len(threads) or len(scopes) > 1):
                raise LoopProgramError(1314, f"only {len(waiting)} of {len(threads)} threads reach a barrier")
            for table in tables:
                table.clear()
            yield from scopes - absorbed
            threads = waiting

    def drain(self, threads: Iterator[str]) -> None:
        for _ in threads:
            pass
