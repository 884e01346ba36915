"""SHA-256 of the SHA-256 of every block: one digest of much data, whose blocks are hashed on all processors at once."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable
from typing import TypeAlias

BLOCK = 1 << 20
"""Bytes of a block; the last one is shorter."""
_FOR_A_THREAD = 4
"""Blocks from which on another thread is worth starting."""
_MOST_THREADS = 8

Piece: TypeAlias = "bytes | memoryview"


def checksum(*pieces: Piece) -> bytes:
    """The digest of pieces of memory as if they were one; nothing is copied."""
    blocks = _blocks(pieces)

    def digest_of(number: int) -> bytes:
        state = hashlib.sha256()
        for part in blocks[number]:
            state.update(part)
        return state.digest()

    return _root(len(blocks), digest_of)


def file_checksum(descriptor: int, size: int) -> bytes:
    """The digest of the first `size` bytes of an open file. They are read, not mapped: a file that somebody shortens is
    an error here and no signal. Raises `OSError`.
    """

    def digest_of(number: int) -> bytes:
        start = number * BLOCK
        state, at, end = hashlib.sha256(), start, min(start + BLOCK, size)
        while at < end:
            part = os.pread(descriptor, end - at, at)
            if not part:
                raise OSError("the file became shorter while it was read")
            state.update(part)
            at += len(part)
        return state.digest()

    return _root(-(-size // BLOCK), digest_of)


def _blocks(pieces: Iterable[Piece]) -> list[list[memoryview]]:
    """The pieces cut where blocks end."""
    found: list[list[memoryview]] = []
    left = 0
    for piece in pieces:
        view = memoryview(piece)
        at = 0
        while at < len(view):
            if not left:
                found.append([])
                left = BLOCK
            part = view[at : at + left]
            found[-1].append(part)
            at += len(part)
            left -= len(part)
    return found


def _root(count: int, digest_of: Callable[[int], bytes]) -> bytes:
    digests = [b""] * count
    failed: list[OSError] = []
    threads = min(count // _FOR_A_THREAD, _processors(), _MOST_THREADS)

    def work(first: int, step: int) -> None:
        try:
            for number in range(first, count, step):
                digests[number] = digest_of(number)
        except OSError as problem:
            failed.append(problem)

    if threads < 2:
        work(0, 1)
    else:
        begun: list[threading.Thread] = []
        for first in range(1, threads):
            thread = threading.Thread(target=work, args=(first, threads), name="tilework-hash")
            try:
                thread.start()
            except RuntimeError:  # no more threads
                work(first, threads)
            else:
                begun.append(thread)
        work(0, threads)
        for thread in begun:
            thread.join()
    if failed:
        raise failed[0]
    return hashlib.sha256(b"".join(digests)).digest()


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
