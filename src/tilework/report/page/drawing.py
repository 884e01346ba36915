"""Pieces of charts: SVG in the page, drawn once for a wide and once for a narrow screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tilework.fast_dataclass import dataclass
from tilework.report.page.markup import Child, Markup, element, short


@dataclass(frozen=True)
class Canvas:
    """Room for a drawing in pixels, and the margins between its edges and what is drawn."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    narrow: bool = False

    @property
    def x0(self) -> int:
        return self.left

    @property
    def x1(self) -> int:
        return self.width - self.right

    @property
    def y0(self) -> int:
        """The lower edge of what is drawn (pixels count downwards)."""
        return self.height - self.bottom

    @property
    def y1(self) -> int:
        """The upper edge."""
        return self.top


def chart(
    identifier: str, title: str, description: str, draw: Callable[[Canvas], Iterable[Markup]], wide: Canvas,
    narrow: Canvas,
) -> Markup:  # fmt: skip
    """The drawing at both widths; the style sheet shows one of them."""
    return element(
        "div",
        *(_svg(f"{identifier}-{name}", title, description, draw(canvas), canvas, name)
          for name, canvas in (("wide", wide), ("narrow", narrow))),
        class_="chart",
    )  # fmt: skip


def _svg(
    identifier: str, title: str, description: str, children: Iterable[Markup], canvas: Canvas, kind: str
) -> Markup:
    return element(
        "svg",
        element("title", title, id=f"{identifier}-title"),
        element("desc", description, id=f"{identifier}-desc"),
        *children,
        viewBox=f"0 0 {canvas.width} {canvas.height}",
        width=canvas.width,
        height=canvas.height,
        class_=kind,
        role="img",
        aria_labelledby=f"{identifier}-title {identifier}-desc",
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def path(points: Sequence[tuple[float, float]], kind: str, *, closed: bool = False) -> Markup:
    """Straight lines from point to point."""
    d = "M" + "L".join(f"{short(x)} {short(y)}" for x, y in points) + ("Z" if closed else "")
    return element("path", d=d, class_=kind)


def text(x: float, y: float, content: Child, kind: str = "", anchor: str = "start", turn: float = 0.0) -> Markup:
    """Words at a point, turned by so many degrees."""
    turned = f"rotate({short(turn)} {short(x)} {short(y)})" if turn else None
    return element("text", content, x=x, y=y, class_=kind or None, text_anchor=anchor, transform=turned)


def below(canvas: Canvas, x: float, words: str) -> Markup:
    """The words of a tick below the drawing, kept inside of it at its right edge."""
    if x > canvas.width - 3.5 * len(words) - 2:
        return text(canvas.width - 1, canvas.y0 + 16, words, "tick", "end")
    return text(x, canvas.y0 + 16, words, "tick", "middle")


def rectangle(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> Markup:
    """A rectangle; `title` is told where somebody points at it."""
    told = element("title", title) if title else None
    return element("rect", told, x=x, y=y, width=max(width, 0.0), height=max(height, 0.0), class_=kind)
