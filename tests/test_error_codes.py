"""Codes and their table agree: whatever is raised has an entry, whatever has an entry is raised somewhere."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tilework.error_codes import CODES, GROUPS

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "tilework"


def codes_used() -> dict[int, set[str]]:
    """Return every code that a call takes as an argument, and the files that do so."""
    used: dict[int, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if path.parent.name == "error_codes":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and type(node.value) is int and 1000 < node.value < 2000:
                used.setdefault(node.value, set()).add(path.relative_to(SOURCE).as_posix())
    return used


def codes_named_in_text() -> set[int]:
    """Return every code that a text of the source or of the documentation names as TW1234."""
    paths = [*SOURCE.rglob("*.py"), *(path for path in (ROOT / "docs").rglob("*.md") if "generated" not in path.parts)]
    return {int(code) for path in paths for code in re.findall(r"\bTW([0-9]{4})\b", path.read_text())}


def raised() -> dict[int, set[str]]:
    """Return the codes that calls of errors and faults take, by the classes of `tilework.errors`."""
    names = {node.name for node in ast.parse((SOURCE / "errors.py").read_text()).body if isinstance(node, ast.ClassDef)}
    found: dict[int, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            first = node.args[0]
            if called in names and isinstance(first, ast.Constant) and type(first.value) is int:
                found.setdefault(first.value, set()).add(f"{path.relative_to(SOURCE)}:{node.lineno}")
    return found


def test_every_code_that_is_raised_has_an_entry() -> None:
    assert {code: where for code, where in raised().items() if code not in CODES} == {}


def test_every_entry_is_raised_somewhere() -> None:
    used = codes_used()
    assert [code for code in CODES if code not in used] == []


def test_every_code_that_a_text_names_has_an_entry() -> None:
    assert codes_named_in_text() <= set(CODES)


def test_every_code_stands_in_its_hundred_and_in_order() -> None:
    for hundred, (_, codes) in GROUPS.items():
        assert [code // 100 for code in codes] == [hundred] * len(codes)
    assert list(CODES) == sorted(CODES)


def test_every_file_of_the_table_is_in_it() -> None:
    files = {path.stem for path in (SOURCE / "error_codes").glob("tw*.py")}
    assert {name.partition("_")[0] for name in files} == {f"tw{hundred}" for hundred in GROUPS}
    assert len(files) == len(GROUPS)


def test_entries_are_sentences_for_readers() -> None:
    for code, info in CODES.items():
        assert 1000 < code < 2000
        assert info.title, code
        assert info.title == info.title.strip(" ."), code
        assert info.meaning.endswith("."), code
        assert info.remedy.endswith("."), code
