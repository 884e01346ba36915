"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: Path, mode: int = 0o600) -> Generator[BinaryIO]:
    """A file to write, which takes the place of `path` once it is whole and on the disk; no part of it is left where
    anything goes wrong, an interrupt included. `mode` is what the umask takes from.

    Only a file, or a link itself, is replaced: raises `OSError` where `path` is a folder, device, pipe or socket.
    """
    kind = _kind(path, follow=False)
    if kind is not None and kind not in (stat.S_IFREG, stat.S_IFLNK):
        raise OSError(errno.EINVAL, "it is no file", str(path))
    # not tempfile: its files are for their owner alone
    beside = path.parent / f".{path.name[:100]}.{secrets.token_hex(8)}"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


@contextlib.contextmanager
def writing(path: Path, mode: int = 0o600) -> Generator[BinaryIO]:
    """What a user asked for, written to `path`: a file as by `replacing`.

    A link stays, and the file that it points to is replaced. A character device or a pipe (`/dev/null`,
    `/dev/stdout`) is written to as it is; a folder, a socket and a disk are not: raises `OSError`.
    """
    kind = _kind(path, follow=True)
    if kind in (stat.S_IFCHR, stat.S_IFIFO):
        with path.open("wb") as file:
            yield file
        return
    with replacing(Path(os.path.realpath(path)), mode) as file:
        yield file


def _kind(path: Path, follow: bool) -> int | None:
    """What a path is (`stat.S_IFMT`); None where nothing is there."""
    try:
        return stat.S_IFMT(os.stat(path, follow_symlinks=follow).st_mode)  # noqa: PTH116 - a loop of links is an error
    except FileNotFoundError:
        return None
