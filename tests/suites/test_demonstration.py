"""The demonstration runs, fits a page, is the same each time, and says no where the engines disagree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from examples import file_types
from examples.detector import TileworkRunner


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "code.py").write_text("import os\n\n\ndef main() -> None:\n    print(os.getcwd())\n" * 30)
    (tmp_path / "page.html").write_text("<!doctype html><html><body><p>words</p></body></html>\n" * 40)
    (tmp_path / "empty").touch()
    (tmp_path / "short").write_text("hi")
    monkeypatch.setattr(file_types, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.usefixtures("root")
def test_the_demonstration_runs(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []
    for _ in range(2):
        assert file_types.main() == 0
        shown.append(capsys.readouterr().out)
    lines = shown[0].splitlines()
    assert max(map(len, lines)) < 120
    assert "\x1b" not in shown[0]
    table = lines[2:6]
    assert [line.split()[:2] for line in table] == [
        ["code.py", "python"], ["empty", "empty"], ["page.html", "html"], ["short", "txt"],
    ]  # fmt: skip
    for heading in ("TIME", "GRAPH", "REGIONS", "TRACE", "LOOP PROGRAM", "CODE", "PLAN", "COMPILE TIME"):
        assert any(line.startswith(heading) for line in lines), heading
    # a time's number of digits also moves the padding before it
    untimed = [
        re.sub(r" *\d+\.\d+|COMPILE TIME.*|^  verify.*|^  link.*", "", text, flags=re.MULTILINE) for text in shown
    ]
    assert untimed[0] == untimed[1]


@pytest.mark.usefixtures("root")
def test_a_network_that_errs_is_found_out(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    honest = TileworkRunner.run

    def erring(self: TileworkRunner, names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        return [output[..., ::-1] for output in honest(self, names, feeds)]

    monkeypatch.setattr(TileworkRunner, "run", erring)
    assert file_types.main() == 1
    assert "code.py: " in capsys.readouterr().out
