"""The call gate as LLVM text: reading numpy arrays, running a plan, and looking for signals, without Python code.

The functions are builtins (CPython's `METH_FASTCALL` convention), so a call costs about as much as `len`. They read
three object layouts that are public and have been stable for many years: `PyVarObject` (tuple), and
`PyArrayObject_fields` of numpy's `ndarraytypes.h`. `runtime/native.py` checks both layouts on known objects before any
of this is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilework.codegen.cpu.objects import architecture
from tilework.errors import CodegenError
from tilework.fast_dataclass import dataclass

GATE_EXPORTS = (
    "tilework_gate_bind",
    "tilework_gate_run",
    "tilework_gate_run_holding",
    "tilework_gate_step",
    "tilework_poll",
)
"""What the gate's object defines.

- builtin `bind(table, frame, arrays) -> int`: check a tuple of arrays against a table (see `bind_table`) and write
  their addresses and the symbols they bind into the frame; 0, or 1 + the ordinal of the first array that does not fit,
  or -1 for a tuple of another length.
- builtin `run(entry, frame) -> int`: call the plan's driver `entry(frame)` with the interpreter's lock released, in
  IEEE floating point mode; its result, or the exception that a signal handler raised meanwhile.
- builtin `run_holding(entry, frame) -> int`: the same with the lock held, for plans of a few microseconds.
- `i32 tilework_poll(ptr state)`: for drivers between steps, and for kernels within long ones; see `POLL_BYTES`.
- `i32 tilework_gate_step(ptr frame)`: a driver for one kernel, whose address slot 3 holds, its argument block slot 4.
"""

POLL_BYTES = 64
"""Size of the state of one call's signal checks, all zero but for the interval.

int64 at 0: time of the last check in nanoseconds (0: take the time now); 8: whether a signal handler has raised; 16,
24, 32: the exception it raised; 40: the interval in nanoseconds; 48: the address of `tilework_poll` and 56: the thread
that called, both stored by `run`. `tilework_poll(state)` returns 0 at once (some 25 ns) until an interval has passed
since the last check; then it takes the interpreter's lock and runs the signal handlers that wait (none in other threads
than the main one). It returns non-zero from the moment that a handler has raised, to every thread that works on the
call: the driver and its kernels must then return. Workers of the pool may ask as well; they only hear (some 3 ns). A
null state is never interrupted.
"""
POLL_INTERVAL_OFFSET, POLL_FUNCTION_OFFSET, POLL_OWNER_OFFSET = 40, 48, 56
POLL_INTERVAL_NS = 20_000_000
"""How often a running plan looks for signals."""

C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400  # ndarraytypes.h, "Array flags"

_CONSTANT, _BIND, _CHECK, _ANY = 0, 1, 2, 3


@dataclass(frozen=True)
class ConstantDim:
    """The dimension has this extent."""

    extent: int


@dataclass(frozen=True)
class BoundDim:
    """The dimension is `coefficient * symbol + constant` and gives the symbol its value, stored in frame slot `slot`.

    The symbol must lie in `lower .. upper` and be a multiple of `multiple`.
    """

    slot: int
    lower: int
    upper: int
    multiple: int = 1
    coefficient: int = 1
    constant: int = 0


@dataclass(frozen=True)
class CheckedDim:
    """The dimension is `coefficient * symbol + constant`, the symbol having its value in frame slot `slot` already."""

    slot: int
    coefficient: int = 1
    constant: int = 0


@dataclass(frozen=True)
class AnyDim:
    """Any extent will do here (it is checked elsewhere)."""


DimCheck = ConstantDim | BoundDim | CheckedDim | AnyDim


@dataclass(frozen=True)
class ArrayCheck:
    """What one array must be for `bind` to take it; its address goes to frame slot `slot`.

    `descriptor` is the address of the numpy dtype object (0: no check at all, for arrays we made ourselves), `flags`
    the array flags that must be set, `alignment` a power of two that divides the address.
    """

    slot: int
    descriptor: int
    dims: tuple[DimCheck, ...] = ()
    flags: int = C_CONTIGUOUS | ALIGNED
    alignment: int = 1


def bind_table(arrays: Sequence[ArrayCheck], array_type: int) -> list[int]:
    """The int64 words that `bind` reads: count, address of `numpy.ndarray`, then one check after another."""
    words = [len(arrays), array_type]
    for array in arrays:
        words += [array.descriptor, len(array.dims), array.flags, array.alignment - 1, array.slot]
        for check in array.dims:
            match check:
                case ConstantDim(extent):
                    words += [_CONSTANT, 0, 0, 0, 1, 1, extent]
                case BoundDim(slot, lower, upper, multiple, coefficient, constant):
                    words += [_BIND, slot, lower, upper, multiple, coefficient, constant]
                case CheckedDim(slot, coefficient, constant):
                    words += [_CHECK, slot, 0, 0, 1, coefficient, constant]
                case AnyDim():
                    words += [_ANY, 0, 0, 0, 1, 1, 0]
    return words


_MACHINES: dict[str, dict[str, str]] = {
    "x86": {
        "declarations": "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)",
        "read": "call void @llvm.x86.sse.stmxcsr(ptr %mode_at)\n  %mode = load i32, ptr %mode_at",
        # All but the six sticky flags: rounding to nearest, exceptions masked, denormals kept.
        "same": "%control = and i32 %mode, 65472\n  %ieee = icmp eq i32 %control, 8064",
        "set": "store i32 8064, ptr %mode_at\n  call void @llvm.x86.sse.ldmxcsr(ptr %mode_at)",
        "restore": "store i32 %mode, ptr %mode_at\n  call void @llvm.x86.sse.ldmxcsr(ptr %mode_at)",
    },
    "aarch64": {
        "declarations": "declare i64 @llvm.aarch64.get.fpcr()\ndeclare void @llvm.aarch64.set.fpcr(i64)",
        "read": "%mode = call i64 @llvm.aarch64.get.fpcr()",
        "same": "%ieee = icmp eq i64 %mode, 0",
        "set": "call void @llvm.aarch64.set.fpcr(i64 0)",
        "restore": "call void @llvm.aarch64.set.fpcr(i64 %mode)",
    },
}

_RUN = """
define ptr @{name}(ptr %self, ptr %arguments, i64 %count) #0 {{
entry:
  %mode_at = alloca i32
  %entry_object = load ptr, ptr %arguments
  %frame_object_at = getelementptr i8, ptr %arguments, i64 8
  %frame_object = load ptr, ptr %frame_object_at
  %driver = call ptr @PyLong_AsVoidPtr(ptr %entry_object)
  %frame = call ptr @PyLong_AsVoidPtr(ptr %frame_object)
  store i64 0, ptr %frame
  %state_at = getelementptr i8, ptr %frame, i64 16
  %state = load ptr, ptr %state_at
  %watched = icmp ne ptr %state, null
  br i1 %watched, label %prepare, label %start
prepare:
  %function_at = getelementptr i8, ptr %state, i64 {function}
  store ptr @tilework_poll, ptr %function_at
  %owner_at = getelementptr i8, ptr %state, i64 {owner}
  %self_thread = call i64 @pthread_self()
  store i64 %self_thread, ptr %owner_at
  br label %start
start:
  {release}
  {read}
  {same}
  br i1 %ieee, label %plain, label %strange
plain:
  %result1 = call i32 %driver(ptr %frame)
  br label %done
strange:
  {set}
  %result2 = call i32 %driver(ptr %frame)
  {restore}
  br label %done
done:
  %result = phi i32 [ %result1, %plain ], [ %result2, %strange ]
  {acquire}
  br i1 %watched, label %look, label %fine
look:
  store i64 0, ptr %state
  %raised_at = getelementptr i8, ptr %state, i64 8
  %raised = load i64, ptr %raised_at
  %interrupted = icmp ne i64 %raised, 0
  br i1 %interrupted, label %raise, label %fine
raise:
  store i64 0, ptr %raised_at
  %kind_at = getelementptr i8, ptr %state, i64 16
  %value_at = getelementptr i8, ptr %state, i64 24
  %trace_at = getelementptr i8, ptr %state, i64 32
  %kind = load ptr, ptr %kind_at
  %value = load ptr, ptr %value_at
  %trace = load ptr, ptr %trace_at
  call void @PyErr_Restore(ptr %kind, ptr %value, ptr %trace)
  ret ptr null
fine:
  %result64 = sext i32 %result to i64
  %object = call ptr @PyLong_FromLong(i64 %result64)
  ret ptr %object
}}
"""

# Word offsets of a check: 0 descriptor, 8 rank, 16 flags, 24 alignment mask, 32 slot; then 56 bytes a dimension:
# 0 kind, 8 slot, 16 lower, 24 upper, 32 multiple, 40 coefficient, 48 constant.
# Byte offsets in an array: 8 type, 16 data, 24 rank (int32), 32 extents, 56 descriptor, 64 flags (int32).
_TEXT = """
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromLong(i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare i32 @clock_gettime(i32, ptr)
declare i64 @pthread_self()
{declarations}

define ptr @tilework_gate_bind(ptr %self, ptr %arguments, i64 %count) #0 {{
entry:
  %table_object = load ptr, ptr %arguments
  %frame_object_at = getelementptr i8, ptr %arguments, i64 8
  %frame_object = load ptr, ptr %frame_object_at
  %arrays_at = getelementptr i8, ptr %arguments, i64 16
  %arrays = load ptr, ptr %arrays_at
  %table = call ptr @PyLong_AsVoidPtr(ptr %table_object)
  %frame = call ptr @PyLong_AsVoidPtr(ptr %frame_object)
  %wanted = load i64, ptr %table
  %given_at = getelementptr i8, ptr %arrays, i64 16
  %given = load i64, ptr %given_at
  %array_type_at = getelementptr i8, ptr %table, i64 8
  %array_type = load ptr, ptr %array_type_at
  %items = getelementptr i8, ptr %arrays, i64 24
  %checks = getelementptr i8, ptr %table, i64 16
  %matching = icmp eq i64 %wanted, %given
  br i1 %matching, label %next, label %answer
next:
  %index = phi i64 [ 0, %entry ], [ %index1, %store ]
  %check = phi ptr [ %checks, %entry ], [ %dim_check, %store ]
  %index1 = add i64 %index, 1
  %more = icmp slt i64 %index, %wanted
  br i1 %more, label %array, label %answer
array:
  %item_at = getelementptr ptr, ptr %items, i64 %index
  %item = load ptr, ptr %item_at
  %type_at = getelementptr i8, ptr %item, i64 8
  %type = load ptr, ptr %type_at
  %is_array = icmp eq ptr %type, %array_type
  br i1 %is_array, label %read, label %answer
read:
  %data_at = getelementptr i8, ptr %item, i64 16
  %data = load i64, ptr %data_at
  %descriptor = load i64, ptr %check
  %wanted_rank_at = getelementptr i8, ptr %check, i64 8
  %wanted_rank = load i64, ptr %wanted_rank_at
  %first_dim_check = getelementptr i8, ptr %check, i64 40
  %unchecked = icmp eq i64 %descriptor, 0
  br i1 %unchecked, label %store, label %examine
examine:
  %descriptor_at = getelementptr i8, ptr %item, i64 56
  %has_descriptor = load i64, ptr %descriptor_at
  %rank_at = getelementptr i8, ptr %item, i64 24
  %rank32 = load i32, ptr %rank_at
  %rank = zext i32 %rank32 to i64
  %flags_at = getelementptr i8, ptr %item, i64 64
  %flags32 = load i32, ptr %flags_at
  %flags = zext i32 %flags32 to i64
  %wanted_flags_at = getelementptr i8, ptr %check, i64 16
  %wanted_flags = load i64, ptr %wanted_flags_at
  %mask_at = getelementptr i8, ptr %check, i64 24
  %mask = load i64, ptr %mask_at
  %same_descriptor = icmp eq i64 %has_descriptor, %descriptor
  %same_rank = icmp eq i64 %rank, %wanted_rank
  %set_flags = and i64 %flags, %wanted_flags
  %has_flags = icmp eq i64 %set_flags, %wanted_flags
  %low = and i64 %data, %mask
  %is_aligned = icmp eq i64 %low, 0
  %fits1 = and i1 %same_descriptor, %same_rank
  %fits2 = and i1 %has_flags, %is_aligned
  %fits = and i1 %fits1, %fits2
  br i1 %fits, label %dims, label %answer
dims:
  %extents_at = getelementptr i8, ptr %item, i64 32
  %extents = load ptr, ptr %extents_at
  br label %next_dim
next_dim:
  %axis = phi i64 [ 0, %dims ], [ %axis1, %dim_fits ]
  %this_dim_check = phi ptr [ %first_dim_check, %dims ], [ %next_dim_check, %dim_fits ]
  %more_dims = icmp slt i64 %axis, %rank
  br i1 %more_dims, label %dim, label %store
dim:
  %extent_at = getelementptr i64, ptr %extents, i64 %axis
  %extent = load i64, ptr %extent_at
  %kind = load i64, ptr %this_dim_check
  %slot_at = getelementptr i8, ptr %this_dim_check, i64 8
  %slot = load i64, ptr %slot_at
  %symbol_at = getelementptr i64, ptr %frame, i64 %slot
  %coefficient_at = getelementptr i8, ptr %this_dim_check, i64 40
  %coefficient = load i64, ptr %coefficient_at
  %constant_at = getelementptr i8, ptr %this_dim_check, i64 48
  %constant = load i64, ptr %constant_at
  %rest = sub i64 %extent, %constant
  switch i64 %kind, label %dim_fits [ i64 0, label %constant_dim i64 1, label %bound_dim i64 2, label %checked_dim ]
constant_dim:
  %equal = icmp eq i64 %rest, 0
  br i1 %equal, label %dim_fits, label %answer
checked_dim:
  %symbol = load i64, ptr %symbol_at
  %scaled = mul i64 %symbol, %coefficient
  %agrees = icmp eq i64 %rest, %scaled
  br i1 %agrees, label %dim_fits, label %answer
bound_dim:
  %lower_at = getelementptr i8, ptr %this_dim_check, i64 16
  %lower = load i64, ptr %lower_at
  %upper_at = getelementptr i8, ptr %this_dim_check, i64 24
  %upper = load i64, ptr %upper_at
  %plain = icmp eq i64 %coefficient, 1
  br i1 %plain, label %bounds, label %divide
divide:
  %quotient = sdiv i64 %rest, %coefficient
  %product = mul i64 %quotient, %coefficient
  %exact = icmp eq i64 %product, %rest
  br i1 %exact, label %bounds, label %answer
bounds:
  %value = phi i64 [ %rest, %bound_dim ], [ %quotient, %divide ]
  %above = icmp sge i64 %value, %lower
  %below = icmp sle i64 %value, %upper
  %inside = and i1 %above, %below
  br i1 %inside, label %step, label %answer
step:
  %multiple_at = getelementptr i8, ptr %this_dim_check, i64 32
  %multiple = load i64, ptr %multiple_at
  %free = icmp eq i64 %multiple, 1
  br i1 %free, label %keep, label %remainder
remainder:
  %over = srem i64 %value, %multiple
  %divides = icmp eq i64 %over, 0
  br i1 %divides, label %keep, label %answer
keep:
  store i64 %value, ptr %symbol_at
  br label %dim_fits
dim_fits:
  %axis1 = add i64 %axis, 1
  %next_dim_check = getelementptr i8, ptr %this_dim_check, i64 56
  br label %next_dim
store:
  %dim_check = phi ptr [ %first_dim_check, %read ], [ %this_dim_check, %next_dim ]
  %array_slot_at = getelementptr i8, ptr %check, i64 32
  %array_slot = load i64, ptr %array_slot_at
  %address_at = getelementptr i64, ptr %frame, i64 %array_slot
  store i64 %data, ptr %address_at
  br label %next
answer:
  %code = phi i64 [ -1, %entry ], [ 0, %next ], [ %index1, %array ], [ %index1, %examine ], [ %index1, %constant_dim ],
    [ %index1, %checked_dim ], [ %index1, %divide ], [ %index1, %bounds ], [ %index1, %remainder ]
  %object = call ptr @PyLong_FromLong(i64 %code)
  ret ptr %object
}}

define i32 @tilework_gate_step(ptr %frame) #0 {{
  %pool_at = getelementptr i64, ptr %frame, i64 1
  %pool = load ptr, ptr %pool_at
  %kernel_at = getelementptr i64, ptr %frame, i64 3
  %kernel = load ptr, ptr %kernel_at
  %block_at = getelementptr i64, ptr %frame, i64 4
  %block = load ptr, ptr %block_at
  %status = call i32 %kernel(ptr %block, ptr %pool)
  ret i32 %status
}}

define i32 @tilework_poll(ptr %state) #0 {{
entry:
  %time = alloca [ 2 x i64 ]
  %unwatched = icmp eq ptr %state, null
  br i1 %unwatched, label %go_on, label %ask
ask:
  %raised_at = getelementptr i8, ptr %state, i64 8
  %raised = load atomic i64, ptr %raised_at monotonic, align 8
  %already = icmp ne i64 %raised, 0
  br i1 %already, label %stop, label %whose
whose:
  ; A worker has no thread state of the interpreter's, and leaves the clock to the thread that called.
  %owner_at = getelementptr i8, ptr %state, i64 {owner}
  %owner = load i64, ptr %owner_at
  %self = call i64 @pthread_self()
  %mine = icmp eq i64 %owner, %self
  br i1 %mine, label %clock, label %go_on
clock:
  %error = call i32 @clock_gettime(i32 {clock}, ptr %time)
  %seconds = load i64, ptr %time
  %nanoseconds_at = getelementptr i8, ptr %time, i64 8
  %nanoseconds = load i64, ptr %nanoseconds_at
  %scaled = mul i64 %seconds, 1000000000
  %now = add i64 %scaled, %nanoseconds
  %last = load i64, ptr %state
  %first = icmp eq i64 %last, 0
  br i1 %first, label %begin, label %compare
begin:
  store i64 %now, ptr %state
  br label %go_on
compare:
  %interval_at = getelementptr i8, ptr %state, i64 {interval}
  %interval = load i64, ptr %interval_at
  %passed = sub i64 %now, %last
  %early = icmp slt i64 %passed, %interval
  br i1 %early, label %go_on, label %check
check:
  store i64 %now, ptr %state
  %lock = call i32 @PyGILState_Ensure()
  %signal = call i32 @PyErr_CheckSignals()
  %interrupted = icmp ne i32 %signal, 0
  br i1 %interrupted, label %keep, label %release
keep:
  %kind_at = getelementptr i8, ptr %state, i64 16
  %value_at = getelementptr i8, ptr %state, i64 24
  %trace_at = getelementptr i8, ptr %state, i64 32
  call void @PyErr_Fetch(ptr %kind_at, ptr %value_at, ptr %trace_at)
  store atomic i64 1, ptr %raised_at monotonic, align 8
  br label %release
release:
  call void @PyGILState_Release(i32 %lock)
  br i1 %interrupted, label %stop, label %go_on
stop:
  ret i32 1
go_on:
  ret i32 0
}}
"""


def gate_text(triple: str) -> str:
    """LLVM text of the call gate; it defines `GATE_EXPORTS` and needs the interpreter's functions and `clock_gettime`.

    Raises:
        CodegenError: 1684 for an architecture that the gate is not written for.
    """
    machine = _MACHINES.get(architecture(triple))
    if machine is None:
        raise CodegenError(1684, f"no call gate for {triple}", where=triple)
    modes = {name: machine[name] for name in ("read", "same", "set", "restore")}
    offsets = {"function": POLL_FUNCTION_OFFSET, "owner": POLL_OWNER_OFFSET}
    # CLOCK_MONOTONIC; a clock that keeps running through sleep would do as well
    clock = "6" if "darwin" in triple or "macos" in triple else "1"
    text = _TEXT.format(
        declarations=machine["declarations"], clock=clock, interval=POLL_INTERVAL_OFFSET, owner=POLL_OWNER_OFFSET
    )
    text += _RUN.format(
        name="tilework_gate_run",
        release="%thread = call ptr @PyEval_SaveThread()",
        acquire="call void @PyEval_RestoreThread(ptr %thread)",
        **modes,
        **offsets,
    )
    text += _RUN.format(name="tilework_gate_run_holding", release="", acquire="", **modes, **offsets)
    return text + "\nattributes #0 = { nounwind }\n"
