"""A disk with little room: a small file system of its own where one may be mounted, else a limit on files' sizes."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

from benchmarks.cache_trouble.compiling import Journal, forked
from benchmarks.key_pairs.pairs import environment
from tilework.cache.entry import DamagedError
from tilework.cache.store import Store

PAGES = (1, 2, 4, 6, 9, 14, 40)
"""Room, in pages of 4 KiB: for the folder alone, for some of the entries, for all."""
_PAGE = 4096


@contextlib.contextmanager
def small_disk(place: Path, size: int) -> Generator[bool]:
    """Mount a file system of so many bytes; False where that may not be done."""
    place.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        done = False
    try:
        yield done
    finally:
        if done:
            subprocess.run(["umount", str(place)], capture_output=True, check=True)


def limited(size: int) -> None:
    """No file of this process may be larger."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def filled(
    folder: Path, known: dict[str, tuple[Path, str]], names: tuple[str, ...] = ("tanh", "product")
) -> dict[str, Any]:
    """Compile models into caches with too little room, of several sizes, twice each; then look at what is there."""
    journal = Journal(folder / "journal of full disks")
    ways: set[str] = set()
    broken = started = 0
    room_lacked = False
    for pages in PAGES:
        cache = folder / f"disk{pages}"
        with small_disk(cache, pages * _PAGE) as mounted:
            ways.add("a small file system" if mounted else "a limit on files' sizes")
            with environment(TILEWORK_CACHE="on", TILEWORK_CACHE_DIR=str(cache)):
                for name in (*names, *names):
                    size = 1024 + pages * 256  # what the process writes down itself has to fit
                    before = None if mounted else (lambda size=size: limited(size))
                    started += 1
                    os.waitpid(forked(name, *known[name], journal, before), 0)
            store = Store(cache, 1 << 30)
            kinds = store.by_kind()
            room_lacked = room_lacked or "model" not in kinds
            for kept in store.entries():
                try:
                    store.read(kept.path)
                except DamagedError:
                    broken += 1
    lines = journal.lines()
    return {
        "how": sorted(ways), "room lacked": room_lacked, "broken": broken, "wanted": started,
        "right": sum(line.what == "right" for line in lines), "wrong": sum(line.what == "wrong" for line in lines),
        "coded": [line.key for line in lines if line.what == "coded"],
        "uncoded": [line.key for line in lines if line.what == "uncoded"],
    }  # fmt: skip
