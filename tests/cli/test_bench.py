"""`tilework bench` and `run --check`: engines side by side, those that are missing or differ, bad values, packages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import MakeModel, Run
from tilework.peers import engine as engines
from tilework.peers.check import Checked
from tilework.peers.outputs import Compared

A = np.arange(12, dtype=np.float32).reshape(4, 3)


def installed(name: str) -> bool:
    try:
        __import__(name)
    except ImportError:
        return False
    return True


@pytest.fixture
def bench(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("TILEWORK_CACHE", "off")
    return run


def test_ours_alone_in_words_and_json(bench: Run, model: Path) -> None:
    done = bench("bench", model, "--against", "none", "--rounds", "7", "--threads", "1", "--shape", "a=5x3")
    assert (done.code, done.err) == (0, "")
    assert "random inputs (seed 0): a, b\n1 thread, 7 rounds\n" in done.out
    assert "tilework  " in done.out
    found = bench("bench", model, "--against", "none", "--rounds", "2", "--threads", "2", "--json").json
    assert (found["threads"], found["rounds"], found["ratios"], found["check"]) == (2, 2, {}, {})
    assert found["inputs"] == {name: {"dtype": "float32", "shape": [1, 3]} for name in ("a", "b")}
    (ours,) = found["engines"]
    assert (ours["engine"], ours["machine"], ours["cache"]) == ("tilework", "host", None)
    assert ours["call_ms"]["low"] is None
    assert len(ours["samples_ms"]) == 2
    assert min(ours[key] for key in ("compile_ms", "first_call_ms", "import_ms")) > 0
    assert 0 < ours["imported_bytes"] <= ours["peak_bytes"]


def test_a_package_is_timed(bench: Run, model: Path, tmp_path: Path, saved: Any) -> None:
    file = tmp_path / "m.tilework"
    assert bench("compile", model, "-o", file).code == 0
    given = f"--input=a={saved('a.npy', A)}"
    found = bench("bench", file, given, "--rounds", "1", "--json").json
    assert [one["engine"] for one in found["engines"]] == ["tilework"]
    assert found["inputs"]["b"]["shape"] == [4, 3]
    assert "TW1002" in bench("bench", file, "--against", "onnxruntime").err
    assert "--onnx" in bench("bench", file, "--against", "onnxruntime").err
    assert "TW1002" in bench("bench", file, "--shape", "a=1x3").err
    assert "TW1002" in bench("bench", file, "--onnx", tmp_path / "none.onnx").err
    assert "TW1002" in bench("bench", model, "--onnx", model).err
    assert "TW1002" in bench("bench", file, "--against", "none", "--onnx", model).err


@pytest.mark.parametrize("name", [name for name in ("onnxruntime", "openvino") if installed(name)])
def test_beside_an_engine_that_is_installed(bench: Run, model: Path, tmp_path: Path, saved: Any, name: str) -> None:
    given = f"--input=a={saved('a.npy', A)}"
    found = bench("bench", model, "--against", name, given, "--rounds", "6", "--json").json
    assert [one["engine"] for one in found["engines"]] == ["tilework", name]
    assert found["check"][name]["equal"]
    assert found["check"][name]["outputs"]["y"]["difference"] == 0
    assert found["ratios"][name]["low"] <= found["ratios"][name]["median"] <= found["ratios"][name]["high"]
    file = tmp_path / "m.tilework"
    assert bench("compile", model, "-o", file).code == 0
    done = bench("bench", file, "--onnx", model, "--against", name, given, "--rounds", "1")
    assert done.code == 0
    assert f"of {name}'s time" in done.out
    assert f"beside {name}: y: equal" in done.out
    assert "no intervals" in done.out
    checked = bench("run", file, given, "--check", name, "--onnx", model, "--json")
    assert (checked.code, checked.json["check"][name]["equal"]) == (0, True)
    assert f"beside {name}: y: equal" in bench("run", model, given, "--check", name).out


def test_an_engine_that_is_missing_is_named_and_left_out(
    bench: Run, model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('onnxruntime', 'openvino'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    asked = bench("bench", model, "--against", "onnxruntime,openvino", "--rounds", "1", "--json")
    assert asked.code == 6
    assert "onnxruntime is left out: onnxruntime is not installed" in asked.err
    assert asked.json["check"]["openvino"] == {"skipped": "openvino is not installed"}
    assert [one["engine"] for one in asked.json["engines"]] == ["tilework"]
    usual = bench("bench", model, "--rounds", "1")
    assert usual.code == 0
    assert "note: onnxruntime is left out" in usual.err
    checked = bench("run", model, "--check", "onnxruntime", "--save", tmp_path / "out.npz")
    assert checked.code == 6
    assert "y: float32" in checked.out
    assert (tmp_path / "out.npz").is_file()


def test_outputs_that_differ_have_an_exit_code(bench: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def differs(name: str, *others: Any) -> Checked:
        return Checked(name, (Compared("y", 0.5, 1e-6), Compared("z", float("inf"), 0.0, "NaN elsewhere")))

    monkeypatch.setattr("tilework.peers.check.check_outputs", differs)
    done = bench("run", model, "--check", "onnxruntime")
    assert done.code == 7
    assert "the outputs differ from those of onnxruntime" in done.err
    assert "beside onnxruntime: y: DIFFERENT, largest difference 0.5 of 1e-06 allowed" in done.out
    found = bench("run", model, "--check", "onnxruntime", "--json").json["check"]["onnxruntime"]
    assert (found["equal"], found["outputs"]["z"]["difference"]) == (False, None)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--against", "jax"], 2, "TW1001"),
        (["--against", "torch"], 2, "torch.export.save"),
        (["--against", "torch", "--torch", "m.pt"], 2, "only exported programs"),
        (["--against", "torch", "--torch", "nowhere.pt2"], 2, "no such file"),
        (["--torch", "m.pt2"], 2, "TW1002"),
        (["--against", ""], 2, "TW1001"),
        (["--against", "none,onnxruntime"], 2, "TW1001"),
        (["--against", "onnxruntme"], 2, "did you mean onnxruntime"),
        (["--rounds", "0"], 2, "TW1002"),
        (["--rounds", "10001"], 2, "TW1002"),
        (["--rounds", "many"], 2, "many"),
        (["--threads", "0"], 2, "TW1002"),
        (["--seed", "-1"], 2, "TW1002"),
        (["--shape", "a=1x"], 2, "TW1002"),
        (["--input", "c=x.npy"], 2, "TW1001"),
        (["--input", "a=nowhere.npy"], 3, "TW1902"),
        (["--shape", "a=1x4"], 3, "TW1118"),
        (["--machine", "aarch64"], 4, "TW1764"),
        (["--numerics", "sloppy"], 2, "sloppy"),
    ],
)
def test_refusals(bench: Run, model: Path, words: list[str], code: int, text: str) -> None:
    done = bench("bench", model, "--against", "none", *words, "--json")
    assert (done.code, "Traceback" in done.err) == (code, False)
    assert text in done.err
    assert done.json["error"]["code"].startswith("TW")


@pytest.mark.parametrize("words", [["--check", "jax"], ["--check", "onnxruntime,jax"]])
def test_run_refuses_engines_that_there_are_not(bench: Run, model: Path, words: list[str]) -> None:
    done = bench("run", model, *words, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "TW1001")


def test_an_error_of_the_run_is_ours(bench: Run, make_model: MakeModel, saved: Any) -> None:
    path = make_model("Gather", {"data": (3,), "indices": (2,)}, dtype="INT64")
    given = f"--input=indices={saved('i.npy', np.array([0, 7]))}"
    done = bench("bench", path, given, "--against", "none", "--json")
    assert (done.code, done.json["error"]["code"]) == (5, "TW1801")


def test_every_engine_has_a_file_and_what_it_needs() -> None:
    assert engines.peer_names() == ("onnxruntime", "openvino", "torch")
    for name in (engines.OURS, *engines.peer_names()):
        assert engines.engine_named(name).module == name


def test_an_interrupt_ends_every_process(model: Path) -> None:
    words = [sys.executable, "-m", "tilework", "bench", str(model), "--against", "none", "--rounds", "10000", "--json"]
    child = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "TILEWORK_CACHE": "off"}
    )
    children = Path(f"/proc/{child.pid}/task/{child.pid}/children")
    until = time.monotonic() + 60
    while not (found := children.read_text().split()) and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, err.strip()) == (130, "interrupted")
    assert json.loads(out)["error"]["message"] == "interrupted"
    assert not any(Path(f"/proc/{pid}").exists() for pid in found)


def test_two_benches_at_once(model: Path) -> None:
    words = [sys.executable, "-m", "tilework", "bench", str(model), "--against", "none", "--rounds", "3", "--json"]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for child in running:
        out, _ = child.communicate(timeout=120)
        assert (child.returncode, json.loads(out)["rounds"]) == (0, 3)
