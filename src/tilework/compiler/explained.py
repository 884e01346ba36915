"""What a graph that was cut at its black boxes can tell: one explanation of all its parts and boxes."""

from __future__ import annotations

from collections.abc import Sequence

from tilework.dims import total
from tilework.plan.explanation import BlackBoxExplanation, Explanation, Notice
from tilework.runtime.boxed import BoxCall, CompiledPart

PARTS = "parts-between-black-boxes"
"""The notice that a graph is compiled in several parts."""


def explained_together(name: str, steps: Sequence[BoxCall | CompiledPart]) -> Explanation:
    """The parts' explanations as one, and every black box in the order in which they run."""
    parts = [step.executable.explain() for step in steps if isinstance(step, CompiledPart)]
    boxes = [step for step in steps if isinstance(step, BoxCall)]
    milliseconds: dict[str, float] = {}
    for part in parts:
        for stage, taken in part.compile_milliseconds:
            milliseconds[stage] = milliseconds.get(stage, 0.0) + taken
    notices = [notice for part in parts for notice in part.notices]
    if len(parts) > 1:
        between = ", ".join(dict.fromkeys(box.origin for box in boxes[:8]))
        text = f"compiled in {len(parts)} parts, nothing is fused across black boxes ({between})"
        notices.append(Notice(PARTS, text, name))
    return Explanation(
        name,
        parts[0].machine,
        parts[0].numerics,
        tuple(region for part in parts for region in part.regions),
        tuple(BlackBoxExplanation(b.origin, b.box.operator, b.box.provider, b.box.reason) for b in boxes),
        tuple(copy for part in parts for copy in part.copies),
        tuple(notices),
        sum(part.code_bytes for part in parts),
        sum(part.constant_bytes for part in parts),
        total(part.arena_bytes for part in parts if part.arena_bytes is not None),
        compile_milliseconds=tuple(milliseconds.items()),
    )
