"""The package says that it is typed, is built with that file, and every public name has its annotations."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path

import pytest

import tilework

ROOT = Path(__file__).resolve().parents[1]


def test_the_marker_is_in_the_package() -> None:
    assert (Path(tilework.__file__).parent / "py.typed").is_file()
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert build == {"packages": ["src/tilework"]}  # whole, and nothing of it left out


METHODS = [
    (kind, name)
    for kind in (tilework.Executable, tilework.Context, tilework.Schedule)
    for name, _ in inspect.getmembers(kind, inspect.isfunction)
    if not name.startswith("_") or name in {"__call__", "__init__", "__enter__", "__exit__"}
]


@pytest.mark.parametrize(("kind", "name"), METHODS, ids=lambda one: one if isinstance(one, str) else one.__name__)
def test_public_methods_are_annotated(kind: type, name: str) -> None:
    signature = inspect.signature(getattr(kind, name))
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in list(signature.parameters.values())[1:]:
        assert parameter.annotation is not inspect.Parameter.empty, parameter.name


@pytest.mark.parametrize(
    "name",
    ["inputs", "outputs", "__call__", "run_async", "profile", "explain", "save", "trim", "plan", "copies", "context"],
)
def test_an_executable_has_what_is_promised_of_it(name: str) -> None:
    from tilework.runtime.boxed import BoxedExecutable
    from tilework.runtime.per_shape import PerShape

    for kind in (tilework.Executable, BoxedExecutable, PerShape):
        assert hasattr(kind, name) or f"self.{name} =" in inspect.getsource(kind), kind
