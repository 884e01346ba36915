"""`memory`: what a process takes is seen, and a model that takes more or fails is found out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import memory
from benchmarks.harness import resident
from benchmarks.harness.open_model import Arrays
from benchmarks.harness.result import Options

MEGA = 1 << 20


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system does not tell the peak of a while")
@pytest.mark.parametrize("size", [8, 64])
def test_what_was_resident_for_a_while_counts(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def planted() -> tuple[resident.Open, int]:
        def opened(path: str, given: Arrays) -> Sequence[Any]:
            np.ones(size * MEGA, np.uint8)  # let go at once
            return [np.zeros(MEGA, np.uint8)]

        return opened, 0

    cases: dict[str, Any] = {"in:x": np.zeros(3)}
    np.savez(tmp_path / "case.npz", **cases)
    monkeypatch.setitem(resident.ENGINES, "planted", planted)
    told = resident.measured("planted", tmp_path, tmp_path / "case.npz")
    assert (size - 2) * MEGA < told["peak"] < (size + 6) * MEGA


def answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ours: Sequence[dict[str, Any]], theirs: int) -> None:
    given = iter(ours)

    def told(engine: str, name: str, place: Path) -> dict[str, Any]:
        return next(given) if engine == "tilework" else ran(theirs)

    monkeypatch.setattr(memory, "told", told)
    monkeypatch.setattr(memory, "check_what_is_needed", lambda: None)
    monkeypatch.setattr(memory, "prepared", lambda: tmp_path)
    monkeypatch.setattr(memory, "every", lambda: [{"name": "a"}])


def ran(peak: int) -> dict[str, Any]:
    return {"status": "ran", "peak": peak, "lazily": 1, "onnx": False}


@pytest.mark.parametrize(("peak", "holds"), [(100, True), (101, False)])
def test_the_bar(peak: int, holds: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, tmp_path, [ran(10**9), ran(1), ran(peak), ran(200)], 100)  # the first fills the cache
    assert memory.run(Options()).holds is holds


def test_a_model_that_fails_is_no_good_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, tmp_path, [ran(1), ran(1), {"status": "crash", "why": "it fell over"}, ran(1)], 100)
    result = memory.run(Options())
    assert [figure.holds for figure in result.figures if figure.bar] == [False, False]
    assert "it fell over" in result.rows[0]
    assert math.isnan(memory.geometric_mean([]))
    assert memory.geometric_mean([4.0, 1.0]) == 2.0
