"""The store: entries by key in one folder, one file each.

Reading never trusts a file: owner, mode, checksum and key are checked, and what fails is a miss that is set aside in
`bad/`. Writing goes to a file of its own that is renamed when it is whole and on the disk, so a process that dies
leaves no half entry. Processes that want the same key at once wait for the first one to make it. Nothing that goes
wrong with the disk is an error of the caller: it is counted, and what was asked for is made anew.

Threads and processes may share a store.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

from tilework.cache.entry import DamagedError, Entry, decoded, kind_said
from tilework.cache.eviction import LARGE, Kept, oldest, what_goes
from tilework.cache.files import replacing
from tilework.cache.folder import Access, opened, owned
from tilework.cache.keys import Key

PATIENCE = 30.0
"""Seconds to wait for another process that makes the same entry; after that it is made here too."""
_LOOK = 0.002
_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would wait for a writer
_ABANDONED = 3600.0
"""Seconds after which a file that somebody began to write is nobody's."""
_SWEEP = 64
"""Entries written by one store between two looks at the size of the folder."""
_SET_ASIDE = 50
"""Damaged entries that are kept for somebody to look at."""


class Store:
    """Entries in a folder, at most `limit` bytes of them."""

    def __init__(self, place: Path, limit: int) -> None:
        """The folder is opened when it is first needed."""
        self.place = place
        self.limit = limit
        self.counts: Counter[str] = Counter()
        """What happened: hits, misses, written, damaged, foreign, not_written, removed, waited."""
        self._access: Access | None = None
        self._lock = threading.Lock()
        self._since_sweep = _SWEEP

    @property
    def access(self) -> Access:
        """What may be done with the folder."""
        if self._access is None:
            self._access = opened(self.place)
        return self._access

    @property
    def largest(self) -> int:
        """The most bytes of one entry."""
        return self.limit // 2

    def path(self, key: Key) -> Path:
        """The file of a key."""
        return self.place / key.digest[:2] / key.digest[2:]

    # -- one entry -----------------------------------------------------------------------------------------------------
    def get(self, key: Key) -> Mapping[str, bytes] | None:
        """The sections of an entry, or None: there is none that can be trusted."""
        found = self._look(key) if self.access.reads else None
        self._count("misses" if found is None else "hits")
        return found

    def mapped(self, key: Key, *, counted: bool = True) -> Entry | None:
        """An entry whose sections are parts of its file, mapped read-only; None as for `get`. It stays what it is when
        the file is removed or replaced. `counted=False`: for a second look.
        """
        found = self._entry(key, mapped=True) if self.access.reads else None
        if counted:
            self._count("misses" if found is None else "hits")
        return found

    def _look(self, key: Key) -> Mapping[str, bytes] | None:
        found = self._entry(key)
        return None if found is None else {name: bytes(content) for name, content in found.sections.items()}

    def _entry(self, key: Key, *, mapped: bool = False) -> Entry | None:
        path = self.path(key)
        raw = self._read(path, mapped=mapped)
        if raw is None:
            return None
        try:
            found = decoded(raw)
            if found.key != key:
                raise DamagedError("it is the entry of another key")
        except DamagedError as problem:
            self._set_aside(path, str(problem))
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # the time of its last use: what goes first when the folder is full
        return found

    def put(self, key: Key, sections: Mapping[str, bytes | memoryview]) -> bool:
        """Keep an entry; False (counted, with no file left) where that cannot be done."""
        if not self.access.writes:
            return False
        entry, path = Entry(key, sections), self.path(key)
        size = entry.size
        if size > self.largest:
            self._count("not_written")
            return False
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            with replacing(path) as file:
                entry.write(file)
        except OSError:
            self._count("not_written")
            return False
        self._count("written")
        with self._lock:
            self._since_sweep += _SWEEP if size > self.limit // LARGE else 1
            due = self._since_sweep >= _SWEEP
            self._since_sweep = 0 if due else self._since_sweep
        if due:
            self.prune()
        return True

    def get_or_make(self, key: Key, make: Callable[[], Mapping[str, bytes]]) -> Mapping[str, bytes]:
        """The sections of an entry; made and kept where there is none, by one process or thread at a time."""
        found = self.get(key)
        if found is None and self.access.writes:
            with self.alone(key):
                found = self._look(key)
                if found is None:
                    found = make()
                    self.put(key, found)
        return found if found is not None else make()

    # -- all of them ---------------------------------------------------------------------------------------------------
    def entries(self) -> list[Kept]:
        """Every entry, those used longest ago first. Files that a process began to write an hour ago are removed."""
        found: list[Kept] = []
        for bucket in self._buckets():
            for name in self._names(bucket):
                with contextlib.suppress(OSError):
                    facts = (bucket / name).lstat()
                    if not name.startswith("."):
                        found.append(Kept(bucket / name, facts.st_size, facts.st_mtime))
                    elif time.time() - facts.st_mtime > _ABANDONED:
                        (bucket / name).unlink()
        return sorted(found, key=lambda kept: (kept.used, kept.path))

    def by_kind(self) -> dict[str, tuple[int, int]]:
        """How many entries there are of each kind, and their bytes, as their files say."""
        found: dict[str, tuple[int, int]] = {}
        for kept in self.entries():
            kind = ""
            with contextlib.suppress(OSError), os.fdopen(os.open(kept.path, _READING), "rb") as file:
                kind = kind_said(file)
            count, size = found.get(kind, (0, 0))
            found[kind] = count + 1, size + kept.bytes
        return dict(sorted(found.items()))

    def read(self, path: Path) -> Entry:
        """The entry in a file of the store; raises `DamagedError`."""
        raw = self._read(path, mapped=True)
        if raw is None:
            raise DamagedError("it cannot be read")
        return decoded(raw)

    def prune(self, limit: int | None = None) -> int:
        """Remove the entries used longest ago until the rest takes at most `limit` bytes; by default, until the store
        keeps to its cap (see `cache.eviction`). Returns the bytes that went.
        """
        every = self.entries()
        goes = what_goes(every, self.limit) if limit is None else oldest(every, limit)
        for kept in goes:
            with contextlib.suppress(OSError):
                kept.path.unlink()
                self._count("removed")
        return sum(kept.bytes for kept in goes)

    def clear(self) -> int:
        """Remove every entry, and what was set aside; returns how many entries went."""
        count = 0
        for bucket in [*self._buckets(), self.place / "bad"]:
            for name in self._names(bucket):
                with contextlib.suppress(OSError):
                    (bucket / name).unlink()
                    count += bucket.name != "bad"
        return count

    def set_aside_entry(self, key: Key, reason: str) -> None:
        """Move an entry out of the way of which only a reader saw that it is not what its key says."""
        self._set_aside(self.path(key), reason)

    @property
    def set_aside(self) -> int:
        """DamagedError entries that somebody may look at."""
        return sum(not name.endswith(".why") for name in self._names(self.place / "bad"))

    # -- files ---------------------------------------------------------------------------------------------------------
    def _read(self, path: Path, *, mapped: bool = False) -> bytes | memoryview | None:
        try:
            descriptor = os.open(path, _READING)
        except OSError as problem:
            if problem.errno == errno.ELOOP:
                self._set_aside(path, "it is a link")
            return None
        try:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode) or not owned(facts):
                self._count("foreign")
                return None
            if mapped and facts.st_size:
                return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()
        except (OSError, ValueError):
            return None
        finally:
            os.close(descriptor)

    def _set_aside(self, path: Path, reason: str) -> None:
        """Move a file where nothing reads it, so that its place can be taken."""
        self._count("damaged")
        bad = self.place / "bad"
        name = f"{path.parent.name}{path.name}"
        with contextlib.suppress(OSError):
            bad.mkdir(mode=0o700, exist_ok=True)
            for old in self._names(bad)[: -2 * _SET_ASIDE]:
                (bad / old).unlink()
            path.replace(bad / name)
            (bad / f"{name}.why").write_text(reason + "\n")

    def _buckets(self) -> list[Path]:
        return [self.place / name for name in self._names(self.place) if len(name) == 2]

    @staticmethod
    def _names(place: Path) -> list[str]:
        try:
            return sorted(path.name for path in place.iterdir())
        except OSError:
            return []

    @contextlib.contextmanager
    def alone(self, key: Key) -> Generator[None]:
        """Be the only one, of every process and thread, that makes an entry of this key.

        An entry may be made while one of another kind is. The lock goes with the process that dies. Who waits too long,
        or cannot lock, goes on without: entries are then made twice, never wrong.
        """
        locks = self.place / "locks"
        try:
            if not self.access.writes:
                raise PermissionError
            import fcntl

            locks.mkdir(mode=0o700, exist_ok=True)
            descriptor = os.open(locks / f"{key.kind}-{key.digest[:3]}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except (OSError, ImportError):
            yield
            return
        waited, until = False, time.monotonic() + PATIENCE
        try:
            while time.monotonic() < until:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    waited = True
                    time.sleep(_LOOK)
            if waited:
                self._count("waited")
            yield
        finally:
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1
