"""`tilework cache`: what is kept on disk, and how to be rid of it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilework.cli import options
from tilework.cli.progress import working
from tilework.cli.sizes import bytes_of, in_words
from tilework.cli.writing import check_folder
from tilework.errors import UsageError

if TYPE_CHECKING:
    from tilework.cache.entry import Entry
    from tilework.cache.store import Kept, Store


@click.group("cache")
def command() -> None:
    """Show or empty the folder in which compiled code is kept."""


@command.command("stats")
@options.as_json
def stats(as_json: bool) -> None:
    """Where the folder is, whether it can be used, and how much is in it."""
    store = _store()
    with working(f"looking into {store.place}"):
        every = store.entries()
    size = sum(kept.bytes for kept in every)
    found = {
        "folder": str(store.place), "reads": store.access.reads, "writes": store.access.writes,
        "entries": len(every), "bytes": size, "limit": store.limit,
        "kinds": {kind: {"entries": count, "bytes": held} for kind, (count, held) in store.by_kind().items()},
        "largest": store.largest, "set_aside": store.set_aside, "notice": store.access.notice,
    }  # fmt: skip
    if as_json:
        click.echo(json.dumps(found))
        return
    click.echo(f"{store.place}: {len(every)} entries, {in_words(size)} of {in_words(store.limit)}")
    for kind, (count, held) in store.by_kind().items():
        click.echo(f"  {kind or 'unreadable'}: {count}, {in_words(held)}")
    click.echo(f"  an entry may take {in_words(store.largest)}; what would be larger is not kept")
    if store.set_aside:
        click.echo(f"{store.set_aside} damaged entries were set aside in {store.place / 'bad'}")
    if store.access.notice:
        click.echo(f"note: {store.access.notice}")


@command.command("ls")
@options.as_json
def ls(as_json: bool) -> None:
    """Every entry: its digest, kind, bytes, and when it was last used; the latest last."""
    store = _store()
    with working(f"reading {store.place}"):
        rows = [(kept, _entry(store, kept)) for kept in store.entries()]
    if as_json:
        found = [
            {
                "digest": _digest(kept), "bytes": kept.bytes, "used": kept.used,
                "kind": entry.key.kind if entry is not None else None,
                "parts": dict(entry.key.parts) if entry is not None else None,
            }
            for kept, entry in rows
        ]  # fmt: skip
        click.echo(json.dumps({"entries": found}))
        return
    for kept, entry in rows:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(kept.used))
        click.echo(f"{_digest(kept)[:16]}  {in_words(kept.bytes):>9}  {when}  {entry.key.kind if entry else 'damaged'}")


@command.command("explain")
@click.argument("first")
@click.argument("second", required=False)
@options.as_json
def explain(first: str, second: str | None, as_json: bool) -> None:
    """The parts of the key of an entry (the beginning of its digest), or in what two keys differ."""
    store = _store()
    one = _named(store, first)
    if second is None:
        parts = {"kind": one.key.kind, **dict(one.key.parts)}
        if as_json:
            click.echo(json.dumps({"digest": one.key.digest, "parts": parts}))
        else:
            click.echo("\n".join(f"{name}: {text}" for name, text in parts.items()))
        return
    other = _named(store, second)
    found = one.key.differences(other.key)
    if as_json:
        click.echo(json.dumps({"differences": [list(row) for row in found]}))
        return
    for name, here, there in found:
        click.echo(f"{name}\n  {here or '(none)'}\n  {there or '(none)'}")
    if not found:
        click.echo("the keys are the same")


@command.command("prune")
@click.option("--to", "limit", default=None, metavar="BYTES", help="What may be left, e.g. 200M (default: the limit).")
@options.as_json
def prune(limit: str | None, as_json: bool) -> None:
    """Remove the entries that were used longest ago."""
    store = _store()
    left = bytes_of(limit, "--to") if limit is not None else store.limit
    with working(f"removing what {store.place} has too much"):
        gone = store.prune(left)
    click.echo(json.dumps({"removed_bytes": gone}) if as_json else f"removed {in_words(gone)}")


@command.command("clear")
@options.as_json
def clear(as_json: bool) -> None:
    """Remove every entry."""
    store = _store()
    with working(f"emptying {store.place}"):
        count = store.clear()
    click.echo(json.dumps({"removed": count}) if as_json else f"removed {count} entries")


@command.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@options.as_json
def export(file: Path, as_json: bool) -> None:
    """Write every entry to FILE, an archive for another machine or a deployment."""
    from tilework.cache.archive import export_entries

    check_folder(file)
    with working(f"writing {file}"):
        found = export_entries(_store(), file)
    if as_json:
        facts = {"entries": found.entries, "bytes": found.bytes, "left_out": found.left_out}
        click.echo(json.dumps({"file": str(file), **facts}))
        return
    click.echo(f"{file}: {found.entries} entries, {in_words(found.bytes)}")
    if found.left_out:
        click.echo(f"{found.left_out} damaged entries were left out")


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@options.as_json
def import_(file: Path, as_json: bool) -> None:
    """Keep the entries of FILE, which `export` wrote. It holds machine code: it has to be yours alone."""
    from tilework.cache.archive import import_entries

    store = _store()
    with working(f"reading {file}"):
        found = import_entries(store, file)
    if as_json:
        facts = {"imported": found.imported, "already": found.already, "bytes": found.bytes}
        click.echo(json.dumps({"file": str(file), **facts}))
        return
    click.echo(f"{found.imported} entries imported, {found.already} were there already")


def _store() -> Store:
    from tilework.runtime.kept_objects import kept_objects

    found = kept_objects()
    if found is None:
        raise UsageError(1002, "TILEWORK_CACHE is off: nothing is kept", where="environment variable TILEWORK_CACHE")
    return found.store


def _digest(kept: Kept) -> str:
    return kept.path.parent.name + kept.path.name


def _entry(store: Store, kept: Kept) -> Entry | None:
    from tilework.cache.entry import DamagedError

    try:
        return store.read(kept.path)
    except DamagedError:
        return None


def _named(store: Store, beginning: str) -> Entry:
    """The one entry whose digest begins so. Raises `UsageError` 1001."""
    matching = [kept for kept in store.entries() if _digest(kept).startswith(beginning)]
    if len(matching) != 1:
        many = "no entry's digest begins so" if not matching else f"{len(matching)} digests begin so"
        raise UsageError(1001, f"{beginning!r}: {many}", where=beginning, hint="`tilework cache ls` lists them")
    found = _entry(store, matching[0])
    if found is None:
        raise UsageError(1001, f"{beginning!r}: the entry is damaged", where=beginning)
    return found
