"""Whole compiled models kept on disk: found again, they are neither parsed, lowered nor planned."""

from __future__ import annotations

import json

from tilework.cache.entry import Entry
from tilework.cache.eviction import LARGE
from tilework.cache.keys import Key
from tilework.cache.store import Store
from tilework.errors import CodegenError, FileFormatError, ParseError
from tilework.machine.cpu import CpuMachine
from tilework.machine.host import check_runs_here
from tilework.plan.explanation import Notice
from tilework.runtime.context import Context
from tilework.runtime.executable import Executable
from tilework.runtime.sections import executable_of

KIND = "model"
_ABOUT = "model"
_NOT_LINKED = (1682, 1683)


def kept_model(
    store: Store, key: Key, owner: Context, target: CpuMachine, *, counted: bool = True
) -> tuple[Executable, bool] | None:
    """The executable under a key, its weights where the entry is mapped, and whether it leaves extents free that other
    compilations could serve; None where there is none.

    An entry whose parts do not fit together is set aside as a damaged one is. Raises `CodegenError` 1764 where this
    processor cannot run code for the target.
    """
    entry = store.mapped(key, counted=counted)
    if entry is None:
        return None
    if target.name != "host":
        check_runs_here(target)
    try:
        leaves_free = bool(json.loads(bytes(entry.sections[_ABOUT]))["leaves_free"])
        return executable_of(entry, owner, target), leaves_free
    except (KeyError, ValueError, TypeError, ParseError) as problem:
        store.set_aside_entry(key, f"its parts do not fit together ({problem!r})")
    except CodegenError as problem:
        if problem.code not in _NOT_LINKED:
            raise
        store.set_aside_entry(key, f"its objects cannot be linked ({problem.message})")
    return None


def keep_model(store: Store, key: Key, executable: Executable, leaves_free: bool) -> None:
    """Keep an executable under a key. What no file can hold is not kept; of one that is too large for the store
    `explain` tells.
    """
    try:
        sections = {**executable.sections(), _ABOUT: json.dumps({"leaves_free": leaves_free}).encode()}
    except FileFormatError:
        return
    size = Entry(key, sections).size
    if size > store.largest:
        executable.note(Notice(
            "cache-too-large",
            f"the compiled model is not kept: it takes {size} bytes, and an entry may take {store.largest}, half of "
            "what the cache may hold; set TILEWORK_CACHE_LIMIT to more",
        ))  # fmt: skip
        return
    store.put(key, sections)


def keep_small_model(store: Store, key: Key, executable: Executable) -> None:
    """Keep what was compiled for the sizes of one call, if it is no large entry: there may be one for each size."""
    try:
        sections = {**executable.sections(), _ABOUT: json.dumps({"leaves_free": False}).encode()}
    except FileFormatError:
        return
    if Entry(key, sections).size <= store.limit // LARGE:
        store.put(key, sections)
