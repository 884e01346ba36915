"""PyTorch beside Tilework: programs that torch.export wrote, in the place of ONNX files that it cannot read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import MakeModel, Run
from tilework.dtypes import dtype_named
from tilework.peers.comparison import compare_engines
from tilework.peers.engine import Task

A = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """PyTorch, whose compiler keeps what it makes among the test's files."""
    monkeypatch.setenv("TILEWORK_CACHE", "off")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
    return pytest.importorskip("torch")


def add(a: Any, b: Any) -> Any:
    return a + b


def subtract(a: Any, b: Any) -> Any:
    return a - b


def double(a: Any) -> Any:
    return a + a


def nested(second: Any, first: Any) -> Any:
    return {"r": [first - second]}


def negated(x: Any) -> Any:
    return -x


def export(torch: Any, path: Path, function: Any, *inputs: Any, **named: Any) -> Path:
    """Write the program of a function of tensors."""
    module = torch.nn.Module()
    module.forward = function
    torch.export.save(torch.export.export(module, inputs, named), path)
    return path


def test_a_program_beside_the_model_is_compiled_and_compared(
    torch: Any, run: Run, model: Path, saved: Any, tmp_path: Path
) -> None:
    export(torch, model.with_suffix(".pt2"), add, torch.zeros(4, 3), torch.ones(4, 3))
    given = f"--input=a={saved('a.npy', A)}"
    found = run("bench", model, "--against", "torch", given, "--rounds", "1", "--json").json
    assert [one["engine"] for one in found["engines"]] == ["tilework", "torch"]
    assert found["engines"][1]["mode"] in ("compiled", "eager")
    assert found["check"]["torch"]["equal"]
    file = tmp_path / "other.tilework"
    assert run("compile", model, "-o", file).code == 0
    done = run("run", file, given, "--check", "torch", "--torch", model.with_suffix(".pt2"))
    assert (done.code, "beside torch: y: equal" in done.out) == (0, True)


def test_another_program_is_found_out(
    torch: Any, run: Run, model: Path, saved: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_COMPILE_DISABLE", "1")  # which is for speed
    other = export(torch, tmp_path / "other.pt2", subtract, torch.zeros(4, 3), torch.ones(4, 3))
    given = f"--input=a={saved('a.npy', A)}"
    done = run("run", model, given, "--check", "torch", "--torch", other)
    assert (done.code, "the outputs differ from those of torch" in done.err) == (7, True)
    one = export(torch, tmp_path / "one.pt2", double, torch.zeros(4, 3))
    done = run("bench", model, given, "--against", "torch", "--torch", one, "--rounds", "1")
    assert done.code == 6
    assert "torch is left out: ValueError: the program takes 1 tensors" in done.err


def test_without_a_compiler_it_runs_operator_by_operator_and_says_so(
    torch: Any, run: Run, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(torch, model.with_suffix(".pt2"), add, torch.zeros(1, 3), torch.ones(1, 3))
    monkeypatch.setenv("CXX", "/nowhere/c++")
    done = run("bench", model, "--against", "torch", "--rounds", "1")
    assert (done.code, done.err) == (0, "")
    assert "torch runs operator by operator, as it cannot compile: " in done.out


def test_inputs_go_by_name_and_results_may_be_nested(
    torch: Any, make_model: MakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_COMPILE_DISABLE", "1")  # which is for speed
    path = make_model("Sub", {"first": (2, 3), "second": (2, 3)})
    swapped = {"second": torch.zeros(2, 3), "first": torch.ones(2, 3)}  # another order than the model's
    file = export(torch, tmp_path / "m.pt2", nested, **swapped)
    values = {"first": A[:2], "second": A[2:]}
    found = compare_engines(Task(str(path), values, 1), ["torch"], rounds=1, files={"torch": file})
    assert found.checked[0].equal, found.checked[0]


def test_values_of_bfloat16(torch: Any, make_model: MakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_COMPILE_DISABLE", "1")  # which is for speed
    path = make_model("Neg", {"x": (4, 3)}, dtype="BFLOAT16")
    file = export(torch, tmp_path / "m.pt2", negated, torch.zeros(4, 3, dtype=torch.bfloat16))
    values = {"x": A.astype(dtype_named("bfloat16").numpy)}
    found = compare_engines(Task(str(path), values, 1), ["torch"], rounds=1, files={"torch": file})
    assert found.checked[0].equal, found.checked[0]
