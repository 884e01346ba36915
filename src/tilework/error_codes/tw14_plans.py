"""Codes 1400 to 1499: plans and memory."""

from __future__ import annotations

from collections.abc import Mapping

from tilework.error_codes.info import CodeInfo

CODES: Mapping[int, CodeInfo] = {
    1401: CodeInfo(
        "unknown name in a plan",
        "A plan names a buffer, queue, device, space, arena, input or output that it does not have.",
        "Add it to the plan's tables, or correct the name.",
    ),
    1402: CodeInfo(
        "name used twice in a plan",
        "Two things of one kind in a plan have the same name, or an event is signalled twice.",
        "Give each its own name.",
    ),
    1403: CodeInfo(
        "wrong number of arguments of a step",
        "A step gives a kernel more or fewer buffers or symbols than its signature has.",
        "Give one per buffer and symbol of the signature, in order.",
    ),
    1404: CodeInfo(
        "argument does not fit",
        "A buffer or symbol given to a step has another shape, type or range than the step takes.",
        "Give a buffer of the shape and type in the message.",
    ),
    1405: CodeInfo(
        "misaligned buffer",
        "A buffer is not at the multiple of bytes that was promised or is needed.",
        "Align offsets and arenas to the buffer's alignment.",
    ),
    1406: CodeInfo(
        "overlapping buffers",
        "Two buffers share bytes although both hold values that are still needed.",
        "Place them apart, or add waits that order one life before the other.",
    ),
    1407: CodeInfo(
        "race between steps",
        "Two steps touch the same bytes, one of them writes, and nothing says which comes first.",
        "Put them on one queue, or let one signal an event that the other waits for.",
    ),
    1408: CodeInfo(
        "read before written",
        "A step reads a buffer that no step is sure to have written before.",
        "Order the writing step before it, on every way through branches and loops.",
    ),
    1409: CodeInfo(
        "wait without a signal",
        "A step waits for an event that no earlier step signals where this step can see it.",
        "Signal the event in an earlier step of the same list or of one around it.",
    ),
    1410: CodeInfo(
        "cycle of waits", "Steps wait for each other in a circle: the plan would never end.", "Remove one of the waits."
    ),
    1411: CodeInfo(
        "memory out of reach",
        "A step's device cannot reach the memory space of one of its buffers.",
        "Copy the buffer to a space of the device first.",
    ),
    1412: CodeInfo(
        "broken alias rule",
        "Buffers, inputs or outputs share memory in a way that was not declared, or do not where it was.",
        "Give them one alias set and one memory, or a kernel that allows it.",
    ),
    1413: CodeInfo(
        "output not produced",
        "An output is never written, or its buffer has another shape or type.",
        "Write the output's buffer on every way through the plan.",
    ),
    1414: CodeInfo(
        "write to a constant or read-only input",
        "A step writes memory that must keep its contents.",
        "Write to another buffer, or declare the input donated or mutated.",
    ),
    1415: CodeInfo(
        "buffer outside its memory",
        "The bytes of a buffer do not lie inside its arena, input or output, or a kernel writes outside its boxes.",
        "Enlarge the arena, or correct the offset or the boxes.",
    ),
    1416: CodeInfo(
        "symbol without a value in a plan",
        "A plan uses a symbol that nothing binds before it is needed.",
        "Bind it to an input's extent, or measure it in an earlier step.",
    ),
    1417: CodeInfo(
        "bad control step",
        "A branch, loop or measurement reads a value of the wrong type or shape, or a loop would never end.",
        "Decide by one boolean; measure integers; give loops a condition or a number of trips.",
    ),
    1418: CodeInfo(
        "memory not allocated",
        "A buffer of measured size is used where no step is sure to have allocated it, or another is allocated.",
        "Allocate it after its symbols are measured and before its first use.",
    ),
    1419: CodeInfo(
        "plan text not readable",
        "The text form of a plan cannot be read.",
        "Correct the line that the message names; `plan.text` shows the form.",
    ),
    1420: CodeInfo(
        "missing part of a plan",
        "A constant, black box or kernel meaning that a plan refers to was not given.",
        "Pass it with the plan, under the digest or identity in the message.",
    ),
    1421: CodeInfo(
        "wrong result of a black box",
        "A black box returned another number, type or shape of results than its step declares.",
        "Correct the black box, or the step's outputs.",
    ),
    1422: CodeInfo(
        "memory cannot be planned",
        "A buffer cannot be placed: its size has no bound, or it does not fit.",
        "Give the symbol an upper bound, or let a step allocate the buffer.",
    ),
    1423: CodeInfo(
        "meaning does not fit the kernel",
        "The loop program that states a step's meaning has other buffers or symbols than its kernel.",
        "State the meaning over the buffers of the kernel's signature.",
    ),
    1424: CodeInfo(
        "measured value out of bounds",
        "A step measured a value outside the bounds of its symbol.",
        "Correct the values that decide the size, or give the symbol wider bounds.",
    ),
}
