"""The model beside other engines, as `tilework bench` timed them."""

from __future__ import annotations

import math

from tilework.report.page.facts import EngineTimes, Facts
from tilework.report.page.markup import Markup
from tilework.report.page.tables import Column, bar, name_cell, section, table
from tilework.report.page.words import bytes_of, seconds


def engines_section(facts: Facts) -> Markup | None:
    """The engines as a table with bars; nothing where the model was not timed beside any."""
    if not facts.engines:
        return None
    lead = (
        "Measured: the median of a call in paired rounds, each engine in a process of its own, with the interval that "
        "holds the true median with 95 %."
    )
    longest = max(engine.middle for engine in facts.engines) or 1.0
    columns = (
        Column("engine", "wide"), Column("", "bars"), Column("a call"), Column("ours/theirs"), Column("compile"),
        Column("first call"), Column("peak memory"),
    )  # fmt: skip
    rows = (
        (
            name_cell(engine.name, engine.version), bar(engine.middle / longest, "first" if place == 0 else ""),
            _interval(engine), engine.ratio, seconds(engine.compile_seconds), seconds(engine.first_seconds),
            bytes_of(engine.peak_bytes) if engine.peak_bytes is not None else "",
        )
        for place, engine in enumerate(facts.engines)
    )  # fmt: skip
    return section("engines", "Beside other engines", lead, table("Beside other engines", columns, rows))


def _interval(engine: EngineTimes) -> str:
    middle = seconds(engine.middle)
    if not math.isfinite(engine.low) or not math.isfinite(engine.high):
        return middle
    return f"{middle} [{seconds(engine.low)}, {seconds(engine.high)}]"
