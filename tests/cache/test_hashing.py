"""One digest however data are cut into pieces, hashed by however many threads, in memory or in a file."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilework.cache.hashing import BLOCK, checksum, file_checksum

rng = np.random.default_rng(5)
SIZES = (0, 1, 63, BLOCK - 1, BLOCK, BLOCK + 1, 9 * BLOCK, 23 * BLOCK + 17)


def plain(content: bytes) -> bytes:
    blocks = (content[at : at + BLOCK] for at in range(0, len(content), BLOCK))
    return hashlib.sha256(b"".join(hashlib.sha256(block).digest() for block in blocks)).digest()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("processors", [1, 2, 5])
def test_pieces_and_files_have_the_digest_of_the_whole(
    size: int, processors: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilework.cache.hashing._processors", lambda: processors)
    content = rng.bytes(size)
    cuts = sorted(int(cut) for cut in rng.integers(0, size + 1, 7))
    pieces = [content[a:b] for a, b in zip((0, *cuts), (*cuts, size), strict=True)]
    assert checksum(content) == checksum(*pieces) == checksum(*map(memoryview, pieces)) == plain(content)
    (tmp_path / "f").write_bytes(content + b"more")
    with (tmp_path / "f").open("rb") as file:
        assert file_checksum(file.fileno(), size) == plain(content)


def test_a_file_that_became_shorter_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(20 * BLOCK))
    with (tmp_path / "f").open("rb") as file, pytest.raises(OSError, match="shorter"):
        file_checksum(file.fileno(), 20 * BLOCK + 1)


def test_without_more_threads_one_hashes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("tilework.cache.hashing._processors", lambda: 4)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    content = os.urandom(20 * BLOCK)
    assert checksum(content) == plain(content)
