"""The operations that benchmarks run are the same in every engine, and a wrong result is never timed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks import avx2, changed_computation, conv, gemm, kernel_compile, low_precision_gemm, memory_bound, replay
from benchmarks import symbolic as symbolic_rows
from benchmarks.harness import bandwidth, peak
from benchmarks.harness.findings import Findings
from benchmarks.harness.paired import Samples
from benchmarks.harness.result import MissingPeerError, Options
from benchmarks.harness.scheduled import scheduled
from benchmarks.operations import engines
from benchmarks.operations.convolution import Convolution
from benchmarks.operations.matrix_product import Bfloat16Product, IntegerProduct, MatrixProduct
from benchmarks.operations.memory import Gelu, LayerNorm, Softmax, SumColumns, SumRows, Transposed
from benchmarks.operations.operation import Operation, worst
from tests.benchmarks.test_harness import engine
from tilework.machine.finder import machine
from tilework.tuning.measure.statistics import median_interval

SMALL: list[Operation] = [
    MatrixProduct(5, 37, 65),
    MatrixProduct(7, 16, 33, packed=True),
    Convolution(2, 9, 5, 18, 3),
    Convolution(1, 11, 3, 8, 7, stride=2),
    Convolution(1, 6, 20, 20, 3, depthwise=True),
    Convolution(1, 6, 20, 7, 1),
    Softmax(5, 300),
    LayerNorm(3, 77),
    SumRows(9, 50),
    SumColumns(50, 9),
    Gelu(5, 33),
    Transposed(17, 40),
]
LOW = [Bfloat16Product(9, 64, 70, packed=True), IntegerProduct(9, 64, 70, packed=True)]


def drawn(chosen: Operation) -> dict[str, Any]:
    inputs, constants = engines.drawn(chosen, 5)
    return {**inputs, **constants}


@pytest.mark.parametrize("chosen", [*SMALL, *LOW], ids=lambda each: f"{each.kind}-{each.label}")
def test_an_operation_comes_back_from_its_description(chosen: Operation) -> None:
    assert engines.operation(chosen.described()) == chosen
    assert chosen.operations > 0
    assert chosen.bytes > 0
    graph = chosen.graph(engines.drawn(chosen, 0)[1], symbolic=True)
    assert [symbol.name for symbol in graph.symbols] == ["M"]


@pytest.mark.parametrize("chosen", [*SMALL, *LOW], ids=lambda each: f"{each.kind}-{each.label}")
def test_tilework_computes_what_the_reference_does(chosen: Operation) -> None:
    prepared = engines.tilework_engine(chosen.described(), 1, 5, "host")
    assert 0 <= prepared.facts["of bound"] <= 1
    prepared.call()


@pytest.mark.parametrize("chosen", [*SMALL, *LOW], ids=lambda each: f"{each.kind}-{each.label}")
def test_one_wrong_element_is_refused(chosen: Operation) -> None:
    inputs, constants = engines.drawn(chosen, 5)
    executable = engines.compiled(chosen, constants, 1, "host", symbolic=False)
    result = executable(*inputs.values())[0].copy()
    given = {**inputs, **constants}
    assert engines.checked(chosen, given, result) <= 1
    # an element that gelu's sample always holds, made wrong by more than any rounding
    result.ravel()[-1] = result.ravel()[-1] + 3
    with pytest.raises(engines.WrongValuesError, match="off by"):
        engines.checked(chosen, given, result)
    if result.dtype.kind == "f":
        result.ravel()[-1] = np.nan
        with pytest.raises(engines.WrongValuesError):
            engines.checked(chosen, given, result)


def test_shares_of_a_bound() -> None:
    assert worst(np.array([1.0, 2.0]), np.array([2.0, 2.0])) == 1.0
    assert worst(np.zeros(0), 1.0) == 0.0
    assert worst(np.array([np.nan]), 1.0) == np.inf
    assert worst(np.array([1e-3]), 0.0) > 1


def test_one_object_serves_every_number_of_rows() -> None:
    for chosen in (MatrixProduct(4, 9, 20, packed=True), Convolution(1, 5, 3, 4, 3), Softmax(4, 40)):
        made = engines.many_rows_engine(chosen.described(), 1, 3, [1, 5, 8], symbolic=True)
        apart = engines.many_rows_engine(chosen.described(), 1, 3, [1, 5, 8], symbolic=False)
        assert (made.facts["objects"], apart.facts["objects"]) == (1, 3)
        assert made.select is not None
        for case in ("1", "8"):
            made.select(case)
            made.call()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", peak.BODIES)
def test_probes_compute_what_they_count(name: str, threads: int) -> None:
    try:
        made = peak.probe(name, threads)
    except MissingPeerError:
        assert not machine("host").has(*peak.BODIES[name].needs)
        return
    made.sums[...] = -1
    made.run()
    lanes = (peak.BODIES[name].bits or machine("host").vector_bits) // 32
    expected = peak.expected(name, made.operands, lanes)
    assert (made.sums[:, :, :lanes] == expected).all()
    assert expected.shape[0] >= 12 or peak.BODIES[name].in_registers is False
    assert made.operations % (peak.CHUNKS * peak.TRIPS * lanes) == 0
    made.context.close()


def test_the_avx2_probe_has_no_wider_vectors() -> None:
    body = peak.BODIES["multiply-add"]
    assert peak.TILE_ROWS * peak.columns(body, 256) >= 12
    text = peak.text(body, 256)
    assert "<16 x float>" not in text
    assert text.count("@llvm.fma.v8f32(<8 x float> %a0") == peak.TILE_ROWS * peak.columns(body, 256)


@pytest.mark.parametrize("non_temporal", [False, True])
def test_the_copy_copies(non_temporal: bool) -> None:
    made = bandwidth.copying(bandwidth.STEP * 100, 2, non_temporal, 3, 2)
    assert made.facts["bytes"] == 8 * bandwidth.STEP * 100 * 3
    moved = sum(int(each.arguments["elements"]) * 8 for each in bandwidth.copies(1 << 20, 1)) // 2
    assert abs(moved - (1 << 20)) < 8 * bandwidth.STEP


@pytest.mark.parametrize("name", changed_computation.CHANGED)
def test_changed_computations_are_right_under_the_one_trace(name: str) -> None:
    prepared = changed_computation.engine(name, 70, 2, 1)
    assert prepared.facts["of bound"] <= 1
    plain = changed_computation.made("product", 70, machine("host"))
    assert changed_computation.made(name, 70, machine("host")).trace[: len(plain.trace)] == plain.trace


def test_a_scheduled_kernel_checks_its_arrays() -> None:
    schedule = changed_computation.made("product", 20, machine("host"))
    a = np.arange(400, dtype=np.float32).reshape(20, 20) % 5
    kernel = scheduled(schedule.program, {"a": a, "b": a})
    kernel.run()
    assert np.array_equal(kernel.arrays["y"], a @ a)
    assert all(array.ctypes.data % 64 == 0 for array in kernel.arrays.values())
    with pytest.raises(ValueError, match="a is float32"):
        scheduled(schedule.program, {"a": a[:, :5]})


def samples(**seconds: float) -> Samples:
    facts = {name: {"operations": 1000, "bytes": 100} for name in seconds}
    return Samples({name: [value] * 9 for name, value in seconds.items()}, {"engines": facts})


def test_shares_of_the_peak_and_of_limits() -> None:
    taken = samples(peak=1.0, tilework=4.0, numpy=2.0, onnxruntime=3.0)
    assert gemm.share_of_peak(taken, 2000).middle == 0.5
    assert gemm.best_peer(taken, ("numpy", "onnxruntime", "torch")) == "numpy"
    assert gemm.highest({"a": 1.005, "b": 0.5}).holds
    assert not gemm.highest({"a": 1.02, "b": 0.5}).holds
    assert median_interval([1.0, 2.0, 3.0] * 3).scaled(2.0).middle == 4.0
    row = memory_bound.Row(Softmax(64, 1024))
    several = Samples(
        {
            "tilework": [4.0] * 9, bandwidth.PLAIN_COPY: [2.0] * 9, bandwidth.NON_TEMPORAL_COPY: [1.0] * 9,
            memory_bound.SMALL: [3.0] * 9, memory_bound.LARGER: [4.0] * 9,
        },
        {},
    )  # fmt: skip
    arithmetic, limit = memory_bound.limits(row, several, 2)
    assert arithmetic == pytest.approx(2.0)
    assert memory_bound.share_of_limit(several, limit).middle == pytest.approx(0.5)
    copies = samples(**{"tilework": 2.0, bandwidth.PLAIN_COPY: 2.0, bandwidth.NON_TEMPORAL_COPY: 1.0})
    assert conv.memory_share(copies, 50).middle == pytest.approx(0.25)


def test_a_row_that_fails_is_told_and_fails_the_benchmark() -> None:
    found = Findings(Options(quick=True), ["row", "us"])
    assert found.measure("broken row", [engine("broken", "broken")]) is None
    with pytest.raises(MissingPeerError):
        found.measure("absent", [engine("absent", "missing", package="no_such_peer")])
    result = found.result()
    assert not result.holds
    assert not result.conditions_hold
    assert "planted fault" in result.notes[0]
    assert result.rows == [["broken row", "failed"]]


def test_every_row_of_the_tables_is_there() -> None:
    assert len(gemm.rows(None)) == 12
    assert {row.threads for row in gemm.rows(None)} == {1, 2}
    assert all(row.product.packed == (row.product.rows in {32, 197}) for row in gemm.rows(None))
    assert len(conv.ROWS) == 8
    assert [row.operation.kind for row in memory_bound.ROWS] == [
        "softmax", "layer_norm", "sum_rows", "sum_cols", "gelu", "transpose"
    ]  # fmt: skip
    assert all(row.operation.bytes >= 100e6 for row in memory_bound.ROWS)
    assert len(low_precision_gemm.ROWS) == 4
    assert avx2.MACHINE == "x86-64-v3"
    assert {count for _, count in symbolic_rows.pairs(None)} == set(symbolic_rows.COUNTS)
    assert len({subject.label for subject in kernel_compile.subjects()}) == len(kernel_compile.subjects())


def test_traces_replay_on_their_own_shape_and_on_others() -> None:
    for chosen in (MatrixProduct(40, 24, 70), Convolution(1, 6, 8, 20, 3), Softmax(8, 70)):
        facts = replay.engine(chosen.described(), 4, 2).facts
        assert facts["object code"] == ["same"] * len(facts["object code"])
        assert len(facts["outcomes"]) >= 4
        for where, outcome, why in facts["outcomes"]:
            assert outcome in {replay.RIGHT, replay.REFUSED}, (where, why)
            assert bool(why) is (outcome == replay.REFUSED)


def test_a_wrong_replay_is_seen() -> None:
    (kernel,) = replay.kernels(MatrixProduct(40, 24, 70))
    good = replay.elsewhere(kernel, kernel.schedule.trace, True, np.random.default_rng(0))
    assert good[0] == replay.RIGHT
    assert replay.elsewhere(kernel, (replace(kernel.schedule.trace[0], loop="nowhere"),), True,
                            np.random.default_rng(0))[0] == replay.REFUSED  # type: ignore[call-arg]  # fmt: skip
    floats = np.array([1.0, 2.0], np.float32)
    assert replay.same(floats, floats.copy(), exact=True)
    assert not replay.same(floats, floats + np.float32(1e-6), exact=True)
    assert replay.same(floats, floats + np.float32(1e-6), exact=False)
    assert not replay.same(floats, np.array([1.0, np.nan], np.float32), exact=False)


def test_compile_times_are_told_for_every_kernel() -> None:
    small = LayerNorm(8, 40)
    subject = {"described": small.described(), "symbolic": True, "changed": ""}
    (first, *_) = facts = kernel_compile.engine(subject, 1).facts["kernels"]
    assert len(facts) >= 1
    assert first["lower"] > 0
    assert first["generate"] > 0
    assert first["reload"] > 0
