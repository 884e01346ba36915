"""The head of the page: what was compiled, where it ran, and the numbers that matter most."""

from __future__ import annotations

from collections.abc import Iterator

from tilework.report.page.facts import Facts
from tilework.report.page.markup import Markup, element
from tilework.report.page.memory import arenas_of
from tilework.report.page.words import bytes_of, flops, flops_a_second, rounded_part, seconds
from tilework.version import __version__


def header(facts: Facts) -> Markup:
    """Title, circumstances, and a handful of numbers."""
    tiles = (
        element(
            "div",
            element("dt", name),
            element("dd", value, element("span", under, class_="under") if under else None),
            class_="tile",
        )
        for name, value, under in _tiles(facts)
    )
    return element(
        "header",
        element("p", "Tilework report", class_="kicker"),
        element("h1", facts.title),
        element("p", "\u00a0· ".join(_circumstances(facts)), class_="circumstances"),
        element("dl", *tiles, class_="tiles"),
    )


def _circumstances(facts: Facts) -> Iterator[str]:
    subject, machine = facts.subject, facts.machine
    yield f"machine {machine.name}" + (f" ({machine.cpu})" if machine.cpu and machine.cpu != machine.name else "")
    yield f"{subject.threads} {'thread' if subject.threads == 1 else 'threads'}"
    yield f"numerics {subject.explanation.numerics}"
    if subject.sizes:
        yield ", ".join(f"{name}\u00a0=\u00a0{value}" for name, value in subject.sizes.items())
    yield f"Tilework\u00a0{__version__}"


def _tiles(facts: Facts) -> Iterator[tuple[str, str, str]]:
    profile, told = facts.subject.profile, facts.subject.explanation
    if facts.engines:
        taken, under = facts.engines[0].middle, "measured in rounds"
    elif profile is not None:
        taken, under = profile.call_seconds, f"median of {profile.calls}, measured"
    else:
        taken, under = facts.seconds, "predicted: nothing was run"
    yield "A call", seconds(taken), under
    work = sum(row.flops or 0 for row in facts.rows)
    if work and taken:
        of_peak = rounded_part(work / taken / facts.roofline.peak(32))
        yield "Operations", flops(work), f"{flops_a_second(work / taken)}, {of_peak} of peak"
    yield "Regions", str(len(told.regions)), f"of {sum(len(region.operators) for region in told.regions)} operators"
    arenas = arenas_of(facts)
    if arenas:
        bound = sum(arena.lower_bound for arena in arenas)
        yield "Arena", bytes_of(sum(arena.bytes for arena in arenas)), f"lower bound {bytes_of(bound)}"
    yield "Weights", bytes_of(told.constant_bytes), ""
    if told.total_milliseconds:
        code = f"{bytes_of(told.code_bytes)} of code" if told.code_bytes else ""
        yield "Compiled in", seconds(told.total_milliseconds / 1e3), code
