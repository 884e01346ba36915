"""What a call costs beyond its work: y = x + 1 on four floats, and 300 inputs with 100 outputs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness.engine import Engine, Prepared
from benchmarks.harness.onnx_engines import ONNX_RUNTIME, TILEWORK, session
from benchmarks.harness.paired import QUICK_ROUNDS, ROUNDS, Samples, measure
from benchmarks.harness.result import Bar, Figure, Options, Result, check_figure

if TYPE_CHECKING:
    import onnx

CALL_LIMIT = 3e-6
ARGUMENT_LIMIT = 0.5e-6
INPUTS, OUTPUTS = 300, 100
LENGTH = 4


def add_one() -> onnx.ModelProto:
    """Return the model y = x + 1 on four floats."""
    from onnx import TensorProto, helper, numpy_helper

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [LENGTH]) for name in "xy")
    one = numpy_helper.from_array(np.array([1], np.float32), "one")
    graph = helper.make_graph([helper.make_node("Add", ["x", "one"], ["y"])], "add_one", [x], [y], [one])
    return _model(graph)


def many_arguments() -> onnx.ModelProto:
    """Return a model of 300 inputs and 100 outputs, each the sum of three inputs."""
    from onnx import TensorProto, helper

    def tensors(letter: str, count: int) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(f"{letter}{n}", TensorProto.FLOAT, [LENGTH]) for n in range(count)]

    nodes: list[onnx.NodeProto] = []
    for number in range(OUTPUTS):
        first, second, third = (f"x{3 * number + place}" for place in range(3))
        nodes.append(helper.make_node("Add", [first, second], [f"t{number}"]))
        nodes.append(helper.make_node("Add", [f"t{number}", third], [f"y{number}"]))
    return _model(helper.make_graph(nodes, "many_arguments", tensors("x", INPUTS), tensors("y", OUTPUTS)))


def _model(graph: onnx.GraphProto) -> onnx.ModelProto:
    from onnx import helper

    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    return model


def _fresh_inputs(names: Sequence[str], calls: int) -> list[dict[str, np.ndarray[Any, Any]]]:
    """Return the inputs of so many calls, every array a different one."""
    random = np.random.default_rng(0)
    return [{name: random.standard_normal(LENGTH).astype(np.float32) for name in names} for _ in range(calls)]


def tilework_engine(model: str, calls: int) -> Prepared:
    """Tilework, called with other arrays each time; every check is made and every output is a new array."""
    import tilework

    executable = tilework.compile(model)
    feeds = _fresh_inputs([port.name for port in executable.inputs], calls)
    given = cycle([tuple(feed.values()) for feed in feeds])

    def call() -> object:
        return executable(*next(given))

    facts = {"checked": _refuses_what_does_not_fit(executable, feeds[0]), "new": _new_outputs(executable, feeds[0])}
    names = [port.name for port in executable.outputs]
    return Prepared(call, facts, lambda: dict(zip(names, executable(*feeds[0].values()), strict=True)))


def _refuses_what_does_not_fit(executable: Callable[..., Any], feed: dict[str, np.ndarray[Any, Any]]) -> bool:
    """Whether an argument of another length, rank or type, or one argument too few, is refused."""
    from tilework.errors import CallError

    first, *rest = feed.values()
    for wrong in (first[:-1].copy(), first.reshape(1, -1), first.astype(np.complex64), "text", None):
        for arguments in ((wrong, *rest), (*rest, wrong)):
            try:
                executable(*arguments)
            except CallError:
                continue
            return False
    try:
        executable(*rest)
    except CallError:
        return True
    return False


def _new_outputs(executable: Callable[..., Any], feed: dict[str, np.ndarray[Any, Any]]) -> bool:
    """Whether two calls never give the same memory."""
    first, second = executable(*feed.values()), executable(*feed.values())
    addresses = [array.ctypes.data for array in (*first, *second, *feed.values())]
    return len(set(addresses)) == len(addresses)


def onnxruntime_engine(model: str, calls: int, threads: int) -> Prepared:
    """ONNX Runtime's `run`, called with other arrays each time."""
    running = session(model, threads)
    feeds = _fresh_inputs([given.name for given in running.get_inputs()], calls)
    names = [output.name for output in running.get_outputs()]
    given = cycle(feeds)
    run = running.run
    return Prepared(
        lambda: run(None, next(given)),
        {"threads": threads},
        lambda: dict(zip(names, run(None, feeds[0]), strict=True)),
    )


def _measured(model: onnx.ModelProto, path: Path, calls: int, options: Options) -> tuple[Samples, bool]:
    """The samples of both engines on a model, and whether their outputs are the same."""
    path.write_bytes(model.SerializeToString())
    threads = options.threads or 2
    here = "benchmarks.call_overhead"
    given = {"model": str(path), "calls": calls}
    engines = [
        Engine(TILEWORK, f"{here}:tilework_engine", given, {"TILEWORK_NUM_THREADS": str(threads)}),
        Engine(ONNX_RUNTIME, f"{here}:onnxruntime_engine", {**given, "threads": threads}),
    ]
    same: list[bool] = []

    def check(workers: Any) -> None:
        ours, theirs = (workers[engine.name].outputs(path.parent) for engine in engines)
        same.append(
            list(ours) == list(theirs) and all(np.array_equal(ours[name], value) for name, value in theirs.items())
        )

    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    return measure(engines, rounds=rounds, block_seconds=0.02, check=check), same[0]


def run(options: Options) -> Result:
    """Measure both models, Tilework and ONNX Runtime in alternation."""
    arguments = INPUTS + OUTPUTS
    rows: list[list[str]] = []
    samples: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    conditions = {"equal values": True, "unfit arguments refused": True, "new outputs": True}
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place:
        for label, make, calls in (("y = x + 1", add_one, 4096), (f"{arguments} arguments", many_arguments, 64)):
            taken, same = _measured(make(), Path(place) / f"{make.__name__}.onnx", calls, options)
            seconds[label] = taken.median(TILEWORK)
            samples[label], facts[label] = taken.seconds, taken.facts
            told = taken.facts["engines"][TILEWORK]
            conditions["equal values"] &= same
            conditions["unfit arguments refused"] &= told["checked"]
            conditions["new outputs"] &= told["new"]
            ratio = taken.ratio(TILEWORK, ONNX_RUNTIME)
            ours, theirs = taken.median(TILEWORK) * 1e6, taken.median(ONNX_RUNTIME) * 1e6
            rows.append([label, f"{ours:.2f}", f"{theirs:.2f}", f"{ratio.middle:.3f}"])
    one, many = seconds.values()
    return Result(
        figures=[
            Figure("a call", one * 1e6, "us", Bar("<=", CALL_LIMIT * 1e6)),
            Figure("an argument", many / arguments * 1e6, "us", Bar("<=", ARGUMENT_LIMIT * 1e6)),
            *(check_figure(label, holds) for label, holds in conditions.items()),
        ],
        columns=["model", "tilework us", "onnxruntime us", "ratio"],
        rows=rows,
        samples=samples,
        facts=facts,
    )
