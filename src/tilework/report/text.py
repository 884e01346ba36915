"""A report as text of at most 120 columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tilework.report.tree import TreeLine

if TYPE_CHECKING:
    from tilework.report.build import ReportData

WIDTH = 120
_TREE = 76
_BUSIEST = 16
"""Accesses that are listed; the data hold all."""
_DEEPEST = 14
"""Levels of indentation that are drawn; what is deeper stands below the last of them."""


def number(value: float) -> str:
    """A count with a unit: 268.4 M."""
    if math.isinf(value) or math.isnan(value):
        return "-"
    for unit, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= scale:
            return f"{value / scale:.4g} {unit}"
    return f"{value:.4g}"


def size(value: float) -> str:
    """Bytes with a unit: 1.5 MiB."""
    for unit, scale in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= scale:
            return f"{value / scale:.4g} {unit}"
    return f"{value:.4g} B"


def duration(seconds: float) -> str:
    """Seconds with a unit: 1.2 ms."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"


def shortened(text: str, width: int) -> str:
    """The text, cut with an ellipsis where it is longer than `width`."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Columns, the first to the left and the others to the right."""
    lines: list[str] = []
    for row in (head, *rows):
        cells = [shortened(cell, width) for cell, width in zip(row, widths, strict=True)]
        first, *rest = zip(cells, widths, strict=True)
        line = first[0].ljust(first[1]) + "".join("  " + cell.rjust(width) for cell, width in rest)
        lines.append(line.rstrip())
    return lines


def report_text(data: ReportData) -> str:
    """All of a report."""
    parts = [_head(data), _levels(data), _accesses(data), _tree(data.tree)]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _head(data: ReportData) -> list[str]:
    symbols = ", ".join(f"{name} = {value}" for name, value in data.symbols.items())
    title = f"{data.name} on {data.machine.name}" + (f" with {symbols}" if symbols else "")
    work = data.work
    amounts = [f"{number(work.flops)} floating-point operations"] if work.flops else []
    amounts += [f"{number(work.integer_operations)} integer operations"] if work.integer_operations else []
    amounts += [f"{number(work.transcendentals)} transcendental functions"] if work.transcendentals else []
    found = data.prediction
    peak = data.roofline.peak(data.bits)
    lines = [
        shortened(title, WIDTH),
        shortened(f"  work       {', '.join(amounts) or 'no arithmetic'}", WIDTH),
        f"  bound      {found.bound}: at least {duration(found.seconds)}"
        + (f", {number(work.flops / found.seconds)}flop/s" if found.seconds > 0 and work.flops else "")
        + f" (peak {number(peak)}flop/s, {data.roofline.origin}, {data.roofline.threads} "
        + ("thread)" if data.roofline.threads == 1 else "threads)"),
    ]
    worst = max(data.pressure, key=lambda one: one.live, default=None)
    if worst is not None:
        verdict = "fit" if worst.fits else "do not fit: the code spills"
        about = "" if worst.exact else "about "
        place = f"loop {worst.loop}" if worst.loop else "straight code"
        text = (
            f"  registers  {about}{worst.live} of {worst.registers} in {place} ({worst.cells} cells, "
            f"{worst.operands} operands) {verdict}"
        )
        lines.append(shortened(text, WIDTH))
    code = size(data.code.bytes) if data.code.bytes is not None else f"none ({data.code.reason})"
    lines.append(shortened(f"  code       {' '.join(code.split())}", WIDTH))
    if not data.exact:
        lines.append("  Some counts are upper bounds: data decide, or there are too many points to count together.")
    return lines


def _levels(data: ReportData) -> list[str]:
    rows = [
        (
            level.traffic.source,
            size(level.capacity) if level.capacity is not None else "",
            size(level.traffic.fetched_bytes),
            size(level.traffic.written_bytes),
            number(level.intensity),
            number(level.attainable),
            size(level.bandwidth),
            duration(data.prediction.parts.get(level.traffic.source, 0.0)),
        )
        for level in data.levels
    ]
    head = ("from", "holds", "fetched", "written", "flop/byte", "attainable/s", "bandwidth/s", "least time")
    return table(head, rows, (8, 10, 12, 12, 12, 13, 13, 12))


def _accesses(data: ReportData) -> list[str]:
    shown = [one for one in data.accesses if one.scope not in ("register", "fragment")]
    shown.sort(key=lambda one: -one.issued_bytes)
    rows = [
        (
            one.index,
            one.kind,
            one.statement,
            number(one.runs),
            size(one.issued_bytes),
            size(one.useful_bytes),
            number(one.issued_bytes / one.useful_bytes) if one.useful_bytes else "-",
        )
        for one in shown[:_BUSIEST]
    ]
    head = ("access", "kind", "statement", "times", "loaded", "useful", "ratio")
    lines = table(head, rows, (46, 6, 16, 9, 11, 11, 9))
    if len(shown) > _BUSIEST:
        lines.append(f"... and {len(shown) - _BUSIEST} more")
    return lines


def _tree(tree: tuple[TreeLine, ...]) -> list[str]:
    rows: list[tuple[str, ...]] = []
    for line in tree:
        text = "│ " * min(line.depth, _DEEPEST) + line.text
        rows.append(
            (
                text,
                number(line.runs) if line.runs is not None else "",
                size(line.footprint_bytes) if line.footprint_bytes is not None else "",
                line.home,
                number(line.reuse) if line.reuse is not None else "",
            )
        )
    return table(("tree", "runs", "touches", "fits", "reuse"), rows, (_TREE, 9, 10, 6, 9))
