"""OpenVINO on the CPU, tuned for latency and in the precision that the model is written in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilework.peers.engine import Engine, Opened, Task


def _load(task: Task) -> str:  # noqa: ARG001
    import openvino  # pyright: ignore[reportMissingImports]

    module: Any = openvino
    return str(module.__version__)


def _open(task: Task) -> Opened:
    import openvino  # pyright: ignore[reportMissingImports]

    module: Any = openvino
    core = module.Core()
    model = core.read_model(task.model)
    if task.shapes:
        model.reshape({name: module.PartialShape(list(shape)) for name, shape in task.shapes.items()})
    settings = {
        "INFERENCE_NUM_THREADS": task.threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",  # else processors with bfloat16 units compute in bfloat16
    }
    compiled = core.compile_model(model, "CPU", settings)
    request = compiled.create_infer_request()
    inputs = dict(task.inputs)
    names = [output.any_name for output in model.outputs]

    def call() -> Sequence[Any]:
        # as the others do: arguments are read where they are, outputs are fresh arrays
        return tuple(request.infer(inputs, share_inputs=True).values())

    return Opened(call, lambda: names)


ENGINE = Engine("openvino", _load, _open)
