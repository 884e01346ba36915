"""Folders of variants (operators, primitives, passes, recipes, machines): one variant a file, found by its file name.

Adding a variant is adding a file; nothing lists them, and using one does not import the others.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path

from tilework.errors import UsageError


def list_variants(package: str) -> tuple[str, ...]:
    """Return the names of the variants in a package's folder, sorted, importing none of them.

    A variant is a module or a package whose name does not start with an underscore. `package` is the full dotted
    name, e.g. `"tilework.schedule"`. Raises `UsageError` 1001 if there is no such package.
    """
    names: set[str] = set()
    for folder in _folders(package):
        for entry in folder.iterdir():
            if entry.suffix == ".py":
                names.add(entry.stem)
            elif (entry / "__init__.py").is_file():
                names.add(entry.name)
    return tuple(sorted(name for name in names if not name.startswith("_")))


def find_variant(package: str, name: str, attribute: str) -> object:
    """Import the module `package.name` if it is not yet imported, and return its `attribute`.

    Raises `UsageError` 1001, with the nearest names there are, if the folder holds no variant of that name, and
    `AttributeError` if the module lacks the attribute every variant of its folder has: a fault of the variant.
    """
    loaded = sys.modules.get(f"{package}.{name}")
    if loaded is not None and not name.startswith("_") and hasattr(loaded, attribute):
        return getattr(loaded, attribute)
    known = _known(package)
    if name not in known:
        known = list_variants(package)  # a file that is new
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"use one of {', '.join(known) or '(none there yet)'}"
        raise UsageError(1001, f"{package} has no {name!r}", hint=hint)
    return getattr(importlib.import_module(f"{package}.{name}"), attribute)


@cache
def _known(package: str) -> tuple[str, ...]:
    return list_variants(package)


def _folders(package: str) -> list[Path]:
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.submodule_search_locations is None:
        raise UsageError(1001, f"there is no package {package!r}", hint="give the full dotted name of a package")
    return [path for path in map(Path, spec.submodule_search_locations) if path.is_dir()]
