"""`tilework cache`: every command, with and without `--json`, with damage and without a folder."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
import pytest

import tilework
from tests.cli.conftest import Run
from tilework.cli.commands.cache import command
from tilework.runtime.context import Context


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWORK_CACHE", "on")
    monkeypatch.setenv("TILEWORK_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def test_a_second_context_compiles_nothing(place: Path, model: Path) -> None:
    contexts = [Context(), Context()]
    found = [tilework.compile(model, context=context) for context in contexts]
    first, second = (context.objects for context in contexts)
    assert first is not None
    assert second is not None
    assert first.store.counts["written"] > 4
    # which files the model is in, the model, the pool's code and the gate's
    assert second.store.counts == {"hits": 4}
    arrays = np.ones((2, 5, 3), np.float32)
    for one, other in zip(found[0](*arrays), found[1](*arrays), strict=True):
        np.testing.assert_array_equal(one, other)


def test_damaged_objects_are_compiled_again(place: Path, model: Path) -> None:
    with Context() as context:
        tilework.compile(model, context=context)
    for path in place.rglob("*"):
        if path.is_file() and path.parent.name != "locks":
            path.write_bytes(path.read_bytes()[:-7])
    with Context() as context:
        tilework.compile(model, context=context)
        assert context.objects is not None
        counts = context.objects.store.counts
        # nobody asks for the model's own entry before its files are known
        assert counts["damaged"] == counts["written"] - 1 > 0


def test_stats_ls_explain_prune_clear(place: Path, model: Path, run: Run) -> None:
    empty = run("cache", "stats", "--json").json
    assert (empty["entries"], empty["bytes"], empty["reads"], empty["writes"]) == (0, 0, True, True)
    with Context() as context:
        tilework.compile(model, context=context)
    found = run("cache", "stats", "--json").json
    assert found["entries"] > 1
    assert f"{found['entries']} entries" in run("cache", "stats").out
    rows = run("cache", "ls", "--json").json["entries"]
    assert len(rows) == found["entries"]
    assert {row["kind"] for row in rows} == {"object", "model", "model files"} == set(found["kinds"])
    assert sum(kind["entries"] for kind in found["kinds"].values()) == found["entries"]
    assert "  model: 1, " in run("cache", "stats").out
    (kept,) = (row for row in rows if row["kind"] == "model")
    assert {"model", "numerics", "sources", "machine features", "shapes"} <= set(kept["parts"])
    assert "numerics: default" in run("cache", "explain", kept["digest"]).out
    rows = [row for row in rows if row["kind"] == "object"]
    assert len(run("cache", "ls").out.splitlines()) == found["entries"]
    parts = run("cache", "explain", rows[0]["digest"], "--json").json["parts"]
    assert {"kind", "text", "triple", "cpu", "features", "llvm", "generation"} == set(parts)
    assert "llvm: llvmlite" in run("cache", "explain", rows[0]["digest"][:20]).out
    ((name, here, there),) = run("cache", "explain", rows[0]["digest"], rows[1]["digest"], "--json").json["differences"]
    assert name == "text"
    assert here != there
    assert run("cache", "explain", rows[0]["digest"], rows[0]["digest"]).out == "the keys are the same\n"
    assert run("cache", "prune", "--json").json["removed_bytes"] == 0
    assert run("cache", "prune", "--to", "1", "--json").json["removed_bytes"] == found["bytes"]
    with Context() as context:
        tilework.compile(model, context=context)
    assert run("cache", "clear", "--json").json["removed"] == found["entries"]
    assert run("cache", "clear").out == "removed 0 entries\n"


def test_bad_use(place: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("cache", "explain", "0123").code == 2
    assert "TW1001" in run("cache", "explain", "0123").err
    assert "TW1002" in run("cache", "prune", "--to", "much").err
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    assert "others may write" in run("cache", "stats").out
    monkeypatch.setenv("TILEWORK_CACHE_LIMIT", "none")
    assert "TILEWORK_CACHE_LIMIT" in run("cache", "stats").err
    monkeypatch.setenv("TILEWORK_CACHE", "off")
    assert run("cache", "stats").code == 2


def test_a_folder_that_cannot_be_used_is_no_error(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_CACHE", "on")
    monkeypatch.setenv("TILEWORK_CACHE_DIR", "/dev/null/nowhere")
    with Context() as context:
        tilework.compile(model, context=context)
        assert context.objects is not None
        assert context.objects.store.counts["written"] == 0


def test_export_and_import(place: Path, model: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Context() as context:
        tilework.compile(model, context=context)
    count = len(run("cache", "ls", "--json").json["entries"])
    archive = tmp_path / "a.tar"
    told = run("cache", "export", archive, "--json").json
    assert (told["file"], told["entries"], told["left_out"]) == (str(archive), count, 0)
    assert f"{archive}: {count} entries, " in run("cache", "export", archive).out
    monkeypatch.setenv("TILEWORK_CACHE_DIR", str(tmp_path / "other"))
    found = run("cache", "import", archive, "--json").json
    assert (found["imported"], found["already"]) == (count, 0)
    assert run("cache", "import", archive).out == f"0 entries imported, {count} were there already\n"
    with Context() as context:
        tilework.compile(model, context=context)
        assert context.objects is not None
        assert context.objects.store.counts["misses"] == 0


def test_archives_that_are_refused(place: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = tmp_path / "bad.tar"
    bad.write_bytes(b"x" * 600)
    for words, code, error in (
        (["import", bad], 3, "TW1906"),
        (["import", tmp_path / "none.tar"], 3, "TW1906"),
        (["export", tmp_path / "none" / "a.tar"], 1, "TW1901"),
        (["export", tmp_path], 1, "TW1901"),
        (["export"], 2, "TW1002"),
        (["import"], 2, "TW1002"),
    ):
        done = run("cache", *words, "--json")
        assert (done.code, done.json["error"]["code"]) == (code, error)
    bad.chmod(0o622)
    assert run("cache", "import", bad, "--json").json["error"]["code"] == "TW1904"
    monkeypatch.setenv("TILEWORK_CACHE", "off")
    assert run("cache", "export", tmp_path / "a.tar").code == 2
    assert run("cache", "import", bad).code == 2


def test_the_page_names_every_command_and_option(run: Run) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "command-line.md").read_text()
    section = page.split("## tilework cache\n")[1].split("\n## ")[0]
    for name in command.list_commands(click.Context(command)):
        assert f"`cache {name}" in section
        for option in (word for word in run("cache", name, "--help").out.split() if word.startswith("--")):
            assert option in ("--json", "--help") or option in section
