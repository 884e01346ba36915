"""Engines in their processes: what they answer, and what becomes of one that fails or dies."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilework.errors import FrontendError, RunError
from tilework.peers.arrays import save
from tilework.peers.comparison import compare_engines
from tilework.peers.engine import OURS, Task
from tilework.peers.process import EngineFailedError, EngineProcess, OurFaultError
from tilework.peers.worker import Resident, peak_bytes
from tilework.tuning.measure.process import WorkerProcess


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """y = x + x over [N]."""
    from onnx import TensorProto, helper

    monkeypatch.setenv("TILEWORK_CACHE", "off")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N"]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "twice", values[:1], values[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "m.onnx"
    path.write_bytes(made.SerializeToString())
    return Task(str(path), {"x": np.arange(5, dtype=np.float32)}, 1)


def started(task: Task, folder: Path, name: str = OURS) -> EngineProcess:
    return EngineProcess(name, task, folder / "in.npz", save(folder / "in.npz", task.inputs))


def test_a_process_opens_calls_and_is_timed(task: Task, tmp_path: Path) -> None:
    with started(task, tmp_path) as engine:
        assert engine.facts.open_seconds > 0
        np.testing.assert_array_equal(engine.outputs(tmp_path / "out.npz")["y"], 2 * task.inputs["x"])
        assert 0 < engine.calibrate(0.002) < 0.01
        assert engine.block_seconds >= 0.002
        assert engine.sample() > 0
        peak = engine.peak_bytes()
        assert peak is None or peak >= (engine.facts.imported_bytes or 0) > 0


def test_our_own_errors_come_through(task: Task, tmp_path: Path) -> None:
    Path(task.model).write_bytes(b"\xff\xfe no model")
    with pytest.raises(FrontendError) as caught:
        started(task, tmp_path)
    assert caught.value.code == 1102


def test_a_peer_that_cannot_open_the_model_is_left_out(task: Task, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    found = compare_engines(task, ["onnxruntime"], rounds=1, files={"onnxruntime": broken})
    assert [ran.name for ran in found.engines] == [OURS]
    assert found.checked[0].skipped
    assert "\n" not in found.checked[0].skipped


def test_a_process_that_dies_is_an_error_with_a_reason(task: Task, tmp_path: Path) -> None:
    engine = started(task, tmp_path)
    os.kill(engine._process.pid, signal.SIGSEGV)
    with pytest.raises(RunError, match="SIGSEGV") as caught:
        engine.sample()
    assert caught.value.code == 1766
    engine.close()


def test_a_peer_that_dies_is_its_own_failure(task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = started(task, tmp_path)
    engine.name = "other"
    os.kill(engine._process.pid, signal.SIGSEGV)
    with pytest.raises(EngineFailedError, match="SIGSEGV"):
        engine.sample()
    engine.close()


def test_an_interrupt_while_a_process_starts_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    def interrupted(self: WorkerProcess, deadline: float) -> None:
        started.append(self.pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(WorkerProcess, "_line", interrupted)
    with pytest.raises(KeyboardInterrupt):
        WorkerProcess()
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


def test_a_fault_of_ours_brings_its_trace(task: Task, tmp_path: Path) -> None:
    with pytest.raises(OurFaultError) as caught:
        started(replace(task, inputs={"wrong": task.inputs["x"]}), tmp_path)
    assert "KeyError" in str(caught.value)
    assert "Traceback" in caught.value.__notes__[0]


def test_rounds_fit_the_time_and_are_told(task: Task) -> None:
    told: list[str] = []
    found = compare_engines(task, [], tell=told.append)
    assert len(found.ours.seconds) == 31
    assert told[0] == "tilework opens the model"
    assert told[-1] == "round 31 of 31"


def test_a_worker_answers_whatever_goes_wrong(task: Task) -> None:
    resident = Resident()

    def silent(message: dict[str, Any]) -> None: ...

    assert resident.answer({"do": "sample", "calls": 1, "expected": 0.0}, silent)["outcome"] == "failed"
    assert resident.answer({"do": "fly"}, silent)["outcome"] == "failed"
    before = peak_bytes()
    memory = resident.answer({"do": "memory"}, silent)
    assert memory["outcome"] == "done"
    assert (before or 0) <= (memory["peak_bytes"] or 0) <= (peak_bytes() or 0)
