"""TopK and NonMaxSuppression against ONNX Runtime: equal answers, and the ratio of latencies."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness.engine import EngineError, Worker
from benchmarks.harness.onnx_engines import ONNX_RUNTIME, TILEWORK, engines, excess, save_cases
from benchmarks.harness.paired import QUICK_ROUNDS, ROUNDS, measure_workers
from benchmarks.harness.result import Options, Result, check_figure, ratio_figure

if TYPE_CHECKING:
    import onnx

TOP = ((1, 100_000, 100), (1, 100_000, 1000), (1, 8400, 300), (8, 10_000, 100), (64, 1000, 10))
"""Rows, elements of a row, and how many are wanted."""
BOXES = ((8400, 1, 300), (3000, 4, 100), (1000, 80, 20), (1000, 1, 100))
"""Boxes, classes, and how many boxes of a class are wanted."""


def first_of_many(rows: int, length: int, count: int) -> onnx.ModelProto:
    """TopK along rows."""
    return _model("TopK", {"x": [rows, length]}, {"k": np.array([count])}, {"values": 1, "positions": 7})


def suppression(boxes: int, classes: int, most: int) -> onnx.ModelProto:
    """NonMaxSuppression of one image."""
    given = {"boxes": [1, boxes, 4], "scores": [1, classes, boxes]}
    numbers = {
        "most": np.array([most]), "overlap": np.array([0.5], np.float32), "least": np.array([0.25], np.float32),
    }  # fmt: skip
    return _model("NonMaxSuppression", given, numbers, {"chosen": 7})


def _model(
    operator: str, inputs: dict[str, list[int]], constants: dict[str, Any], outputs: dict[str, int]
) -> onnx.ModelProto:
    from onnx import TensorProto, helper, numpy_helper

    node = helper.make_node(operator, [*inputs, *constants], list(outputs))
    graph = helper.make_graph(
        [node], operator, [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, kind, None) for n, kind in outputs.items()],
        [numpy_helper.from_array(value, n) for n, value in constants.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def drawn_boxes(random: np.random.Generator, boxes: int, classes: int) -> dict[str, Any]:
    """Boxes of 5 to 60 elements in an image of 600, and scores."""
    corners = random.uniform(0, 600, (1, boxes, 2))
    other = corners + random.uniform(5, 60, corners.shape)
    scores = random.uniform(0, 1, (1, classes, boxes)).astype(np.float32)
    return {"boxes": np.concatenate([corners, other], -1).astype(np.float32), "scores": scores}


def run(options: Options) -> Result:
    """Every case; ratios are printed and have no bar."""
    random = np.random.default_rng(options.seed)
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    threads = options.threads or 1
    result = Result(figures=[], columns=["case", "tilework us", "onnxruntime us", "ratio"])
    cases: list[tuple[str, onnx.ModelProto, dict[str, Any]]] = []
    for rows, length, count in TOP:
        feed = {"x": random.standard_normal((rows, length)).astype(np.float32)}
        cases.append((f"first {count} of {rows} x {length}", first_of_many(rows, length, count), feed))
    for boxes, classes, most in BOXES:
        feed = drawn_boxes(random, boxes, classes)
        cases.append((f"{most} of {boxes} boxes, {classes} classes", suppression(boxes, classes, most), feed))
    equal = True
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for label, made, feed in cases:
            path = folder / "selection.onnx"
            path.write_bytes(made.SerializeToString())
            ours, theirs = engines(path, save_cases(folder, {"all": feed}), threads)
            try:
                with Worker(theirs) as reference, Worker(ours) as tilework:
                    workers = {TILEWORK: tilework, ONNX_RUNTIME: reference}
                    for worker in workers.values():
                        worker.select("all")
                    equal = equal and excess(tilework.outputs(folder), reference.outputs(folder), 0.0) <= 1
                    taken = measure_workers(workers, rounds=rounds)
            except EngineError as problem:
                equal = False
                result.notes.append(f"{label}: {problem}")
                continue
            ratio = taken.ratio(TILEWORK, ONNX_RUNTIME)
            result.figures.append(ratio_figure(f"{label}:", ratio, None))
            times = [f"{taken.median(name) * 1e6:.1f}" for name in (TILEWORK, ONNX_RUNTIME)]
            result.rows.append([label, *times, f"{ratio.middle:.3f}"])
            result.samples[label] = taken.seconds
    result.figures.insert(0, check_figure("equal to ONNX Runtime", equal))
    return result
