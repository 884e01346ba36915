"""Tables that become a list of cards on a narrow screen, and bars in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilework.fast_dataclass import dataclass
from tilework.report.page.markup import Child, Markup, element, joined, short


@dataclass(frozen=True)
class Column:
    """A column: its head, and whether it holds numbers (to the right), names (`wide`) or bars."""

    head: str
    kind: str = "number"


def table(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Child]]) -> Markup:
    """A table. Each cell carries its column's head, which stands before it where the screen is narrow.

    The first column is the head of its row.
    """
    heads = (element("th", column.head, scope="col", role="columnheader", class_=column.kind) for column in columns)
    body = (
        element("tr", *(_cell(n, *pair) for n, pair in enumerate(zip(columns, row, strict=True))), role="row")
        for row in rows
    )
    return element(
        "table",
        element("caption", caption, class_="unseen"),
        element("thead", element("tr", *heads, role="row"), role="rowgroup"),
        element("tbody", *body, role="rowgroup"),
        class_="cards",
        role="table",  # said in so many words: as cards it is laid out as no table
    )


def _cell(position: int, column: Column, cell: Child) -> Markup:
    if position == 0:
        return element("th", cell, scope="row", role="rowheader", class_=column.kind)
    kind = column.kind if cell else f"{column.kind} empty"
    return element("td", cell, role="cell", class_=kind, data_label=column.head)


def bar(part: float, kind: str = "") -> Markup:
    """A bar as long as `part` (0 to 1) of its cell; what it says is told beside it."""
    width = f"width:{short(max(0.0, min(part, 1.0)) * 100)}%"
    inside = element("span", class_=f"fill {kind}".rstrip(), style=width)
    return element("span", inside, class_="bar", aria_hidden="true")


def name_cell(name: str, beside: str = "", below: str = "") -> Markup:
    """A name, and smaller words beside and below it."""
    more = element("span", beside, class_="beside") if beside else None
    return joined(element("code", name), " ", more, element("span", below, class_="under") if below else None)


def folded(summary: str, *children: Child, open_: bool = False) -> Markup:
    """What is shown when somebody asks."""
    return element("details", element("summary", summary), *children, open=open_)


def section(identifier: str, title: str, lead: Child, *children: Child) -> Markup:
    """A part of the page with its heading, and a sentence that says what it shows."""
    return element(
        "section",
        element("h2", title, id=f"{identifier}-title"),
        element("p", lead, class_="lead") if lead else None,
        *children,
        id=identifier,
        aria_labelledby=f"{identifier}-title",
    )
