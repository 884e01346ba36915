"""`model_page`: the page of a compiled model, as the text of one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tilework.cost.roofline import Roofline, assumed
from tilework.errors import RunError, UsageError
from tilework.machine.finder import machine as machine_named
from tilework.report.page.engines import engines_section
from tilework.report.page.facts import EngineTimes, Facts, Subject, facts_of
from tilework.report.page.markup import Markup, element, joined
from tilework.report.page.memory import memory_section
from tilework.report.page.notes import notes_section, numbers_section
from tilework.report.page.regions import regions_section
from tilework.report.page.roofline import roofline_section
from tilework.report.page.schedules import schedules_section
from tilework.report.page.stages import stages_section
from tilework.report.page.style import STYLE
from tilework.report.page.summary import header
from tilework.runtime.profile import Profile
from tilework.tuning.measure.probe import probe

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Nothing is fetched and no script runs, whatever a model's names say."""


def model_page(
    subject: Profile | Subject,
    *,
    title: str = "",
    roofline: Roofline | Literal["assumed", "probe"] | None = None,
    region: int | None = None,
    engines: Sequence[EngineTimes] = (),
) -> str:
    """One HTML file, with everything in it: the roofline with every kernel, time by region, memory over time, the
    schedules of the slowest regions, compile time by stage. It needs no network and no script.

    Args:
        subject: `Executable.profile`'s answer, or a compiled model that did not run: times are then predicted.
        title: what the model is called; its own name without it.
        roofline: the machine's limits: measured (`probe`, some seconds), `assumed` from its data, or given. Without it,
            measured where the subject was; where the probe does not run, assumed.
        region: the number of a region whose schedule is to be shown; the slowest without it.
        engines: what the model was timed beside.

    Raises:
        UsageError: 1002 for a region that there is not, 1771 for no roofline.
        RunError: 1761, 1765 where a probe that was asked for does not run.
    """
    if isinstance(subject, Profile):
        subject = Subject(subject.explanation, subject.plans, subject.sizes, subject.threads, subject)
    machine = machine_named(subject.explanation.machine)
    limits = _limits(subject, roofline)
    name = title or subject.explanation.name
    return _document(facts_of(subject, name, machine, limits, region, tuple(engines)))


def _limits(subject: Subject, wanted: object) -> Roofline:
    usual = assumed(machine_named(subject.explanation.machine), subject.threads)
    if isinstance(wanted, Roofline):
        return wanted
    if wanted == "assumed" or (wanted is None and subject.profile is None):
        return usual
    if wanted == "probe":
        return probe(threads=subject.threads)
    if wanted is not None:
        raise UsageError(1771, f"roofline={wanted!r} is no roofline", where="roofline")
    try:
        return probe(threads=subject.threads)
    except RunError:
        return usual


def _document(facts: Facts) -> str:
    sections = (
        engines_section(facts), regions_section(facts), roofline_section(facts), memory_section(facts),
        schedules_section(facts), stages_section(facts), notes_section(facts), numbers_section(facts),
    )  # fmt: skip
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{facts.title} – Tilework"),
        element("link", rel="icon", href="data:,"),
        element("style", Markup(STYLE)),
    )
    body = element("body", header(facts), element("main", *sections))
    return joined(Markup("<!doctype html>\n"), element("html", head, body, lang="en"), "\n")
