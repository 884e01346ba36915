"""A page with text, drawn anew, and the picture of what was read on it."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

from examples.reader import Line

SIZE = (960, 736)
INK, PAPER, HEADER = (24, 26, 36), (252, 250, 244), (24, 40, 72)
STAMP = "Paid in full"
MARK = (200, 40, 70)

LINES: tuple[tuple[int, int, str, int, tuple[int, int, int]], ...] = (
    (60, 33, "Tilework reads this page", 46, (255, 255, 255)),
    (60, 160, "Every tensor operation of the networks", 28, INK),
    (60, 212, "that read it runs as machine code", 28, INK),
    (60, 264, "that was made here, a moment ago.", 28, INK),
    (60, 350, "Detection: height and width are free", 25, (150, 30, 30)),
    (60, 400, "Recognition: the width is free", 25, (20, 90, 40)),
    (60, 480, "Total to be paid", 30, INK),
    (560, 480, "1,234.56 EUR", 30, INK),
    (60, 556, "The quick brown fox jumps over the lazy dog", 26, INK),
    (60, 650, "page 1 of 1", 21, (110, 110, 110)),
)
"""What is written where: left, top, text, size in pixels, colour."""


def draw_page() -> tuple[Image.Image, list[str]]:
    """Return the picture of a page, and the lines that are on it."""
    page = Image.new("RGB", SIZE, PAPER)
    pen = ImageDraw.Draw(page)
    pen.rectangle((0, 0, SIZE[0], 110), fill=HEADER)
    for left, top, text, size, colour in LINES:
        pen.text((left, top), text, fill=colour, font=ImageFont.load_default(size))
    stamp = Image.new("RGBA", (360, 70), (0, 0, 0, 0))
    ImageDraw.Draw(stamp).text((10, 5), STAMP, fill=(190, 20, 60), font=ImageFont.load_default(40))
    turned = stamp.rotate(8, expand=True, resample=Image.Resampling.BICUBIC)
    page.paste(turned, (500, 600), turned)
    return page, [*(text for _, _, text, _, _ in LINES), STAMP]


def draw_reading(page: Image.Image, lines: Sequence[Line]) -> Image.Image:
    """Return the page with a box around each line, and beside it the text that was read, each line at its place."""
    width, height = page.size
    picture = Image.new("RGB", (2 * width, height), (255, 255, 255))
    picture.paste(page, (0, 0))
    pen = ImageDraw.Draw(picture)
    for line in lines:
        corners = list(line.box)
        pen.polygon(corners, outline=MARK, width=2)
        (left, top), bottom = corners[0], corners[3][1]
        font = ImageFont.load_default(max(12, 0.8 * (bottom - top)))
        pen.text((width + left, top), line.text, fill=INK, font=font)
    pen.line((width, 0, width, height), fill=(160, 160, 160))
    return picture
