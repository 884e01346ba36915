"""Memory over the steps of a call: what is in use, the least that it could be, and who lives where in the arena."""

from __future__ import annotations

from collections.abc import Iterator

from tilework.errors import TileworkError
from tilework.memory.occupancy import Occupancy, Tenant, occupancies
from tilework.report.page.drawing import Canvas, below, chart, line, path, rectangle, text
from tilework.report.page.facts import Facts
from tilework.report.page.markup import Markup, element, joined
from tilework.report.page.scales import Linear
from tilework.report.page.tables import Column, folded, name_cell, section, table
from tilework.report.page.words import bytes_of
from tilework.report.text import shortened

_CURVE = Canvas(1040, 250, 64, 2, 26, 40)
_NARROW_CURVE = Canvas(342, 220, 50, 2, 26, 40, narrow=True)
_MAP = Canvas(1040, 300, 64, 2, 12, 40)
_NARROW_MAP = Canvas(342, 260, 50, 2, 12, 40, narrow=True)


def arenas_of(facts: Facts) -> tuple[Occupancy, ...]:
    """What is in the arenas of all plans; none where sizes are not known."""
    try:
        found = tuple(one for plan in facts.subject.plans for one in occupancies(plan, facts.subject.sizes))
    except TileworkError:  # a size that only a call can tell
        return ()
    return tuple(one for one in found if one.bytes)


def memory_section(facts: Facts) -> Markup:
    """A pair of charts for each arena, and a table of what is in it."""
    arenas = arenas_of(facts)
    lead = (
        "Intermediate values and workspaces share one arena. Counted from the plan, not measured: the bytes that hold "
        "something still needed at each step, in the order in which steps run. At least the highest of them is needed "
        "whatever the placement; inputs, outputs and weights have memory of their own."
    )
    if not arenas:
        return section("memory", "Memory over time", lead, element("p", "There is none, or data decide it."))
    symbols = bool(facts.subject.sizes)
    parts = [_arena(number, arena, len(arenas), symbols=symbols) for number, arena in enumerate(arenas)]
    return section("memory", "Memory over time", lead, *parts)


def _arena(number: int, arena: Occupancy, count: int, *, symbols: bool) -> Markup:
    title = f"Arena {number + 1} of {count}" if count > 1 else "Arena"
    bound = arena.lower_bound
    over = arena.bytes - bound
    told = "equal to the lower bound" if over <= 0 else f"{bytes_of(over)} above the lower bound of {bytes_of(bound)}"
    if over > 0 and symbols:
        told += " (offsets hold for every size of the free dimensions)"
    words = f"{title}: {bytes_of(arena.bytes)}, {told}; {len(arena.tenants)} pieces over {len(arena.moments)} moments."

    def curve(canvas: Canvas) -> Iterator[Markup]:
        return _curve(canvas, arena)

    def plot(canvas: Canvas) -> Iterator[Markup]:
        return _map(canvas, arena)

    return element(
        "figure",
        chart(f"memory-{number}", f"{title}: bytes in use", words, curve, _CURVE, _NARROW_CURVE),
        chart(f"map-{number}", f"{title}: who lives where, and when", words, plot, _MAP, _NARROW_MAP),
        element("figcaption", words),
        folded(f"The {len(arena.tenants)} pieces of the arena", _table(arena)),
    )


def _axes(canvas: Canvas, x: Linear, y: Linear) -> Iterator[Markup]:
    for value in y.ticks():
        yield line(canvas.x0, y(value), canvas.x1, y(value), "grid")
        yield text(canvas.x0 - 6, y(value) + 4, _tick(value), "tick", "end")
    for value in x.ticks():
        if value == int(value):
            yield below(canvas, x(value), f"{value:g}")
    yield text((canvas.x0 + canvas.x1) / 2, canvas.height - 6, "steps of a call", "axis", "middle")


def _tick(value: float) -> str:
    return bytes_of(value).replace(".00", "").replace(".0 ", " ")


def _scales(canvas: Canvas, arena: Occupancy, high: float) -> tuple[Linear, Linear]:
    moments = max(len(arena.moments), 1)
    x = Linear(moments, canvas.x0, canvas.x1, 4 if canvas.narrow else 10)
    return x, Linear(high, canvas.y0, canvas.y1, 4, 2)


def _curve(canvas: Canvas, arena: Occupancy) -> Iterator[Markup]:
    x, y = _scales(canvas, arena, max(arena.bytes, arena.lower_bound) * 1.08)
    yield from _axes(canvas, x, y)
    outline: list[tuple[float, float]] = [(canvas.x0, canvas.y0)]
    for moment, used in enumerate(arena.live):
        outline += [(x(moment), y(used)), (x(moment + 1), y(used))]
    outline.append((canvas.x1, canvas.y0))
    yield path(outline, "used", closed=True)
    yield _frame(canvas)
    yield line(canvas.x0, y(arena.bytes), canvas.x1, y(arena.bytes), "arena")
    yield line(canvas.x0, y(arena.lower_bound), canvas.x1, y(arena.lower_bound), "bound")
    label = f"arena {bytes_of(arena.bytes)}"
    if arena.bytes == arena.lower_bound:
        label += ", the lower bound"
    yield text(canvas.x1, y(arena.bytes) - 6, label, "arena-name", "end")
    fullest = arena.live.index(arena.lower_bound) if arena.live else 0
    middle = x(fullest + 0.5)
    if y(arena.lower_bound) - y(arena.bytes) > 18:
        early = middle < (canvas.x0 + canvas.x1) / 2
        at, anchor = (canvas.x1, "end") if early else (canvas.x0 + 6, "start")
        words = f"lower bound {bytes_of(arena.lower_bound)}"
        yield text(at, y(arena.lower_bound) - 5, words, "bound-name", anchor)
    told = element("title", f"fullest at {arena.moments[fullest]}") if arena.moments else None
    yield element("circle", told, cx=middle, cy=y(arena.lower_bound), r=4, class_="fullest")


def _map(canvas: Canvas, arena: Occupancy) -> Iterator[Markup]:
    x, y = _scales(canvas, arena, arena.bytes * 1.02)
    yield from _axes(canvas, x, y)
    for number, tenant in enumerate(arena.tenants):
        left, right = x(tenant.first), x(tenant.last + 1)
        top, bottom = y(tenant.offset + tenant.bytes), y(tenant.offset)
        told = f"{', '.join(tenant.names[:3])}: {bytes_of(tenant.bytes)} at {tenant.offset}, {_when(arena, tenant)}"
        yield rectangle(left, top, max(right - left - 1, 1), max(bottom - top - 1, 0.75), f"piece p{number % 3}", told)
    yield _frame(canvas)


def _frame(canvas: Canvas) -> Markup:
    return path(((canvas.x0, canvas.y1), (canvas.x0, canvas.y0), (canvas.x1, canvas.y0)), "frame")


def _when(arena: Occupancy, tenant: Tenant) -> str:
    return f"from {arena.moments[tenant.first]} to {arena.moments[tenant.last]}"


def _table(arena: Occupancy) -> Markup:
    where = (Column("from", "name"), Column("to", "name"))
    columns = (Column("buffers", "wide"), Column("bytes"), Column("offset"), *where)
    rows = sorted(arena.tenants, key=lambda tenant: (-tenant.bytes, tenant.first))
    return table(
        "The pieces of the arena, the largest first", columns,
        (
            (
                name_cell(shortened(", ".join(tenant.names), 80)), bytes_of(tenant.bytes), str(tenant.offset),
                joined(f"{tenant.first} ", element("code", arena.moments[tenant.first])),
                joined(f"{tenant.last} ", element("code", arena.moments[tenant.last])),
            )
            for tenant in rows
        ),
    )  # fmt: skip
