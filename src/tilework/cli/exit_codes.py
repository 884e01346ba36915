"""What the process's exit code says."""

from __future__ import annotations

from collections.abc import Mapping

DONE, BROKEN_OUTPUT, WRONG_USE, WRONG_INPUT, NOT_COMPILED, RUN_FAILED = 0, 1, 2, 3, 4, 5
NO_PEER, DIFFERENT, UNHEALTHY = 6, 7, 8
FAULT, INTERRUPTED = 70, 130

EXIT_CODES: Mapping[int, str] = {
    DONE: "done",
    BROKEN_OUTPUT: "the output cannot be written",
    WRONG_USE: "wrong use: an option, a setting, a missing package",
    WRONG_INPUT: "the model or its inputs cannot be read or do not fit",
    NOT_COMPILED: "the model cannot be compiled",
    RUN_FAILED: "it failed while it ran, or there was no memory",
    NO_PEER: "an engine to compare with is not installed, or cannot run the model",
    DIFFERENT: "outputs differ from those of another engine",
    UNHEALTHY: "`doctor` found something that keeps Tilework from working",
    FAULT: "a fault in Tilework itself",
    INTERRUPTED: "interrupted",
}
"""Every exit code and what it means."""
