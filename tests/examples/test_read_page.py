"""The demonstration that reads a page: what it prints, what it counts, when it says no."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples import read_page
from examples.read_page import Ready, accuracy, answer, compiled, faults, table, times_table
from examples.reader import Line, Stopwatch, onnxruntime_network
from tilework.runtime.context import Context

CORNERS = ((0.0, 0.0), (9.0, 0.0), (9.0, 4.0), (0.0, 4.0))
DRAWN = ["one two", "three"]


def test_what_was_read_is_a_table() -> None:
    read = [Line(CORNERS, "onetwo", 0.98765), Line(CORNERS, "three", 1.0)]
    lines = list(table(DRAWN, read))
    assert lines[1].endswith("0.988  drawn: one two")
    assert lines[2].endswith("1.000")
    assert len(list(table(DRAWN, []))) == 1


@pytest.mark.parametrize(
    ("read", "counts"),
    [
        (["one two", "three"], (2, 2, 11, 11, 1, 1)),
        (["three", "onetwo"], (1, 2, 11, 11, 0, 1)),
        (["one tvo", "three"], (1, 2, 10, 11, 0, 1)),
        (["three"], (1, 2, 6, 11, 0, 1)),  # "three" shares one letter with "one two"
        ([], (0, 2, 0, 11, 0, 1)),
    ],
)
def test_accuracy_counts_lines_characters_and_spaces(read: list[str], counts: tuple[int, ...]) -> None:
    found = accuracy(DRAWN, read)
    assert (found.lines, found.all_lines) == counts[:2]
    assert (found.characters, found.all_characters) == counts[2:4]
    assert (found.spaces, found.all_spaces) == counts[4:]
    assert f"{counts[2]} of {counts[3]} characters" in str(found)


def test_faults_are_told_and_spaces_alone_are_none() -> None:
    assert faults(DRAWN, ["one two", "three"], ["one two", "three"]) == []
    assert faults(DRAWN, ["onetwo", "three"], ["onetwo", "three"]) == []
    (line,) = faults(DRAWN, ["onetwo", "three"], ["one two", "three"])
    assert line == "line 1: 'onetwo' by Tilework, 'one two' by ONNX Runtime"
    assert faults(DRAWN, ["one two"], ["one two"]) == ["on the page and not read: 'three'"]
    assert len(faults(DRAWN, ["one two", "three", "three"], ["one two", "three"])) == 2
    assert len(faults(DRAWN, ["one tvo", "three"], ["one tvo", "three"])) == 2


def test_times_fit_a_terminal() -> None:
    times = {"detection": [0.001] * 7, read_page.WHOLE: [12.5] * 7}
    lines = list(
        times_table({"detection": Ready(_executable(), 3.2, kept=False)}, dict.fromkeys(times, 1.0), times, times)
    )
    assert len(lines) == 3
    assert max(map(len, lines)) < 100
    assert "3200 ms" in lines[1]
    assert "3200 ms" in lines[2]
    assert lines[1].endswith("1.00 [1.00, 1.00]")


def test_what_the_disk_answers_is_told() -> None:
    now, kept = Ready(_executable(), 1.0, kept=False), Ready(_executable(), 0.1, kept=True)
    assert answer([now, now]) == "compiled now"
    assert "found on disk, compiled by an earlier run" in answer([kept, kept])
    assert answer([now, kept]).startswith("1 of 2 found on disk")


def test_a_stopwatch_keeps_shapes_and_laps() -> None:
    watch = Stopwatch(lambda given: [given + 1])
    assert watch.last is None
    given = np.zeros((2, 3), np.float32)
    (found,) = watch(given)
    assert found[0, 0] == 1
    assert watch.last is given
    assert watch.shapes == [(2, 3)]
    assert watch.lap() > 0
    assert watch.lap() == 0


def test_a_session_gets_its_input_by_name() -> None:
    class Session:
        def get_inputs(self) -> list[Any]:
            return [type("Given", (), {"name": "x"})]

        def run(self, outputs: None, feeds: dict[str, Any]) -> list[Any]:
            return [feeds["x"] * 2]

    assert onnxruntime_network(Session())(np.ones(1))[0] == 2


def test_a_second_compilation_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.call_overhead import add_one

    path = tmp_path / "model.onnx"
    path.write_bytes(add_one().SerializeToString())
    with Context() as context:
        assert not compiled(path, context).kept  # tests keep nothing
    monkeypatch.setenv("TILEWORK_CACHE", "on")
    monkeypatch.setenv("TILEWORK_CACHE_DIR", str(tmp_path / "cache"))
    for expected in (False, True):
        with Context() as context:
            assert compiled(path, context).kept is expected


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delitem(sys.modules, "examples.page", raising=False)
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert read_page.main() == 2
    assert capsys.readouterr().err == "PIL is missing: run `make demo`\n"


def test_the_page_holds_its_lines() -> None:
    pytest.importorskip("PIL", reason="pictures need pillow: `make demo` installs it")
    drawing: Any = importlib.import_module("examples.page")  # where pillow is missing, so are its types
    page, lines = drawing.draw_page()
    assert page.size == drawing.SIZE
    assert len(lines) == len(drawing.LINES) + 1 == len(set(lines))
    assert np.asarray(page).std() > 10
    again, _ = drawing.draw_page()
    assert np.array_equal(np.asarray(page), np.asarray(again))
    picture = drawing.draw_reading(page, [Line(CORNERS, "word", 1.0)])
    wide, high = drawing.SIZE
    assert picture.size == (2 * wide, high)
    assert np.asarray(picture)[:20, wide + 1 : wide + 60].min() < 100  # the text, on white


def _executable() -> Any:
    return None
