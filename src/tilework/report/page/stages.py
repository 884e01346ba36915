"""How long each stage of the compilation took."""

from __future__ import annotations

from tilework.report.page.facts import Facts
from tilework.report.page.markup import Markup
from tilework.report.page.tables import Column, bar, section, table
from tilework.report.page.words import part, seconds


def stages_section(facts: Facts) -> Markup:
    """The stages in order, as a table with bars."""
    stages = facts.subject.explanation.compile_milliseconds
    whole = sum(milliseconds for _, milliseconds in stages)
    if not stages:
        return section("stages", "Compile time by stage", "Nothing is known of how it was compiled.")
    lead = (
        f"Measured when the model was compiled: {seconds(whole / 1e3)} in all. What comes out of the cache or a "
        "package was compiled before, and took that long then."
    )
    longest = max(milliseconds for _, milliseconds in stages) or 1.0
    columns = (Column("stage", "wide"), Column("", "bars"), Column("time"), Column("share"))
    rows = (
        (
            name, bar(milliseconds / longest), seconds(milliseconds / 1e3),
            part(milliseconds / whole) if whole else "",
        )
        for name, milliseconds in stages
    )  # fmt: skip
    return section("stages", "Compile time by stage", lead, table("Compile time by stage", columns, rows))
