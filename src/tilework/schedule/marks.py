"""What has to hold of a loop that is parallel or the lanes of a vector: asked when it is marked, and again by every
step that moves loops or statements, since a move can bring iterations together that were apart.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from tilework.loops.program import Buffer, Loop, LoopProgram, Node, Storage, children, path, walk
from tilework.numerics import Numerics
from tilework.schedule.footprint import touched_buffers
from tilework.schedule.iterators import kind
from tilework.schedule.rewriting import PRIVATE, instructions
from tilework.schedule.verdict import LEGAL, Verdict, illegal, unknown
from tilework.schedule.witness import conflict

WIDEST = 64
"""Lanes of the widest vector loop; a machine's registers hold fewer, code generation cuts it up."""
LARGEST = 1024
"""Iterations beyond which writing them out only costs compile time."""

Mark = Literal["parallel", "vectorized", "unrolled"]


def mark_verdict(program: LoopProgram, numerics: Numerics, loop: Loop, mark: Mark) -> Verdict:
    """Whether a loop may bear a mark, whatever its kind says now."""
    if (refusal := _extent_refusal(loop, mark)) is not None:
        return refusal
    if mark == "unrolled":
        return LEGAL
    if (refusal := _nest_refusal(program, loop, mark)) is not None:
        return refusal
    if (refusal := _body_refusal(program, loop, mark)) is not None:
        return refusal
    return _order_verdict(program, numerics, loop, mark)


def _extent_refusal(loop: Loop, mark: Mark) -> Verdict | None:
    """Lanes and written-out iterations are a constant number, and not too many."""
    limit = {"parallel": None, "vectorized": WIDEST, "unrolled": LARGEST}[mark]
    extent = loop.extent.value
    if limit is None or (extent is not None and extent <= limit):
        return None
    inner = "by the number of lanes and vectorize" if mark == "vectorized" else "first and unroll"
    return illegal(
        1510, f"{loop.variable} has {loop.extent} iterations; it must be a constant <= {limit}", loop,
        alternative=f"split {loop.variable} {inner} the inner loop",
    )  # fmt: skip


def _nest_refusal(program: LoopProgram, loop: Loop, mark: Mark) -> Verdict | None:
    """One loop of a nest is the threads, one inside it the lanes."""
    around = [n for n in path(program.body, loop)[:-1] if isinstance(n, Loop)]
    inside = [n for n in walk(loop.body) if isinstance(n, Loop)]
    if mark == "parallel":
        others = [n for n in around if n.kind in ("parallel", "vectorized")]
        others += [n for n in inside if n.kind == "parallel"]
    else:
        others = [n for n in around if n.kind == "vectorized"]
        others += [n for n in inside if n.kind in ("vectorized", "parallel")]
    if not others:
        return None
    other = others[0]
    return illegal(
        1511, f"{other.variable} ({other.kind}) and {loop.variable} are nested; only one loop can be {_what(mark)}",
        loop, other,
    )  # fmt: skip


def _body_refusal(program: LoopProgram, loop: Loop, mark: Mark) -> Verdict | None:
    """Lanes do the same at the same time; threads have registers of their own."""
    if mark == "vectorized":
        held = instructions(loop.body)
        if held:
            return illegal(1519, f"{held[0].instruction} is no lane of {loop.variable}", held[0], loop)
        for node in walk(loop.body):
            if isinstance(node, Loop) and loop.variable in node.extent.names():
                return illegal(1510, f"{node.variable} would run another number of times in each lane", node, loop)
        return None
    for node in path(program.body, loop):
        if isinstance(node, Storage) and node.buffer.scope in PRIVATE and node.buffer.name in touched_buffers(loop):
            return illegal(1522, f"threads share no registers, and {loop.variable} uses {node.buffer.name}", node, loop)
    return None


def _order_verdict(program: LoopProgram, numerics: Numerics, loop: Loop, mark: Mark) -> Verdict:
    """Iterations that may run in any order, or that combine where numerics allow it; else two that meet."""
    found = kind(program, loop)
    if found == "independent" or (found == "reduction" and mark == "vectorized" and numerics.reassociate):
        return LEGAL
    shown = conflict(program, loop)
    if shown is None:
        return unknown(f"iterations of {loop.variable} may depend on each other", loop)
    buffer = shown.dependence.buffer
    if mark == "vectorized":
        if found == "reduction":
            return illegal(
                1512,
                f"lanes of {loop.variable} would regroup the reduction into {buffer}, and numerics are strict",
                loop,
                dependence=shown.dependence, witness=shown.witness,
            )  # fmt: skip
        verdict = unknown(f"iterations of {loop.variable} depend on each other through {buffer}", loop)
        return replace(verdict, dependence=shown.dependence, witness=shown.witness)
    meet = "combine into" if shown.reduction else "touch"
    return illegal(
        1513, f"iterations of {loop.variable} {meet} the same element of {buffer}", loop,
        dependence=shown.dependence, witness=shown.witness,
        alternative="parallelise a loop that indexes the result",
    )  # fmt: skip


def _what(mark: Mark) -> str:
    return "the lanes" if mark == "vectorized" else "the threads"


def marks_after(before: LoopProgram, after: LoopProgram, numerics: Numerics) -> Verdict:
    """Whether every mark that was legal before a step still is; nodes of the answer are those before the step.

    Loops that the step left as they were, in the same surroundings, are not asked again.
    """
    stood, stand = _surroundings(before.body), _surroundings(after.body)
    changed = {name for name, buffer in after.buffers.items() if before.buffers.get(name) != buffer}
    old = {n.variable: n for n in walk(before.body) if isinstance(n, Loop)}
    for loop in [n for n in walk(after.body) if isinstance(n, Loop)]:
        if loop.kind not in ("parallel", "vectorized", "unrolled"):
            continue
        if stood.get(id(loop)) == stand[id(loop)] and not (changed and changed & touched_buffers(loop)):
            continue
        verdict = mark_verdict(after, numerics, loop, loop.kind)
        if verdict.legal:
            continue
        known = old.get(loop.variable)
        if known is not None and not mark_verdict(before, numerics, known, loop.kind).legal:
            continue
        nodes: list[Node] = [old[n.variable] for n in verdict.nodes if isinstance(n, Loop) and n.variable in old]
        reason = f"the {loop.kind} loop {loop.variable} would no longer be legal: {verdict.reason}"
        return replace(verdict, reason=reason, nodes=tuple(nodes), alternative="")
    return LEGAL


def _surroundings(body: Node) -> dict[int, tuple[tuple[str, ...], tuple[Buffer, ...]]]:
    """What the verdict on each loop depends on around it, by identity: kinds of loops, and storage of one thread."""
    found: dict[int, tuple[tuple[str, ...], tuple[Buffer, ...]]] = {}
    stack: list[tuple[Node, tuple[str, ...], tuple[Buffer, ...]]] = [(body, (), ())]
    while stack:
        node, kinds, private = stack.pop()
        if isinstance(node, Loop):
            found[id(node)] = kinds, private
            kinds = (*kinds, node.kind)
        elif isinstance(node, Storage) and node.buffer.scope in PRIVATE:
            private = (*private, node.buffer)
        stack.extend((child, kinds, private) for child in children(node))
    return found
