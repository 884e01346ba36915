"""`tilework.compile`: anything a frontend can read, to an executable."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from tilework import environment
from tilework.compiler.options import CompileOptions
from tilework.errors import UsageError
from tilework.garbage import no_collections
from tilework.graph.graph import Graph
from tilework.machine.finder import machine as machine_named
from tilework.numerics import Level
from tilework.ops.interpret import BlackBoxFunction
from tilework.runtime.context import Context, default_context
from tilework.runtime.executable import Executable
from tilework.runtime.per_shape import PerShape
from tilework.runtime.settings import bad_setting, byte_limit, expect, whole_number
from tilework.variants import find_variant

if TYPE_CHECKING:
    from tilework.compiler.compile import Compiled

Importer = Callable[..., Graph]
ModelCompiler = Callable[..., Executable | PerShape]


def load_graph(model: object, shapes: Mapping[str, Sequence[int]] | None = None) -> Graph:
    """The graph of a model: a path, the bytes or the object of an ONNX model, or a `Graph` as it is.

    `shapes` fixes dimensions of inputs by name (-1 leaves one free). Raises `FrontendError` 11xx for a model that
    cannot be read, listing every unsupported thing in it; `UsageError` 1008 for an object that no frontend knows, 1002
    for shapes that are none.
    """
    fixed = _checked_shapes(shapes)
    if isinstance(model, Graph):
        if fixed:
            raise UsageError(1008, "shapes cannot be fixed on a Graph; build it with the shapes you want")
        return model
    if _is_onnx(model):
        importer = cast("Importer", find_variant("tilework.frontends.onnx", "importer", "import_model"))
        return importer(_kept(model), shapes=fixed)
    raise UsageError(1008, f"no frontend reads a {type(model).__name__}")


def black_boxes(graph: Graph) -> Mapping[str, BlackBoxFunction]:
    """The functions of a graph's black boxes; empty where it has none."""
    if not any(node.black_box for node in graph.nodes):
        return {}
    return cast("Mapping[str, BlackBoxFunction]", find_variant("tilework.frontends.onnx", "black_boxes", "FUNCTIONS"))


def _is_onnx(model: object) -> bool:
    """Whether the frontend of ONNX reads it: a path, bytes, or the object of a model."""
    kinds = (str, bytes, bytearray, memoryview, os.PathLike)
    return isinstance(model, kinds) or type(model).__name__ == "ModelProto"


def _kept(model: object) -> object:
    """The model, bytes that could change under it copied."""
    return bytes(cast("bytes", model)) if isinstance(model, (bytearray, memoryview)) else model


def options(
    numerics: Level = "default",
    machine: str | None = None,
    checked: bool = False,
    memory_limit: int | str | None = None,
) -> CompileOptions:
    """Checked options. Without a machine, `TILEWORK_MACHINE` names it; without that it is the host.

    Raises `UsageError` 1002 for a value that makes no sense, 1620 for a machine that there is not.
    """
    named = machine if machine is not None else environment.read(environment.MACHINE)
    limit = byte_limit("memory_limit", memory_limit) if memory_limit is not None else None
    chosen = CompileOptions(numerics, named if named is not None else "host", checked, limit)
    if chosen.machine != "host":
        try:
            machine_named(chosen.machine)
        except UsageError as error:
            name = environment.MACHINE.name
            where = "machine" if machine is not None else f"environment variable {name}"
            raise UsageError(error.code, error.message, where=where, hint=error.hint) from None
    return chosen


def compile(  # noqa: A001 - the public name is tilework.compile
    model: object,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    numerics: Level = "default",
    machine: str | None = None,
    checked: bool = False,
    memory_limit: int | str | None = None,
    context: Context | None = None,
) -> Executable | PerShape:
    """Compile a model for this machine.

    Dimensions that the model leaves free stay free: one executable serves all sizes. Where it has to take something of
    them (two that are added are equal, and not 1), a call for which that does not hold compiles for its own shapes;
    where the graph itself depends on sizes, or on what an input holds (axes, pads), every combination is compiled at
    its first call (`PerShape`).

    Args:
        model: path of an ONNX file, its bytes, a `ModelProto`, or a `Graph`.
        shapes: input name to shape, to fix dimensions that the model leaves free; -1 leaves one free.
        numerics: `"strict"`, `"default"` or `"fast"`.
        machine: the machine to compile for: `"host"` or a name such as `"x86-64-v3"`. This processor must be able to
            run its code. By default `TILEWORK_MACHINE`, then the host.
        checked: test every access of the generated code (slow).
        memory_limit: bytes that one call's arena and outputs may take together; text such as `"4G"` will do.
        context: where code, threads and memory live; by default the one entered by `with`, else the process's own.

    Raises:
        UsageError: 1002, an argument makes no sense; 1008, no frontend reads the model; 1620, no such machine.
        FrontendError: 11xx, the model cannot be read or uses something unsupported (all of it is listed).
        CodegenError: 16xx, an operation cannot be compiled; 1764, this processor cannot run the machine's code.
    """
    if context is not None:
        expect("context", context, Context, "give a tilework.Context, or leave it out")
    chosen = options(numerics, machine, checked, memory_limit)
    # whatever is compiled later for other sizes belongs to it too, in whatever thread that is
    owner = context if context is not None else default_context()
    owner.prepare()
    with no_collections():
        if _is_onnx(model):
            compiler = cast("ModelCompiler", find_variant("tilework.frontends.onnx", "kept", "compile_kept"))
            return compiler(_kept(model), _checked_shapes(shapes), chosen, owner)
        # here: a model that was compiled before needs no stage of compiling
        from tilework.compiler.compile import compile_graph

        return compile_graph(load_graph(model, shapes), chosen, owner)


def lower(
    model: object,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    numerics: Level = "default",
    machine: str | None = None,
    checked: bool = False,
) -> Compiled:
    """Every stage of a compilation up to LLVM text, for any machine; loads nothing into this process.

    Arguments and errors as for `compile`; the host need not be able to run the code.
    """
    from tilework.compiler.compile import lower_graph

    chosen = options(numerics, machine, checked)
    return lower_graph(load_graph(model, shapes), chosen)


def _checked_shapes(shapes: object) -> dict[str, tuple[int, ...]]:
    """Shapes as plain integers. Raises `UsageError` 1002 for what is none."""
    hint = "give a dictionary of input name to shape, e.g. {'x': (1, 3, 320, 320)}"
    if shapes is None:
        return {}
    if not isinstance(shapes, Mapping):
        raise bad_setting("shapes", shapes, hint)
    fixed: dict[str, tuple[int, ...]] = {}
    for name, shape in cast("Mapping[object, object]", shapes).items():
        if not isinstance(name, str):
            raise bad_setting("shapes", name, hint)
        if isinstance(shape, (str, bytes)) or not isinstance(shape, Iterable):
            raise bad_setting(f"shapes[{name!r}]", shape, hint)
        extents = cast("Iterable[object]", shape)
        fixed[name] = tuple(whole_number(f"shapes[{name!r}]", extent, "elements", -1) for extent in extents)
    return fixed
