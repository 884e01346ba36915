"""Entries of a store in one file, to be carried to another machine or kept beside a deployment.

The file is a tar archive without compression: the entries as the store has them, those used longest ago first, each
named by the digest of its key; and at the end `index`, JSON with the format and how many entries there are.

Entries hold machine code, so an archive is only read that this user, or root, owns and nobody else may write. Every
entry is checked (its checksum, and that its key has the digest it is named by) before the first is kept. Names are
compared with digests and never used as paths.
"""

from __future__ import annotations

import io
import json
import mmap
import os
import stat
import tarfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from tilework.cache.entry import DamagedError, Entry, decoded
from tilework.cache.files import writing
from tilework.cache.folder import owned
from tilework.cache.store import Store
from tilework.errors import FileFormatError, UsageError
from tilework.fast_dataclass import dataclass

INDEX = "index"
FORMAT = 1


@dataclass(frozen=True)
class Exported:
    """Entries and bytes in the archive, and how many entries were left out as they are damaged or went meanwhile."""

    entries: int
    bytes: int
    left_out: int


@dataclass(frozen=True)
class Imported:
    """Entries that were kept, those that were there already, and the bytes of both."""

    imported: int
    already: int
    bytes: int


def export_entries(store: Store, path: Path) -> Exported:
    """Write every entry to an archive, whole or not at all; where the path is a link, to the file it points to.

    Raises `FileFormatError` 1901 where the archive cannot be written, `UsageError` 1002 for a folder that cannot be
    read.
    """
    if not store.access.reads:
        raise UsageError(1002, store.access.notice, where=str(store.place))
    if path.exists() and not path.is_file():
        raise FileFormatError(1901, f"{path} cannot be written: it is no file", where=str(path))
    entries, size, left_out = 0, 0, 0
    try:
        with writing(path) as file, tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for kept in store.entries():
                try:
                    entry = store.read(kept.path)
                except DamagedError:
                    left_out += 1
                    continue
                _add(tar, entry.key.digest, entry.encoded())
                entries, size = entries + 1, size + entry.size
            _add(tar, INDEX, json.dumps({"format": FORMAT, "entries": entries}).encode())
    except OSError as problem:
        raise FileFormatError(1901, f"{path} cannot be written: {problem.strerror}", where=str(path)) from None
    return Exported(entries, size, left_out)


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    about = tarfile.TarInfo(name)
    about.size, about.mode = len(content), 0o600
    tar.addfile(about, io.BytesIO(content))


def import_entries(store: Store, path: Path) -> Imported:
    """Keep every entry of an archive, or none of one that is not as it was written.

    Raises `FileFormatError` 1906 for a file that is no archive of ours or damaged, 1904 for one of another user or that
    others may write, 1901 where the store cannot keep all of it (what it has kept is whole).
    """
    if not store.access.writes:
        raise FileFormatError(1901, store.access.notice, where=str(store.place))
    with _mapped(path) as raw:
        found = _entries(raw, path)
        already = 0
        for entry in found:
            if store.path(entry.key).exists() and store.get(entry.key) is not None:
                already += 1
            elif not store.put(entry.key, entry.sections):
                text = f"{store.place} could not keep {entry.size} bytes (the disk is full, or the cache's limit less)"
                raise FileFormatError(1901, text, where=str(store.place))
        return Imported(len(found) - already, already, sum(entry.size for entry in found))


def _entries(raw: memoryview, path: Path) -> list[Entry]:
    """The entries, parts of `raw`, every one checked."""
    found: list[Entry] = []
    index: object = None
    try:
        with tarfile.open(fileobj=cast("BinaryIO", _Reader(raw)), mode="r:") as tar:
            for member in tar:
                content = raw[member.offset_data : member.offset_data + member.size]
                if index is not None or not member.isreg() or member.issparse() or len(content) != member.size:
                    raise _unreadable(path, "it holds other things than entries, or is not whole")
                if member.name == INDEX:
                    index = json.loads(bytes(content))
                    continue
                entry = decoded(content)
                if entry.key.digest != member.name:
                    raise DamagedError("an entry is named by another key")
                found.append(entry)
    except (tarfile.TarError, DamagedError, ValueError, OverflowError) as problem:
        raise _unreadable(path, str(problem) or "it is damaged") from None
    if index != {"format": FORMAT, "entries": len(found)}:
        raise _unreadable(path, "it is not whole, or written by another version")
    return found


class _Reader(io.RawIOBase):
    """A file that memory is read as."""

    def __init__(self, raw: memoryview) -> None:
        self._raw, self._at = raw, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._raw)}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = len(self._raw) if size < 0 else self._at + size
        found = bytes(self._raw[self._at : end])
        self._at += len(found)
        return found


@contextmanager
def _mapped(path: Path) -> Generator[memoryview]:
    """The bytes of a file that may be trusted. Raises `FileFormatError` 1904, 1906."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as problem:
        raise _unreadable(path, getattr(problem, "strerror", None) or str(problem)) from None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise _unreadable(path, "it is no file")
        if not owned(facts):
            text = f"{path} belongs to another user, or others may write it: the machine code in it is not trusted"
            raise FileFormatError(1904, text, where=str(path))
        if not facts.st_size:
            raise _unreadable(path, "it is empty")
        mapping = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    except OSError as problem:
        raise _unreadable(path, problem.strerror or str(problem)) from None
    finally:
        os.close(descriptor)
    yield memoryview(mapping)


def _unreadable(path: Path, why: str) -> FileFormatError:
    return FileFormatError(1906, f"{path} cannot be imported: {why}", where=str(path))
