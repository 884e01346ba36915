"""The doors: the two places that import by name, what they answer, and how little `import tilework` brings in."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tilework
from tilework.errors import UsageError
from tilework.variants import find_variant, list_variants

SOURCE = Path(__file__).resolve().parents[1] / "src"

# The package's own door, and the one helper behind every folder of variants.
DOORS = ["tilework/__init__.py", "tilework/variants.py"]

IMPORTERS = {"importlib", "pkgutil", "runpy"}
DYNAMIC = {"import_module", "find_spec", "spec_from_file_location", "walk_packages", "run_module", "run_path"}
HARMLESS = ("importlib.metadata", "importlib.resources")


def is_dynamic(node: ast.AST) -> bool:
    """Whether a node brings in, or names, a way of importing by a computed name."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        inside = isinstance(node, ast.ImportFrom) and node.module
        names = [f"{inside}.{alias.name}" if inside else alias.name for alias in node.names]
        return any(name.split(".")[0] in IMPORTERS and not name.startswith(HARMLESS) for name in names)
    if isinstance(node, ast.Name):
        return node.id == "__import__"
    return isinstance(node, ast.Attribute) and node.attr in DYNAMIC


def dynamic_files(source: Path) -> list[str]:
    """Return the files that import by a computed name, relative to the source folder."""
    return [
        path.relative_to(source).as_posix()
        for path in sorted(source.rglob("*.py"))
        if any(is_dynamic(node) for node in ast.walk(ast.parse(path.read_text())))
    ]


def test_only_the_two_doors_import_by_name() -> None:
    assert dynamic_files(SOURCE) == DOORS


@pytest.mark.parametrize(
    ("text", "caught"),
    [
        ("import importlib\nimportlib.import_module('os')", True),
        ("def f():\n    from importlib import import_module", True),
        ("__import__('os')", True),
        ("import pkgutil", True),
        ("import runpy", True),
        ("import importlib.metadata\nimportlib.import_module('os')", True),
        ("from importlib.metadata import version", False),
        ("from importlib import resources", False),
        ("import os", False),
    ],
)
def test_planted_doors_are_found(tmp_path: Path, text: str, caught: bool) -> None:
    (tmp_path / "planted.py").write_text(text)
    assert dynamic_files(tmp_path) == (["planted.py"] if caught else [])


# Text that the program itself wrote is run here; nothing a user gives becomes part of it.
RUNS_ITS_OWN_TEXT = ["tilework/fast_dataclass.py", "tilework/loops/interpret_source.py", "tilework/runtime/shapes.py"]


def test_only_known_places_run_text() -> None:
    calls = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Name) and node.id in {"eval", "exec"}
    }
    assert sorted(calls) == RUNS_ITS_OWN_TEXT


def run(code: str) -> str:
    """Run a line of Python in a fresh process and return what it printed."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_importing_the_package_brings_in_no_library() -> None:
    heavy = [
        "numpy",
        "llvmlite",
        "islpy",
        "onnx",
        "torch",
        "ml_dtypes",
        "click",
        "rich",
        "matplotlib",
        "importlib.metadata",
    ]
    assert run(f"import sys, tilework; print([name for name in {heavy} if name in sys.modules])") == "[]"


@pytest.mark.parametrize("name", [name for name in tilework.__all__ if name != "__version__"])
def test_every_public_name_opens(name: str) -> None:
    value = getattr(tilework, name)
    assert getattr(tilework, name) is value
    assert name in dir(tilework)


def test_the_door_has_one_home_for_each_public_name() -> None:
    assert sorted([*tilework._HOMES, "__version__"]) == sorted(tilework.__all__)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'compil'.*compile"):
        tilework.compil  # noqa: B018  # pyright: ignore[reportUnusedExpression]


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package of variants: one module, one package, one broken module, one private module, and clutter."""
    package = tmp_path / "zoo_of_variants"
    (package / "zebra").mkdir(parents=True)
    (package / "notes").mkdir()
    for name, text in {
        "__init__.py": "",
        "lion.py": "ROAR = 'loud'",
        "broken.py": "raise AssertionError('imported')",
        "_base.py": "",
        "zebra/__init__.py": "STRIPES = 7",
        "notes/readme.txt": "",
        "data.json": "{}",
    }.items():
        (package / name).write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield package.name
    for name in [name for name in sys.modules if name.split(".")[0] == package.name]:
        del sys.modules[name]


def test_variants_are_listed_without_importing_them(zoo: str) -> None:
    assert list_variants(zoo) == ("broken", "lion", "zebra")
    assert f"{zoo}.lion" not in sys.modules


def test_a_variant_is_found_by_its_file_name(zoo: str) -> None:
    assert find_variant(zoo, "lion", "ROAR") == "loud"
    assert find_variant(zoo, "zebra", "STRIPES") == 7
    assert f"{zoo}.broken" not in sys.modules


@pytest.mark.parametrize("name", ["lino", "_base", "", "notes", "../lion", "lion.ROAR", "data"])
def test_a_name_that_is_no_variant_is_refused_with_the_nearest(zoo: str, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_variant(zoo, name, "ROAR")
    assert caught.value.code == 1001
    assert repr(name) in str(caught.value)
    assert "lion" in str(caught.value)


def test_a_fault_inside_a_variant_is_not_hidden(zoo: str) -> None:
    with pytest.raises(AssertionError, match="imported"):
        find_variant(zoo, "broken", "ANY")
    with pytest.raises(AttributeError):
        find_variant(zoo, "lion", "PURR")


@pytest.mark.parametrize("package", ["tilework_of_nowhere", "tilework.nowhere.at_all", "tilework.errors"])
def test_a_package_that_does_not_exist_is_refused(package: str) -> None:
    with pytest.raises(UsageError, match="1001"):
        list_variants(package)
