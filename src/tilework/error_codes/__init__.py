"""The table of error codes: a file a hundred, `tw15_schedules.py` for 1500 to 1599.

A new code is an entry in its hundred's file, at its place by number; its page in the documentation is made from that.
A code never changes its meaning.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilework.error_codes import (
    tw10_use,
    tw11_onnx,
    tw12_graphs,
    tw13_loop_programs,
    tw14_plans,
    tw15_schedules,
    tw16_code_generation,
    tw17_calls,
    tw18_running,
    tw19_files,
)
from tilework.error_codes.info import CodeInfo

GROUPS: Mapping[int, tuple[str, Mapping[int, CodeInfo]]] = {
    10: ("Names, settings and use of the library", tw10_use.CODES),
    11: ("ONNX files", tw11_onnx.CODES),
    12: ("Graphs", tw12_graphs.CODES),
    13: ("Loop programs and index notation", tw13_loop_programs.CODES),
    14: ("Plans and memory", tw14_plans.CODES),
    15: ("Schedules", tw15_schedules.CODES),
    16: ("Lowering, code generation and machines", tw16_code_generation.CODES),
    17: ("Calls of an executable", tw17_calls.CODES),
    18: ("Faults that compiled code reports while it runs", tw18_running.CODES),
    19: ("Files and packages", tw19_files.CODES),
}
"""The heading and the codes of each hundred; a group is documented together."""

CODES: Mapping[int, CodeInfo] = {code: info for _, codes in GROUPS.values() for code, info in codes.items()}
"""Every code."""
