"""The folder of the cache: whose it must be, and what to do where it is not.

Entries hold machine code that this process will run, so only files are read that this user, or root, owns and nobody
else may write. A folder that cannot be written is read only; one of somebody else is left alone.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tilework import environment
from tilework.fast_dataclass import dataclass

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True)
class Access:
    """What may be done with a folder; `notice` says why it is not everything."""

    reads: bool
    writes: bool
    notice: str = ""


def usual_place() -> Path:
    """`$XDG_CACHE_HOME/tilework/code`, else `~/.cache/tilework/code`."""
    base = environment.read(environment.XDG_CACHE_HOME)
    root = base if base is not None and base.is_absolute() else Path("~/.cache")
    return absolute(root / "tilework" / "code")


def absolute(place: Path) -> Path:
    """A folder wherever the process goes, `~` being the user's own; `~` stays where nobody knows which that is: a
    process in a container may have neither `HOME` nor a name.
    """
    try:
        return place.expanduser().absolute()
    except RuntimeError:
        return place


def opened(place: Path) -> Access:
    """Make the folder where there is none (0700), and say what may be done with it."""
    if not place.is_absolute():
        return Access(False, False, f"{place} cannot be used: this user has no home folder; set TILEWORK_CACHE_DIR")
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = place.stat()
    except OSError as problem:
        return Access(False, False, f"{place} cannot be used: {problem.strerror or problem}")
    if not stat.S_ISDIR(found.st_mode):
        return Access(False, False, f"{place} is no folder")
    if not owned(found):
        return Access(False, False, f"{place} belongs to another user, or others may write in it")
    if not os.access(place, os.W_OK | os.X_OK):
        return Access(True, False, f"{place} cannot be written: nothing new is kept")
    return Access(True, True)


def owned(found: os.stat_result) -> bool:
    """Whether a file or folder is this user's or root's, and nobody else may write it."""
    return found.st_uid in (os.geteuid(), 0) and not found.st_mode & OTHERS_WRITE
