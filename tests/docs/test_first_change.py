"""The steps of the page about a first change work: they are made in a copy of the source, whose tests then pass."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "developers" / "first-change.md"
FILES = ROOT / "docs" / "developers" / "first_change"
PLACES = {
    "reverse.py": "src/tilework/schedule/primitives",
    "reverse_marked.py": "tests/illegal",
    "reverse_prefix.py": "tests/illegal",
    "reverse_strict_sum.py": "tests/illegal",
    "test_reverse.py": "tests/schedule",
    "softsign.py": "src/tilework/ops/elementwise",
}
"""Where the page says that its files go."""
TESTS = {
    "tests/illegal": "reverse or several",
    "tests/schedule/test_reverse.py": "",
    "tests/schedule/test_random_schedules.py": "met_both_ways or values_stay",
    "tests/ops/test_elementwise.py": "softsign or every_elementwise",
    "tests/frontends/onnx/test_element_types.py": "Softsign",
}
"""What the page says to run, less what the changes do not touch."""
SECONDS = 300.0


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source with both changes made."""
    copy = tmp_path_factory.mktemp("copy")
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "suites"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for name, folder in PLACES.items():
        assert not (copy / folder / name).exists(), f"{folder}/{name} is there already: the page needs another example"
        shutil.copy(FILES / name, copy / folder)
    for edit in tomllib.loads((FILES / "edits.toml").read_text())["edit"]:
        path = copy / edit["file"]
        old = edit["replace"] if "replace" in edit else edit["after"] + "\n"
        new = edit["add"] if "replace" in edit else old + edit["add"]
        text = path.read_text()
        assert text.count(old) == 1, f"{edit['file']} has no longer what the page changes: {old}"
        path.write_text(text.replace(old, new))
    return copy


@pytest.mark.parametrize("tests", TESTS)
def test_the_tests_of_the_change_pass(changed: Path, tests: str) -> None:
    paths = os.pathsep.join(map(str, (changed / "src", changed)))
    chosen = ["-k", TESTS[tests]] if TESTS[tests] else []
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests, *chosen],
        cwd=changed, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout


def test_the_page_names_every_file() -> None:
    page = PAGE.read_text()
    names = {file.name for file in FILES.iterdir() if file.is_file()}
    assert names == {*PLACES, "edits.toml"}
    assert [name for name in names if name not in page] == []
    assert [folder for folder in PLACES.values() if folder not in page] == []
