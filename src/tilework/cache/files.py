"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: Path, mode: int = 0o600) -> Generator[BinaryIO]:
    """A file to write, which takes the place of `path` once it is whole and on the disk; no part of it is left where
    anything goes wrong, an interrupt included. `mode` is what the umask takes from. Raises `OSError`.
    """
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
