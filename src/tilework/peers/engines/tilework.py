"""Tilework: an ONNX file compiled, or a `.tilework` file loaded."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilework import environment
from tilework.peers.engine import Engine, Opened, Task
from tilework.variants import find_variant
from tilework.version import __version__


def _load(task: Task) -> str:
    find_variant("tilework.runtime", "package", "load")
    if not task.package:
        find_variant("tilework.frontends", "compile", "compile")
        find_variant("tilework.frontends.onnx", "kept", "compile_kept")
        if environment.read(environment.CACHE) is False:  # else it may not be needed, and would take memory
            find_variant("tilework.frontends.onnx", "compiled", "compile_model")
            with contextlib.suppress(ModuleNotFoundError):  # which is told when the model is opened
                import onnx

                _ = onnx
    return __version__


def _open(task: Task) -> Opened:
    from tilework.frontends.compile import compile as compile_model
    from tilework.runtime.context import Context, ContextOptions
    from tilework.runtime.package import load

    context = Context(ContextOptions(threads=task.threads))
    if task.package:
        executable = load(task.model, context=context)
    else:
        executable = compile_model(
            Path(task.model), shapes=task.shapes, numerics=task.numerics, machine=task.machine,  # pyright: ignore[reportArgumentType]
            context=context,
        )  # fmt: skip
    arguments = tuple(task.inputs[port.name] for port in executable.inputs)

    def facts() -> Mapping[str, Any]:
        explanation = executable.explain()
        kept = context.objects
        return {
            "machine": explanation.machine,
            "numerics": explanation.numerics,
            "regions": len(explanation.regions),
            "code_bytes": explanation.code_bytes,
            "constant_bytes": explanation.constant_bytes,
            "cache": None if kept is None else {what: kept.store.counts[what] for what in ("hits", "misses")},
        }

    return Opened(lambda: executable(*arguments), lambda: [port.name for port in executable.outputs], facts)


ENGINE = Engine("tilework", _load, _open)
