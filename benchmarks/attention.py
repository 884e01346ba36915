"""Attention in blocks of keys against the same graph with its scores stored, and against ONNX Runtime."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, helper

from benchmarks.harness.engine import Engine, EngineError, Prepared, Worker
from benchmarks.harness.onnx_engines import ONNX_RUNTIME, TILEWORK, engines, excess, save_cases, tilework_engine
from benchmarks.harness.paired import QUICK_ROUNDS, ROUNDS, measure_workers
from benchmarks.harness.result import Options, Result, check_figure, ratio_figure

SHAPES = (
    (12, 64, 64, 64), (12, 128, 128, 64), (12, 197, 197, 64), (8, 512, 512, 32), (8, 512, 512, 64), (4, 2048, 2048, 64)
)  # fmt: skip
"""Heads, queries, keys, and what a query, a key and a value have."""
STORED = "stored scores"


def model(heads: int, queries: int, keys: int, depth: int, *, mask: bool) -> ModelProto:
    """Product, scale, mask, softmax, product."""
    nodes = [
        helper.make_node("Transpose", ["k"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "t"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["x"]),
        *([helper.make_node("Add", ["x", "m"], ["y"])] if mask else []),
        helper.make_node("Softmax", ["y" if mask else "x"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["o"]),
    ]
    shapes = {"q": (heads, queries, depth), "k": (heads, keys, depth), "v": (heads, keys, depth)}
    if mask:
        shapes["m"] = (1, queries, keys)
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    output = helper.make_tensor_value_info("o", TensorProto.FLOAT, (heads, queries, depth))
    scale = helper.make_tensor("scale", TensorProto.FLOAT, [], [depth**-0.5])
    graph = helper.make_graph(nodes, "attention", inputs, [output], [scale])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def with_scores(model: str, cases: dict[str, str], threads: int, near: int) -> Prepared:
    """Tilework, where scores count as near up to so many second-level caches."""
    from tilework.decisions import attention

    attention.NEAR = near
    return tilework_engine(model, cases, threads)


def run(options: Options) -> Result:
    """Every shape with and without a mask; ratios are printed and have no bar."""
    random = np.random.default_rng(options.seed)
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    threads = options.threads or 1
    columns = [
        "attention",
        "in blocks us",
        "stored us",
        "onnxruntime us",
        "of stored",
        "of onnxruntime",
        "of tolerance",
    ]
    result = Result(figures=[], columns=columns)
    worst = 0.0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for shape, mask in ((shape, mask) for shape in SHAPES for mask in (False, True)):
            label = f"{shape[0]} of {shape[1]}x{shape[2]}x{shape[3]}{', mask' if mask else ''}"
            path = folder / "attention.onnx"
            given = model(*shape, mask=mask)
            path.write_bytes(given.SerializeToString())
            arrays = {
                value.name: random.standard_normal([d.dim_value for d in value.type.tensor_type.shape.dim]).astype("f4")
                for value in given.graph.input
            }
            ours, theirs = engines(path, save_cases(folder, {"": arrays}), threads)
            here = "benchmarks.attention:with_scores"
            blocks, stored = (
                Engine(name, here, {**ours.arguments, "near": near})
                for name, near in ((TILEWORK, 0), (STORED, 1 << 40))
            )
            try:
                with Worker(theirs) as reference, Worker(blocks) as near, Worker(stored) as far:
                    share = excess(near.outputs(folder), reference.outputs(folder), 0.0)
                    worst = max(worst, share)
                    taken = measure_workers({TILEWORK: near, STORED: far, ONNX_RUNTIME: reference}, rounds=rounds)
                    ratios = [taken.ratio(TILEWORK, other) for other in (STORED, ONNX_RUNTIME)]
                    result.figures.append(ratio_figure(f"{label}, of stored:", ratios[0], None))
                    times = [f"{taken.median(name) * 1e6:,.1f}" for name in (TILEWORK, STORED, ONNX_RUNTIME)]
                    result.rows.append([label, *times, *(f"{r.middle:.3f}" for r in ratios), f"{share:.2g}"])
                    result.samples[label] = taken.seconds
            except EngineError as problem:
                worst = float("inf")
                result.notes.append(f"{label}: {problem}")
    result.figures.insert(0, check_figure("equal to ONNX Runtime", worst <= 1))
    return result
