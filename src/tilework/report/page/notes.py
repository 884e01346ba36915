"""What did not go as it might have: black boxes, copies, notices; and which numbers are which."""

from __future__ import annotations

from collections.abc import Iterator

from tilework.report.page.facts import Facts
from tilework.report.page.markup import Markup, element, joined
from tilework.report.page.tables import section
from tilework.report.page.words import bytes_of
from tilework.runtime.profile import evaluated


def notes_section(facts: Facts) -> Markup | None:
    """Black boxes, copies and notices; nothing where there are none."""
    found = [element("li", one) for one in _notes(facts)]
    if not found:
        return None
    return section("notes", "Notes", "", element("ul", *found, class_="notes"))


def _notes(facts: Facts) -> Iterator[Markup]:
    told = facts.subject.explanation
    for box in told.black_boxes:
        yield joined(element("strong", "black box "), element("code", box.operator), f" at {box.step}: {box.reason}")
    for copy in told.copies:
        size = evaluated(copy.bytes, facts.subject.sizes)
        what = f"of {bytes_of(size) if size is not None else f'{copy.bytes} bytes'} at "
        yield joined(element("strong", "copy "), what, element("code", copy.step), f": {copy.reason}")
    for notice in told.notices:
        kind = "warning " if notice.warning else "note "
        yield joined(element("strong", kind), element("code", notice.identifier), f": {notice.message}")


def numbers_section(facts: Facts) -> Markup:
    """Which numbers are measured, counted and predicted."""
    times = (
        "the times of regions and of a call (medians, on this machine, at these sizes), the time of each stage of the "
        "compilation"
        if facts.measured
        else "the time of each stage of the compilation"
    )
    roofs = {"probed": ", and the roofs", "assumed": ""}[facts.roofline.origin]
    assumed = "" if facts.roofline.origin == "probed" else " The roofs are assumed from data of the machine."
    counted = (
        "operations and bytes (from the operators' definitions), memory (from the plan), loops and what they touch "
        "(from the schedule)."
    )
    predicted = (
        "the least time of a region: its operations at the peak, or its bytes from the smallest cache that holds them, "
        f"whichever takes longer.{assumed} A kernel can be faster than its roof: the roofs are for 32-bit floats, and "
        "bytes may still be in a nearer cache."
    )
    rows = (("measured", f"{times}{roofs}."), ("counted", counted), ("predicted", predicted))
    body = element("dl", *(joined(element("dt", key), element("dd", text)) for key, text in rows), class_="about")
    return section("numbers", "Which numbers are which", "", body)
