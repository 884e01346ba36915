"""Codes 1700 to 1799: calls of an executable, and reports on it."""

from __future__ import annotations

from collections.abc import Mapping

from tilework.error_codes.info import CodeInfo

CODES: Mapping[int, CodeInfo] = {
    1701: CodeInfo(
        "wrong arguments",
        "An executable was called with too few, too many, unknown or repeated arguments.",
        "Pass each input once, by position or by the name listed.",
    ),
    1702: CodeInfo(
        "wrong data type",
        "An argument's elements have another type than the input's.",
        "Convert with `astype`; Tilework never casts an argument silently.",
    ),
    1703: CodeInfo(
        "wrong byte order",
        "An argument's elements are not in this machine's byte order.",
        "Convert with `array.astype(array.dtype.newbyteorder('='))`.",
    ),
    1704: CodeInfo(
        "wrong rank",
        "An argument has another number of dimensions than the input.",
        "Reshape the argument to the shape that the message shows.",
    ),
    1705: CodeInfo(
        "wrong dimension",
        "A dimension of an argument is not what the input's shape says.",
        "Pass an array of the shape that the message shows.",
    ),
    1706: CodeInfo(
        "dimensions disagree",
        "A symbolic dimension has different values in two arguments.",
        "Give the arguments the same extent there.",
    ),
    1707: CodeInfo(
        "dimension out of range",
        "A symbolic dimension is outside its bounds or no multiple of its divisor.",
        "Pass an extent within the bounds, or compile with wider ones.",
    ),
    1708: CodeInfo(
        "argument is read-only",
        "An input that the executable changes was given a read-only array.",
        "Pass a writeable array (a copy of it, for example).",
    ),
    1709: CodeInfo(
        "not an array",
        "An argument can be turned into no numpy array.",
        "Pass a numpy array or nested lists of numbers.",
    ),
    1710: CodeInfo(
        "memory limit",
        "A call needs more memory than the limit, or than the machine can give.",
        "Use smaller dimensions, or raise the limit: `memory_limit` of `tilework.compile`, `memory_limit_bytes` of `ContextOptions`, or `TILEWORK_MEMORY_LIMIT`.",
    ),
    1711: CodeInfo(
        "arguments share memory",
        "Two arguments that a call changes lie in the same memory.",
        "Pass arrays that do not overlap.",
    ),
    1712: CodeInfo(
        "argument needs a copy",
        "An argument is not contiguous or not aligned, and the input's policy refuses copies.",
        "Pass a contiguous array, or compile with the policy that copies.",
    ),
    1713: CodeInfo(
        "argument on another device",
        "An argument is in memory of a device that the processor cannot read.",
        "Copy it to the processor first (`tensor.cpu()`, for example).",
    ),
    1750: CodeInfo(
        "no thread pool here",
        "The thread pool has no code for this operating system or architecture.",
        "Use one thread (`threads=1`).",
    ),
    1751: CodeInfo(
        "thread not started",
        "The operating system refused to start a worker thread.",
        "Use fewer threads, or raise the process's limit on threads.",
    ),
    1752: CodeInfo(
        "context closed",
        "A context was used after it was closed.",
        "Keep the context open for as long as its executables are used.",
    ),
    1753: CodeInfo(
        "pending call given up",
        "A pending call was never made: its context was closed before, or this process is the child of a fork.",
        "Ask for the results before the context is closed, and make calls anew after a fork.",
    ),
    1754: CodeInfo(
        "call not done yet",
        "The result of a pending call was not there in the time that was given.",
        "Ask again, or wait longer: the call goes on.",
    ),
    1760: CodeInfo(
        "bad measuring settings",
        "A setting of a measurement makes no sense, or times are asked of a measurement that has none.",
        "Give a value of the kind that the message names; look at the measurement's outcome first.",
    ),
    1761: CodeInfo(
        "no measuring worker",
        "The process that builds and times kernels could not be started.",
        "See what it said: a missing library or too little memory, most likely.",
    ),
    1762: CodeInfo(
        "cannot be measured",
        "Only schedules, candidates and jobs can be measured.",
        "Pass a Schedule, or a Candidate that builds one.",
    ),
    1763: CodeInfo(
        "machine without a name",
        "A worker finds machines by their names, and the schedule's machine is none of those.",
        "Schedule for the host or for a machine that Tilework knows by name.",
    ),
    1764: CodeInfo(
        "code for another processor",
        "Code was to be run or timed here that is made for instructions that this processor does not have.",
        "Compile for the host or run it on such a machine; `tilework compile --machine` prints code for any machine.",
    ),
    1765: CodeInfo(
        "probe did not run",
        "A small program that measures what the machine can do did not run.",
        "See the reason named; use the assumed roofline meanwhile.",
    ),
    1766: CodeInfo(
        "engine failed",
        "The process in which Tilework was to run a model beside other engines ended or failed.",
        "Run the model by itself (`tilework run`): its error is told there.",
    ),
    1770: CodeInfo(
        "nothing to report on",
        "Only schedules and candidates for a CPU can be reported on.",
        "Pass a Schedule whose machine is a CPU (or none: then the host is meant), or a Candidate that builds one.",
    ),
    1771: CodeInfo(
        "no roofline",
        "A report was asked for with something that is no roofline.",
        "Use 'assumed', 'probe', or a Roofline.",
    ),
}
