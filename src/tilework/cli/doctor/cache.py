"""The folder in which compiled code is kept: whose it is, what may be done with it, how full it is."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import stat

from tilework.cli.doctor.section import Advice, Section
from tilework.cli.sizes import in_words
from tilework.errors import UsageError
from tilework.runtime.kept_objects import kept_objects

ROOM = 64 << 20
"""Free bytes on the disk below which little can be kept."""


def cache() -> Section:
    """The state of the folder that the environment names, which is made where there is none."""
    try:
        found = kept_objects()
    except UsageError as error:  # told among the variables
        return Section("cache", {"on": None}, (("cache", error.message),))
    if found is None:
        return Section("cache", {"on": False}, (("cache", "off (TILEWORK_CACHE)"),))
    store, advice = found.store, list[Advice]()
    access, every = store.access, store.entries()
    size, damaged = sum(kept.bytes for kept in every), store.set_aside
    owner, mode, room = None, None, None
    with contextlib.suppress(OSError):
        facts = store.place.stat()
        owner, mode = _name(facts.st_uid), stat.filemode(facts.st_mode)
        room = shutil.disk_usage(store.place).free
    if access.notice:
        do = "Give a folder of your own: TILEWORK_CACHE_DIR; or TILEWORK_CACHE=off. Models compile each time meanwhile."
        advice.append(Advice(access.notice, do))
    if room is not None and room < ROOM and access.writes:
        text = f"{in_words(room)} are free on the disk of {store.place}: what is compiled may not be kept"
        advice.append(Advice(text, "Make room, or give another folder: TILEWORK_CACHE_DIR."))
    if damaged:
        text = f"{damaged} damaged entries were set aside in {store.place / 'bad'} (they are compiled again)"
        advice.append(Advice(text, "See the reasons there, check the disk; `tilework cache clear` removes them."))
    told = {
        "on": True, "folder": str(store.place), "reads": access.reads, "writes": access.writes, "owner": owner,
        "mode": mode, "entries": len(every), "bytes": size, "limit": store.limit, "set_aside": damaged,
        "disk_free": room,
    }  # fmt: skip
    may = "read and written" if access.writes else "read only" if access.reads else "not used"
    whose = f", of {owner} ({mode})" if owner is not None else ""
    lines = (
        ("cache", f"{store.place}{whose}: {may}"),
        ("kept", f"{len(every)} entries, {in_words(size)} of {in_words(store.limit)}"),
    )
    return Section("cache", told, lines, tuple(advice))


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return "you" if user == os.geteuid() else f"user {user}"
