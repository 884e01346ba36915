"""Pages in Chromium: no error in the console, nothing fetched, no harm from names, nothing wider than the screen."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

from tests.executable.test_profile import boxed
from tests.report.chromium import Browser, browser, found
from tests.report.pages import HOSTILE, KNOWN, hostile, hostile_profile
from tests.report.test_page import predicted
from tilework.report.page.build import model_page
from tilework.report.page.facts import EngineTimes

pytestmark = pytest.mark.skipif(found() is None, reason="there is no Chromium here: apt-get install chromium")

WIDTHS = (1280, 390)

WIDER = """(width => [...document.querySelectorAll('body *')].filter(one => {
  const box = one.getBoundingClientRect();
  const unseen = getComputedStyle(one).clipPath !== 'none' || one.closest('svg') !== null && one.tagName !== 'svg';
  return box.width > 0 && !unseen && (box.right > width + 0.5 || box.left < -0.5);
}).map(one => one.outerHTML.slice(0, 200)))(%d)"""
"""Elements that stand out of the window."""

CUT = """[...document.querySelectorAll('svg')].filter(svg => svg.getBoundingClientRect().width > 0).flatMap(svg => {
  const room = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text, circle, rect')].filter(one => {
    const box = one.getBoundingClientRect();
    return box.right > room.right + 1.5 || box.left < room.left - 1.5 || box.top < room.top - 1.5
      || box.bottom > room.bottom + 1.5;
  }).map(one => one.outerHTML.slice(0, 200));
})"""
"""Words and marks of charts that stand out of their drawing."""

SMALL = """[...document.querySelectorAll('main *, header *')].filter(one => {
  const size = parseFloat(getComputedStyle(one).fontSize), svg = one.closest('svg');
  if (!one.childNodes.length || one.getBoundingClientRect().width === 0) return false;
  if (!svg) return size < 11;
  return one.tagName === 'text' && size * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width < 10.5;
}).map(one => one.outerHTML.slice(0, 200))"""
"""Words that are too small to read."""

OPEN = "document.querySelectorAll('details').forEach(one => one.open = true)"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Generator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium") / "profile") as running:
        yield running


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    engines = (
        EngineTimes("tilework", "1", 1e-3, 2e-3, 3e-3, "", 0.5, 4e-3, 1 << 20),
        EngineTimes("another", "2.0.1+cpu", 1e-3, 8e-3, 1.5e-2, "0.2512 [0.2312, 0.3123]", 0.1, 9e-3, None),
    )
    texts = {
        "measured": model_page(hostile_profile(), title=HOSTILE[0], roofline=KNOWN, engines=engines),
        "predicted": model_page(predicted(hostile(), n=64), title="model.onnx"),
        "boxes": model_page(boxed().profile(np.array([-1, 2, -3], np.float32), calls=1), roofline=KNOWN),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text)
    return {name: folder / f"{name}.html" for name in texts}


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["measured", "predicted", "boxes"])
def test_a_page_is_whole(chromium: Browser, pages: dict[str, Path], name: str, width: int, dark: bool) -> None:
    page = chromium.page()
    page.open(pages[name], width, dark=dark)
    assert page.errors == []
    assert page.requests == [pages[name].as_uri()]
    assert page.value("document.title").endswith("– Tilework")
    assert page.value("document.scripts.length + document.images.length") == 0
    for _ in ("as it is", "with all that can be opened"):
        assert page.value("document.documentElement.scrollWidth") <= width
        assert page.value(WIDER % width) == []
        assert page.value(CUT) == []
        assert page.value(SMALL) == []
        page.value(OPEN)
    light = page.value("getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[0] > 128")
    assert light is not dark
    assert page.errors == []


def test_the_probe_sees_what_is_wrong(chromium: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    """A page that does what none may do: it is wider than the window, asks for something, and runs a script."""
    text = pages["boxes"].read_text()
    start = text.index("<meta http-equiv")
    text = text[:start] + text[text.index(">", start) + 1 :]
    wrong = "<div style='width:900px'>x</div><img src='none.png'><script>console.error('heard')</script></body>"
    (tmp_path / "wrong.html").write_text(text.replace("</body>", wrong))
    page = chromium.page()
    page.open(tmp_path / "wrong.html", 390)
    assert any("heard" in error for error in page.errors)
    assert len(page.requests) == 2
    assert page.value("document.documentElement.scrollWidth") > 390
    assert len(page.value(WIDER % 390)) > 0


def test_a_page_forbids_scripts_to_itself(chromium: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    text = pages["boxes"].read_text().replace("</body>", "<script>document.title = 'caught'</script></body>")
    (tmp_path / "scripted.html").write_text(text)
    page = chromium.page()
    page.open(tmp_path / "scripted.html", 1280)
    assert page.value("document.title").endswith("– Tilework")
    assert any("Content Security Policy" in error for error in page.errors)
