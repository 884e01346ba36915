"""Where the thread pool's workers wake up: never on the processor of the caller that waits for them.

Linux wakes a thread on the processor it slept on unless it finds an idle one. In a virtual machine an idle processor
is a halted one, which the host reports as taken away, and then none counts as idle: a worker that once slept on its
caller's processor is woken there, behind the caller, and helps only when the caller is done. So a worker says where it
goes to sleep, and a caller that finds one on its own processor takes that processor from the worker's set before it
wakes it. As soon as all are woken (and so have their places), the caller gives it back.
"""

from __future__ import annotations

SEATS_OFFSET = 512
"""Byte offset of the workers' seats in a pool's state."""
SEATS = 256
"""Seats there are; workers beyond them are woken where the system likes."""
SEAT_BYTES = 16
"""Of a seat: int32 thread, 1 + the processor that it sleeps on (0: awake), 1 + the processor taken from its set."""
TAKEN_OFFSET = 140
"""Byte offset of the int32 that counts the seats taken."""

_SET_BYTES = 1024
"""Size of a set of processors, a bit for each: as many as the kernel can have."""

_SYSTEM_CALLS: dict[str, dict[str, str]] = {
    "x86": {"set": "203", "get": "204", "thread": "186"},
    "aarch64": {"set": "122", "get": "123", "thread": "178"},
}
"""Numbers of sched_setaffinity, sched_getaffinity and gettid."""

_TEXT = """
declare i32 @sched_getcpu()

; The processor that runs this, plus one; 0 where the system does not tell.
define internal i32 @tilework_pool_here() #0 {{
  %processor = call i32 @sched_getcpu()
  %known = icmp sge i32 %processor, 0
  %one = add i32 %processor, 1
  %here = select i1 %known, i32 %one, i32 0
  ret i32 %here
}}

; Put a processor (plus one) into a thread's set or take it out, unless the set would be empty; returns whether it did:
; false too where nothing had to change, so that nobody gives back what was never taken.
define internal i1 @tilework_pool_change_set(i32 %thread, i32 %here, i1 %in) #0 {{
entry:
  %set = alloca [{bytes} x i8], align 8
  %got = call i64 (i64, ...) @syscall(i64 {get}, i32 %thread, i64 {bytes}, ptr %set)
  %some = icmp sgt i64 %got, 0
  br i1 %some, label %change, label %no
change:
  %processor = sub i32 %here, 1
  %byte = lshr i32 %processor, 3
  %byte64 = zext i32 %byte to i64
  %within = icmp ult i64 %byte64, %got
  br i1 %within, label %write, label %no
write:
  %at = getelementptr i8, ptr %set, i64 %byte64
  %bits = load i8, ptr %at
  %low = and i32 %processor, 7
  %low8 = trunc i32 %low to i8
  %bit = shl i8 1, %low8
  %with = or i8 %bits, %bit
  %rest = xor i8 %bit, -1
  %without = and i8 %bits, %rest
  %new = select i1 %in, i8 %with, i8 %without
  %other = icmp ne i8 %new, %bits
  br i1 %other, label %change_it, label %no
change_it:
  store i8 %new, ptr %at
  br label %look
look:
  %index = phi i64 [ 0, %change_it ], [ %index1, %more ]
  %here_at = getelementptr i8, ptr %set, i64 %index
  %found = load i8, ptr %here_at
  %any = icmp ne i8 %found, 0
  br i1 %any, label %set_it, label %more
more:
  %index1 = add i64 %index, 1
  %left = icmp ult i64 %index1, %got
  br i1 %left, label %look, label %no
set_it:
  %error = call i64 (i64, ...) @syscall(i64 {set}, i32 %thread, i64 %got, ptr %set)
  %done = icmp eq i64 %error, 0
  ret i1 %done
no:
  ret i1 false
}}

; A worker takes a seat; null where there is none left.
define internal ptr @tilework_pool_sit(ptr %pool) #0 {{
entry:
  %taken_at = getelementptr i8, ptr %pool, i64 {taken}
  %seat = atomicrmw add ptr %taken_at, i32 1 seq_cst
  %free = icmp ult i32 %seat, {seats}
  br i1 %free, label %sit, label %none
sit:
  %seat64 = zext i32 %seat to i64
  %byte = mul i64 %seat64, {seat_bytes}
  %byte1 = add i64 %byte, {seats_at}
  %at = getelementptr i8, ptr %pool, i64 %byte1
  %asleep_at = getelementptr i8, ptr %at, i64 4
  %moved_at = getelementptr i8, ptr %at, i64 8
  %thread = call i64 (i64, ...) @syscall(i64 {thread})
  %thread32 = trunc i64 %thread to i32
  store atomic i32 0, ptr %asleep_at monotonic, align 4
  store atomic i32 0, ptr %moved_at monotonic, align 4
  store atomic i32 %thread32, ptr %at release, align 4
  ret ptr %at
none:
  ret ptr null
}}

; Before a worker announces that it sleeps.
define internal void @tilework_pool_lie_down(ptr %seat) #0 {{
entry:
  %seated = icmp ne ptr %seat, null
  br i1 %seated, label %note, label %out
note:
  %here = call i32 @tilework_pool_here()
  %asleep_at = getelementptr i8, ptr %seat, i64 4
  store atomic i32 %here, ptr %asleep_at seq_cst, align 4
  br label %out
out:
  ret void
}}

; When it is awake again.
define internal void @tilework_pool_get_up(ptr %seat) #0 {{
entry:
  %seated = icmp ne ptr %seat, null
  br i1 %seated, label %note, label %out
note:
  %asleep_at = getelementptr i8, ptr %seat, i64 4
  store atomic i32 0, ptr %asleep_at seq_cst, align 4
  br label %out
out:
  ret void
}}

; Before a caller wakes workers: none of them sleeps on its processor, which is the result. Afterwards: those that were
; moved may run there again. Only one caller at a time is between the two, the one that owns the pool's lock.
define internal i32 @tilework_pool_make_room(ptr %pool) #0 {{
  %here = call i32 @tilework_pool_here()
  call void @tilework_pool_each_seat(ptr %pool, i32 %here, i1 false)
  ret i32 %here
}}

define internal void @tilework_pool_each_seat(ptr %pool, i32 %here, i1 %back) #0 {{
entry:
  %known = icmp ne i32 %here, 0
  %taken_at = getelementptr i8, ptr %pool, i64 {taken}
  %taken = load atomic i32, ptr %taken_at acquire, align 4
  %few = icmp ult i32 %taken, {seats}
  %seats = select i1 %few, i32 %taken, i32 {seats}
  %end = zext i32 %seats to i64
  %any = icmp ne i64 %end, 0
  %go = and i1 %known, %any
  br i1 %go, label %look, label %out
look:
  %index = phi i64 [ 0, %entry ], [ %index1, %next ]
  %byte = mul i64 %index, {seat_bytes}
  %byte1 = add i64 %byte, {seats_at}
  %seat = getelementptr i8, ptr %pool, i64 %byte1
  %asleep_at = getelementptr i8, ptr %seat, i64 4
  %moved_at = getelementptr i8, ptr %seat, i64 8
  %asleep = load atomic i32, ptr %asleep_at seq_cst, align 4
  %moved = load atomic i32, ptr %moved_at monotonic, align 4
  %mark = select i1 %back, i32 %moved, i32 %asleep
  %same = icmp eq i32 %mark, %here
  br i1 %same, label %move, label %next
move:
  %thread = load atomic i32, ptr %seat acquire, align 4
  %done = call i1 @tilework_pool_change_set(i32 %thread, i32 %here, i1 %back)
  %taken_out = xor i1 %back, true
  %remember = and i1 %done, %taken_out
  %now = select i1 %remember, i32 %here, i32 0
  store atomic i32 %now, ptr %moved_at monotonic, align 4
  br label %next
next:
  %index1 = add i64 %index, 1
  %more = icmp ult i64 %index1, %end
  br i1 %more, label %look, label %out
out:
  ret void
}}
"""


def placement_text(machine: str) -> str:
    """LLVM text of the functions that seat, move and free workers; `machine` is "x86" or "aarch64". Needs `syscall`."""
    return _TEXT.format(
        bytes=_SET_BYTES, taken=TAKEN_OFFSET, seats=SEATS, seat_bytes=SEAT_BYTES, seats_at=SEATS_OFFSET,
        **_SYSTEM_CALLS[machine],
    )  # fmt: skip
