"""Codes 1000 to 1099: names, settings and use of the library."""

from __future__ import annotations

from collections.abc import Mapping

from tilework.error_codes.info import CodeInfo

CODES: Mapping[int, CodeInfo] = {
    1001: CodeInfo(
        "unknown name",
        "A name (of a primitive, operator, pass, machine, function) does not exist.",
        "Use one of the names listed.",
    ),
    1002: CodeInfo(
        "bad setting",
        "An option or an environment variable has a value that makes no sense.",
        "Give a value of the kind that the message names.",
    ),
    1003: CodeInfo(
        "unknown data type", "A data type name is not one that Tilework knows.", "Use a type named in the message."
    ),
    1004: CodeInfo(
        "bad integer expression",
        "A text is not a symbolic integer.",
        "Use names, integers, + - *, //, %, min, max and buffer elements.",
    ),
    1005: CodeInfo(
        "symbol without a value",
        "A symbolic integer was evaluated while one of its symbols has no value.",
        "Give the symbol a value, or use bounds.",
    ),
    1006: CodeInfo(
        "bad layout",
        "A layout is not an invertible map of the logical dimensions.",
        "Cover every dimension exactly once, blocks from outer to inner.",
    ),
    1007: CodeInfo(
        "missing package",
        "An optional package is needed for this and is not installed.",
        "Install the extra that the message names.",
    ),
    1008: CodeInfo(
        "no frontend",
        "No frontend reads what was given as a model.",
        "Give the path, bytes or ModelProto of an ONNX model, or a Graph.",
    ),
    1009: CodeInfo(
        "nothing to build",
        "`tilework.build` was given something that is no computation, or one without results.",
        "Give a Schedule, a loop program, or what `tilework.compute.computation` returns.",
    ),
}
