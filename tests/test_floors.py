"""The floors: a folder imports only from lower floors, and folders of one floor never import each other.

`make check` asks import-linter the same; this test needs nothing but the standard library, covers every module, and
is itself tried on planted faults.
"""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"


@dataclass(frozen=True)
class Floor:
    """One floor: its height, the folders (or modules) on it, and whether those may import each other."""

    height: int
    homes: tuple[str, ...]
    open_inside: bool


def read_floors() -> list[Floor]:
    """Return the floors of the import-linter contract, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    floors: list[Floor] = []
    for below, layer in enumerate(reversed(layers)):
        homes = tuple(part.strip(" ()") for part in re.split(r"[|:]", layer))
        floors.append(Floor(below, homes, ":" in layer))
    return floors


def modules_under(source: Path) -> dict[str, Path]:
    """Return every module of the source tree by its dotted name."""
    found: dict[str, Path] = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(path: Path, modules: set[str]) -> set[str]:
    """Return the modules of ours that a file imports anywhere in it, function bodies included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in modules else node.module)
    return {name for name in found if name.split(".")[0] == "tilework"}


def faults_of(source: Path, floors: list[Floor]) -> list[str]:
    """Return one line for each module without a floor and each import that points upward or sideways."""
    homes = {home: floor for floor in floors for home in floor.homes}
    modules = modules_under(source)

    def home_of(module: str) -> str | None:
        return max((home for home in homes if f"{module}.".startswith(f"{home}.")), key=len, default=None)

    faults: list[str] = []
    for module, path in modules.items():
        home = home_of(module)
        if home is None:
            if not is_only_a_docstring(path) and module != "tilework":
                faults.append(f"{module} stands on no floor")
            continue
        for target in sorted(imports_of(path, set(modules))):
            other = home_of(target)
            if other is None:
                faults.append(f"{module} imports {target}, which stands on no floor")
            elif homes[other].height > homes[home].height:
                faults.append(f"{module} imports upward: {target}")
            elif homes[other] is homes[home] and other != home and not homes[home].open_inside:
                faults.append(f"{module} imports sideways: {target}")
    return faults


def is_only_a_docstring(path: Path) -> bool:
    """Whether a file holds nothing but a docstring, as the `__init__.py` of a folder of folders does."""
    body = ast.parse(path.read_text()).body
    return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in body)


def test_every_module_stands_on_a_floor_and_imports_only_downward() -> None:
    assert faults_of(SOURCE, read_floors()) == []


def test_the_contract_has_the_floors_of_the_design() -> None:
    floors = read_floors()
    assert len(floors) == 18
    assert [floor.homes for floor in floors[-2:]] == [("tilework.cli",), ("tilework.__main__",)]
    assert [floor.height for floor in floors if floor.open_inside] == [0]


@pytest.mark.parametrize(
    ("module", "text", "fault"),
    [
        ("tilework/graph/types.py", "from tilework.ops import verify", "imports upward"),
        ("tilework/graph/types.py", "def f():\n    import tilework.cli.main", "imports upward"),
        ("tilework/graph/types.py", "from tilework.loops import tree", "imports sideways"),
        ("tilework/recipes/cpu/dot.py", "from tilework.recipes.cuda.dot import x", "imports sideways"),
        ("tilework/dims/terms.py", "from tilework.graph import types", "imports upward"),
        ("tilework/helpers.py", "x = 1", "stands on no floor"),
        ("tilework/graph/types.py", "import tilework", "stands on no floor"),
        ("tilework/graph/types.py", "from tilework.dims import Dim", ""),
        ("tilework/dims/terms.py", "from tilework.errors import TileworkError", ""),
    ],
)
def test_planted_faults_are_found(tmp_path: Path, module: str, text: str, fault: str) -> None:
    path = tmp_path / module
    path.parent.mkdir(parents=True)
    path.write_text(text)
    found = faults_of(tmp_path, read_floors())
    assert [line for line in found if fault in line] == found
    assert len(found) == (1 if fault else 0)
