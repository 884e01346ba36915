"""The page of the primitives has a section for every file of their folder, each with a picture."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tilework.schedule.trace import primitive_names

EXTENSIONS = Path(__file__).resolve().parents[2] / "docs" / "_extensions"


def test_every_primitive_has_a_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("generated_pages", EXTENSIONS / "generated_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "GENERATED", tmp_path)
    assert module.primitive_page() == ["primitives"]
    sections = (tmp_path / "primitives.md").read_text().split("\n## ")[1:]
    assert [section.partition("\n")[0] for section in sections] == sorted(primitive_names())
    for section in sections:
        assert "->" in section, section
        assert "schedule." in section
