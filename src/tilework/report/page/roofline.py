"""The roofline: what the machine can do, and every kernel under it.

Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for multicore architectures",
Communications of the ACM 52(4), 2009; one roof for each level of memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tilework.fast_dataclass import dataclass
from tilework.report.page.drawing import Canvas, below, chart, line, path, text
from tilework.report.page.facts import Facts, Row
from tilework.report.page.markup import Markup, element
from tilework.report.page.scales import Logarithmic, around
from tilework.report.page.tables import Column, folded, name_cell, section, table
from tilework.report.page.words import bytes_a_second, count, digits, flops_a_second, part, rounded_part, seconds

_LABELLED = 8
"""Kernels whose number stands beside their point."""
_ABOVE = 0.99
"""The part of the time whose kernels are all above the chart's lower edge."""
_WIDE = Canvas(1040, 470, 64, 2, 20, 48)
_NARROW = Canvas(342, 350, 44, 2, 16, 44, narrow=True)


@dataclass(frozen=True)
class _Point:
    row: Row
    x: float
    y: float
    radius: float


def roofline_section(facts: Facts) -> Markup:
    """The chart and its numbers."""
    shown = [row for row in facts.rows if row.intensity is not None and row.flops_per_second is not None]
    bare = [row for row in facts.rows if row.flops == 0 and row.bytes]
    roof = facts.roofline
    what = "reached" if facts.measured else "can reach, as predicted"
    threads = f"{roof.threads} {'thread' if roof.threads == 1 else 'threads'}"
    origin = {
        "probed": f"measured on this machine (one thread{f', times {roof.threads}' if roof.threads > 1 else ''})",
        "assumed": "assumed from the machine's data at a usual clock",
    }[roof.origin]
    lead = (
        f"Each circle is a kernel: operations a second that it {what}, over operations for each byte that crosses its "
        f"boundary. Its area is its share of the time. The roofs of {threads} are {origin}, for 32-bit floats."
    )
    note = None
    if bare:
        share = part(sum(row.share for row in bare))
        what = "1 step does" if len(bare) == 1 else f"{len(bare)} steps do"
        note = element("p", f"{what} no arithmetic ({share} of the time): no roof is above that.", class_="lead")
    if not shown:
        return section("roofline", "Roofline", lead, element("p", "No kernel does arithmetic that is counted."), note)

    def draw(canvas: Canvas) -> Iterator[Markup]:
        return _draw(canvas, facts, shown)

    words = (
        f"Peak {flops_a_second(roof.flops_per_second)}; "
        + ", ".join(f"{name} {bytes_a_second(rate)}" for name, rate in roof.bytes_per_second.items())
        + f". {len(shown)} kernels; the table below has their numbers."
    )
    return section(
        "roofline", "Roofline", lead,
        element("figure", chart("roofline-chart", "Roofline with every kernel", words, draw, _WIDE, _NARROW)), note,
        folded(f"The numbers of {len(shown)} kernels", _table(facts, shown)),
    )  # fmt: skip


def _table(facts: Facts, rows: Sequence[Row]) -> Markup:
    columns = (
        Column("kernel", "wide"), Column("flop/byte"), Column("operations"), Column("bytes"), Column("roof", "name"),
        Column("least time"), Column("of the roof"),
    )  # fmt: skip
    return table("Every kernel under its roof", columns, (_cells(facts, row) for row in rows))


def _cells(facts: Facts, row: Row) -> tuple[Markup | str, ...]:
    prediction = row.prediction
    return (
        name_cell(row.title, row.origin),
        digits(row.intensity or 0.0),
        flops_a_second(row.flops_per_second or 0.0),
        bytes_a_second(row.bytes_per_second or 0.0),
        prediction.bound if prediction is not None else "",
        seconds(prediction.seconds) if prediction is not None else "",
        rounded_part(row.of_roof) if row.of_roof is not None and facts.measured else "",
    )


def _draw(canvas: Canvas, facts: Facts, rows: Sequence[Row]) -> Iterator[Markup]:
    roof = facts.roofline
    peak = roof.flops_per_second
    ridges = [peak / rate for rate in roof.bytes_per_second.values()]
    low, high = around([*(row.intensity or 1.0 for row in rows), *ridges], 1.6)
    x = Logarithmic(low, high, canvas.x0, canvas.x1)
    rates = [row.flops_per_second or peak for row in rows]
    y = Logarithmic(_lowest(rows, rates, peak), max(peak, *rates) * 2, canvas.y0, canvas.y1)
    yield from _axes(canvas, x, y)
    yield from _roofs(canvas, facts, x, y)
    points = [
        _Point(row, x(row.intensity or 1.0), y(max(rate, y.low)), _radius(row, canvas))
        for row, rate in zip(rows, rates, strict=True)
    ]
    for place, (point, rate) in enumerate(zip(points, rates, strict=True)):
        row = point.row
        kind = "point low" if rate < y.low else "point first" if place == 0 else "point"
        origin = f" ({row.origin})" if row.origin else ""
        words = f"{row.title}{origin}: {seconds(row.seconds or 0.0)}, {part(row.share)}, {flops_a_second(rate)}"
        yield element("circle", element("title", words), cx=point.x, cy=point.y, r=point.radius, class_=kind)
    yield from _labels(canvas, points)


def _lowest(rows: Sequence[Row], rates: Sequence[float], peak: float) -> float:
    """The lower edge: the kernels that make up most of the time are above it, the others stand on it."""
    most, above = sum(row.share for row in rows) * _ABOVE, 0.0
    slowest = peak / 30
    for row, rate in zip(rows, rates, strict=True):
        if above < most:
            slowest = min(slowest, rate)
        above += row.share
    return max(slowest / 2, peak * 1e-6)


def _radius(row: Row, canvas: Canvas) -> float:
    return max(2.5, (16 if canvas.narrow else 26) * math.sqrt(min(row.share, 1.0)))


def _axes(canvas: Canvas, x: Logarithmic, y: Logarithmic) -> Iterator[Markup]:
    for value in _sparse(x.ticks(), 5 if canvas.narrow else 12):
        yield line(x(value), canvas.y0, x(value), canvas.y1, "grid")
        yield below(canvas, x(value), f"{value:g}")
    for value in _sparse(y.ticks(), 8):
        yield line(canvas.x0, y(value), canvas.x1, y(value), "grid")
        yield text(canvas.x0 - 6, y(value) + 4, count(value).replace(".00", "").replace(".0", ""), "tick", "end")
    yield text((canvas.x0 + canvas.x1) / 2, canvas.height - 8, "operations a byte", "axis", "middle")
    if not canvas.narrow:
        middle = (canvas.y0 + canvas.y1) / 2
        yield text(14, middle, "operations a second", "axis", "middle", -90)
    yield path(((canvas.x0, canvas.y1), (canvas.x0, canvas.y0), (canvas.x1, canvas.y0)), "frame")


def _sparse(ticks: Sequence[float], most: int) -> Sequence[float]:
    return ticks if len(ticks) <= most else [tick for tick in ticks if math.log10(tick) % 1 < 1e-9]


def _roofs(canvas: Canvas, facts: Facts, x: Logarithmic, y: Logarithmic) -> Iterator[Markup]:
    roof = facts.roofline
    peak = roof.flops_per_second
    levels: dict[float, list[str]] = {}
    for name, rate in roof.bytes_per_second.items():
        levels.setdefault(rate, []).append(name)
    widest = max(levels, default=peak)
    yield path(((x(min(max(peak / widest, x.low), x.high)), y(peak)), (canvas.x1, y(peak))), "roof")
    yield text(canvas.x1 - 4, y(peak) - 6, f"peak {flops_a_second(peak)}", "roof-name", "end")
    for rate, names in levels.items():
        start = max(x.low, y.low / rate)
        ridge = min(peak / rate, x.high)
        if start >= ridge:
            continue
        first, last = (x(start), y(start * rate)), (x(ridge), y(ridge * rate))
        yield path((first, last), "roof")
        turn = math.degrees(math.atan2(last[1] - first[1], last[0] - first[0]))
        words = ", ".join(names) + ("" if canvas.narrow else f" {bytes_a_second(rate)}")
        at = (first[0] + 8 * math.cos(math.radians(turn)), first[1] + 8 * math.sin(math.radians(turn)))
        yield text(at[0] + 3 * math.sin(math.radians(turn)), at[1] - 4, words, "roof-name", "start", turn)


def _labels(canvas: Canvas, points: Sequence[_Point]) -> Iterator[Markup]:
    """Numbers beside the slowest kernels, each where it covers no other; one that finds no room has none."""
    taken = [_around(point) for point in points[:_LABELLED]]
    for number, point in enumerate(points[: _LABELLED // 2 if canvas.narrow else _LABELLED]):
        words = str(point.row.number) if point.row.number is not None else point.row.name[:12]
        width = 7.0 * len(words)
        for dx, dy, anchor in ((1, 0, "start"), (-1, 0, "end"), (0, -1, "middle"), (0, 1, "middle")):
            px = point.x + dx * (point.radius + 4)
            py = point.y + dy * (point.radius + 8) + 4
            left = px if anchor == "start" else px - width if anchor == "end" else px - width / 2
            box = (left - 2, py - 11, left + width + 2, py + 2)
            inside = canvas.x0 <= box[0] and box[2] <= canvas.x1 and canvas.y1 <= box[1] and box[3] <= canvas.y0
            others = (other for place, other in enumerate(taken) if place != number)
            if inside and not any(_meet(box, other) for other in others):
                taken.append(box)
                yield text(px, py, words, "point-name", anchor)
                break


def _around(point: _Point) -> tuple[float, float, float, float]:
    side = point.radius * 0.7  # what of a circle hides words
    return (point.x - side, point.y - side, point.x + side, point.y + side)


def _meet(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
