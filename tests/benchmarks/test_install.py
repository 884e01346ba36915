"""`install` counts what is downloaded, what is installed, and tells what is broken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import install
from benchmarks.harness.result import MissingPeerError, Options


def test_figures_are_of_what_was_downloaded_and_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def downloaded(project: Path, folder: Path) -> dict[str, int]:
        (folder / "own").mkdir(parents=True)
        (folder / "own" / "tilework-0-py3-none-any.whl").write_bytes(b"1234")
        return {"a.whl": 60_000_000, "b.whl": size}

    def installed(*_: Path) -> list[str]:
        return names

    monkeypatch.setattr(install, "downloaded", downloaded)
    monkeypatch.setattr(install, "installed", installed)
    size, names = 40_000_000, ["tilework", *(f"p{number}" for number in range(11))]
    assert install.run(Options()).holds
    size = 40_000_001
    assert [figure.holds for figure in install.run(Options()).figures] == [False, True, True]
    size, names = 0, [*names, "one more"]
    assert [figure.holds for figure in install.run(Options()).figures] == [True, False, True]


def fails(error: str) -> object:
    def run(*command: str, **_: object) -> object:
        return subprocess.CompletedProcess(command, 1, "", error)

    return run


def test_no_network_is_a_missing_tool_and_any_other_failure_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install.subprocess, "run", fails("ERROR: No matching distribution found for numpy"))
    with pytest.raises(MissingPeerError):
        install.downloaded(tmp_path, tmp_path / "a")
    monkeypatch.setattr(install.subprocess, "run", fails("ERROR: the wheel is broken"))
    with pytest.raises(RuntimeError, match="broken"):
        install.downloaded(tmp_path, tmp_path / "b")


def test_a_package_that_does_not_work_is_found_out(tmp_path: Path) -> None:
    """A wheel without dependencies, and with nothing in it that compiles."""
    source = tmp_path / "source"
    (source / "tilework").mkdir(parents=True)
    (source / "tilework" / "__init__.py").write_text("")
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "tilework"\nversion = "0"\n'
    )
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    subprocess.run([*command, str(source)], check=True, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    with pytest.raises(RuntimeError, match="No module named"):
        install.installed(wheel, tmp_path, tmp_path / "environment")
