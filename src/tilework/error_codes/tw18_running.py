"""Codes 1800 to 1899: faults that compiled code reports while it runs."""

from __future__ import annotations

from collections.abc import Mapping

from tilework.error_codes.info import CodeInfo

CODES: Mapping[int, CodeInfo] = {
    1801: CodeInfo(
        "index out of range",
        "An index that was read from data points outside the tensor that it selects from.",
        "Check the indices given to the operation named; negative ones count from the end only where the operator says so.",
    ),
    1802: CodeInfo(
        "access out of bounds",
        "A checked build found an access outside its buffer.",
        "Correct the index of a computation of your own; else report it: a schedule or the lowering is wrong.",
    ),
    1803: CodeInfo(
        "sizes that data decide do not fit",
        "Sizes that values decided while the model ran are not what an operation needs: not equal, or too small.",
        "Correct the data, or the model; the message names the operation.",
    ),
    1804: CodeInfo(
        "branch without a meaning",
        "The condition chose a branch, or a loop began a body, whose operations do not fit together at these sizes.",
        "Correct the model, or give inputs for which that does not run; the message says what does not fit.",
    ),
    1805: CodeInfo(
        "black box failed",
        "An operation that is not compiled (on strings or maps) could not be done with the values it was given.",
        "Correct the arguments; the message names the operation and says what was wrong.",
    ),
}
