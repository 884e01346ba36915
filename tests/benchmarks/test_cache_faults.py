"""`cache-faults`: a cache without checksums, without single flight, or that fails on a full disk, is found out."""

from __future__ import annotations

import contextlib
import importlib
import random
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cache_faults
from benchmarks.cache_trouble import __main__ as trouble
from benchmarks.cache_trouble import full_disk
from benchmarks.cache_trouble.bytes import Change, changes, flipped, tried
from benchmarks.cache_trouble.storm import Storm, as_told, models, one_round
from benchmarks.harness.result import Result
from tilework.cache import entry
from tilework.cache.hashing import Piece
from tilework.cache.keys import Key, key_of
from tilework.cache.store import Store

FLIPS: dict[str, Any] = {"kinds": {"object": 1, "model": 1, "model files": 1}, "changes": 9, "missed": [], "right": 3,
                         "wanted": 3, "wrong": 0, "coded": [], "uncoded": []}  # fmt: skip
FULL: dict[str, Any] = {"how": ["x"], "room lacked": True, "broken": 0, "wanted": 2, "right": 2, "wrong": 0,
                        "coded": [], "uncoded": []}  # fmt: skip


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Path, str]]:
    for name in trouble.IMPORTED:
        importlib.import_module(name)
    return models(tmp_path_factory.mktemp("models"), 1)


def stormed(known: Mapping[str, tuple[Path, str]], folder: Path, kills: int = 3) -> Storm:
    storm = Storm()
    one_round(storm, dict(known), folder, 6, kills, random.Random(4))
    return storm


def missed(result: Result) -> list[str]:
    return [figure.label for figure in result.figures if not figure.holds]


def judged(storm: Storm, flips: dict[str, Any] | None = None, full: dict[str, Any] | None = None) -> list[str]:
    told = {"storm": as_told(storm), "flips": {**FLIPS, **(flips or {})}, "full": {**FULL, **(full or {})}}
    return missed(cache_faults.judged(told, 0))


def test_a_sound_cache_holds(known: Mapping[str, tuple[Path, str]], tmp_path: Path) -> None:
    storm = stormed(known, tmp_path)
    assert storm.killed + storm.right >= storm.processes  # some are killed when they have told
    assert storm.silent == 0
    assert storm.keys >= 12
    assert judged(storm) == []


def test_a_wrong_result_is_found_out(known: Mapping[str, tuple[Path, str]], tmp_path: Path) -> None:
    wrong = {name: (path, "0" if name == "tanh" else expected) for name, (path, expected) in known.items()}
    storm = stormed(wrong, tmp_path)
    assert storm.wrong > 0
    assert judged(storm) == ["wrong results"]


def test_a_cache_without_single_flight_is_found_out(
    known: Mapping[str, tuple[Path, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def nobody_waits(self: Store, key: Key) -> Generator[None]:
        yield

    def found_by_nobody(self: Store, key: Key) -> None:
        return None

    monkeypatch.setattr(Store, "alone", nobody_waits)
    monkeypatch.setattr(Store, "_look", found_by_nobody)
    storm = stormed(known, tmp_path, kills=0)
    assert storm.compiles > 1.5 * storm.keys
    assert judged(storm) == ["compiles per key"]


def test_a_cache_that_fails_is_found_out(
    known: Mapping[str, tuple[Path, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(self: Store, key: Key, sections: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Store, "put", put)
    storm = stormed(known, tmp_path, kills=0)
    assert "No space left" in storm.uncoded[0]
    assert "errors without a code" in judged(storm)


def kept(folder: Path) -> Store:
    store = Store(folder, 1 << 30)
    store.put(key_of("thing", {"a": "b"}), {"one": b"0123456789", "two": b"abc"})
    return store


def uncaught(store: Store) -> int:
    return sum(not tried(store, change) for change in changes(store, random.Random(1), None))


def test_every_changed_byte_is_caught(tmp_path: Path) -> None:
    assert uncaught(kept(tmp_path)) == 0


def test_a_checksum_that_is_not_looked_at_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = kept(tmp_path)
    real: Callable[..., bytes] = entry.checksum

    class Anything(bytes):
        def __ne__(self, other: object) -> bool:
            return False

        __hash__ = bytes.__hash__

    def checksum(*pieces: Piece) -> bytes:
        return Anything(real(*pieces))

    monkeypatch.setattr(entry, "checksum", checksum)
    assert uncaught(store) > 20
    assert judged(Storm(compiles=1, keys=1), {"missed": ["thing, byte 4"]}) == ["changes not caught"]


def test_an_entry_that_stays_after_it_was_found_damaged_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = kept(tmp_path)
    (one,) = store.entries()
    change = Change(one.path, one.path.read_bytes()[:-1], "cut")
    assert tried(store, change)

    def left(self: Store, path: Path, reason: str) -> None:
        pass

    monkeypatch.setattr(Store, "_set_aside", left)
    assert not tried(store, change)


def test_flips_and_full_disks_with_whole_compilations(known: Mapping[str, tuple[Path, str]], tmp_path: Path) -> None:
    told = flipped(tmp_path, dict(known), 1, 3)
    assert told["missed"] == []
    assert told["right"] == told["wanted"] > 20
    full = full_disk.filled(tmp_path, dict(known), ("tanh",))
    assert judged(Storm(compiles=1, keys=1), told, full) == []


def test_a_limit_on_files_stands_in_for_a_small_disk(
    known: Mapping[str, tuple[Path, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def no_disk(place: Path, size: int) -> Generator[bool]:
        place.mkdir()
        yield False

    monkeypatch.setattr(full_disk, "small_disk", no_disk)
    full = full_disk.filled(tmp_path, dict(known), ("tanh",))
    assert full["how"] == ["a limit on files' sizes"]
    assert judged(Storm(compiles=1, keys=1), full=full) == []
