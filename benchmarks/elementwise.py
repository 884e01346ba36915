"""A chain of eight operations over 16 Mi floats, against reading and writing the same memory."""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness import bandwidth
from benchmarks.harness.engine import Engine, Prepared
from benchmarks.harness.onnx_engines import ONNX_RUNTIME, TILEWORK, session
from benchmarks.harness.paired import QUICK_ROUNDS, ROUNDS, measure
from benchmarks.harness.result import Bar, Options, Result, check_figure, ratio_figure

if TYPE_CHECKING:
    import onnx

ELEMENTS = 1 << 24
LIMIT = 1.15
TOLERANCE = 2e-5
"""Of the largest value, as everywhere that ONNX Runtime is compared with."""


def chain(elements: int) -> onnx.ModelProto:
    """Return `sigmoid(relu(a * b + a) * 0.5 - b) * a + b` over so many floats: `ew8` of `suites/peers/ops_spec.py`."""
    from onnx import TensorProto, helper, numpy_helper

    steps = [
        ("Mul", ["a", "b"], "t1"),
        ("Add", ["t1", "a"], "t2"),
        ("Relu", ["t2"], "t3"),
        ("Mul", ["t3", "half"], "t4"),
        ("Sub", ["t4", "b"], "t5"),
        ("Sigmoid", ["t5"], "t6"),
        ("Mul", ["t6", "a"], "t7"),
        ("Add", ["t7", "b"], "y"),
    ]
    nodes = [helper.make_node(operator, given, [result]) for operator, given, result in steps]
    a, b, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [elements]) for name in "aby")
    half = numpy_helper.from_array(np.array(0.5, np.float32), "half")
    model = helper.make_model(
        helper.make_graph(nodes, "chain", [a, b], [y], [half]), opset_imports=[helper.make_opsetid("", 18)]
    )
    model.ir_version = 9
    return model


def reference(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the same in float64."""
    wide, other = a.astype(np.float64), b.astype(np.float64)
    inner = np.maximum(wide * other + wide, 0) * 0.5 - other
    return wide / (1 + np.exp(-inner)) + other


def operands(elements: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the two inputs: standard normal."""
    random = np.random.default_rng(seed)
    return random.standard_normal(elements, np.float32), random.standard_normal(elements, np.float32)


def _difference(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
    """The largest difference from float64, as a share of the largest value; piece by piece, to save memory."""
    worst = largest = 0.0
    for start in range(0, a.size, 1 << 20):
        piece = slice(start, start + (1 << 20))
        expected = reference(a[piece], b[piece])
        worst = max(worst, float(np.abs(y[piece] - expected).max()))
        largest = max(largest, float(np.abs(expected).max()))
    return worst / largest


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def tilework_engine(model: str, elements: int, threads: int, seed: int) -> Prepared:
    """Tilework; tells how far its result is from float64, and the page faults of a call in the steady state."""
    import tilework
    from tilework.runtime.context import ContextOptions

    executable = tilework.compile(model, context=tilework.Context(ContextOptions(threads=threads)))
    a, b = operands(elements, seed)
    off = _difference(a, b, executable(a, b)[0])
    for _ in range(3):
        executable(a, b)
    before = _faults()
    for _ in range(20):
        executable(a, b)
    faults = _faults() - before
    return Prepared(
        lambda: executable(a, b), {"threads": threads, "difference": off, "page faults of 20 calls": faults}
    )


def onnxruntime_engine(model: str, elements: int, threads: int, seed: int) -> Prepared:
    """ONNX Runtime, with an output it may use again (its plain `run` takes a fresh one each time)."""
    import onnxruntime

    running = session(model, threads)
    a, b = operands(elements, seed)
    binding = running.io_binding()
    y = np.zeros(elements, np.float32)
    for name, array in (("a", a), ("b", b)):
        binding.bind_cpu_input(name, array)
    binding.bind_output("y", "cpu", 0, np.float32, (elements,), y.ctypes.data)
    return Prepared(
        lambda: running.run_with_iobinding(binding), {"threads": threads, "version": onnxruntime.__version__}
    )


def run(options: Options) -> Result:
    """Let Tilework, both yardsticks and ONNX Runtime alternate."""
    threads = options.threads or 2
    here = "benchmarks.elementwise"
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "chain.onnx"
        path.write_bytes(chain(ELEMENTS).SerializeToString())
        given = {"model": str(path), "elements": ELEMENTS, "threads": threads, "seed": options.seed}
        engines = [
            Engine(TILEWORK, f"{here}:tilework_engine", given),
            *bandwidth.engines(ELEMENTS, threads),
            Engine(ONNX_RUNTIME, f"{here}:onnxruntime_engine", given),
        ]
        taken = measure(engines, rounds=QUICK_ROUNDS if options.quick else ROUNDS, block_seconds=0.03)
    yardstick = min((bandwidth.PLAIN, bandwidth.NON_TEMPORAL), key=taken.median)
    told = taken.facts["engines"][TILEWORK]
    faults = told["page faults of 20 calls"]
    rows: list[list[str]] = []
    for engine in engines:
        ratio = taken.ratio(engine.name, yardstick)
        seconds = taken.median(engine.name)
        rows.append([
            engine.name,
            f"{seconds * 1e3:.2f}",
            f"{12 * ELEMENTS / seconds * 1e-9:.1f}",
            f"{ratio.middle:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]",
        ])  # fmt: skip
    return Result(
        figures=[
            ratio_figure("", taken.ratio(TILEWORK, yardstick), Bar("<=", LIMIT)),
            check_figure("no page faults", faults == 0),
            check_figure("equal values", told["difference"] <= TOLERANCE),
        ],
        columns=["engine", "ms", "GB/s", f"of {yardstick}"],
        rows=rows,
        notes=[f"page faults of 20 calls: {faults}; off by {told['difference']:.2g} of the largest value"],
        samples=dict(taken.seconds),
        facts=dict(taken.facts),
    )
