"""The pages that the demonstration writes of its networks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.call_overhead import add_one
from examples import network_reports
from examples.network_reports import write_reports
from tilework import compile as compile_model
from tilework.errors import RunError
from tilework.runtime.executable import Executable


def test_each_network_that_was_called_has_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_probe(*, threads: int) -> None:
        raise RunError(1765, f"no probe with {threads} threads")

    monkeypatch.setattr(network_reports, "probe", no_probe)
    executable = compile_model(add_one())
    assert isinstance(executable, Executable)
    given = np.zeros(4, np.float32)
    written = write_reports(tmp_path, {"first": (executable, given), "never called": (executable, None)})
    assert written == [tmp_path / "first.html"]
    page = written[0].read_text(encoding="utf-8")
    assert "<svg" in page
    assert "first" in page
