"""The store: misses, hits, damage, foreign files, full disks, caps, and many processes at once."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tilework.cache.files import replacing
from tilework.cache.folder import absolute, opened, usual_place
from tilework.cache.keys import Key, key_of
from tilework.cache.store import Store

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "kept", 1 << 20)


def key(name: str) -> Key:
    return key_of("test", {"name": name})


def sections(name: str, size: int = 100) -> Mapping[str, bytes]:
    return {"it": name.encode().ljust(size, b".")}


def test_what_is_put_is_found(store: Store) -> None:
    assert store.get(key("a")) is None
    assert store.put(key("a"), sections("a"))
    assert store.get(key("a")) == sections("a")
    assert store.get(key("b")) is None
    assert Store(store.place, 1).get(key("a")) == sections("a")
    assert store.counts == {"misses": 2, "written": 1, "hits": 1}


def test_the_folder_and_its_files_are_private(store: Store) -> None:
    store.put(key("a"), sections("a"))
    for path in (store.place, store.path(key("a")).parent, store.path(key("a"))):
        assert path.stat().st_mode & 0o077 == 0


def test_damage_is_a_miss_and_set_aside(store: Store) -> None:
    store.put(key("a"), sections("a"))
    path = store.path(key("a"))
    raw = bytearray(path.read_bytes())
    raw[-40] ^= 1
    path.write_bytes(raw)
    assert store.get(key("a")) is None
    assert not path.exists()
    assert store.counts["damaged"] == 1
    assert [p.read_text() for p in (store.place / "bad").glob("*.why")] == ["its checksum is wrong\n"]
    assert store.put(key("a"), sections("a"))
    assert store.get(key("a")) == sections("a")


def test_the_entry_of_another_key_is_damage(store: Store) -> None:
    store.put(key("a"), sections("a"))
    store.path(key("b")).parent.mkdir(exist_ok=True)
    store.path(key("a")).rename(store.path(key("b")))
    assert store.get(key("b")) is None
    assert store.counts["damaged"] == 1


def test_few_damaged_entries_are_kept(store: Store) -> None:
    for n in range(120):
        store.put(key(str(n)), sections("x"))
        store.path(key(str(n))).write_bytes(b"")
        assert store.get(key(str(n))) is None
    assert len(list((store.place / "bad").iterdir())) <= 102


@pytest.mark.parametrize("mode", [0o622, 0o602, 0o620])
def test_a_file_that_others_may_write_is_not_read(store: Store, mode: int) -> None:
    store.put(key("a"), sections("a"))
    store.path(key("a")).chmod(mode)
    assert store.get(key("a")) is None
    assert store.counts["foreign"] == 1


@root
def test_a_file_of_another_user_is_not_read(store: Store) -> None:
    store.put(key("a"), sections("a"))
    os.chown(store.path(key("a")), 12345, 12345)
    assert store.get(key("a")) is None
    assert store.counts["foreign"] == 1


def test_links_pipes_and_folders_are_not_read(store: Store, tmp_path: Path) -> None:
    store.put(key("a"), sections("a"))
    path = store.path(key("a"))
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert store.get(key("a")) is None
    assert not path.is_symlink()
    os.mkfifo(path)
    assert store.get(key("a")) is None
    path.unlink()
    path.mkdir()
    assert store.get(key("a")) is None
    assert not store.put(key("a"), sections("a"))
    assert store.get_or_make(key("a"), lambda: sections("made")) == sections("made")


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_write_is_left_alone(tmp_path: Path, mode: int) -> None:
    place = tmp_path / "open"
    place.mkdir()
    place.chmod(mode)
    store = Store(place, 1 << 20)
    assert store.get_or_make(key("a"), lambda: sections("a")) == sections("a")
    assert list(place.iterdir()) == []
    assert "others may write" in store.access.notice


@root
def test_a_folder_of_another_user_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "foreign"
    place.mkdir(mode=0o700)
    os.chown(place, 12345, 12345)
    store = Store(place, 1 << 20)
    assert store.get_or_make(key("a"), lambda: sections("a")) == sections("a")
    assert list(place.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put(key("a"), sections("a"))

    def no(path: Path, mode: int) -> bool:
        del path, mode
        return False

    monkeypatch.setattr(os, "access", no)
    later = Store(store.place, 1 << 20)
    assert later.get(key("a")) == sections("a")
    assert not later.put(key("b"), sections("b"))
    assert later.get_or_make(key("b"), lambda: sections("b")) == sections("b")
    assert "cannot be written" in later.access.notice


@pytest.mark.parametrize("place", ["/dev/null/x", "/proc/nothing", "file"])
def test_no_folder_at_all_is_no_error(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / place, 1 << 20)
    assert store.get_or_make(key("a"), lambda: sections("a")) == sections("a")
    assert store.access.notice


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
def test_a_full_disk_leaves_no_file(store: Store, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put(key("first"), sections("first"))

    def full(*given: Any, **named: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    plain = os.open

    def full_for_new(path: Any, flags: int, mode: int = 0o777) -> int:
        return full() if flags & os.O_EXCL else plain(path, flags, mode)

    with monkeypatch.context() as patch:
        if step == "open":
            patch.setattr(os, "open", full_for_new)
        else:
            patch.setattr(*{"fsync": (os, "fsync"), "replace": (Path, "replace")}[step], full)
        assert store.get_or_make(key("a"), lambda: sections("a")) == sections("a")
    assert store.counts["not_written"] == 1
    assert store.get(key("a")) is None
    assert [kept.path for kept in store.entries()] == [store.path(key("first"))]
    assert not list(store.place.rglob(".*"))


def test_the_oldest_entries_go_first(tmp_path: Path) -> None:
    store = Store(tmp_path / "kept", 50_000)
    for n in range(10):
        store.put(key(str(n)), sections("x", 1000))
        os.utime(store.path(key(str(n))), (n + 1e9, n + 1e9))
    assert store.get(key("0")) is not None  # used again: the youngest now
    size = store.entries()[0].bytes
    assert store.prune(limit=3 * size) == 7 * size
    assert {kept.path for kept in store.entries()} == {store.path(key(n)) for n in ("0", "8", "9")}


def test_the_cap_holds_by_itself(tmp_path: Path) -> None:
    store = Store(tmp_path / "kept", 100_000)
    for n in range(300):
        store.put(key(str(n)), sections("x", 1000))
    # between two looks at the folder, one store may write 64 entries
    assert sum(kept.bytes for kept in store.entries()) <= 100_000 + 64 * 1300
    assert not store.put(key("huge"), sections("x", 200_000))


def test_what_was_begun_long_ago_is_removed(store: Store) -> None:
    store.put(key("a"), sections("a"))
    begun = store.path(key("a")).parent / ".begun"
    begun.write_bytes(b"x")
    assert len(store.entries()) == 1
    assert begun.exists()
    os.utime(begun, (0, 0))
    assert len(store.entries()) == 1
    assert not begun.exists()


def test_clear(store: Store) -> None:
    for n in range(5):
        store.put(key(str(n)), sections("x"))
    assert store.clear() == 5
    assert store.entries() == []


def test_an_error_of_making_is_the_callers(store: Store) -> None:
    def fail() -> Mapping[str, bytes]:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        store.get_or_make(key("a"), fail)
    assert store.get_or_make(key("a"), lambda: sections("a")) == sections("a")


def test_threads_make_an_entry_once(store: Store) -> None:
    made: list[int] = []

    def make() -> Mapping[str, bytes]:
        made.append(1)
        time.sleep(0.05)
        return sections("a")

    with ThreadPoolExecutor(8) as pool:
        begun = [pool.submit(store.get_or_make, key("a"), make) for _ in range(8)]
        found = [one.result() for one in begun]
    assert found == [sections("a")] * 8
    assert len(made) == 1


MAKER = """
import sys, time, os
from pathlib import Path
from tilework.cache.store import Store
from tilework.cache.keys import key_of
store = Store(Path(sys.argv[1]), 1 << 20)
def make():
    with open(sys.argv[2], "ab", buffering=0) as file:
        file.write(b"x")
    time.sleep(float(sys.argv[3]))
    return {"it": b"right"}
assert store.get_or_make(key_of("test", {"name": "a"}), make)["it"] == b"right"
"""


def test_processes_make_an_entry_once_and_a_killed_one_blocks_nobody(tmp_path: Path) -> None:
    def start(seconds: float) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", MAKER, tmp_path / "kept", tmp_path / "made", str(seconds)])

    def made() -> int:
        return (tmp_path / "made").stat().st_size if (tmp_path / "made").exists() else 0

    first = start(60)
    until = time.monotonic() + 30
    while made() < 1 and time.monotonic() < until:
        time.sleep(0.01)
    others = [start(0.1) for _ in range(4)]
    time.sleep(0.2)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert [other.wait() for other in others] == [0] * 4
    assert made() == 2  # the one that was killed, and one more


def test_an_interrupt_while_a_file_is_written_leaves_nothing(tmp_path: Path) -> None:
    def write() -> None:
        with replacing(tmp_path / "kept") as file:
            file.write(b"new")
            raise KeyboardInterrupt

    (tmp_path / "kept").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write()
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("kept", b"old")]


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a container that runs under a number: nothing is kept, and nothing fails."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    monkeypatch.chdir(tmp_path)
    place = usual_place()
    access = opened(place)
    assert not access.reads
    assert "TILEWORK_CACHE_DIR" in access.notice
    store = Store(place, 1 << 20)
    assert store.get_or_make(key("a"), lambda: sections("a")) == sections("a")
    assert store.entries() == []
    assert list(tmp_path.iterdir()) == []


def test_a_folder_stays_where_it_is_when_the_process_goes_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert absolute(Path("here")) == tmp_path / "here"
    assert absolute(Path("~/there")) == tmp_path / "there"
