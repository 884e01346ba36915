"""The call gate as LLVM text: reading numpy arrays, running a plan, and looking for signals, without Python code.

The functions are builtins (CPython's `METH_FASTCALL` convention), so a call costs about as much as `len`. How they read
arrays is in `array_checks.py`.
"""

from __future__ import annotations

from tilework.codegen.cpu.array_checks import CHECK_TEXT
from tilework.codegen.cpu.objects import architecture
from tilework.errors import CodegenError

GATE_EXPORTS = (
    "tilework_gate_bind",
    "tilework_gate_run",
    "tilework_gate_run_holding",
    "tilework_gate_call",
    "tilework_gate_call_holding",
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
- builtin `call(way, frame, inputs, outputs) -> int`: `bind` the inputs, then the outputs, then `run`, `way` being the
  address of three words: the table of the inputs, that of the outputs, the driver. The driver's result, or a negative
  number where an array does not fit: then nothing has run.
- builtin `call_holding(way, frame, inputs, outputs) -> int`: the same with the lock held.
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

# Two builtins; "" and "_holding" are what `kind` is.
_RUN = """
define ptr @tilework_gate_run{kind}(ptr %self, ptr %arguments, i64 %count) #0 {{
  %entry_object = load ptr, ptr %arguments
  %frame_object_at = getelementptr i8, ptr %arguments, i64 8
  %frame_object = load ptr, ptr %frame_object_at
  %driver = call ptr @PyLong_AsVoidPtr(ptr %entry_object)
  %frame = call ptr @PyLong_AsVoidPtr(ptr %frame_object)
  %object = call ptr @tilework_gate_drive{kind}(ptr %driver, ptr %frame)
  ret ptr %object
}}

define ptr @tilework_gate_call{kind}(ptr %self, ptr %arguments, i64 %count) #0 {{
entry:
  %way_object = load ptr, ptr %arguments
  %frame_object_at = getelementptr i8, ptr %arguments, i64 8
  %frame_object = load ptr, ptr %frame_object_at
  %inputs_at = getelementptr i8, ptr %arguments, i64 16
  %inputs = load ptr, ptr %inputs_at
  %outputs_at = getelementptr i8, ptr %arguments, i64 24
  %outputs = load ptr, ptr %outputs_at
  %way = call ptr @PyLong_AsVoidPtr(ptr %way_object)
  %frame = call ptr @PyLong_AsVoidPtr(ptr %frame_object)
  %wanted = load ptr, ptr %way
  %unfit = call i64 @tilework_gate_check(ptr %wanted, ptr %frame, ptr %inputs)
  %fit = icmp eq i64 %unfit, 0
  br i1 %fit, label %take, label %refuse
take:
  %made_at = getelementptr i8, ptr %way, i64 8
  %made = load ptr, ptr %made_at
  %unmade = call i64 @tilework_gate_check(ptr %made, ptr %frame, ptr %outputs)
  %ready = icmp eq i64 %unmade, 0
  br i1 %ready, label %go, label %refuse
go:
  %driver_at = getelementptr i8, ptr %way, i64 16
  %driver = load ptr, ptr %driver_at
  %object = call ptr @tilework_gate_drive{kind}(ptr %driver, ptr %frame)
  ret ptr %object
refuse:
  %refusal = call ptr @PyLong_FromLong(i64 -1)
  ret ptr %refusal
}}

define internal ptr @tilework_gate_drive{kind}(ptr %driver, ptr %frame) #0 {{
entry:
  %mode_at = alloca i32
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
  %table_object = load ptr, ptr %arguments
  %frame_object_at = getelementptr i8, ptr %arguments, i64 8
  %frame_object = load ptr, ptr %frame_object_at
  %arrays_at = getelementptr i8, ptr %arguments, i64 16
  %arrays = load ptr, ptr %arrays_at
  %table = call ptr @PyLong_AsVoidPtr(ptr %table_object)
  %frame = call ptr @PyLong_AsVoidPtr(ptr %frame_object)
  %code = call i64 @tilework_gate_check(ptr %table, ptr %frame, ptr %arrays)
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
    text += CHECK_TEXT
    locks = {
        "": ("%thread = call ptr @PyEval_SaveThread()", "call void @PyEval_RestoreThread(ptr %thread)"),
        "_holding": ("", ""),
    }
    for kind, (release, acquire) in locks.items():
        text += _RUN.format(kind=kind, release=release, acquire=acquire, **modes, **offsets)
    return text + "\nattributes #0 = { nounwind }\n"
