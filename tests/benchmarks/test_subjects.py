"""What the benchmarks measure is what they say: models, cases, tolerances, the yardstick."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from benchmarks import call_overhead, elementwise, small_models
from benchmarks.harness import bandwidth, models
from benchmarks.harness.engine import Engine, EngineError, Worker
from benchmarks.harness.install import clean_environment
from benchmarks.harness.onnx_engines import ONNX_RUNTIME, TILEWORK, difference, excess, load_case, save_cases, tolerance
from benchmarks.harness.process import first_word_seconds
from tests.benchmarks.test_harness import engine


def evaluate(
    model: onnx.ModelProto, feeds: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]
) -> list[object]:
    onnx.checker.check_model(model, full_check=True)  # pyright: ignore[reportUnknownMemberType]
    return list(ReferenceEvaluator(model).run(None, feeds))  # pyright: ignore[reportUnknownMemberType,reportArgumentType]


def test_the_models_of_call_overhead() -> None:
    x = np.arange(4, dtype=np.float32)
    assert np.array_equal(np.asarray(evaluate(call_overhead.add_one(), {"x": x})[0]), x + 1)
    many = call_overhead.many_arguments()
    assert (len(many.graph.input), len(many.graph.output)) == (300, 100)
    feeds = {f"x{number}": np.full(4, number, np.float32) for number in range(300)}
    outputs = evaluate(many, feeds)
    for number, output in enumerate(outputs):
        assert np.array_equal(np.asarray(output), np.full(4, 9 * number + 3))


def test_the_chain_has_eight_operations_and_its_reference_is_right() -> None:
    model = elementwise.chain(1000)
    assert len(model.graph.node) == 8
    a, b = elementwise.operands(1000, 3)
    (y,) = evaluate(model, {"a": a, "b": b})
    np.testing.assert_allclose(np.asarray(y), elementwise.reference(a, b), rtol=0, atol=2e-6)


def test_the_mlp_serves_any_batch() -> None:
    model = small_models.mlp()
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param
    for batch in (1, 5):
        (y,) = evaluate(model, {"x": np.ones((batch, 64), np.float32)})
        assert np.asarray(y).shape == (batch, 64)
        assert np.asarray(y).any()


def test_other_inputs_are_of_the_same_kind() -> None:
    random = np.random.default_rng(1)
    given = {"f": random.standard_normal((3, 4)).astype(np.float32), "i": np.arange(50, dtype=np.int32)}
    other = small_models.varied(given, random)
    assert other["f"].dtype == np.float32
    assert other["f"].shape == (3, 4)
    assert not np.array_equal(other["f"], given["f"])
    assert not np.array_equal(other["i"], given["i"])
    assert np.array_equal(np.sort(other["i"]), given["i"])


def test_cases_come_back_from_their_files(tmp_path: Path) -> None:
    cases = {
        "": {"a/b:0": np.ones((2, 0, 3), np.float32), "x": np.array(7, np.int64)},
        "batch 2": {"x": np.array([True])},
    }
    paths = save_cases(tmp_path, cases)
    for case, arrays in cases.items():
        loaded = load_case(paths[case])
        assert list(loaded) == list(arrays)
        for name, array in arrays.items():
            assert loaded[name].dtype == array.dtype
            assert np.array_equal(loaded[name], array)
            assert loaded[name].shape == array.shape


def test_what_counts_as_equal() -> None:
    expected = np.array([1.0, -100.0, np.nan, np.inf], np.float32)
    assert tolerance(expected, 0.0) == pytest.approx(2e-3)
    assert tolerance(expected, 1.0) == 20.0
    assert tolerance(np.zeros(0, np.float32), 0.0) == 1e-6
    close = expected + np.array([1e-3, 0, 0, 0], np.float32)
    assert difference(close, expected) == pytest.approx(1e-3, rel=1e-3)
    assert difference(close.astype(np.float64), expected) == np.inf
    assert difference(close[:3], expected) == np.inf
    assert difference(np.nan_to_num(close), expected) == np.inf
    swapped = expected[[0, 1, 3, 2]]
    assert difference(swapped, expected) == np.inf
    assert excess({"y": close}, {"y": expected}, 0.0) == pytest.approx(0.5, rel=1e-3)
    assert excess({"z": close}, {"y": expected}, 0.0) == np.inf
    assert excess({"y": np.array([1, 2])}, {"y": np.array([1, 3])}, 0.0) > 1
    assert excess({"y": np.array([1, 2])}, {"y": np.array([1, 2])}, 0.0) == 0


@pytest.mark.parametrize("non_temporal", [False, True])
@pytest.mark.parametrize("trips", [0, 1, 63, 1000])
def test_the_yardstick_touches_every_element(non_temporal: bool, trips: int) -> None:
    made = bandwidth.streams(trips * bandwidth.STEP, 2, non_temporal)
    try:
        made.run()
        assert np.array_equal(made.y, made.a + made.b)
    finally:
        made.context.close()


def test_the_yardstick_takes_whole_trips_only() -> None:
    with pytest.raises(ValueError, match="multiple"):
        bandwidth.streams(bandwidth.STEP + 1, 1, non_temporal=False)


def test_an_engine_turns_to_another_case(tmp_path: Path) -> None:
    with Worker(engine("cases", "several_cases")) as worker:
        assert np.array_equal(worker.outputs(tmp_path)["y"], [1])
        worker.select("two")
        assert np.array_equal(worker.outputs(tmp_path)["y"], [2])
        assert worker.calibrate(1e-4) >= 1
    with Worker(engine("one", "waiting", seconds=0.0)) as worker, pytest.raises(EngineError, match="one case"):
        worker.select("two")


def test_the_first_word_of_a_process_is_timed() -> None:
    program = "import sys, time; print('x', flush=True); time.sleep(0.5)"
    start = time.perf_counter()
    seconds = first_word_seconds([sys.executable, "-c", program], clean_environment())
    assert 0 < seconds <= time.perf_counter() - start - 0.5
    with pytest.raises(RuntimeError, match=r"exited with 3:\n(.|\n)*told"):
        first_word_seconds([sys.executable, "-c", "import sys; sys.stderr.write('told'); sys.exit(3)"], {})
    with pytest.raises(RuntimeError, match="exited with 0"):
        first_word_seconds([sys.executable, "-c", ""], {})


def test_a_package_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import zipfile
    from types import SimpleNamespace

    monkeypatch.setenv("TILEWORK_MODELS", str(tmp_path / "models"))
    calls: list[list[str]] = []

    def download(arguments: list[str], *, cwd: str, **_: object) -> None:
        calls.append(arguments)
        with zipfile.ZipFile(Path(cwd) / "magika-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr("magika/__init__.py", "x = 1")
            wheel.writestr("magika/models/config.json", "{}")
            wheel.writestr("magika-1.data/scripts/magika", "left out")

    monkeypatch.setattr(models, "subprocess", SimpleNamespace(run=download))
    folder = models.package("magika__model", "magika")
    for _ in range(2):
        assert models.package("magika__model", "magika") == folder
        assert (folder / "__init__.py").read_text() == "x = 1"
        assert (folder / "models" / "config.json").is_file()
    assert len(calls) == 1
    assert [path.name for path in folder.parent.iterdir()] == ["magika"]
    with pytest.raises(KeyError):
        models.package("magika__model", "no such folder")


Answer = TypeVar("Answer")


def always(answer: Answer) -> Callable[..., Answer]:
    def given(*_: object) -> Answer:
        return answer

    return given


@pytest.mark.parametrize(("off", "problems"), [(0.0, 0), (1e-3, 1)])
def test_a_wrong_value_is_found_out(off: float, problems: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = (
        Engine(TILEWORK, "tests.benchmarks.planted_engines:off_by", {"off": off}),
        Engine(ONNX_RUNTIME, "tests.benchmarks.planted_engines:off_by", {"off": 0.0}),
    )
    monkeypatch.setattr(small_models, "engines", always(planted))
    monkeypatch.setattr(small_models, "distances", always((0.5, 50.0)))
    subject = small_models.Subject("planted", tmp_path / "none.onnx", 0.0, {"batch 1": {"x": np.ones(1)}})
    found = small_models.Findings([], [], [], {}, {})
    small_models.warm(subject, 1, tmp_path, 6, found)
    assert len(found.problems) == problems
    assert all("from float64 it is 0.5 and ONNX Runtime 50" in problem for problem in found.problems)
    assert [figure.label for figure in found.ratios] == ["planted, batch 1, 1 thread:"]
    assert len(found.rows) == 1


def test_an_engine_that_fails_is_a_problem_not_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tuple(Engine(name, "tests.benchmarks.planted_engines:broken") for name in (TILEWORK, ONNX_RUNTIME))
    monkeypatch.setattr(small_models, "engines", always(broken))
    found = small_models.Findings([], [], [], {}, {})
    small_models.warm(small_models.Subject("planted", tmp_path, 0.0, {"": {}}), 2, tmp_path, 6, found)
    assert len(found.problems) == 1
    assert "planted fault" in found.problems[0]
