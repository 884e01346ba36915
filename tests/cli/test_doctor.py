"""`tilework doctor`: what it tells, what it finds wrong, and its exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.conftest import Run
from tilework.cli.doctor.cache import cache
from tilework.cli.doctor.memory import memory
from tilework.cli.doctor.processor import processor
from tilework.cli.doctor.smoke import answer, smoke_test
from tilework.cli.doctor.variables import variables
from tilework.cli.doctor.versions import versions
from tilework.errors import RunError
from tilework.machine.cpu import CpuMachine
from tilework.machine.finder import machine


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWORK_CACHE", "on")
    monkeypatch.setenv("TILEWORK_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_all_is_told_in_words_and_json(run: Run, place: Path) -> None:
    done = run("doctor")
    assert (done.code, done.err) == (0, "")
    assert "y = x + 1 is right" in done.out
    assert str(place) in done.out
    for label in ("tilework", "needs", "beside", "processor", "vectors", "processors", "memory", "variable", "cache"):
        assert f"\n{label} " in f"\n{done.out}"
    found = run("doctor", "--json").json
    assert found.keys() == {
        "well", "versions", "processor", "memory", "variables", "cache", "smoke_test", "advice",
    }  # fmt: skip
    assert found["well"] is True
    assert found["smoke_test"]["passed"] is True
    assert found["processor"]["threads"] >= 1
    assert found["cache"]["entries"] > 0
    assert not any(one["serious"] for one in found["advice"])


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("TILEWORK_NUM_THREADS", "many", "TW1002"),
        ("TILEWORK_NUM_THREADS", "5000", "TW1002"),
        ("TILEWORK_MEMORY_LIMIT", "much", "TW1002"),
        ("TILEWORK_CACHE_LIMIT", "0", "TW1002"),
        ("TILEWORK_CACHE", "maybe", "TW1002"),
        ("TILEWORK_MACHINE", "z80", "TW1620"),
        ("TILEWORK_MACHINE", "aarch64", "TW1764"),
    ],
)
def test_a_variable_that_makes_no_sense_is_a_problem(
    run: Run, place: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, code: str
) -> None:
    monkeypatch.setenv(name, text)
    done = run("doctor", "--json")
    assert done.code == 8
    (advice,) = [one for one in done.json["advice"] if one["serious"]]
    assert advice["code"] == code
    assert name in advice["message"]
    assert advice["do"]
    assert done.json["variables"]["bad"] == [name]
    assert f"variable    {name}={text} (makes no sense)\n" in run("doctor").out


def test_a_slip_of_the_pen_and_a_path_that_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_CACHE_DIRR", "/x")
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    found = variables()
    assert [one.serious for one in found.advice] == [False, False]
    assert "did you mean TILEWORK_CACHE_DIR?" in str(found.advice[1]).lower().replace(
        "tilework_cache_dir", "TILEWORK_CACHE_DIR"
    )
    assert found.facts["unread"] == ["TILEWORK_CACHE_DIRR"]


def test_more_threads_than_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_NUM_THREADS", "1000")
    assert "1000 threads are asked for" in str(processor(machine("host")).advice)


def test_a_slow_and_busy_machine_within_a_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWORK_NUM_THREADS", raising=False)
    monkeypatch.delenv("TILEWORK_MEMORY_LIMIT", raising=False)
    monkeypatch.setattr("os.getloadavg", lambda: (50.0, 1.0, 1.0))
    root = tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/a\n",
            "sys/fs/cgroup/a/cpu.max": "50000 100000",
            "sys/fs/cgroup/a/memory.max": str(100 << 20),
            "sys/fs/cgroup/memory.max": "max",
            "proc/meminfo": "MemAvailable:     1024 kB\n",
            "proc/cpuinfo": "model name\t: Old One\n",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "acpi-cpufreq\n",
        },
    )
    old = CpuMachine("host", "x86_64-unknown-linux-gnu", "core2", "+sse2", 128, 16, ())
    found = processor(old, root)
    assert (found.facts["quota"], found.facts["allowed"], found.facts["model"]) == (0.5, 1, "Old One")
    said = "\n".join(map(str, found.advice))
    for words in ("no AVX2", "the load is 50.0 on 1 processors", "governor powersave"):
        assert words in said
    tree(root, {"sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "amd-pstate-epp"})
    assert "governor" not in str(processor(old, root).advice)
    room = memory(root)
    assert (room.facts["group_limit"], room.facts["free"]) == (100 << 20, 1 << 20)
    said = "\n".join(map(str, room.advice))
    assert "TILEWORK_MEMORY_LIMIT below it, e.g. 75M" in said
    assert "1.0 MB of memory are free" in said
    monkeypatch.setenv("TILEWORK_MEMORY_LIMIT", "50M")
    assert "below it" not in str(memory(root).advice)


def test_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    found = processor(machine("aarch64"), tmp_path)
    assert found.facts["quota"] is None
    assert memory(tmp_path).facts["free"] is None


def test_the_cache_in_every_state(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = cache()
    assert (found.facts["on"], found.facts["writes"], found.advice) == (True, True, ())
    (place / "bad").mkdir()
    (place / "bad" / "0123").write_text("x")
    assert "1 damaged entries" in str(cache().advice)
    place.chmod(0o777)
    open_to_all = cache()
    assert open_to_all.facts["reads"] is False
    assert "others may write" in str(open_to_all.advice)
    place.chmod(0o700)

    def full(path: Path) -> Any:
        return SimpleNamespace(free=5)

    monkeypatch.setattr("shutil.disk_usage", full)
    assert "5 B are free" in str(cache().advice)
    monkeypatch.setenv("TILEWORK_CACHE_DIR", "/dev/null/nowhere")
    assert "cannot be used" in str(cache().advice)
    monkeypatch.setenv("TILEWORK_CACHE_LIMIT", "none")
    assert cache().facts == {"on": None}
    monkeypatch.setenv("TILEWORK_CACHE", "off")
    assert cache().facts == {"on": False}


def test_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    def version(name: str) -> str:
        if name in ("onnx", "numpy"):
            raise metadata.PackageNotFoundError(name)
        return "0.0"

    monkeypatch.setattr("tilework.cli.doctor.versions.version", version)
    found = versions()
    assert [(one.serious, one.code) for one in found.advice] == [(True, 1007), (False, 1007), (False, None)]
    assert "version 0.0 is installed" in str(found.advice[2])


def test_a_smoke_test_that_fails_or_crashes(
    run: Run, place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    crashing = smoke_test("os.abort() or sys")  # what a processor without an instruction does, too
    assert crashing.facts["passed"] is False
    assert crashing.advice[0].serious

    def wrong() -> dict[str, Any]:
        raise RunError(1802, "y = x + 1 is wrong for 7 elements")

    monkeypatch.setattr("tilework.cli.doctor.smoke.tried", wrong)
    assert answer({}, print)["code"] == 1802
    monkeypatch.setattr("tilework.cli.doctor.smoke.smoke_test", lambda: crashing)
    done = run("doctor")
    assert done.code == 8
    assert "problem: " in done.out
    assert run("doctor", "--json").json["well"] is False


def test_no_peer_is_imported(place: Path) -> None:
    script = (
        "import sys\nfrom tilework.cli.main import main\nmain(['doctor', '--json'])\n"
        "print([name for name in ('onnx', 'onnxruntime', 'torch', 'openvino') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert shown.stdout.endswith("[]\n")


@pytest.mark.parametrize("words", [["--frob"], ["model.onnx"]])
def test_bad_use(run: Run, words: list[str]) -> None:
    assert run("doctor", *words).code == 2
