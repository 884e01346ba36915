"""The text reader reads a page by Tilework as by ONNX Runtime, compiled or found on disk; what differs is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples import read_page
from examples.reader import NETWORKS, Network

for needed in ("cv2", "PIL", "pyclipper", "shapely", "yaml", "onnxruntime"):
    pytest.importorskip(needed, reason=f"the text reader needs {needed}: `make suites` or `make demo` installs it")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _short(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_page, "OUT", tmp_path / "pictures")
    monkeypatch.setattr(read_page, "ROUNDS", 2)
    monkeypatch.setenv("TILEWORK_CACHE", "on")
    monkeypatch.setenv("TILEWORK_CACHE_DIR", str(cache))


@pytest.mark.parametrize("kept", ["compiled now", "found on disk"])
def test_the_page_is_read(kept: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from PIL import Image

    assert read_page.main() == 0
    shown = capsys.readouterr().out
    assert f"Networks: {kept}" in shown
    assert "ONNX Runtime reads the same text" in shown
    assert "242 of 242 characters" in shown
    assert "Tilework reads this page" in shown
    assert max(len(line) for line in shown.splitlines() if "/" not in line) <= 120  # paths may be longer
    for network in NETWORKS:
        assert f"{network}.html" in shown
        assert "<svg" in (tmp_path / "pictures" / f"{network}.html").read_text(encoding="utf-8")
    with Image.open(tmp_path / "pictures" / "read.png") as picture:
        assert picture.size == (1920, 736)
    assert (tmp_path / "pictures" / "page.png").is_file()


def test_a_network_that_errs_is_found_out(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def erring(executable: Any) -> Network:
        def run(given: np.ndarray[Any, Any]) -> Sequence[Any]:
            (found,) = executable(given)
            return [found[:, ::-1] if found.ndim == 3 else found]  # lines are read backwards

        return run

    monkeypatch.setattr(read_page, "tilework_network", erring)
    assert read_page.main() == 1
    shown = capsys.readouterr().out
    assert "by ONNX Runtime" in shown
    assert "on the page and not read" in shown
