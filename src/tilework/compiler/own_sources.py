"""The sources of this package as one digest: what is kept by one version of them is not found by another."""

from __future__ import annotations

import hashlib
import os
import time
from functools import cache
from pathlib import Path

from tilework.version import __version__

_PACKAGE = Path(__file__).parent.parent
_BEGAN = time.time()
_MARGIN = 2.0
"""Seconds before this module was imported in which others may have been."""


@cache
def own_sources() -> str:
    """A digest, made once a process. Of an installation it is that of its RECORD, which has a digest of every file; of
    a checkout, where files change, that of their contents.

    Raises `OSError` for files that cannot be read.
    """
    record = _record()
    if record is not None:
        return hashlib.sha256(record.read_bytes()).hexdigest()
    state = hashlib.sha256()
    for path in _files():
        name = path.relative_to(_PACKAGE).as_posix().encode()
        state.update(len(name).to_bytes(8, "little") + name + hashlib.sha256(path.read_bytes()).digest())
    return state.hexdigest()


def are_as_loaded() -> bool:
    """Whether no source has changed since this process began to load them: modules are loaded one by one, and what some
    of them made before a change and others after it belongs to no digest.
    """
    try:
        record = _record()
        return all(path.stat().st_mtime < _BEGAN - _MARGIN for path in ([record] if record is not None else _files()))
    except OSError:
        return False


def _record() -> Path | None:
    """The list of installed files; None for a checkout, which an editable installation only points to."""
    found = _PACKAGE.parent / f"{_PACKAGE.name}-{__version__}.dist-info" / "RECORD"
    return found if found.is_file() else None


def _files() -> list[Path]:
    found = [Path(folder, name) for folder, _, names in os.walk(_PACKAGE) for name in names if name.endswith(".py")]
    return sorted(found)
