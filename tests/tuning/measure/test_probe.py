"""The probe's programs mean what they claim, and it runs."""

from __future__ import annotations

import numpy as np

from tilework.cost.counts import statement_counts
from tilework.loops.interpret import interpret
from tilework.machine.finder import machine
from tilework.schedule.pressure import worst_pressure
from tilework.tuning.measure.measurer import Measurer
from tilework.tuning.measure.probe import multiply_adds, probe, probed_sizes, reads


def test_multiply_adds() -> None:
    program = multiply_adds(4, 5)
    random = np.random.default_rng(3)
    a, b = (random.integers(-3, 4, 4).astype(np.float32) for _ in range(2))
    c = random.integers(-3, 4, (12, 4)).astype(np.float32)
    arrays = {"a": a, "b": b, "c": c.copy()}
    interpret(program, arrays)
    np.testing.assert_array_equal(arrays["c"], c + 5 * a * b)
    assert sum(one.work.flops for one in statement_counts(program)) == 2 * 12 * 4 * 5
    for name in ("x86-64-v4", "x86-64-v3"):
        pressure = worst_pressure(multiply_adds(machine(name).lanes(32), 100), machine(name))
        assert pressure is not None
        assert pressure.fits


def test_reads() -> None:
    program = reads(16, 4, 3)
    x = np.random.default_rng(4).integers(-3, 4, 64).astype(np.float32)
    arrays = {"x": x, "c": np.zeros((8, 4), np.float32)}
    interpret(program, arrays)
    np.testing.assert_array_equal(arrays["c"], 3 * (x[:32] + x[32:]).reshape(8, 4))


def test_the_probe_runs() -> None:
    with Measurer() as measurer:
        found = probe(measurer, threads=2, seconds=0.01)
    host = machine("host")
    assert (found.origin, found.threads) == ("probed", 2)
    assert found.bytes_per_second.keys() == probed_sizes(host).keys()
    assert found.flops_per_second > 1e8
    assert all(rate > 1e7 for rate in found.bytes_per_second.values())
