"""Codes 1600 to 1699: lowering, code generation and machines."""

from __future__ import annotations

from collections.abc import Mapping

from tilework.error_codes.info import CodeInfo

CODES: Mapping[int, CodeInfo] = {
    1602: CodeInfo(
        "bad vectorised loop",
        "A vectorised loop needs a constant extent of at most 64.",
        "Split the loop by a constant first and vectorise the inner one.",
    ),
    1603: CodeInfo(
        "no code for this type or function",
        "Code generation has no instructions for an element type, or for a function of it.",
        "Cast to a type that has them.",
    ),
    1604: CodeInfo(
        "loop of another machine",
        "A loop's kind belongs to another kind of machine.",
        "Schedule the program for the machine that it is compiled for.",
    ),
    1605: CodeInfo(
        "name without meaning",
        "A statement uses a buffer, variable or parameter that does not exist where the statement stands.",
        "Verify the loop program; move the statement or the storage.",
    ),
    1606: CodeInfo(
        "storage of changing size",
        "The size of a stored buffer depends on something that is known only inside a loop.",
        "Give the storage its largest size.",
    ),
    1607: CodeInfo(
        "parallel iterations may meet",
        "Iterations of a parallel loop may write the same element.",
        "Make the loop serial, or give each iteration elements of its own.",
    ),
    1608: CodeInfo(
        "too much unrolled",
        "Once its loops are unrolled, a program has more statements than can be compiled in time.",
        "Unroll less.",
    ),
    1609: CodeInfo(
        "constant beyond 64 bits",
        "An index, an extent or a guard of a program needs a constant that a signed number of 64 bits does not hold.",
        "Use extents and factors whose products stay below 2**63.",
    ),
    1620: CodeInfo(
        "unknown machine",
        "There is no description of a machine of that name.",
        "Use one of the names listed, or `host`.",
    ),
    1650: CodeInfo(
        "not expressible in code",
        "An operator or a literal cannot be written as generated code.",
        "Use another type, or report the operator.",
    ),
    1651: CodeInfo(
        "not inside one native call",
        "A step of a plan cannot run inside a captured segment.",
        "Put the step into an interactive segment.",
    ),
    1652: CodeInfo(
        "not compiled yet",
        "Effects, and black boxes in the bodies of control flow, are part of graphs but are not compiled yet.",
        "Simplify the model, or run that part elsewhere.",
    ),
    1653: CodeInfo(
        "symbol that no input binds",
        "A size depends on a symbol that no input's shape tells.",
        "Fix that dimension when compiling.",
    ),
    1680: CodeInfo(
        "LLVM text refused",
        "LLVM cannot read or verify the text that the code generator printed.",
        "Report it with the text; the message has LLVM's own words.",
    ),
    1681: CodeInfo(
        "instruction not on this machine",
        "Generated text uses a machine instruction that the target does not have.",
        "Choose a machine with the feature named, or a schedule without the intrinsic.",
    ),
    1682: CodeInfo(
        "unresolved symbol",
        "Object code calls a function that is neither exported by the code it uses nor among the host functions.",
        "Load the object that defines it first, or rebuild the object with this version.",
    ),
    1683: CodeInfo(
        "damaged object code",
        "Bytes that should be object code cannot be read or linked.",
        "Remove the entry from the cache and compile again.",
    ),
    1684: CodeInfo(
        "unknown target",
        "LLVM here cannot generate code for the triple asked for.",
        "Use a triple of x86-64 or AArch64.",
    ),
    1685: CodeInfo(
        "JIT closed",
        "Code was to be loaded into a context that is closed.",
        "Keep the context open for as long as its executables are used.",
    ),
}
