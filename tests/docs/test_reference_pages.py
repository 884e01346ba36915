"""The reference pages and the source agree: every public name, every machine."""

from __future__ import annotations

from pathlib import Path

import tilework
from tilework.machine.finder import names

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_of_public_names_has_each_of_them() -> None:
    page = (DOCS / "reference" / "api.md").read_text()
    listed = {line.rpartition("tilework.")[2] for line in page.splitlines() if line.startswith(".. auto")}
    assert listed == set(tilework.__all__) - {"__version__"}


def test_the_installation_page_names_every_machine() -> None:
    page = (DOCS / "install.md").read_text()
    assert [name for name in names() if f"`{name}`" not in page] == []
