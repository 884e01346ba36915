"""The call gate for numpy: arrays in, addresses and dimensions into a frame, output arrays out.

This is one thin caller of the core entry, which knows only frames. The fast way is one native call (see
`tilework.codegen.cpu.gate`); whatever it does not accept goes the slow way (`arguments.py`), which converts, copies, or
says precisely what is wrong.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping

import numpy as np

from tilework.codegen.cpu.array_checks import (
    ALIGNED,
    C_CONTIGUOUS,
    WRITEABLE,
    AnyDim,
    ArrayCheck,
    BoundDim,
    CheckedDim,
    ConstantDim,
    DimCheck,
    bind_table,
)
from tilework.dims import Dim, Symbol
from tilework.errors import CallError, OutOfMemoryError, UsageError
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import OutputPolicy
from tilework.plan.protocols import Array
from tilework.runtime.arguments import Accepted, ArgumentReader, dense_copy, guard_refusal, negative_extent
from tilework.runtime.call_spec import GateInput, GateOutput, GateSpec
from tilework.runtime.frame import Frame
from tilework.runtime.memory import RECYCLE_FROM, BlockPool
from tilework.runtime.native import NativeGate
from tilework.runtime.prompt_call import PromptCall, small_arrays, words_of
from tilework.runtime.shapes import Words, dim_function, shape_function

_LARGEST = 2**62
_RECENT = 256
"""Combinations of the symbols' values whose output shapes are remembered."""


@dataclass(frozen=True)
class _Output:
    """How one output is made at run time."""

    name: str
    extents: tuple[Dim, ...]
    dtype: np.dtype[np.generic]
    policy: OutputPolicy
    shape: Callable[[Words], tuple[int, ...]] | None  # None: its shape is measured while the plan runs
    strides: Callable[[Words], tuple[int, ...]] | None
    offset: Callable[[Words], int] | None


class Gate:
    """Binds numpy arguments to frames and makes output arrays, for one `GateSpec`.

    Use: `arguments = gate.order(args, kwargs)`, `bound = gate.bind(frame, arguments)`, `outputs = gate.allocate(frame,
    bound)`, run the plan, `gate.finish(bound)`. The caller keeps `bound` and `outputs` until the plan has run.

    `counted` says how often an argument was converted or copied: (input's name, reason) to a count. Threads: a gate may
    be used from several threads, each with a frame of its own.
    """

    def __init__(self, spec: GateSpec, native: NativeGate | None = None, blocks: BlockPool | None = None) -> None:
        """A gate; without `native` it works in plain Python. Large outputs come from `blocks`.

        Raises:
            UsageError: 1005 for a symbol of an input's or fresh output's shape that nothing binds.
        """
        self.spec = spec
        self.names = tuple(given.name for given in spec.inputs)
        self.counted: dict[tuple[str, str], int] = {}
        self._native = native  # keeps the code of `_bind` loaded
        self._bind = native.bind if native is not None else None
        self._blocks = blocks if blocks is not None else BlockPool()
        self.count = len(spec.inputs)
        """How many arguments there are."""
        self._reader = ArgumentReader(spec)
        self._position = {name: position for position, name in enumerate(self.names)}
        checks, self._late = self._checks()
        self._table = words_of(bind_table(checks, id(np.ndarray)))
        self._table_address = ctypes.addressof(self._table)
        self._exclusive = any(given.policy.access != "read" for given in spec.inputs) and len(spec.inputs) > 1
        self._spec = spec
        self._guards = tuple((dim_function(guard.value, spec.symbol_slots), guard) for guard in spec.guards)
        self._outputs = tuple(self._output(output) for output in spec.outputs)
        self._all_fresh = all(output.policy.kind == "fresh" for output in spec.outputs)
        self._symbol_slots = tuple(spec.symbol_slots[binding.symbol] for binding in spec.bound)
        self._recent: dict[tuple[int, ...], tuple[tuple[tuple[int, ...], np.dtype[np.generic]], ...]] = {}
        self._plain = None if self._symbol_slots else self._plain_outputs(())
        slots = [
            output.slot for output, made in zip(spec.outputs, self._outputs, strict=True) if made.shape is not None
        ]
        unchecked = [ArrayCheck(slot, 0) for slot in slots]
        self._all_made = len(slots) == len(spec.outputs)
        self._slots = tuple(slots)
        self._output_table = words_of(bind_table(unchecked, id(np.ndarray)))
        self._output_table_address = ctypes.addressof(self._output_table)

    # -- arguments ---------------------------------------------------------------------------------------------------
    def order(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> tuple[object, ...]:
        """Arguments given by position and by name, in the order of the inputs.

        Raises:
            CallError: 1701 for too few or many, an unknown name, or an input given twice.
        """
        if not kwargs and len(args) == self.count:
            return args
        return self._reader.order(args, kwargs)

    def bind(self, frame: Frame, arguments: tuple[object, ...]) -> Accepted:
        """Check the arguments and write their addresses and the symbols they bind into the frame.

        What cannot be used as it stands is converted or copied, and counted; see `ArgumentReader` for the rules. The
        arrays of the result must stay alive while the frame's call runs.

        Raises:
            CallError: 1701 to 1709, naming the input, its dimension and what it should be.
        """
        bind = self._bind
        if bind is not None and bind(self._table_address, frame.address, arguments) == 0:
            if self._late or self._guards or self._exclusive:
                return self._bind_further(frame, arguments)
            return Accepted(arguments)  # pyright: ignore[reportArgumentType]
        return self._bind_slowly(frame, arguments)

    def finish(self, bound: Accepted) -> None:
        """Write changed copies back to the arguments that they stand for. After a call that went well only."""
        for back in bound.write_backs:
            back.do()

    # -- outputs -----------------------------------------------------------------------------------------------------
    def allocate(self, frame: Frame, bound: Accepted) -> tuple[Array | None, ...]:
        """Output arrays for a bound frame, their addresses written into it.

        Fresh outputs are uninitialised; an alias is the argument itself, a view shows its elements. None stands for an
        output whose shape is only measured while the plan runs (see `measured`).

        Raises:
            OutOfMemoryError: 1710 beyond the memory limit or without memory.
            CallError: 1707 when the symbols make an extent negative.
        """
        plain = self._plain
        if plain is None and self._all_fresh:
            words = frame.words
            key = tuple([words[slot] for slot in self._symbol_slots])
            plain = self._recent.get(key)
            if plain is None:
                plain = self._plain_outputs(words)
                if plain is not None:
                    if len(self._recent) >= _RECENT:
                        self._recent.clear()
                    self._recent[key] = plain
        outputs: tuple[Array | None, ...] | None = None if plain is None else small_arrays(plain)
        if outputs is None:
            outputs = tuple([self._make(output, frame, bound) for output in self._outputs])
        made = outputs if self._all_made else tuple([array for array in outputs if array is not None])
        if self._bind is not None:
            self._bind(self._output_table_address, frame.address, made)
        else:
            for slot, array in zip(self._slots, made, strict=True):
                frame.words[slot] = array.ctypes.data  # pyright: ignore[reportOptionalMemberAccess]
        return outputs

    def measured(self, position: int, shape: tuple[int, ...]) -> Array:
        """An array for an output whose shape the plan has measured. Raises as `allocate`."""
        output = self._outputs[position]
        return self._fresh(output.name, shape, output.dtype)

    def prompt(self, driver: int, *, holding: bool, arena: int) -> PromptCall | None:
        """The whole of a call as one native step; None where sizes, views or overlaps are looked at in between."""
        native = self._native
        native_call = None if native is None else (native.call_holding if holding else native.call)
        if native_call is None or self._plain is None or self._late or self._guards or self._exclusive:
            return None
        return PromptCall(native_call, self._table, self._output_table, driver, self._plain, arena)

    # -- how -----------------------------------------------------------------------------------------------------------
    def _checks(self) -> tuple[list[ArrayCheck], tuple[tuple[int, int, Callable[[Words], int]], ...]]:
        """What the native way checks of each input, and (input, dimension, extent) of what it leaves."""
        spec = self.spec
        symbols = {symbol.name: symbol for symbol in spec.symbols}
        binders = {(binding.position, binding.dimension): binding for binding in spec.bound}
        known: set[str] = set()
        late: list[tuple[int, int, Callable[[Words], int]]] = []
        checks: list[ArrayCheck] = []
        bound = {binding.symbol for binding in spec.bound}
        for position, given in enumerate(spec.inputs):
            dims: list[DimCheck] = []
            for axis, extent in enumerate(given.type.shape):
                unbound = extent.names() - bound
                if unbound:
                    raise UsageError(
                        1005,
                        f"input {given.name}: no input gives {', '.join(sorted(unbound))} a value",
                        where=given.name,
                    )
                binding = binders.get((position, axis))
                if extent.value is not None:
                    dims.append(ConstantDim(extent.value))
                elif binding is not None:
                    symbol = symbols.get(binding.symbol, Symbol(binding.symbol))
                    upper = _LARGEST if symbol.upper is None else symbol.upper
                    slot = spec.symbol_slots[binding.symbol]
                    dims.append(BoundDim(slot, symbol.lower, upper, symbol.multiple, binding.factor, binding.addend))
                    known.add(binding.symbol)
                else:
                    affine = _single(extent)
                    if affine is not None and affine[0] in known:
                        dims.append(CheckedDim(spec.symbol_slots[affine[0]], affine[1], extent.constant))
                    else:
                        dims.append(AnyDim())
                        late.append((position, axis, dim_function(extent, spec.symbol_slots)))
            flags = C_CONTIGUOUS | ALIGNED | (0 if given.policy.access == "read" else WRITEABLE)
            checks.append(ArrayCheck(given.slot, id(given.type.dtype.numpy), tuple(dims), flags, given.alignment))
        return checks, tuple(late)

    def _bind_further(self, frame: Frame, arguments: tuple[object, ...]) -> Accepted:
        """What the native way leaves to do: unusual extents, guards, overlap with memory that the call changes."""
        arrays: tuple[Array, ...] = arguments  # pyright: ignore[reportAssignmentType]
        words = frame.words
        if any(arrays[position].shape[axis] != extent(words) for position, axis, extent in self._late):
            return self._bind_slowly(frame, arguments)
        for value, guard in self._guards:
            number = value(words)
            if number < 0 or (number and guard.relation == "zero"):
                known = {name: int(words[slot]) for name, slot in self._spec.symbol_slots.items()}
                raise guard_refusal(guard, known, self._spec.inputs, self._spec.bound)
        return self._separate(frame, Accepted(arrays)) if self._exclusive else Accepted(arrays)

    def _bind_slowly(self, frame: Frame, arguments: tuple[object, ...]) -> Accepted:
        accepted, symbols = self._reader.read(arguments, self._count_one)
        words = frame.words
        for name, value in symbols.items():
            words[self.spec.symbol_slots[name]] = value
        for given, array in zip(self.spec.inputs, accepted.arrays, strict=True):
            words[given.slot] = array.ctypes.data
        return self._separate(frame, accepted) if self._exclusive else accepted

    def _separate(self, frame: Frame, accepted: Accepted) -> Accepted:
        """Copy what overlaps an argument that the call changes, so that what is read is what was there before."""
        arrays = list(accepted.arrays)
        copied = False
        for changed, given in enumerate(self.spec.inputs):
            if given.policy.access == "read":
                continue
            for other, array in enumerate(arrays):
                if other == changed or not np.may_share_memory(arrays[changed], array):
                    continue
                if self.spec.inputs[other].policy.access == "mutated":
                    raise CallError(
                        1711,
                        f"inputs {self.names[changed]} and {self.names[other]} share memory and the call changes it",
                        where=self.names[other],
                    )
                arrays[other] = dense_copy(self.spec.inputs[other], array, "in memory that the call changes")
                frame.words[self.spec.inputs[other].slot] = arrays[other].ctypes.data
                self._count_one(self.names[other], "copied: overlaps an argument that the call changes")
                copied = True
        return Accepted(tuple(arrays), accepted.write_backs) if copied else accepted

    def _count_one(self, name: str, reason: str) -> None:
        self.counted[name, reason] = self.counted.get((name, reason), 0) + 1

    def _output(self, output: GateOutput) -> _Output:
        spec = self.spec
        bound = {binding.symbol for binding in spec.bound}
        dtype = output.type.dtype.numpy
        policy = output.policy
        shape = None
        if all(extent.names() <= bound and not extent.loads() for extent in output.type.shape):
            shape = shape_function(output.type.shape, spec.symbol_slots)
        strides = offset = None
        if policy.kind == "view":
            strides = shape_function(policy.strides or (), spec.symbol_slots)
            offset = dim_function(policy.offset or Dim(), spec.symbol_slots)
        return _Output(output.name, output.type.shape, dtype, policy, shape, strides, offset)

    def _plain_outputs(self, words: Words) -> tuple[tuple[tuple[int, ...], np.dtype[np.generic]], ...] | None:
        """Shape and type of each output when all are fresh and small: the fastest way. None where they are not."""
        plain: list[tuple[tuple[int, ...], np.dtype[np.generic]]] = []
        total = 0
        for output in self._outputs:
            if output.policy.kind != "fresh" or output.shape is None:
                return None
            shape = output.shape(words)
            size = math.prod(shape) * output.dtype.itemsize
            if min(shape, default=0) < 0 or size >= RECYCLE_FROM:
                return None
            total += size
            plain.append((shape, output.dtype))
        limit = self._blocks.limit_bytes
        return None if limit is not None and total > limit else tuple(plain)

    def _make(self, output: _Output, frame: Frame, bound: Accepted) -> Array | None:
        words = frame.words
        if output.shape is None:
            return None
        if output.policy.kind == "fresh":
            shape = output.shape(words)
            if min(shape, default=0) < 0:
                known = {name: int(words[slot]) for name, slot in self._spec.symbol_slots.items()}
                raise negative_extent(output.name, output.extents, known, self._spec.inputs, self._spec.bound)
            return self._fresh(output.name, shape, output.dtype)
        of = output.policy.of or 0
        if output.policy.kind == "alias":
            return next((back.argument for back in bound.write_backs if back.input == of), bound.arrays[of])
        assert output.strides is not None
        assert output.offset is not None
        return _view(bound.arrays[of], output.shape(words), output.strides(words), output.offset(words), self.names[of])

    def _fresh(self, name: str, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
        size = math.prod(shape) * dtype.itemsize
        limit = self._blocks.limit_bytes
        try:
            if size >= RECYCLE_FROM:
                return self._blocks.array(shape, dtype)
            if limit is None or size <= limit:
                return np.empty(shape, dtype)
        except OutOfMemoryError as problem:
            raise OutOfMemoryError(1710, f"output {name} of shape {shape}: {problem.message}", where=name) from None
        except MemoryError as problem:
            raise OutOfMemoryError(1710, f"output {name} of shape {shape}: {problem}", where=name) from problem
        raise OutOfMemoryError(
            1710, f"output {name} of shape {shape} needs {size} bytes, the limit is {limit}", where=name
        )


def _view(array: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, name: str) -> Array:
    """Elements of an array at element strides; refused where they do not all lie in it."""
    low = offset + sum(min(0, (extent - 1) * stride) for extent, stride in zip(shape, strides, strict=True))
    high = offset + sum(max(0, (extent - 1) * stride) for extent, stride in zip(shape, strides, strict=True))
    if 0 not in shape and not 0 <= low <= high < array.size:
        raise CallError(1707, f"a view of shape {shape} does not lie within input {name}", where=name)
    item = array.itemsize
    return np.ndarray(
        shape, array.dtype, buffer=array, offset=offset * item if 0 not in shape else 0,
        strides=tuple(stride * item for stride in strides),
    )  # fmt: skip


def _single(extent: Dim) -> tuple[str, int] | None:
    """Symbol and coefficient where an extent is `coefficient * symbol + constant`."""
    if len(extent.terms) == 1 and len(extent.terms[0][0]) == 1:
        (atom,), coefficient = extent.terms[0]
        if isinstance(atom, str):
            return atom, coefficient
    return None


__all__ = ["Accepted", "Gate", "GateInput", "GateOutput", "GateSpec"]
