"""Ensembles of decision trees against ONNX Runtime: equal values, latency by the number of rows."""

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

FEATURES = 20
ROWS = (1, 10, 1000)
ENSEMBLES = {
    "100 trees of depth 6": (100, 6, 1),
    "300 trees of depth 8": (300, 8, 1),
    "100 trees, 3 classes": (100, 6, 3),
}
"""Trees, depth, and classes (1: a regressor)."""


def ensemble(trees: int, depth: int, classes: int, random: np.random.Generator) -> onnx.ModelProto:
    """Full trees whose splits ask whether a feature is at most a number; each tree serves one class."""
    from onnx import TensorProto, helper

    inner, nodes = 2**depth - 1, 2 ** (depth + 1) - 1
    place = np.arange(nodes)
    split = place < inner
    columns: dict[str, Any] = {
        "nodes_treeids": np.repeat(np.arange(trees), nodes), "nodes_nodeids": np.tile(place, trees),
        "nodes_featureids": random.integers(0, FEATURES, trees * nodes),
        "nodes_truenodeids": np.tile(np.where(split, 2 * place + 1, 0), trees),
        "nodes_falsenodeids": np.tile(np.where(split, 2 * place + 2, 0), trees),
        "nodes_values": random.standard_normal(trees * nodes).astype(np.float32).astype(np.float64),
    }  # fmt: skip
    leaves = place[~split]
    kind = "target" if classes == 1 else "class"
    columns |= {
        f"{kind}_treeids": np.repeat(np.arange(trees), len(leaves)), f"{kind}_nodeids": np.tile(leaves, trees),
        f"{kind}_ids": np.repeat(np.arange(trees) % classes, len(leaves)),
        f"{kind}_weights": random.standard_normal(trees * len(leaves)).astype(np.float32).astype(np.float64),
    }  # fmt: skip
    attributes: dict[str, Any] = {name: column.tolist() for name, column in columns.items()}
    attributes["nodes_modes"] = ["BRANCH_LEQ" if asks else "LEAF" for asks in np.tile(split, trees)]
    if classes == 1:
        attributes["n_targets"] = 1
    else:
        attributes |= {"classlabels_int64s": list(range(classes)), "post_transform": "SOFTMAX"}
    results = ["scores"] if classes == 1 else ["label", "scores"]
    operator = "TreeEnsembleRegressor" if classes == 1 else "TreeEnsembleClassifier"
    node = helper.make_node(operator, ["x"], results, domain="ai.onnx.ml", **attributes)
    outputs = [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["rows", classes])]
    if classes > 1:
        outputs.insert(0, helper.make_tensor_value_info("label", TensorProto.INT64, ["rows"]))
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", FEATURES])
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph([node], "trees", [given], outputs), opset_imports=sets, ir_version=9)


def run(options: Options) -> Result:
    """Every ensemble at every number of rows; ratios are printed and have no bar."""
    random = np.random.default_rng(options.seed)
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    threads = options.threads or 1
    result = Result(figures=[], columns=["ensemble", "rows", "tilework us", "onnxruntime us", "ratio", "of tolerance"])
    worst = 0.0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for label, shape in ENSEMBLES.items():
            path = folder / "trees.onnx"
            path.write_bytes(ensemble(*shape, random).SerializeToString())
            cases = {str(n): {"x": random.standard_normal((n, FEATURES)).astype(np.float32)} for n in ROWS}
            ours, theirs = engines(path, save_cases(folder, cases), threads)
            try:
                with Worker(theirs) as reference, Worker(ours) as tilework:
                    workers = {TILEWORK: tilework, ONNX_RUNTIME: reference}
                    for rows in cases:
                        for worker in workers.values():
                            worker.select(rows)
                        share = excess(tilework.outputs(folder), reference.outputs(folder), 0.0)
                        worst = max(worst, share)
                        taken = measure_workers(workers, rounds=rounds)
                        ratio = taken.ratio(TILEWORK, ONNX_RUNTIME)
                        result.figures.append(ratio_figure(f"{label}, {rows} rows:", ratio, None))
                        times = [f"{taken.median(name) * 1e6:.1f}" for name in (TILEWORK, ONNX_RUNTIME)]
                        result.rows.append([label, rows, *times, f"{ratio.middle:.3f}", f"{share:.2g}"])
                        result.samples[f"{label}, {rows} rows"] = taken.seconds
            except EngineError as problem:
                worst = float("inf")
                result.notes.append(f"{label}: {problem}")
    result.figures.insert(0, check_figure("equal to ONNX Runtime", worst <= 1))
    return result
