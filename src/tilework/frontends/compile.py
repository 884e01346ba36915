"""`tilework.compile`: anything a frontend can read, to an executable."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from tilework.compiler.compile import Compiled, compile_graph, lower_graph
from tilework.compiler.options import CompileOptions
from tilework.errors import UsageError
from tilework.graph.graph import Graph
from tilework.numerics import numerics as numerics_level
from tilework.runtime.context import Context
from tilework.runtime.executable import Executable
from tilework.variants import find_variant

Importer = Callable[..., Graph]


def load_graph(model: object, shapes: Mapping[str, Sequence[int]] | None = None) -> Graph:
    """The graph of a model: a path, the bytes or the object of an ONNX model, or a `Graph` as it is.

    `shapes` fixes dimensions of inputs by name. Raises `FrontendError` 11xx for a model that cannot be read, listing
    every unsupported thing in it; `UsageError` 1008 for an object that no frontend knows.
    """
    if isinstance(model, Graph):
        if shapes:
            raise UsageError(1008, "shapes cannot be fixed on a Graph; build it with the shapes you want")
        return model
    if isinstance(model, (str, bytes, bytearray, memoryview, os.PathLike)) or type(model).__name__ == "ModelProto":
        importer = cast("Importer", find_variant("tilework.frontends.onnx", "importer", "import_model"))
        return importer(bytes(model) if isinstance(model, (bytearray, memoryview)) else model, shapes=shapes)
    raise UsageError(1008, f"no frontend reads a {type(model).__name__}")


def options(numerics: str, machine: str, checked: bool, memory_limit: int | None) -> CompileOptions:
    """Checked options; raises `UsageError` 1002 for a value that makes no sense."""
    return CompileOptions(numerics_level(numerics).level, machine, checked, memory_limit)


def compile(  # noqa: A001 - the public name is tilework.compile
    model: object,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    numerics: str = "default",
    checked: bool = False,
    memory_limit: int | None = None,
    context: Context | None = None,
) -> Executable:
    """Compile a model for this machine.

    Args:
        model: path of an ONNX file, its bytes, a `ModelProto`, or a `Graph`.
        shapes: input name to shape, to fix dimensions that the model leaves free.
        numerics: `"strict"`, `"default"` or `"fast"`.
        checked: test every access of the generated code (slow).
        memory_limit: bytes that one call's arena and outputs may take together.
        context: where code, threads and memory live; the process's own by default.

    Raises:
        FrontendError: 11xx, the model cannot be read or uses something unsupported (all of it is listed).
        CodegenError: 16xx, an operation cannot be compiled.
    """
    graph = load_graph(model, shapes)
    return compile_graph(graph, options(numerics, "host", checked, memory_limit), context)


def lower(
    model: object,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    numerics: str = "default",
    machine: str = "host",
    checked: bool = False,
) -> Compiled:
    """Every stage of a compilation up to LLVM text, for any machine; loads nothing into this process."""
    return lower_graph(load_graph(model, shapes), options(numerics, machine, checked, None))
