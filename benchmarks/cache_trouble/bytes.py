"""Every byte of the entries of a cache changed in turn, and entries cut off or made longer."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.cache_trouble.compiling import Journal, forked
from benchmarks.key_pairs.pairs import environment
from tilework.cache.store import Store
from tilework.fast_dataclass import dataclass

REALLY = 24
"""Changes that a whole compilation comes upon as well."""
LENGTHS = 40
"""Lengths that each entry is cut to."""


@dataclass(frozen=True)
class Change:
    """An entry's file with other content."""

    path: Path
    content: bytes
    what: str


def changes(store: Store, chance: random.Random, most: int | None) -> Iterator[Change]:
    """A change of each byte of each entry (or of so many, drawn), cuts, and a byte more."""
    for kept in store.entries():
        content = kept.path.read_bytes()
        places = range(len(content))
        chosen = places if most is None or most >= len(content) else sorted(chance.sample(places, most))
        for at in chosen:
            other = content[at] ^ (1 << chance.randrange(8))
            yield Change(kept.path, content[:at] + bytes([other]) + content[at + 1 :], f"byte {at}")
        for length in sorted({0, 1, *(chance.randrange(len(content)) for _ in range(LENGTHS))}):
            yield Change(kept.path, content[:length], f"cut to {length}")
        yield Change(kept.path, content + b"\0", "a byte more")


def tried(store: Store, change: Change) -> bool:
    """Whether a reader finds nothing where an entry was changed, by both ways of reading; the entry is put back."""
    before = change.path.read_bytes()
    key = store.read(change.path).key
    caught = True
    try:
        for look in (store.get, store.mapped):
            change.path.write_bytes(change.content)
            caught = look(key) is None and not change.path.exists() and caught
    finally:
        change.path.write_bytes(before)
        change.path.chmod(0o600)
    return caught


def flipped(folder: Path, known: dict[str, tuple[Path, str]], seed: int, most: int | None) -> dict[str, Any]:
    """Compile one model, change each byte of what is kept, and for some of the changes compile it again."""
    chance = random.Random(seed)
    cache, name = folder / "flips", "tanh"
    journal = Journal(folder / "journal of flips")
    with environment(TILEWORK_CACHE="on", TILEWORK_CACHE_DIR=str(cache)):
        os.waitpid(forked(name, *known[name], journal), 0)
        store = Store(cache, 1 << 30)
        kinds = store.by_kind()
        missed: list[str] = []
        count = 0
        every = list(changes(store, chance, most))
        for change in every:
            count += 1
            if not tried(store, change):
                missed.append(f"{store.read(change.path).key.kind}, {change.what}")
        for change in chance.sample(every, min(REALLY, len(every))):
            before = change.path.read_bytes()
            change.path.write_bytes(change.content)
            os.waitpid(forked(name, *known[name], journal), 0)
            change.path.write_bytes(before)
    lines = journal.lines()
    wanted = 1 + min(REALLY, len(every))
    return {
        "kinds": {kind: found[1] for kind, found in kinds.items()}, "changes": count, "missed": missed,
        "right": sum(line.what == "right" for line in lines), "wanted": wanted,
        "wrong": sum(line.what == "wrong" for line in lines),
        "coded": [line.key for line in lines if line.what == "coded"],
        "uncoded": [line.key for line in lines if line.what == "uncoded"],
    }  # fmt: skip
