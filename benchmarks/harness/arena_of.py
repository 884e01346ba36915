"""What a call of one of the open models asks of its arenas, and what is live in them: a JSON object."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness.open_model import load
from tilework.plan.buffers import ArenaPlace
from tilework.plan.order import Order, order_of
from tilework.plan.plan import Plan
from tilework.runtime.executable import Executable

ALIGNMENT = 64
"""What begins in an arena begins at a multiple of this."""


def live_bytes(plan: Plan, values: Mapping[str, int]) -> int:
    """The most bytes of arenas that hold something at once in the plan's own order, workspaces of kernels too.

    Bytes are counted once, also where a kernel writes over what it reads; each buffer counts in whole steps of
    `ALIGNMENT`. Sizes that only the call itself measures count at their bounds.
    """
    known = {symbol.name: symbol.upper or 0 for symbol in plan.symbols if symbol.measured}
    known = {**values, **known}
    order = order_of(plan)
    ranges: list[tuple[int, int, int]] = []
    for members in plan.alias_sets.values():
        if isinstance(members[0].place, ArenaPlace):
            start = min(member.offset.evaluate(known) for member in members)
            end = max(member.offset.evaluate(known) + max(member.bytes.evaluate(known), 0) for member in members)
            ranges.append((start, -(-end // ALIGNMENT) * ALIGNMENT, order.life(member.name for member in members)))
    moments = _moments(order)
    return max((_covered(ranges, before, after) for before, after in moments), default=0)


def _moments(order: Order) -> Iterator[tuple[int, int]]:
    """For each step the steps up to it, and those from it on, as masks."""
    before = [1 << node for node in range(len(order.nodes))]
    for node in order.linear:
        for target in order.successors[node]:
            before[target] |= before[node]
    for node in range(len(order.nodes)):
        yield before[node], order.after[node] | 1 << node


def _covered(ranges: list[tuple[int, int, int]], before: int, after: int) -> int:
    total = reached = 0
    for start, end, _ in sorted(one for one in ranges if one[2] & before and one[2] & after):
        total += max(end - max(start, reached), 0)
        reached = max(reached, end)
    return total


def asked(path: Path, recorded: Path) -> list[tuple[int, int]]:
    """For each call of compiled code that a call of the model makes: the bytes of its arena, and what is live."""
    import tilework

    found: list[tuple[int, int]] = []
    prepare: Any = Executable._prepare  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def noted(self: Any, state: Any) -> None:
        prepare(self, state)
        values = self._symbol_values(state.frame)
        found.append((int(self._arena_bytes(state.frame.words)), live_bytes(self.plan, values)))

    executable = tilework.compile(path)
    given, _ = load(recorded)
    Executable._prepare = noted  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    try:
        executable(**{port.name: given[port.name] for port in executable.inputs})
    finally:
        Executable._prepare = prepare  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return found


def main() -> None:
    """Arguments: the model, its recorded arrays."""
    path, recorded = map(Path, sys.argv[1:])
    try:
        calls = asked(path, recorded)
        answer: dict[str, Any] = {"status": "ran", "why": "", "calls": calls}
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is the answer
        answer = {"status": "failed", "why": str(error).splitlines()[0][:160]}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
