"""What stands where a file is to be written: links, devices, pipes, sockets, folders."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

import pytest

from tilework.cache.files import replacing, writing

NEW = b"new"


def put(how: Callable[[Path], AbstractContextManager[BinaryIO]], path: Path) -> None:
    with how(path) as file:
        file.write(NEW)


def place(path: Path, kind: str) -> None:
    """Put something that is no file at a path."""
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    else:
        try:
            os.mknod(path, stat.S_IFBLK | 0o600 if kind == "disk" else stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root can make devices")


@pytest.mark.parametrize("kind", ["folder", "pipe", "socket", "disk", "device"])
def test_what_is_no_file_is_never_replaced(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "there"
    place(path, kind)
    before = path.lstat()
    with pytest.raises(OSError, match="it is no file"):
        put(replacing, path)
    assert path.lstat() == before
    assert [found.name for found in tmp_path.iterdir()] == ["there"]


@pytest.mark.parametrize("through", ["itself", "link"])
@pytest.mark.parametrize("kind", ["folder", "socket", "disk"])
def test_folders_sockets_and_disks_are_refused(tmp_path: Path, kind: str, through: str) -> None:
    path = tmp_path / "there"
    place(path, kind)
    if through == "link":
        (tmp_path / "link").symlink_to(path)
    before = path.lstat()
    with pytest.raises(OSError, match="it is no file"):
        put(writing, tmp_path / "link" if through == "link" else path)
    assert path.lstat() == before


@pytest.mark.parametrize("through", ["itself", "link"])
def test_pipes_and_devices_are_written_to(tmp_path: Path, through: str) -> None:
    for kind in ("pipe", "device"):
        path = asked = tmp_path / kind
        place(path, kind)
        if through == "link":
            asked = tmp_path / f"link to {kind}"
            asked.symlink_to(path)
        before = path.lstat().st_ino
        if kind == "pipe":
            with ThreadPoolExecutor() as reader:
                got = reader.submit(path.read_bytes)
                put(writing, asked)
                assert got.result(30) == NEW
        else:
            put(writing, asked)
        assert path.lstat().st_ino == before
        assert asked.is_symlink() == (through == "link")


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    target, link, second = tmp_path / "other" / "target", tmp_path / "link", tmp_path / "second"
    link.symlink_to(target)
    second.symlink_to("link")
    for _ in range(2):  # nothing is there at first
        put(writing, second)
        assert target.read_bytes() == NEW
        assert not target.is_symlink()
        target.write_bytes(b"old")
    assert link.is_symlink()
    assert second.is_symlink()
    put(replacing, second)  # an entry of a cache is what its name says, not what somebody linked to it
    assert not second.is_symlink()
    assert target.read_bytes() == b"old"


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(OSError, match="symbolic links"):
        put(writing, tmp_path / "one")
    assert sorted(found.name for found in tmp_path.iterdir()) == ["one", "two"]
    assert (tmp_path / "one").is_symlink()
