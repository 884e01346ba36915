"""`arena`: plans that take more bytes than are live, or fewer, are found out."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np

from benchmarks import arena
from benchmarks.harness.arena_of import live_bytes
from benchmarks.key_pairs.building import model, node
from tilework.dims import Dim
from tilework.frontends.compile import lower
from tilework.plan.buffers import ArenaPlace
from tilework.plan.plan import Plan, alias_key


def size_of(plan: Plan, values: dict[str, int]) -> int:
    return int(plan.arenas[0].bytes.evaluate(values)) if plan.arenas else 0


def apart(plan: Plan) -> Plan:
    """The same plan, every alias set in bytes of its own."""
    starts: dict[str, Dim] = {}
    end = Dim()
    for key, members in plan.alias_sets.items():
        if isinstance(members[0].place, ArenaPlace):
            size = max(member.bytes.constant for member in members)
            starts[key], end = end, end + -(-size // 64) * 64
    buffers = tuple(
        replace(buffer, place=ArenaPlace(buffer.place.arena, starts[alias_key(buffer)]))
        if isinstance(buffer.place, ArenaPlace) else buffer
        for buffer in plan.buffers
    )  # fmt: skip
    return plan.replace(buffers=buffers, arenas=tuple(replace(one, bytes=end) for one in plan.arenas))


def test_plans_without_sharing_take_more_than_is_live() -> None:
    widths = [8, 40, 12, 64, 16, 24]
    nodes = [node("MatMul", [f"x{n}", f"w{n}"], f"x{n + 1}") for n in range(len(widths) - 1)]
    weights = {f"w{n}": np.ones((a, b), np.float32) for n, (a, b) in enumerate(pairwise(widths))}
    plan = lower(model(nodes, {"x0": [16, widths[0]]}, weights, outputs=[nodes[-1].output[0]])).plan
    live = live_bytes(plan, {})
    assert size_of(plan, {}) == live >= 4 * 16 * (12 + 64)
    spread = apart(plan)
    assert live_bytes(spread, {}) == live
    assert size_of(spread, {}) > live


def test_verdicts() -> None:
    assert arena.judged({"status": "ran", "why": "", "calls": [(64, 64), (0, 0)]}) == (1.0, "")
    assert arena.judged({"status": "ran", "why": "", "calls": [(64, 64), (192, 128)]})[0] == 1.5
    assert arena.judged({"status": "ran", "why": "", "calls": [(64, 128)]})[0] == 0.0
    assert arena.judged({"status": "ran", "why": "", "calls": [(64, 0)]})[0] == math.inf
    assert arena.judged({"status": "ran", "why": "", "calls": []})[0] == math.inf
    assert arena.judged({"status": "failed", "why": "x"}) == (math.inf, "x")
