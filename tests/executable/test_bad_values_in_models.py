"""Values and shapes that a model cannot take when it runs: a code that names the node, or what ONNX specifies."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import tilework
from tests.frontends.onnx.models import model
from tilework.errors import CallError, FrontendError, RunError, TileworkError
from tilework.runtime.measured import MeasuredMemory

F, I64 = np.float32, np.int64


def refused(proto: ModelProto, **given: Any) -> TileworkError:
    with pytest.raises(TileworkError) as caught:
        tilework.compile(proto)(**given)
    return caught.value


@pytest.mark.parametrize("location", ["missing.bin", "../outside.bin", "/etc/passwd", "inner/../../outside.bin"])
def test_external_data(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "models"
    (folder / "inner").mkdir(parents=True)
    (tmp_path / "outside.bin").write_bytes(b"\0" * 64)
    proto = model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": (F, [4])}, ["y"], {"w": np.zeros(4, F)})
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(FrontendError) as caught:
        tilework.compile(path)
    assert caught.value.code == (1111 if location == "missing.bin" else 1110)
    assert "initialiser w" in str(caught.value)


@pytest.mark.parametrize("index", [5, -6, 2**62, -(2**62)])
@pytest.mark.parametrize("operator", ["Gather", "GatherND", "GatherElements", "ScatterND", "ScatterElements"])
def test_positions_outside(operator: str, index: int) -> None:
    inputs: dict[str, Any] = {"x": (F, [5]), "i": (I64, [1, 1] if "ND" in operator else [1])}
    given: dict[str, Any] = {"x": np.arange(5, dtype=F), "i": np.full(inputs["i"][1], index)}
    if "Scatter" in operator:
        inputs["u"], given["u"] = (F, [1]), np.ones(1, F)
    error = refused(
        model([helper.make_node(operator, list(inputs), ["y"], name="picks")], inputs, ["y"], {}, 18), **given
    )
    assert isinstance(error, RunError)
    assert "picks" in str(error)


def test_slices_are_clamped_as_onnx_says() -> None:
    proto = model(
        [helper.make_node("Slice", ["x", "start", "end"], ["y"])],
        {"x": (F, [5]), "start": (I64, [1]), "end": (I64, [1])}, ["y"], {}, 13,
    )  # fmt: skip
    executable, x = tilework.compile(proto), np.arange(5, dtype=F)
    for start, end in ((-(2**63), 2**63 - 1), (2**62, 2**63 - 1), (3, -(2**62)), (1, 2**40)):
        (found,) = executable(x, np.array([start]), np.array([end]))
        np.testing.assert_array_equal(found, x[max(start, -5) : min(end, 5)])


def loop(trips: int | None) -> ModelProto:
    info, boolean = helper.make_tensor_value_info, TensorProto.BOOL
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "one"], ["s2"]), helper.make_node("Identity", ["c"], ["c2"])], "body",
        [info("n", TensorProto.INT64, []), info("c", boolean, []), info("s", TensorProto.FLOAT, [2])],
        [info("c2", boolean, []), info("s2", TensorProto.FLOAT, [2])], [numpy_helper.from_array(np.ones(2, F), "one")],
    )  # fmt: skip
    node = helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body, name="rounds")
    inputs: dict[str, Any] = {"x": (F, [2])}
    if trips is None:
        return model([node], {**inputs, "trips": (I64, [])}, ["y"])
    return model([node], inputs, ["y"], {"trips": np.array(trips)})


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("trips", [0, -1, 3])
def test_loops_of_few_trips(trips: int, known: bool) -> None:
    executable = tilework.compile(loop(trips if known else None))
    x = np.array([1, 2], F)
    (found,) = executable(x) if known else executable(x=x, trips=np.array(trips))
    np.testing.assert_array_equal(found, x + max(trips, 0))


@pytest.mark.parametrize("known", [False, True])
def test_a_loop_without_end_can_be_interrupted(known: bool) -> None:
    executable = tilework.compile(loop(2**62 if known else None))
    given = {"x": np.zeros(2, F)} if known else {"x": np.zeros(2, F), "trips": np.array(2**62)}
    start = time.monotonic()
    with subprocess.Popen(["sh", "-c", f"sleep 1; kill -INT {os.getpid()}"]), pytest.raises(KeyboardInterrupt):
        executable(**given)
    assert time.monotonic() - start < 60


def test_a_loop_without_end_lets_other_threads_run() -> None:
    executable = tilework.compile(loop(None))
    other = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    # the other process ends the test, too late, where no other thread of this one runs
    with subprocess.Popen(["sh", "-c", f"sleep 40; kill -INT {os.getpid()}"], start_new_session=True) as late:
        start = time.monotonic()
        other.start()
        with pytest.raises(KeyboardInterrupt):
            executable(x=np.zeros(2, F), trips=np.array(2**62))
        took = time.monotonic() - start
        os.killpg(late.pid, signal.SIGKILL)
    assert took < 30


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_exception_as_memory_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal's exception may end the function that compiled code asks, which then has given no answer."""
    executable = tilework.compile(
        model([helper.make_node("NonZero", ["x"], ["y"], name="found")], {"x": (F, ["n"])}, ["y"])
    )
    x = np.array([0, 2, 0, 3], F)

    def raised(*_: Any) -> int:
        raise KeyboardInterrupt

    np.testing.assert_array_equal(executable(x)[0], [[1, 3]])
    with monkeypatch.context() as patched:
        patched.setattr(MeasuredMemory, "allocate", raised)
        with pytest.raises(KeyboardInterrupt):
            executable(np.ones(300, F))
    np.testing.assert_array_equal(executable(x)[0], [[1, 3]])


def test_shapes_that_do_not_unify() -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"], name="product"), helper.make_node("Add", ["m", "b"], ["y"])]
    proto = model(nodes, {"x": (F, ["n", "k"]), "w": (F, ["q", 4]), "b": (F, ["r"])}, ["y"])
    executable = tilework.compile(proto)
    (found,) = executable(np.ones((2, 3), F), np.ones((3, 4), F), np.ones(4, F))
    assert found.shape == (2, 4)
    for k, q, r in ((3, 2, 4), (3, 3, 5), (0, 1, 4)):
        with pytest.raises((CallError, FrontendError)) as caught:
            executable(np.ones((2, k), F), np.ones((q, 4), F), np.ones(r, F))
        assert any(word in str(caught.value) for word in ("dimension", "extent"))


@pytest.mark.parametrize("length", [1, 3, 7])
@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4, TensorProto.INT2, TensorProto.FLOAT4E2M1])
def test_packed_elements_of_odd_lengths(kind: int, length: int) -> None:
    numbers = [float(n % 2) for n in range(length)]
    held = helper.make_tensor("w", kind, [length], numbers)
    graph = helper.make_graph(
        [helper.make_node("Cast", ["w"], ["y"], to=TensorProto.FLOAT)], "g", [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [length])], [held],
    )  # fmt: skip
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
    np.testing.assert_array_equal(tilework.compile(proto)()[0], numbers)
    proto.graph.initializer[0].dims[0] = length + 4
    assert refused(proto).code == 1109


def test_empty_sequences() -> None:
    nodes = [helper.make_node("SequenceEmpty", [], ["s"], dtype=TensorProto.FLOAT),
             helper.make_node("SequenceLength", ["s"], ["n"])]  # fmt: skip
    np.testing.assert_array_equal(tilework.compile(model(nodes, {}, ["n"], {}, 13))()[0], 0)
    for operator in ("SequenceErase", "SequenceAt"):
        taking = [nodes[0], helper.make_node(operator, ["s", "zero"], ["t"], name="takes")]
        if operator == "SequenceErase":
            taking.append(helper.make_node("SequenceLength", ["t"], ["out"]))
        error = refused(model(taking, {}, ["out" if operator == "SequenceErase" else "t"], {"zero": np.array(0)}, 13))
        assert "takes" in str(error)


@pytest.mark.parametrize("scale", [0.0, np.nan, np.inf, -1.0])
def test_scales_that_make_no_sense(scale: float) -> None:
    """What division gives, saturated; NaN becomes 0: ONNX says nothing of them."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    constants = {"z": np.array(3, np.uint8)}
    proto = model(nodes, {"x": (F, [6]), "s": (F, [])}, ["q", "y"], constants, 13)
    x = np.array([0, 1, -1, 2.5, np.inf, np.nan], F)
    quantised, back = tilework.compile(proto)(x, np.array(scale, F))
    with np.errstate(all="ignore"):
        wanted = np.nan_to_num(np.clip(np.rint(x / F(scale)) + 3, 0, 255), nan=0.0).astype(np.uint8)
        np.testing.assert_array_equal(quantised, wanted)
        np.testing.assert_array_equal(back, (wanted.astype(F) - 3) * F(scale))
