"""Codes 1300 to 1399: loop programs and index notation."""

from __future__ import annotations

from collections.abc import Mapping

from tilework.error_codes.info import CodeInfo

CODES: Mapping[int, CodeInfo] = {
    1301: CodeInfo(
        "operands do not fit",
        "A scalar function got operands of types that it does not take, or a literal is no value of its type.",
        "Cast the operands to one type that the function takes.",
    ),
    1302: CodeInfo(
        "unknown reducer", "No built-in reducer has this name.", "Use one of the names listed, or define a `Reducer`."
    ),
    1303: CodeInfo(
        "loop program text",
        "A text is not the text form of a loop program.",
        "Correct the line and column named; `program_text` shows the form.",
    ),
    1310: CodeInfo(
        "interpreter's arguments",
        "The arrays or symbols given to the interpreter do not fit the program, or the program names what does not exist.",
        "Give an array of the buffer's shape and type for each argument and a value for each symbol; run the verifier.",
    ),
    1311: CodeInfo(
        "index out of bounds",
        "A statement touches an element outside its buffer.",
        "Correct the index, or guard the statement.",
    ),
    1312: CodeInfo(
        "undefined element",
        "A statement reads an element that nothing has written during this life of its storage.",
        "Write it first (an init for a reduction), or declare the argument as `accumulate`.",
    ),
    1313: CodeInfo(
        "race",
        "Two parallel iterations touch the same element and one of them writes it, or a copy in flight is overwritten.",
        "Make the iterations independent, or put a barrier or wait between them.",
    ),
    1314: CodeInfo(
        "barrier not reached",
        "Some threads of a block reach a barrier that others never reach.",
        "Put barriers where every thread of the scope comes by.",
    ),
    1315: CodeInfo(
        "divisor not positive",
        "An index divides by a symbolic integer that is zero or negative.",
        "Bound the symbol from below by 1.",
    ),
    1320: CodeInfo(
        "unknown name in a loop program",
        "A statement, index or extent names a buffer, loop variable or symbol that does not exist where it stands.",
        "Declare it, or move the statement inside the loop or storage that provides it.",
    ),
    1321: CodeInfo(
        "name used twice", "Two loops, buffers, symbols or reducers of a program have one name.", "Rename one of them."
    ),
    1322: CodeInfo(
        "wrong number of indices",
        "An element of a buffer is named with more or fewer indices than the buffer has dimensions.",
        "Give one index per dimension.",
    ),
    1323: CodeInfo(
        "types do not agree",
        "A value has another type than its target, or a load than its buffer.",
        "Cast the value, or correct the declaration.",
    ),
    1324: CodeInfo(
        "index of an unknown kind",
        "An index, guard or extent is no sum of loop variables (times symbols), their quotients and remainders, and loaded integers.",
        "Rewrite the index; a product of two loop variables has no such form.",
    ),
    1325: CodeInfo(
        "index always out of bounds",
        "An access leaves its buffer whatever the symbols are.",
        "Correct the index, the loop's extent or the buffer's shape, or guard the statement.",
    ),
    1326: CodeInfo(
        "bad reduction",
        "A statement's reduction variables, init and reducer do not belong together, or a variable is no enclosing loop.",
        "Name enclosing loops; an init needs a reducer.",
    ),
    1327: CodeInfo(
        "vectorized loop inside another",
        "Only one loop on a path can be the lanes of a vector.",
        "Unroll one of the loops.",
    ),
    1328: CodeInfo(
        "read-only buffer written",
        "A statement writes an argument that is declared as read.",
        "Declare the argument as `write` or `accumulate`.",
    ),
    1329: CodeInfo("negative extent", "A loop or a buffer has an extent below zero.", "Extents are at least 0."),
    1330: CodeInfo(
        "bad reducer",
        "A reducer's components, parameters and identity do not fit together, or its name is a built-in one's.",
        "Give one `combine` and one identity per component, over its own parameters.",
    ),
    1331: CodeInfo(
        "wait without a copy", "A wait names a group to which no copy belongs.", "Name the group of a copy."
    ),
    1350: CodeInfo(
        "names of a computation",
        "Two axes, stages or symbols of a computation have one name, or a stage names what does not exist.",
        "Rename one, or declare what is missing.",
    ),
    1351: CodeInfo(
        "bad scan",
        "A scan has one scan axis, no reduction axes, a reducer and an init.",
        "Split the stage into a reduction and a scan.",
    ),
    1352: CodeInfo(
        "computation written wrongly",
        "A call of the functions that build computations (`tilework.compute`) does not make sense.",
        "Give what the message asks for; the page 'Write and schedule a kernel' shows a whole computation.",
    ),
    1353: CodeInfo(
        "writes may meet",
        "A stage may write one element at two points, and has no reducer to combine them.",
        "Use an index that tells the points apart, or a reducer (`replace` keeps the last).",
    ),
    1354: CodeInfo(
        "read before it is written",
        "A stage reads a temporary or output that no earlier stage has written.",
        "Order the stages so that each comes after those it reads.",
    ),
}
