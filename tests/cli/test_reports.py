"""`--report` and `--trace` of `run`, `bench` and `explain`: the files, what is told of them, and what is refused."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import MakeModel, Run
from tests.report.pages import KNOWN, Reader
from tilework.cost.roofline import Roofline
from tilework.errors import RunError
from tilework.report.page import build


@pytest.fixture(autouse=True)
def known_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What measures the machine takes seconds, and is tested elsewhere."""

    def measured(threads: int) -> Roofline:
        return KNOWN

    monkeypatch.setattr(build, "probe", measured)


def read(path: Path) -> Reader:
    found = Reader(path.read_text())
    assert found.faults == []
    return found


def test_run_writes_both(run: Run, model: Path, tmp_path: Path) -> None:
    page, events = tmp_path / "out.html", tmp_path / "out.json"
    done = run("run", model, "--shape", "a=5x3", "--report", page, "--trace", events)
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith(f"report: {page}\ntrace: {events}\n")
    found = read(page)
    assert "model.onnx" in found.text
    assert "Measured: medians of 7 calls" in found.text
    told = json.loads(events.read_text())
    assert told["otherData"]["model"] == "model.onnx"
    assert sum(event["name"].startswith("call ") for event in told["traceEvents"]) == 14
    facts = run("run", model, "--trace", events, "--json").json
    assert facts["trace"] == str(events)
    assert "report" not in facts
    assert "report" not in run("run", model, "--json").json
    assert oct(page.stat().st_mode & 0o777) == oct(0o666 & ~_umask())


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def test_bench_has_the_engines_on_it(run: Run, model: Path, tmp_path: Path) -> None:
    page, events = tmp_path / "out.html", tmp_path / "out.json"
    words = ("--against", "none", "--rounds", "1", "--threads", "1", "--report", page, "--trace", events)
    facts = run("bench", model, *words, "--json").json
    assert (facts["report"], facts["trace"]) == (str(page), str(events))
    found = read(page)
    assert "Beside other engines" in found.text
    assert "1 thread" in found.text
    assert json.loads(events.read_text())["otherData"]["threads"] == 1


def test_explain_predicts_or_measures(run: Run, model: Path, tmp_path: Path) -> None:
    page, events = tmp_path / "out.html", tmp_path / "out.json"
    done = run("explain", model, "--machine", "aarch64", "--report", page, "--region", "0")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith(f"report: {page}\n")
    found = read(page)
    assert "Predicted: nothing was run" in found.text
    assert "aarch64" in found.text
    facts = run("explain", model, "--time", "--report", page, "--trace", events, "--json").json
    assert (facts["report"], facts["trace"]) == (str(page), str(events))
    assert "Measured: medians" in read(page).text
    assert facts["regions"][0]["measured_ms"] > 0


def test_packages_and_models_with_black_boxes(run: Run, model: Path, tmp_path: Path, make_model: MakeModel) -> None:
    file, page = tmp_path / "m.tilework", tmp_path / "out.html"
    assert run("compile", model, "-o", file).code == 0
    assert run("run", file, "--report", page).code == 0
    assert "parallel" in read(page).text or "vectorized" in read(page).text
    assert run("explain", file, "--report", page).code == 0
    assert "Predicted" in read(page).text
    box = make_model("StringNormalizer", {"x": (2,)}, dtype="STRING")
    assert run("explain", box, "--report", page).code == 0
    assert "black box" in read(page).text


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["run", "--report", "same", "--trace", "same"], 2, "TW1002"),
        (["run", "--report", "none/out.html"], 1, "TW1901"),
        (["run", "--trace", "none/out.json"], 1, "TW1901"),
        (["bench", "--report", "."], 1, "TW1901"),
        (["explain", "--report", "none/out.html"], 1, "TW1901"),
        (["explain", "--trace", "out.json"], 2, "TW1002"),
        (["explain", "--report", "out.html", "--region", "9"], 2, "TW1002"),
        (["explain", "--time", "--report", "/dev/full"], 1, "TW1901"),
        (["run", "--trace", "/dev/full"], 1, "TW1901"),
    ],
)
def test_what_is_refused(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    command, *rest = words
    done = run(command, model, *rest, "--json")
    assert done.code == code
    assert done.json["error"]["code"] == says
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("option", ["--report", "--trace"])
def test_nobody_sees_a_part_of_a_file(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "out"
    path.write_text("what was there")
    monkeypatch.setattr("tilework.cache.files.os.fsync", full)
    done = run("run", model, option, path)
    assert (done.code, "TW1901" in done.err) == (1, True)
    assert path.read_text() == "what was there"
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_files_that_are_devices(run: Run, model: Path) -> None:
    assert run("run", model, "--report", "/dev/null").code == 0


def test_a_machine_that_cannot_be_measured_is_assumed(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(threads: int) -> Any:
        raise RunError(1761, "no worker")

    monkeypatch.setattr(build, "probe", fails)
    assert run("run", model, "--report", tmp_path / "out.html").code == 0
    assert "assumed from the machine" in read(tmp_path / "out.html").text


def test_models_that_are_compiled_for_each_call(run: Run, make_model: MakeModel, tmp_path: Path, saved: Any) -> None:
    model = make_model("Range", {"start": (), "limit": (), "delta": ()}, dtype="INT64")
    given = [f"--input={name}={saved(f'{name}.npy', np.asarray(v))}" for name, v in
             (("start", 0), ("limit", 5), ("delta", 1))]  # fmt: skip
    assert run("run", model, *given, "--report", tmp_path / "out.html", "--trace", tmp_path / "out.json").code == 0
    assert "Measured" in read(tmp_path / "out.html").text
