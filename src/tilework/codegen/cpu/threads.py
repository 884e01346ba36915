"""The thread pool as LLVM text: parallel regions with dynamic chunks, and workers that are never needed for progress.

A region is published as one 64-bit word, `generation << 32 | next chunk`. Whoever wants a chunk reads the word and the
region's fields and swaps the word for word + 1; success proves that the fields belonged to that generation, because
publishing first closes the word (next = 2^32 - 1, new generation). The caller takes chunks like any worker and returns
when all are done, so a worker that has not started yet, or never will (after a fork, under load, in a nested region),
costs nothing but its help. A second caller does not wait for the first: it runs its chunks itself, one after another.

Idle workers pause `spin` times and then sleep on a futex; a caller whose last chunks are still running elsewhere does
the same. Both sleeps follow one rule: announce, look again, sleep only while the word that is waited on is unchanged.
Workers do not wake up on the caller's own processor (`worker_placement.py`).
Whoever wakes sleepers takes them off the count of sleepers at once, so that the regions that follow do not pay for
waking a worker that is awake already but has no processor yet.
"""

from __future__ import annotations

from tilework.codegen.cpu.objects import architecture
from tilework.codegen.cpu.worker_placement import SEAT_BYTES, SEATS, SEATS_OFFSET, placement_text
from tilework.errors import CodegenError

POOL_BYTES = SEATS_OFFSET + SEATS * SEAT_BYTES
"""Size of a pool's state; it must start at a multiple of 64 bytes, all zero."""
SPIN_OFFSET = 192
"""Byte offset of the int32 that says how many pauses an idle worker makes before it sleeps."""
WORKERS_OFFSET = 196
"""Byte offset of the int32 that says how many workers run; with 0 every region runs in its caller."""

STOP_OFFSET = 136
"""Byte offset of the int32 that makes workers end while it is not 0."""

EXPORTS = (
    "tilework_pool_run", "tilework_pool_run_watched", "tilework_pool_spawn", "tilework_pool_stop", "tilework_pool_join",
    "tilework_pool_reset",
)  # fmt: skip
"""What the pool's object defines.

- `void tilework_pool_run(ptr pool, ptr function, ptr context, i32 chunks)`: call `function(context, chunk, chunks)`
  once for each chunk; returns when all are done. A null pool runs them in the caller.
- `void tilework_pool_run_watched(ptr pool, ptr function, ptr context, i32 chunks)`: the same, and while the caller
  waits for other threads it calls `function(context, -1, chunks)` every few milliseconds, to look for signals.
- `i32 tilework_pool_spawn(ptr pool, ptr thread)`: start one worker and store its handle; 0 or an errno.
- `void tilework_pool_stop(ptr pool)`: ask all workers to end after the region they are in.
- `i32 tilework_pool_join(ptr thread)`: wait until the worker with this handle has ended.
- `void tilework_pool_reset(ptr pool)`: in a child after a fork, forget the parent's workers, sleepers, region and lock.
"""

# What differs between machines: pausing, the number of the futex system call, and IEEE mode for floating point.
_MACHINES: dict[str, dict[str, str]] = {
    "x86": {
        "declarations": "declare void @llvm.x86.sse2.pause()\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)",
        "pause": "call void @llvm.x86.sse2.pause()",
        "futex": "202",
        "ieee": "%mode = alloca i32\n  store i32 8064, ptr %mode\n  call void @llvm.x86.sse.ldmxcsr(ptr %mode)",
    },
    "aarch64": {
        "declarations": "declare void @llvm.aarch64.hint(i32)\ndeclare void @llvm.aarch64.set.fpcr(i64)",
        "pause": "call void @llvm.aarch64.hint(i32 1)",
        "futex": "98",
        "ieee": "call void @llvm.aarch64.set.fpcr(i64 0)",
    },
}

_CALLER_SPIN = 4000
"""Pauses that a caller makes while other threads finish the region's last chunks, before it sleeps."""
_WATCH_NS = 10_000_000
"""Nanoseconds that the caller of a watched region sleeps before it looks for signals."""

# Offsets: 0 word, 8 function, 16 context, 24 chunks | 64 done, 68 caller asleep | 128 epoch (what idle workers sleep
# on), 132 sleepers, 136 stop, 140 seats taken | 192 spin, 196 workers | 256 lock |
# 512 the workers' seats.
_TEXT = """
declare i64 @syscall(i64, ...)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(ptr, ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
{declarations}
{placement}

; Take chunks until none is left, then count those done; wake the caller if that was what it sleeps for.
define internal void @tilework_pool_drain(ptr %pool) #0 {{
entry:
  %function_at = getelementptr i8, ptr %pool, i64 8
  %context_at = getelementptr i8, ptr %pool, i64 16
  %chunks_at = getelementptr i8, ptr %pool, i64 24
  br label %look
look:
  %mine = phi i32 [ 0, %entry ], [ %mine, %try ], [ %mine1, %go ]
  %word = load atomic i64, ptr %pool acquire, align 8
  %chunk = trunc i64 %word to i32
  %function = load atomic ptr, ptr %function_at acquire, align 8
  %context = load atomic ptr, ptr %context_at acquire, align 8
  %chunks = load atomic i32, ptr %chunks_at acquire, align 4
  %left = icmp ult i32 %chunk, %chunks
  br i1 %left, label %try, label %end
try:
  %next = add i64 %word, 1
  %swap = cmpxchg ptr %pool, i64 %word, i64 %next acq_rel acquire
  %won = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %won, label %go, label %look
go:
  call void %function(ptr %context, i32 %chunk, i32 %chunks)
  %mine1 = add i32 %mine, 1
  br label %look
end:
  %some = icmp ne i32 %mine, 0
  br i1 %some, label %count, label %out
count:
  %done_at = getelementptr i8, ptr %pool, i64 64
  %before = atomicrmw add ptr %done_at, i32 %mine seq_cst
  %asleep_at = getelementptr i8, ptr %pool, i64 68
  %asleep = load atomic i32, ptr %asleep_at seq_cst, align 4
  %wanted = icmp ne i32 %asleep, 0
  br i1 %wanted, label %wake, label %out
wake:
  %woken = call i64 (i64, ...) @syscall(i64 {futex}, ptr %done_at, i64 129, i64 1, ptr null, ptr null, i64 0)
  br label %out
out:
  ret void
}}

define internal ptr @tilework_pool_worker(ptr %pool) #0 {{
entry:
  {ieee}
  %seat = call ptr @tilework_pool_sit(ptr %pool)
  %epoch_at = getelementptr i8, ptr %pool, i64 128
  %sleepers_at = getelementptr i8, ptr %pool, i64 132
  %stop_at = getelementptr i8, ptr %pool, i64 136
  %spin_at = getelementptr i8, ptr %pool, i64 192
  br label %idle
idle:
  %last = phi i32 [ 0, %entry ], [ %last, %up ], [ %last, %again ], [ %generation, %run ]
  %spin = load atomic i32, ptr %spin_at monotonic, align 4
  br label %look
look:
  %tries = phi i32 [ 0, %idle ], [ %tries1, %pause ]
  %stop = load atomic i32, ptr %stop_at acquire, align 4
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %out, label %check
check:
  %word = load atomic i64, ptr %pool acquire, align 8
  %high = lshr i64 %word, 32
  %generation = trunc i64 %high to i32
  %next = trunc i64 %word to i32
  %new = icmp ne i32 %generation, %last
  %open = icmp ne i32 %next, -1
  %ready = and i1 %new, %open
  br i1 %ready, label %run, label %pause
pause:
  {pause}
  %tries1 = add i32 %tries, 1
  %more = icmp slt i32 %tries1, %spin
  br i1 %more, label %look, label %announce
announce:
  call void @tilework_pool_lie_down(ptr %seat)
  %epoch = load atomic i32, ptr %epoch_at seq_cst, align 4
  %count = atomicrmw add ptr %sleepers_at, i32 1 seq_cst
  %word2 = load atomic i64, ptr %pool seq_cst, align 8
  %high2 = lshr i64 %word2, 32
  %generation2 = trunc i64 %high2 to i32
  %stop2 = load atomic i32, ptr %stop_at seq_cst, align 4
  %same = icmp eq i32 %generation2, %last
  %going = icmp eq i32 %stop2, 0
  %sleep = and i1 %same, %going
  br i1 %sleep, label %wait, label %again
wait:
  %epoch64 = zext i32 %epoch to i64
  %waited = call i64 (i64, ...) @syscall(i64 {futex}, ptr %epoch_at, i64 128, i64 %epoch64, ptr null, ptr null, i64 0)
  %woken = icmp eq i64 %waited, 0
  br i1 %woken, label %up, label %again
up:
  call void @tilework_pool_get_up(ptr %seat)
  br label %idle
again:
  call void @tilework_pool_get_up(ptr %seat)
  %count2 = atomicrmw sub ptr %sleepers_at, i32 1 seq_cst
  br label %idle
run:
  call void @tilework_pool_drain(ptr %pool)
  br label %idle
out:
  ret ptr null
}}

; The caller owns the lock here, and there are workers.
define internal void @tilework_pool_publish(ptr %pool, ptr %function, ptr %context, i32 %chunks, i1 %watched) #0 {{
entry:
  %time = alloca [2 x i64]
  store i64 0, ptr %time
  %time_low = getelementptr i8, ptr %time, i64 8
  store i64 {watch}, ptr %time_low
  %timeout = select i1 %watched, ptr %time, ptr null
  %function_at = getelementptr i8, ptr %pool, i64 8
  %context_at = getelementptr i8, ptr %pool, i64 16
  %chunks_at = getelementptr i8, ptr %pool, i64 24
  %done_at = getelementptr i8, ptr %pool, i64 64
  %asleep_at = getelementptr i8, ptr %pool, i64 68
  %epoch_at = getelementptr i8, ptr %pool, i64 128
  %sleepers_at = getelementptr i8, ptr %pool, i64 132
  %word = load atomic i64, ptr %pool monotonic, align 8
  %old = and i64 %word, -4294967296
  %new = add i64 %old, 4294967296
  %closed = or i64 %new, 4294967295
  %previous = atomicrmw xchg ptr %pool, i64 %closed seq_cst
  ; Release: who reads one of these fields also sees that the word was closed before, so its swap must fail.
  store atomic ptr %function, ptr %function_at release, align 8
  store atomic ptr %context, ptr %context_at release, align 8
  store atomic i32 %chunks, ptr %chunks_at release, align 4
  store atomic i32 0, ptr %done_at release, align 4
  store atomic i64 %new, ptr %pool seq_cst, align 8
  %sleepers = load atomic i32, ptr %sleepers_at seq_cst, align 4
  %some = icmp ne i32 %sleepers, 0
  br i1 %some, label %wake, label %go
wake:
  %here = call i32 @tilework_pool_make_room(ptr %pool)
  %epoch = atomicrmw add ptr %epoch_at, i32 1 seq_cst
  %others = sub i32 %chunks, 1
  %others64 = zext i32 %others to i64
  %woken = call i64 (i64, ...) @syscall(i64 {futex}, ptr %epoch_at, i64 129, i64 %others64, ptr null, ptr null, i64 0)
  call void @tilework_pool_each_seat(ptr %pool, i32 %here, i1 true)
  %woken32 = trunc i64 %woken to i32
  %any = icmp sgt i32 %woken32, 0
  br i1 %any, label %discount, label %go
discount:
  %counted = atomicrmw sub ptr %sleepers_at, i32 %woken32 seq_cst
  br label %go
go:
  call void @tilework_pool_drain(ptr %pool)
  br label %look
look:
  %tries = phi i32 [ 0, %go ], [ %tries1, %pause ]
  %done = load atomic i32, ptr %done_at acquire, align 4
  %all = icmp eq i32 %done, %chunks
  br i1 %all, label %out, label %pause
pause:
  {pause}
  %tries1 = add i32 %tries, 1
  %more = icmp slt i32 %tries1, {caller_spin}
  br i1 %more, label %look, label %announce
announce:
  store atomic i32 1, ptr %asleep_at seq_cst, align 4
  br label %again
again:
  %done2 = load atomic i32, ptr %done_at seq_cst, align 4
  %all2 = icmp eq i32 %done2, %chunks
  br i1 %all2, label %awake, label %wait
wait:
  %done64 = zext i32 %done2 to i64
  %waited = call i64 (i64, ...) @syscall(i64 {futex}, ptr %done_at, i64 128, i64 %done64, ptr %timeout, ptr null, i64 0)
  br i1 %watched, label %watch, label %again
watch:
  call void %function(ptr %context, i32 -1, i32 %chunks)
  br label %again
awake:
  store atomic i32 0, ptr %asleep_at monotonic, align 4
  br label %out
out:
  ret void
}}

define void @tilework_pool_run(ptr %pool, ptr %function, ptr %context, i32 %chunks) #0 {{
  call void @tilework_pool_begin(ptr %pool, ptr %function, ptr %context, i32 %chunks, i1 false)
  ret void
}}

define void @tilework_pool_run_watched(ptr %pool, ptr %function, ptr %context, i32 %chunks) #0 {{
  call void @tilework_pool_begin(ptr %pool, ptr %function, ptr %context, i32 %chunks, i1 true)
  ret void
}}

define internal void @tilework_pool_begin(ptr %pool, ptr %function, ptr %context, i32 %chunks, i1 %watched) #0 {{
entry:
  %none = icmp slt i32 %chunks, 1
  br i1 %none, label %out, label %some
some:
  %one = icmp eq i32 %chunks, 1
  %alone = icmp eq ptr %pool, null
  %serial = or i1 %one, %alone
  br i1 %serial, label %inline, label %ask
ask:
  %workers_at = getelementptr i8, ptr %pool, i64 196
  %workers = load atomic i32, ptr %workers_at monotonic, align 4
  %lock_at = getelementptr i8, ptr %pool, i64 256
  %held = load atomic i32, ptr %lock_at monotonic, align 4
  %helped = icmp ne i32 %workers, 0
  %free = icmp eq i32 %held, 0
  %parallel = and i1 %helped, %free
  br i1 %parallel, label %try, label %inline
try:
  %was = atomicrmw xchg ptr %lock_at, i32 1 acquire
  %got = icmp eq i32 %was, 0
  br i1 %got, label %publish, label %inline
publish:
  call void @tilework_pool_publish(ptr %pool, ptr %function, ptr %context, i32 %chunks, i1 %watched)
  store atomic i32 0, ptr %lock_at release, align 4
  br label %out
inline:
  %chunk = phi i32 [ 0, %some ], [ 0, %ask ], [ 0, %try ], [ %chunk1, %inline ]
  call void %function(ptr %context, i32 %chunk, i32 %chunks)
  %chunk1 = add i32 %chunk, 1
  %more = icmp slt i32 %chunk1, %chunks
  br i1 %more, label %inline, label %out
out:
  ret void
}}

define i32 @tilework_pool_spawn(ptr %pool, ptr %thread) #0 {{
  %error = call i32 @pthread_create(ptr %thread, ptr null, ptr @tilework_pool_worker, ptr %pool)
  ret i32 %error
}}

define void @tilework_pool_stop(ptr %pool) #0 {{
  %stop_at = getelementptr i8, ptr %pool, i64 136
  %epoch_at = getelementptr i8, ptr %pool, i64 128
  store atomic i32 1, ptr %stop_at seq_cst, align 4
  %epoch = atomicrmw add ptr %epoch_at, i32 1 seq_cst
  %woken = call i64 (i64, ...) @syscall(i64 {futex}, ptr %epoch_at, i64 129, i64 2147483647, ptr null, ptr null, i64 0)
  ret void
}}

define i32 @tilework_pool_join(ptr %thread) #0 {{
  %handle = load ptr, ptr %thread
  %error = call i32 @pthread_join(ptr %handle, ptr null)
  ret i32 %error
}}

; A region that was open when a process forked is over in the child: nobody is left who could be running it.
define void @tilework_pool_reset(ptr %pool) #0 {{
  %chunks_at = getelementptr i8, ptr %pool, i64 24
  %asleep_at = getelementptr i8, ptr %pool, i64 68
  %sleepers_at = getelementptr i8, ptr %pool, i64 132
  %stop_at = getelementptr i8, ptr %pool, i64 136
  %workers_at = getelementptr i8, ptr %pool, i64 196
  %lock_at = getelementptr i8, ptr %pool, i64 256
  %taken_at = getelementptr i8, ptr %pool, i64 140
  %seats_at = getelementptr i8, ptr %pool, i64 {seats_at}
  call void @llvm.memset.p0.i64(ptr %seats_at, i8 0, i64 {seats_size}, i1 false)
  store atomic i32 0, ptr %taken_at seq_cst, align 4
  store atomic i32 0, ptr %workers_at seq_cst, align 4
  store atomic i32 0, ptr %chunks_at seq_cst, align 4
  store atomic i32 0, ptr %asleep_at seq_cst, align 4
  store atomic i32 0, ptr %sleepers_at seq_cst, align 4
  store atomic i32 0, ptr %stop_at seq_cst, align 4
  store atomic i32 0, ptr %lock_at seq_cst, align 4
  ret void
}}

attributes #0 = {{ nounwind }}
"""


INLINE_TEXT = """
define void @tilework_pool_run(ptr %pool, ptr %function, ptr %context, i32 %chunks) #0 {
entry:
  %some = icmp sgt i32 %chunks, 0
  br i1 %some, label %inline, label %out
inline:
  %chunk = phi i32 [ 0, %entry ], [ %chunk1, %inline ]
  call void %function(ptr %context, i32 %chunk, i32 %chunks)
  %chunk1 = add i32 %chunk, 1
  %more = icmp slt i32 %chunk1, %chunks
  br i1 %more, label %inline, label %out
out:
  ret void
}

define void @tilework_pool_run_watched(ptr %pool, ptr %function, ptr %context, i32 %chunks) #0 {
  call void @tilework_pool_run(ptr %pool, ptr %function, ptr %context, i32 %chunks)
  ret void
}
attributes #0 = { nounwind }
"""
"""LLVM text of a pool without workers, for any target: every region runs in its caller."""
INLINE_EXPORTS = ("tilework_pool_run", "tilework_pool_run_watched")


def has_workers(triple: str) -> bool:
    """Whether the pool can have workers on this target: Linux on x86-64 or AArch64."""
    return architecture(triple) in _MACHINES and "linux" in triple


def pool_text(triple: str) -> str:
    """LLVM text of the thread pool for a Linux target; it defines `EXPORTS` and needs `syscall` and pthreads.

    Raises:
        CodegenError: 1750 for another operating system or architecture.
    """
    if not has_workers(triple):
        raise CodegenError(1750, f"no thread pool for {triple}", where=triple)
    machine = architecture(triple)
    placement = placement_text(machine)
    return _TEXT.format(
        caller_spin=_CALLER_SPIN, watch=_WATCH_NS, placement=placement, seats_at=SEATS_OFFSET,
        seats_size=SEATS * SEAT_BYTES, **_MACHINES[machine],
    )  # fmt: skip
