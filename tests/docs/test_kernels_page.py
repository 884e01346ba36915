"""The page on kernels says what happens: its code runs from top to bottom and prints what stands below it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kernels.md"


def test_every_snippet_runs_and_prints_what_the_page_shows() -> None:
    blocks = re.findall(r"```(python|text)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    printed = ""
    shown = 0
    for kind, text in blocks:
        if kind == "text":
            assert printed == text
            shown += 1
            continue
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(text, str(PAGE), "exec"), names)
        printed = output.getvalue()
    assert len(blocks) > 8
    assert shown == 3
