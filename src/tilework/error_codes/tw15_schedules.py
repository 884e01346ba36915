"""Codes 1500 to 1599: schedules and layouts."""

from __future__ import annotations

from collections.abc import Mapping

from tilework.error_codes.info import CodeInfo

CODES: Mapping[int, CodeInfo] = {
    1501: CodeInfo(
        "unknown loop or statement",
        "A schedule step names a loop, a statement or an argument that does not exist.",
        "Use a name that the message lists.",
    ),
    1502: CodeInfo(
        "undecided step",
        "The checks cannot prove the step legal, so it is refused.",
        "Schedule so that loops index the result directly, or take the alternative named.",
    ),
    1503: CodeInfo("bad trace", "A text is not the trace of a schedule.", "Write traces with trace_to_json."),
    1504: CodeInfo(
        "trace does not apply",
        "A step of a trace is illegal on this program.",
        "Look at the step named; the program may have another shape.",
    ),
    1505: CodeInfo(
        "bad argument of a step",
        "A schedule step has an argument that makes no sense.",
        "Give a value that the message asks for.",
    ),
    1506: CodeInfo(
        "loop already marked",
        "Only a serial loop can be changed by this step.",
        "Apply the step before the loop is vectorised, unrolled or made parallel.",
    ),
    1507: CodeInfo(
        "name in use", "A step would give a loop a name that another loop has.", "Give the new loops other names."
    ),
    1508: CodeInfo(
        "no perfect nest",
        "The loops are not directly inside each other.",
        "Name loops of one nest whose bodies hold nothing else.",
    ),
    1509: CodeInfo(
        "partial reduction",
        "A statement reduces over one of two loops only.",
        "Fuse loops that a statement reduces over both or neither.",
    ),
    1510: CodeInfo(
        "extent not constant or too large",
        "Unrolling and vectorising need a small constant number of iterations.",
        "Split the loop first and mark the inner one.",
    ),
    1511: CodeInfo(
        "nested marks",
        "Vector loops hold no vector or parallel loops, and parallel loops are outermost.",
        "Mark one of the loops only.",
    ),
    1512: CodeInfo(
        "reassociation under strict numerics",
        "The step would regroup a reduction, and numerics are strict.",
        "Use numerics='default', or choose a loop that indexes the result.",
    ),
    1513: CodeInfo(
        "race",
        "Iterations of the loop touch the same element, and one of them writes it.",
        "Parallelise a loop that indexes the result.",
    ),
    1514: CodeInfo(
        "cannot be inlined",
        "The statement is not an elementwise producer of a temporary.",
        "Inline only stages that compute each element on its own and that nobody else writes.",
    ),
    1515: CodeInfo(
        "layout of a result",
        "A result that the caller gets cannot stand in another layout.",
        "Transform a temporary, or an argument that is only read.",
    ),
    1516: CodeInfo(
        "buffer written here",
        "A part of a buffer cannot be copied where something writes the buffer.",
        "Copy inside a loop in which it is only read.",
    ),
    1517: CodeInfo(
        "no reduction to take apart",
        "The statement has no start or no reduction loop.",
        "Name a reduction that still has its start.",
    ),
    1518: CodeInfo(
        "no memory to bring near",
        "Only memory that lives at the start of the loop can be prefetched.",
        "Prefetch what a statement stores to memory.",
    ),
    1519: CodeInfo(
        "part of an instruction",
        "The step would change what stands for one machine instruction: the instruction itself would not change with it.",
        "Schedule first and tensorize last.",
    ),
    1520: CodeInfo(
        "cannot move there",
        "A computation or a storage cannot move to that loop: something there, or in between, uses or overwrites what it "
        "needs.",
        "Choose another loop, or move what stands in the way first.",
    ),
    1521: CodeInfo(
        "not what the instruction does",
        "A loop nest is not, node for node, what an instruction of the machine means.",
        "Split and reorder until the nest has the loops, accesses and types that the message names.",
    ),
    1522: CodeInfo(
        "storage of the wrong scope",
        "A buffer cannot live in that scope: its size is not constant, it is an argument, or threads share it.",
        "Use scope 'global', or move the storage into a loop where it is small.",
    ),
    1523: CodeInfo(
        "nothing to schedule",
        "A schedule was to be made of something that is no loop program.",
        "Give a loop program: `loop_program(computation(...))` of `tilework.compute` makes one.",
    ),
}
