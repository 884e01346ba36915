"""The schedule trees of the slowest regions: loops, storage and computation nested, with what each costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilework.cost.accesses import bound
from tilework.cost.counts import Footprints
from tilework.errors import TileworkError
from tilework.plan.explanation import RegionExplanation
from tilework.plan.steps import KernelStep
from tilework.report.page.facts import Facts, Row
from tilework.report.page.markup import Markup, element, joined
from tilework.report.page.tables import folded, section
from tilework.report.page.words import bytes_of, count, counted, digits
from tilework.report.text import shortened
from tilework.report.tree import TreeLine, tree_lines
from tilework.runtime.profile import evaluated

_REGIONS = 5
"""Regions whose schedules are shown."""
_LONG = 100
"""Characters of a line beyond which its end is shown on demand."""
_MARKS = frozenset(("parallel", "serial", "unrolled", "vectorized", "register", "threads", "workspace", "scratch"))


def schedules_section(facts: Facts) -> Markup:
    """The chosen region's schedule, open, and those of the slowest."""
    lead = (
        "How a kernel is computed: each loop with how often it is entered, the bytes that one run of it touches, the "
        "nearest cache that holds them, and how often each byte is used. Counted at these sizes, not measured."
    )
    regions = {region.name: region for region in facts.subject.explanation.regions}
    steps = _kernels(facts)
    rows = [row for row in facts.rows if row.name in regions and row.name in steps]
    rows.sort(key=lambda row: row.name != facts.region)
    if not rows:
        return section("schedules", "Schedules", lead, element("p", "No region of this model has a kernel of its own."))
    parts = [
        _schedule(facts, row, steps[row.name], regions[row.name], open_=place == 0)
        for place, row in enumerate(rows[:_REGIONS])
    ]
    return section("schedules", "Schedules of the slowest regions", lead, *parts)


def _kernels(facts: Facts) -> Mapping[str, KernelStep]:
    return {step.name: step for plan in facts.subject.plans for _, step in plan.walk() if isinstance(step, KernelStep)}


def _schedule(facts: Facts, row: Row, step: KernelStep, region: RegionExplanation, *, open_: bool) -> Markup:
    lines = _lines(facts, step)
    title = row.title + (f" ({row.origin})" if row.origin else "")
    note = None
    if isinstance(lines, str):
        note, lines = element("p", lines), ()
    facts_of_it = [
        ("operators", counted(region.operators)), ("algorithm", region.algorithm), ("chosen", region.choice),
        ("trace", region.trace or "none: the plain nest"),
    ]  # fmt: skip
    about = element(
        "dl", *(joined(element("dt", key), element("dd", _long(value))) for key, value in facts_of_it if value),
        class_="about",
    )  # fmt: skip
    return folded(title, about, _tree(lines) if lines else None, note, open_=open_)


def _lines(facts: Facts, step: KernelStep) -> tuple[TreeLine, ...] | str:
    """The tree, or why there is none."""
    values = [evaluated(value, facts.subject.sizes) for value in step.symbols]
    names = [symbol.name for symbol in step.kernel.symbols]
    if any(value is None for value in values):
        return "Its sizes are known only while it runs."
    try:
        program = bound(step.meaning, {n: v for n, v in zip(names, values, strict=True) if v is not None})
        return tree_lines(program, Footprints(program, facts.machine.line_bytes), facts.machine)
    except TileworkError as error:
        return f"There is no tree at these sizes: {error.message}"


def _tree(lines: Sequence[TreeLine]) -> Markup:
    """Lists inside lists, as the nodes are."""
    found, position = _list(lines, 0, lines[0].depth)
    assert position == len(lines)
    return element("div", found, class_="tree")


def _list(lines: Sequence[TreeLine], position: int, depth: int) -> tuple[Markup, int]:
    items: list[Markup] = []
    while position < len(lines) and lines[position].depth >= depth:
        here = lines[position]
        position += 1
        inside: Markup | None = None
        if position < len(lines) and lines[position].depth > here.depth:
            inside, position = _list(lines, position, lines[position].depth)
        items.append(element("li", _node(here), inside))
    return element("ul", *items), position


def _node(line: TreeLine) -> Markup:
    word, _, rest = line.text.partition(" ")
    mark = element("span", word, class_=f"mark {word}") if word in _MARKS else None
    words = joined(mark, " ", _long(rest)) if mark is not None else _long(line.text)
    told = (
        ("runs", count(line.runs) if line.runs is not None else ""),
        ("touches", bytes_of(line.footprint_bytes) if line.footprint_bytes else ""),
        ("fits in", line.home if line.footprint_bytes else ""),
        ("reuse", digits(line.reuse) if line.reuse else ""),
    )
    numbers = (joined(element("span", key, class_="key"), f" {value}") for key, value in told if value)
    figures = element("span", *(element("span", one) for one in numbers), class_="figures")
    return element("div", element("div", words, class_=f"words {line.part}"), figures, class_="node")


def _long(text: str) -> Markup:
    """Code; the end of a long line is shown on demand."""
    if len(text) <= _LONG:
        return element("code", text)
    summary = element("summary", element("code", shortened(text, _LONG)))
    return element("details", summary, element("code", text), class_="long")
