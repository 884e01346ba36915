"""Arguments of a call, read the slow way: converted or copied where that is harmless, refused with a code where not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tilework.dims import Dim, Symbol
from tilework.dtypes import DType
from tilework.errors import CallError, OutOfMemoryError
from tilework.fast_dataclass import dataclass, field
from tilework.plan.guard import Guard
from tilework.plan.plan import Binding, PlanInput
from tilework.plan.protocols import Array
from tilework.runtime.call_spec import GateInput, GateSpec
from tilework.runtime.dlpack import array_of

_MOST_NAMED = 12
_NO_COPY = "pass a contiguous, aligned numpy array of the input's type, which needs no copy, or smaller dimensions"


_OTHER_SIZES = "give arguments whose sizes fit, or compile for the shapes of this call (`shapes=`)"


@dataclass(frozen=True)
class WriteBack:
    """A copy that stands for the argument of input number `input`, which the call changes."""

    input: int
    argument: Array
    copy: Array

    def do(self) -> None:
        """Put the copy's elements into the argument."""
        self.argument[...] = self.copy


class Accepted:
    """Arrays that a frame points into, one for each input, and copies to be written back after the call."""

    __slots__ = ("arrays", "write_backs")

    def __init__(self, arrays: tuple[Array, ...], write_backs: tuple[WriteBack, ...] = ()) -> None:
        self.arrays = arrays
        self.write_backs = write_backs


@dataclass
class _Symbols:
    """Values of symbols while arguments are read, and where each came from."""

    values: dict[str, int] = field(default_factory=dict[str, int])
    origin: dict[str, str] = field(default_factory=dict[str, str])


class ArgumentReader:
    """Reads arguments by these rules:

    - A numpy array of the input's type, in this machine's byte order, is taken as it is. Subclasses count as arrays,
      masked arrays are refused (a mask would be lost).
    - A tensor of another library (an object with `__dlpack__`) is taken over its own memory, where that is the
      processor's, and then as an array is.
    - Another object is converted with `numpy.asarray` and counted. An object with an element type of its own (a numpy
      scalar, a tensor) must have the input's; plain Python numbers and nested lists of them take the input's type where
      that loses nothing but precision (integers to floating point, never the other way).
    - An array that is not in C order, or not aligned, is copied and counted, unless the policy refuses that. For an
      input that the call changes, the copy is written back after the call.
    - Everything else is refused: `CallError` 1701 to 1709.
    """

    def __init__(self, spec: GateSpec) -> None:
        self._spec = spec
        self._names = tuple(given.name for given in spec.inputs)
        self._symbols = {symbol.name: symbol for symbol in spec.symbols}
        self._binders = {(binding.position, binding.dimension): binding for binding in spec.bound}

    def order(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> tuple[object, ...]:
        """Arguments by position and name in the order of the inputs. Raises `CallError` 1701."""
        names = self._names
        if len(args) > len(names):
            raise CallError(1701, f"{len(args)} arguments for {len(names)} inputs: {_listed(names)}")
        unknown = [name for name in kwargs if name not in names]
        if unknown:
            raise CallError(1701, f"no input is called {_listed(unknown)}; the inputs are {_listed(names)}")
        twice = [name for name in names[: len(args)] if name in kwargs]
        if twice:
            raise CallError(1701, f"{_listed(twice)} given both by position and by name")
        missing = [name for name in names[len(args) :] if name not in kwargs]
        if missing:
            raise CallError(1701, f"no argument for {_listed(missing)}; the inputs are {_listed(names)}")
        return (*args, *(kwargs[name] for name in names[len(args) :]))

    def read(
        self, arguments: tuple[object, ...], count: Callable[[str, str], None]
    ) -> tuple[Accepted, Mapping[str, int]]:
        """Arrays that can be used as they are, and the values of the symbols. `count(input, reason)` hears of
        changes.
        """
        spec = self._spec
        if len(arguments) != len(spec.inputs):
            raise CallError(1701, f"{len(arguments)} arguments for {len(spec.inputs)} inputs: {_listed(self._names)}")
        arrays = [self._array(given, argument, count) for given, argument in zip(spec.inputs, arguments, strict=True)]
        for given, array in zip(spec.inputs, arrays, strict=True):
            _check_rank(given, array)
        symbols = self._bind(arrays)
        for position, (given, array) in enumerate(zip(spec.inputs, arrays, strict=True)):
            self._check_shape(position, given, array, symbols)
        for guard in spec.guards:
            if not guard.holds(symbols.values):
                raise guard_refusal(guard, symbols.values, spec.inputs, spec.bound)
        write_backs: list[WriteBack] = []
        usable: list[Array] = []
        for position, (given, array) in enumerate(zip(spec.inputs, arrays, strict=True)):
            usable.append(_usable(given, array, count))
            if usable[-1] is not array and given.policy.access == "mutated":
                write_backs.append(WriteBack(position, array, usable[-1]))
        return Accepted(tuple(usable), tuple(write_backs)), symbols.values

    def _array(self, given: GateInput, argument: object, count: Callable[[str, str], None]) -> Array:
        want = given.type.dtype
        kind = type(argument).__name__
        is_array = _is_a(argument, np.ndarray)
        if _is_a(argument, np.ma.MaskedArray):
            raise CallError(1709, f"input {given.name}: a masked array; its mask would be lost", where=given.name)
        tensor = None if is_array or not hasattr(argument, "__dlpack__") else array_of(given.name, argument)
        own_type = tensor is not None or hasattr(argument, "dtype")
        try:
            array: Array = np.asarray(argument) if tensor is None else tensor  # pyright: ignore[reportUnknownMemberType]
            if not own_type and array.dtype != want.numpy and (array.size == 0 or _kind_fits(array.dtype, want)):
                read = array
                array = np.asarray(argument, want.numpy)  # pyright: ignore[reportUnknownMemberType]
                if want.is_integer and not np.array_equal(array.astype(read.dtype), read):
                    raise OverflowError(f"a number does not fit {want}")
        except MemoryError as problem:
            text = f"input {given.name}: there is no memory to convert a {kind}: {problem}"
            raise OutOfMemoryError(1710, text, where=given.name, hint=_NO_COPY) from problem
        except Exception as problem:  # any object may be given, and says no in its own way
            raise CallError(1709, f"input {given.name}: a {kind} is no array: {problem}", where=given.name) from problem
        if array.dtype.kind == "O":
            hint = "for inputs by their names, call with ** before it" if isinstance(argument, Mapping) else ""
            text = f"input {given.name}: a {kind} holds objects, not numbers"
            raise CallError(1709, text, where=given.name, hint=hint)
        if array.dtype != want.numpy:
            native = array.dtype.newbyteorder("=")
            code, what = (1703, "in the other byte order") if native == want.numpy else (1702, "")
            text = f"input {given.name} is {want}, the argument {array.dtype.name} {what}".rstrip()
            raise CallError(code, text, where=given.name)
        if type(argument) is not np.ndarray:
            if not is_array and tensor is None:
                count(given.name, f"converted: a {kind}")
                if given.policy.access == "mutated":
                    raise CallError(
                        1708,
                        f"input {given.name} is changed by the call, so it must be a numpy array",
                        where=given.name,
                    )
            array = array.view(np.ndarray)
        return array

    def _bind(self, arrays: list[Array]) -> _Symbols:
        symbols = _Symbols()
        for (position, axis), binding in self._binders.items():
            given, array = self._spec.inputs[position], arrays[position]
            extent = array.shape[axis]
            symbol = self._symbols.get(binding.symbol, Symbol(binding.symbol))
            value, rest = divmod(extent - binding.addend, binding.factor)
            if rest:
                raise CallError(
                    1705,
                    f"input {given.name}: dimension {axis} is {extent} and must be {given.type.shape[axis]}",
                    where=_shape_text(given),
                )
            low, high = symbol.bounds
            if not low <= value <= high or value % symbol.multiple:
                raise CallError(
                    1707,
                    f"input {given.name}: dimension {axis} is {extent}, which makes {binding.symbol} = {value}; "
                    f"it must be {range_text(symbol)}",
                    where=_shape_text(given),
                )
            symbols.values[binding.symbol] = value
            symbols.origin[binding.symbol] = f"dimension {axis} of input {given.name}"
        return symbols

    def _check_shape(self, position: int, given: GateInput, array: Array, symbols: _Symbols) -> None:
        for axis, (extent, want) in enumerate(zip(array.shape, given.type.shape, strict=True)):
            if (position, axis) in self._binders or want.evaluate(symbols.values) == extent:
                continue
            if want.value is not None:
                raise CallError(
                    1705,
                    f"input {given.name}: dimension {axis} is {extent} and must be {want}; "
                    f"the argument's shape is {array.shape}",
                    where=_shape_text(given),
                )
            raise CallError(1706, _disagreement(given, axis, extent, want, symbols), where=_shape_text(given))


def _check_rank(given: GateInput, array: Array) -> None:
    if array.ndim != given.type.rank:
        raise CallError(
            1704,
            f"input {given.name} has {given.type.rank} dimensions, the argument of shape {array.shape} {array.ndim}",
            where=_shape_text(given),
        )


def _usable(given: GateInput, array: Array, count: Callable[[str, str], None]) -> Array:
    """The array itself, or a copy of it that is in C order, aligned, and writeable where the call may write."""
    if given.policy.access == "mutated" and not array.flags.writeable:
        raise CallError(
            1708, f"input {given.name} is changed by the call and the argument is read-only", where=given.name
        )
    if not array.flags.c_contiguous:
        reason = "not contiguous"
    elif not array.flags.aligned or array.ctypes.data % given.alignment:
        reason = f"not at a multiple of {max(given.alignment, array.dtype.alignment)} bytes"
    elif given.policy.access == "donated" and not array.flags.writeable:
        reason = "read-only, so its memory cannot be donated"
    else:
        return array
    if given.policy.noncontiguous == "refuse":
        raise CallError(1712, f"input {given.name}: the argument is {reason}, and copies are refused", where=given.name)
    copy = dense_copy(given, array, reason)
    count(given.name, f"copied: {reason}")
    return copy


def dense_copy(given: GateInput, array: Array, reason: str) -> Array:
    """A dense, aligned copy of an argument that cannot be used for the reason given.

    Raises `OutOfMemoryError` 1710 where there is no memory for it.
    """
    try:
        return _aligned_copy(array, given.alignment)
    except (MemoryError, ValueError) as problem:  # numpy says the latter of more bytes than can be addressed
        text = f"input {given.name} of shape {array.shape} is {reason}; a copy needs {array.nbytes} bytes: {problem}"
        raise OutOfMemoryError(1710, text, where=given.name, hint=_NO_COPY) from problem


def _aligned_copy(array: Array, alignment: int) -> Array:
    size = array.nbytes
    room = np.empty(size + alignment, np.uint8)
    start = -room.ctypes.data % alignment
    copy: Array = np.ndarray(array.shape, array.dtype, buffer=room, offset=start)
    if not copy.flags.aligned:  # alignment below the type's own
        return np.array(array, order="C")
    copy[...] = array
    return copy


def _is_a(argument: object, kind: type) -> bool:
    return isinstance(argument, kind)


def _kind_fits(have: np.dtype[Any], want: DType) -> bool:
    """Whether plain Python numbers that numpy reads as `have` may become `want` (no fraction and no value is lost)."""
    kinds = {"boolean": "b", "signed": "biu", "unsigned": "biu", "floating": "biuf", "complex": "biufc"}
    return have.kind in kinds[want.kind]


def _disagreement(given: GateInput, axis: int, extent: int, want: Dim, symbols: _Symbols) -> str:
    names = sorted(want.names())
    known = ", ".join(f"{name} = {symbols.values[name]} ({symbols.origin[name]})" for name in names)
    value = want.evaluate(symbols.values)
    return f"input {given.name}: dimension {axis} is {extent} and must be {want} = {value}, as {known}"


def told_by_inputs(inputs: Sequence[GateInput | PlanInput], bindings: Iterable[Binding]) -> dict[str, str]:
    """For each size the dimension of an input that tells it."""
    return {b.symbol: f"dimension {b.dimension} of input {inputs[b.position].name}" for b in bindings}


def but_sizes(text: str, names: Iterable[str], values: Mapping[str, int], told: Mapping[str, str]) -> str:
    """What should be, and the sizes that say otherwise with their values and what tells these. There may be none:
    everything is known of code that never runs well.
    """
    known = [f"{name} = {values[name]}" + (f" ({told[name]})" if name in told else "") for name in sorted(names)]
    return f"{text}, but {', '.join(known)}" if known else text


def guard_refusal(
    guard: Guard, values: Mapping[str, int], inputs: Sequence[GateInput | PlanInput], bindings: Iterable[Binding]
) -> CallError:
    """What is said of sizes that the compiled code does not serve."""
    told = told_by_inputs(inputs, bindings)
    names = sorted(guard.value.names())
    where = next((told[name] for name in names if name in told), "")
    return CallError(1707, but_sizes(guard.message, names, values, told), where=where, hint=_OTHER_SIZES)


def negative_extent(
    output: str,
    extents: Sequence[Dim],
    values: Mapping[str, int],
    inputs: Sequence[GateInput | PlanInput],
    bindings: Iterable[Binding],
) -> CallError:
    """What is said of sizes that leave less than nothing of an output."""
    told = told_by_inputs(inputs, bindings)
    shape = tuple(extent.evaluate(values) for extent in extents)
    axis = next(axis for axis, extent in enumerate(shape) if extent < 0)
    names = sorted(extents[axis].names())
    text = f"output {output} would have the shape {shape}: its dimension {axis} is {extents[axis]}"
    where = next((told[name] for name in names if name in told), output)
    return CallError(1707, but_sizes(text, names, values, told), where=where, hint=_OTHER_SIZES)


def range_text(symbol: Symbol) -> str:
    """What a size has to be."""
    most = "" if symbol.upper is None else f" and at most {symbol.upper}"
    step = "" if symbol.multiple == 1 else f", a multiple of {symbol.multiple}"
    return f"at least {symbol.lower}{most}{step}"


def _shape_text(given: GateInput) -> str:
    return f"{given.name}: {given.type}"


def _listed(names: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED]) or "none"
    return shown if len(names) <= _MOST_NAMED else f"{shown} and {len(names) - _MOST_NAMED} more"
