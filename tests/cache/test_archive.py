"""Archives of the cache: there and back, every byte changed in turn, whatever else a file may hold."""

from __future__ import annotations

import io
import os
import tarfile
import threading
from pathlib import Path

import pytest

from tilework.cache.archive import export_entries, import_entries
from tilework.cache.entry import Entry
from tilework.cache.keys import Key, key_of
from tilework.cache.store import Store
from tilework.errors import FileFormatError, UsageError

LIMIT = 1 << 24


def keys(count: int) -> list[Key]:
    return [key_of("object", {"text": str(number)}) for number in range(count)]


def filled(place: Path, count: int = 5) -> Store:
    store = Store(place, LIMIT)
    for number, key in enumerate(keys(count)):
        assert store.put(key, {"object": bytes([number]) * (100 * number + 1), "more": b""})
    return store


def refused(store: Store, path: Path, code: int = 1906) -> str:
    with pytest.raises(FileFormatError) as caught:
        import_entries(store, path)
    assert caught.value.code == code
    return caught.value.message


def test_there_and_back(tmp_path: Path) -> None:
    here, there = filled(tmp_path / "here"), Store(tmp_path / "there", LIMIT)
    written = export_entries(here, tmp_path / "a.tar")
    assert (written.entries, written.left_out) == (5, 0)
    assert (tmp_path / "a.tar").stat().st_mode & 0o777 == 0o600
    found = import_entries(there, tmp_path / "a.tar")
    assert (found.imported, found.already, found.bytes) == (5, 0, written.bytes)
    for key in keys(5):
        assert there.get(key) == here.get(key) is not None
    again = import_entries(there, tmp_path / "a.tar")
    assert (again.imported, again.already) == (0, 5)
    next(iter(there.entries())).path.write_bytes(b"damaged")
    assert import_entries(there, tmp_path / "a.tar").imported == 1


def test_an_empty_cache_and_damaged_entries(tmp_path: Path) -> None:
    empty = Store(tmp_path / "empty", LIMIT)
    assert export_entries(empty, tmp_path / "e.tar").entries == 0
    assert import_entries(empty, tmp_path / "e.tar").imported == 0
    store = filled(tmp_path / "here")
    store.entries()[0].path.write_bytes(b"TILEWORK")
    found = export_entries(store, tmp_path / "a.tar")
    assert (found.entries, found.left_out) == (4, 1)


def test_every_byte_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    export_entries(filled(tmp_path / "here", 2), path)
    raw = path.read_bytes()
    with tarfile.open(path) as tar:
        members = list(tar)
    used = [place for one in members for place in range(one.offset, one.offset_data + one.size)]
    meaningless = {one.offset + 155 for one in members}  # what stands behind the end of a header's own checksum
    store = Store(tmp_path / "there", LIMIT)
    for place in used:
        if place not in meaningless:
            path.write_bytes(raw[:place] + bytes([raw[place] ^ 0x11]) + raw[place + 1 :])
            refused(store, path)
    for length in range(0, used[-1] + 1, 7):
        path.write_bytes(raw[:length])
        refused(store, path)
    assert store.entries() == []


def archive(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for about, content in members:
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
    return path


def member(name: str, content: bytes, kind: bytes = tarfile.REGTYPE) -> tuple[tarfile.TarInfo, bytes]:
    about = tarfile.TarInfo(name)
    about.type, about.linkname = kind, "/etc/passwd"
    return about, content


INDEX_OF_ONE = member("index", b'{"format": 1, "entries": 1}')


@pytest.mark.parametrize("name", ["../../escaped", "/etc/escaped", "a" * 64, "index/../x", ""])
def test_names_are_digests_and_no_paths(tmp_path: Path, name: str) -> None:
    entry = Entry(keys(1)[0], {"object": b"x"}).encoded()
    store = Store(tmp_path / "deep" / "there", LIMIT)
    refused(store, archive(tmp_path / "a.tar", member(name, entry), INDEX_OF_ONE))
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["a.tar"]


def test_what_is_no_archive_of_ours(tmp_path: Path) -> None:
    store, path = Store(tmp_path / "there", LIMIT), tmp_path / "a.tar"
    digest = keys(1)[0].digest
    good = Entry(keys(1)[0], {"object": b"x"}).encoded()
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
        refused(store, archive(path, member(digest, b"", kind), INDEX_OF_ONE))
    refused(store, archive(path, member(digest, good)))
    refused(store, archive(path, INDEX_OF_ONE))
    refused(store, archive(path, INDEX_OF_ONE, member(digest, good)))
    refused(store, archive(path, member(digest, good), member("index", b'{"format": 2, "entries": 1}')))
    refused(store, archive(path, member(digest, good), member("index", b"nonsense")))
    refused(store, archive(path, member(digest, good), member("index", b"[1]")))
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("index"))
    refused(store, path)
    for content in (b"", b"no archive", bytes(1024), b"\xff" * 4096):
        path.write_bytes(content)
        refused(store, path)
    refused(store, tmp_path / "nowhere.tar")
    refused(store, tmp_path)
    refused(store, Path("a\0b"))
    os.mkfifo(tmp_path / "pipe")
    refused(store, tmp_path / "pipe")
    assert store.entries() == []
    assert import_entries(store, archive(path, member(digest, good), INDEX_OF_ONE)).imported == 1


def test_an_archive_that_others_may_write(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    export_entries(filled(tmp_path / "here"), path)
    path.chmod(0o666)
    assert "others may write it" in refused(Store(tmp_path / "there", LIMIT), path, 1904)


def test_places_that_cannot_be_written_or_read(tmp_path: Path) -> None:
    store = filled(tmp_path / "here")
    for place in (tmp_path / "none" / "a.tar", tmp_path, Path("/dev/null"), Path("/dev/full")):
        with pytest.raises(FileFormatError) as caught:
            export_entries(store, place)
        assert caught.value.code == 1901
    export_entries(store, tmp_path / "a.tar")
    refused(Store(Path("/dev/null/x"), LIMIT), tmp_path / "a.tar", 1901)
    refused(Store(tmp_path / "small", 10), tmp_path / "a.tar", 1901)
    with pytest.raises(UsageError):
        export_entries(Store(Path("/dev/null/x"), LIMIT), tmp_path / "b.tar")
    assert sorted(os.listdir(tmp_path)) == ["a.tar", "here", "small"]  # noqa: PTH208 - names are what is asked for


def test_a_failed_export_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, path = filled(tmp_path / "here"), tmp_path / "a.tar"
    path.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(FileFormatError, match="No space left"):
        export_entries(store, path)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2


def test_while_others_use_the_store(tmp_path: Path) -> None:
    store, path = filled(tmp_path / "here", 30), tmp_path / "a.tar"
    export_entries(store, path)
    there = tmp_path / "there"
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(3):
                import_entries(Store(there, LIMIT), path)
                export_entries(Store(there, LIMIT), tmp_path / f"{threading.get_ident()}.tar")
                Store(there, LIMIT).prune(2000)
        except BaseException as error:  # noqa: BLE001 - told below
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    import_entries(Store(there, LIMIT), path)
    assert len(Store(there, LIMIT).entries()) == 30
