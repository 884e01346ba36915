"""The demonstration: which files it takes, what it prints, when it says no."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples import file_types
from examples.anatomy import excerpt, fitted, shortened, wrapped
from examples.detector import Recorder, Verdict

SURE = Verdict("python", "Python source", 0.98765, by_network=True)
EMPTY = Verdict("empty", "Empty file", 1.0, by_network=False)


def tree(root: Path) -> None:
    for name in ("b.txt", "a.py", "sub/c d.md", ".hidden/x", "sub/__pycache__/y.pyc"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def test_files_that_git_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    tree(root)
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text("#!/bin/sh\nprintf 'sub/c d.md\\0gone\\0.hidden/x\\0'\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(git.parent))
    assert file_types.repository_files(root) == [".hidden/x", "sub/c d.md"]
    git.write_text("#!/bin/sh\nexit 128\n")
    assert file_types.repository_files(root) == ["a.py", "b.txt", "sub/c d.md"]


def test_files_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path)
    monkeypatch.setenv("PATH", os.devnull)
    assert file_types.repository_files(tmp_path) == ["a.py", "b.txt", "sub/c d.md"]


def test_the_table_fits() -> None:
    files = ["short.py", "long/" * 40 + "name.py"]
    lines = list(file_types.table(files, [SURE, EMPTY]))
    assert len(lines) == 4
    assert all(len(line) < 120 for line in lines)
    assert "python        0.988  Python source" in lines[2]
    assert lines[3].startswith("…")
    assert "name.py  empty" in lines[3]
    assert list(file_types.table([], [])) != []


def test_a_difference_is_told() -> None:
    other = Verdict("text", "Text", 0.5, by_network=True)
    assert file_types.differences(["a", "b"], [SURE, EMPTY], [SURE, EMPTY]) == []
    (line,) = file_types.differences(["a", "b"], [SURE, EMPTY], [other, EMPTY])
    assert line.startswith("a: python (0.988) by Tilework, text")


def test_a_recorder_keeps_inputs() -> None:
    class Runner:
        def run(self, output_names: Any, feeds: Mapping[str, Any]) -> list[Any]:
            return [output_names, len(feeds)]

    recorder = Recorder(Runner())
    assert recorder.run(["y"], {"bytes": [[1, 2]]}) == [["y"], 1]
    (kept,) = recorder.feeds
    assert np.array_equal(kept["bytes"], [[1, 2]])
    assert kept["bytes"].dtype == np.int32


def test_lines_are_cut() -> None:
    assert fitted("x" * 200, 10) == "x" * 9 + "…"
    assert list(excerpt(["a", "b", "c"], 2)) == ["  a", "  b", "  … 1 more lines"]
    assert list(excerpt(["a"], 2)) == ["  a"]
    assert shortened('x = "short" + `' + "long/" * 20 + "end`", 10) == 'x = "short" + `…/long/end`'
    assert all(len(line) < 120 for line in wrapped(", ".join(["word"] * 100)))
