"""A `.tilework` file: an executable as it was compiled, to be loaded without its model, frontend or compiler.

It is an entry (see `cache.entry`) with the sections of `runtime.sections`. Constants are used where the file is mapped.
Loading generates no code of the model: the objects are linked, no more.

A package holds machine code, so one is only opened that this user, or root, owns and nobody else may write.
"""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from tilework.cache.entry import DamagedError, Entry, decoded
from tilework.cache.files import writing
from tilework.cache.folder import owned
from tilework.cache.keys import Key
from tilework.errors import FileFormatError
from tilework.machine.host import check_runs_here
from tilework.runtime.context import Context, default_context
from tilework.runtime.sections import LAYOUT, Sections, about_target, executable_of, target_of
from tilework.runtime.settings import byte_limit, expect, expect_path
from tilework.version import __version__

if TYPE_CHECKING:
    from tilework.machine.cpu import CpuMachine
    from tilework.runtime.executable import Executable

KIND = "package"


def save_package(path: Path, model: str, target: CpuMachine, sections: Sections) -> None:
    """Write a package, whole or not at all, section by section. Raises `FileFormatError` 1901.

    What is no file, and links: as `tilework.cache.files.writing` does.
    """
    about = {"layout": LAYOUT, "tilework": __version__, "model": model, **about_target(target)}
    try:
        with writing(path) as file:
            Entry(Key(KIND, tuple(sorted(about.items()))), sections).write(file)
    except OSError as problem:
        raise FileFormatError(1901, f"{path} cannot be written: {problem.strerror}", where=str(path)) from None


def load(
    path: str | os.PathLike[str], *, context: Context | None = None, memory_limit: int | str | None = None
) -> Executable:
    """Load a `.tilework` file that `Executable.save` wrote. Its code is linked, not generated, and no model is read.

    The executable serves the sizes that its plan allows; sizes for which the compiler would compile once more are
    refused, as there is no model to compile.

    Args:
        path: the file. You (or root) must own it, and nobody else may write it.
        context: where code, threads and memory live; the process's own by default.
        memory_limit: bytes that one call's temporaries and outputs may take together, text such as `"4G"` too; by
            default what the executable had when it was saved.

    Raises:
        UsageError: 1002, an argument makes no sense.
        FileFormatError: 1903, the file cannot be read, is no package, is damaged, or was written by another version;
            1904, it belongs to another user, or others may write it.
        CodegenError: 1764, this processor cannot run its code.
    """
    if context is not None:
        expect("context", context, Context, "give a tilework.Context, or leave it out")
    if memory_limit is not None:
        memory_limit = byte_limit("memory_limit", memory_limit)
    place = expect_path("path", path)
    owner = context if context is not None else default_context()
    owner.prepare()
    entry = _read(place)
    about = dict(entry.key.parts)
    if entry.key.kind != KIND or about.get("layout") != LAYOUT or about.get("tilework") != __version__:
        written = (
            f"Tilework {about.get('tilework', '?')}" if entry.key.kind == KIND else f"an entry of {entry.key.kind}"
        )
        raise _unreadable(place, f"it was written by {written}, and this is Tilework {__version__}")
    try:
        target = target_of(entry)
        check_runs_here(target)
        return executable_of(entry, owner, target, memory_limit)
    except (KeyError, ValueError, TypeError) as problem:  # whole, but by no writer of ours
        raise _unreadable(place, f"its parts do not fit together ({problem})") from None


# -- files -------------------------------------------------------------------------------------------------------------
def _read(path: Path) -> Entry:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as problem:
        raise _unreadable(path, problem.strerror or str(problem)) from None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise _unreadable(path, "it is no file")
        if not owned(facts):
            raise FileFormatError(
                1904, f"{path} belongs to another user, or others may write it: the machine code in it is not trusted",
                where=str(path),
            )  # fmt: skip
        if not facts.st_size:
            raise _unreadable(path, "it is empty")
        # private pages: whoever changes the file later does not change what is computed unless memory gets short
        return decoded(memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)))
    except (OSError, ValueError) as problem:
        raise _unreadable(path, str(problem)) from None
    except DamagedError as problem:
        raise _unreadable(path, str(problem)) from None
    finally:
        os.close(descriptor)


def _unreadable(path: Path, why: str) -> FileFormatError:
    return FileFormatError(1903, f"{path} cannot be read: {why}", where=str(path))
