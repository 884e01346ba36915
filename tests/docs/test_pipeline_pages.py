"""The pages of the pipeline show every stage of one network, as the compiler makes it now."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def made() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("pipeline_dumps", DOCS / "_extensions" / "pipeline_dumps.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.dumps()


def test_every_stage_is_shown_once_and_shows_what_the_page_says() -> None:
    dumps = made()
    pages = sorted((DOCS / "pipeline").glob("*.md"))
    shown = [name for page in pages for name in re.findall(r"generated/pipeline/(\w+)\.txt", page.read_text())]
    assert sorted(shown) == sorted(dumps)
    assert made() == dumps
    assert "multiply(" in dumps["imported"]
    assert "multiply(" not in dumps["simplified"]
    assert dumps["regions"].count("region ") == 2
    assert "split(loop='v0.m0', factor=6," in dumps["trace"]
    assert "float32[6, 2, 8]" in dumps["loops"]
    assert "@llvm.fma.v8f32" in dumps["llvm"]
    assert "arena arena" in dumps["plan"]
