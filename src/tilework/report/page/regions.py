"""Where the time of a call goes: every step, the slowest first."""

from __future__ import annotations

from collections.abc import Sequence

from tilework.report.page.facts import Facts, Row
from tilework.report.page.markup import Markup
from tilework.report.page.tables import Column, bar, folded, name_cell, section, table
from tilework.report.page.words import bytes_a_second, counted, flops_a_second, part, rounded_part, seconds

_SHOWN = 12
"""Steps that are shown at once; the others on demand."""
_FEW = 3
"""Others that are so few are shown too."""


def regions_section(facts: Facts) -> Markup:
    """The steps as a table with bars."""
    profile = facts.subject.profile
    if profile is not None:
        lead = (
            f"Measured: medians of {profile.calls} calls that were run step by step, which takes "
            f"{seconds(profile.seconds)}; a call as a whole takes {seconds(profile.call_seconds)}."
        )
    else:
        lead = "Predicted: nothing was run. Each region takes the least time that the roofline below allows."
    shown = _SHOWN if len(facts.rows) > _SHOWN + _FEW else len(facts.rows)
    first, rest = facts.rows[:shown], facts.rows[shown:]
    if not facts.rows:
        return section("regions", "Time by region", "The model computes nothing: its outputs are its inputs.")
    more = None
    if rest:
        more = folded(f"{len(rest)} more, {part(sum(row.share for row in rest))} of the time", _table(facts, rest))
    return section("regions", "Time by region", lead, _table(facts, first), more)


def _table(facts: Facts, rows: Sequence[Row]) -> Markup:
    longest = max((row.seconds or 0.0 for row in facts.rows), default=0.0) or 1.0
    columns = [Column("region", "wide"), Column("", "bars"), Column("time"), Column("share"), Column("rate")]
    if facts.measured:
        columns.append(Column("of the roof"))
    else:
        columns.append(Column("bound by"))
    return table("Time by region", columns, (_cells(facts, row, longest) for row in rows))


def _cells(facts: Facts, row: Row, longest: float) -> tuple[Markup | str, ...]:
    slowest = row is facts.rows[0]
    bound = row.prediction.bound if row.prediction is not None else ""
    last = bound
    if facts.measured:
        last = f"{rounded_part(row.of_roof)} {bound}" if row.of_roof is not None and row.flops else ""
    rate = ""
    if row.flops_per_second:
        rate = flops_a_second(row.flops_per_second)
    elif row.bytes_per_second:
        rate = bytes_a_second(row.bytes_per_second)
    return (
        _name(row),
        bar((row.seconds or 0.0) / longest, "first" if slowest else ""),
        seconds(row.seconds) if row.seconds is not None else "not known",
        part(row.share),
        rate,
        last,
    )


def _name(row: Row) -> Markup:
    what = counted(row.operators) or (row.kind if not row.name.startswith(row.kind) else "")
    algorithm = "" if row.algorithm in ("", "direct") else row.algorithm
    times = f"{row.runs} times a call" if row.runs > 1 else ""
    return name_cell(row.title, row.origin, "; ".join(one for one in (what, algorithm, times) if one))
