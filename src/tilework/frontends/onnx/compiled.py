"""`compile_model`: an ONNX model becomes an executable, for all sizes where one graph serves them.

Where the graph depends on sizes or on what inputs hold (axes, shapes, pads that a caller gives), each combination is
compiled at its first call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tilework.compiler.compile import compile_graph
from tilework.compiler.options import CompileOptions
from tilework.errors import FrontendError
from tilework.frontends.onnx.black_boxes import FUNCTIONS
from tilework.frontends.onnx.importer import Check, import_model, input_types
from tilework.frontends.onnx.signature import FreeDim, declared_inputs, overridable_initialisers
from tilework.frontends.onnx.source import LoadedModel, Source, load
from tilework.graph.graph import Array
from tilework.graph.types import TensorType
from tilework.runtime.context import Context
from tilework.runtime.executable import Executable
from tilework.runtime.overriding import Overriding
from tilework.runtime.per_shape import PerShape
from tilework.runtime.ports import Port
from tilework.runtime.variants import ShapeVariants

if TYPE_CHECKING:
    from tilework.frontends.onnx.kept import KeptModel

_ON_SIZES = frozenset({1116, 1120, 1121, 1126})
"""Faults of a model that it may not have once sizes or values are given."""


def compile_model(
    source: Source,
    shapes: Mapping[str, Sequence[int]] | None,
    options: CompileOptions,
    context: Context | None,
    check: Check = "auto",
    kept: KeptModel | None = None,
) -> Executable | PerShape:
    """Compile a model. Arguments and errors as `tilework.compile`; `check` as for `import_model`; `kept` is told what
    the model consists of, and gets what is compiled.
    """
    model = load(source)
    names = overridable_initialisers(model.proto)
    overriding = None
    if names:
        ports = [Port(name, kind) for name, kind in input_types(replace(model, overridden=names)) if name in names]

        def compile_with(overridden: tuple[str, ...]) -> Executable | PerShape:
            return compile_overridden(source, shapes, options, context, overridden, check)

        overriding = Overriding(tuple(ports), compile_with)
    return _compiled(source, model, shapes, options, context, check, kept, overriding)


def compile_overridden(
    source: Source,
    shapes: Mapping[str, Sequence[int]] | None,
    options: CompileOptions,
    context: Context | None,
    overridden: Collection[str],
    check: Check = "auto",
) -> Executable | PerShape:
    """Compile a model with some of its initialisers as inputs, behind the plain ones. Errors as `tilework.compile`."""
    model = replace(load(source), overridden=frozenset(overridden))
    return _compiled(source, model, shapes, options, context, check, None, None)


def _compiled(
    source: Source,
    model: LoadedModel,
    shapes: Mapping[str, Sequence[int]] | None,
    options: CompileOptions,
    context: Context | None,
    check: Check,
    kept: KeptModel | None,
    overriding: Overriding | None,
) -> Executable | PerShape:
    overridden = model.overridden

    def compile_for(exact: Mapping[str, Sequence[int]], values: Mapping[str, Array]) -> Executable:
        def make() -> Executable:
            return compile_exactly(source, shapes, options, context, exact, values, check, overridden)

        return make() if kept is None else kept.for_call(exact, values, make)

    if kept is not None:
        kept.learn(model.proto)
    try:
        graph = import_model(model, shapes, check=check)
    except FrontendError as error:
        if not error.faults or any(fault.code not in _ON_SIZES for fault in error.faults):
            raise
        types = input_types(model)
        tensors = [kind for _, kind in types if isinstance(kind, TensorType)]
        if not error.decided_by and all(extent.is_constant for kind in tensors for extent in kind.shape):
            raise
        if kept is not None and overriding is None:
            kept.keep_per_call(types, error)
        return PerShape(types, error, compile_for, context, overriding)
    others = _leaves_extents_free(model, shapes or {})
    del model  # what is kept for later is what the caller gave, a path perhaps
    executable = compile_graph(graph, options, context, FUNCTIONS)
    executable.overriding = overriding
    if kept is not None:
        kept.keep(executable, others)
    if others:
        executable.variants = ShapeVariants(compile_for)
    return executable


def compile_exactly(
    source: Source,
    shapes: Mapping[str, Sequence[int]] | None,
    options: CompileOptions,
    context: Context | None,
    exact: Mapping[str, Sequence[int]],
    values: Mapping[str, Array],
    check: Check = "auto",
    overridden: Collection[str] = (),
) -> Executable:
    """Compile a model for the shapes of a call, and for what some inputs hold, with some initialisers as inputs. Errors
    as `tilework.compile`.
    """
    model = replace(load(source), overridden=frozenset(overridden))
    graph = import_model(model, {**exact, **(shapes or {})}, check=check, values=values)
    del model
    return compile_graph(graph, options, context, FUNCTIONS)


def _leaves_extents_free(model: LoadedModel, shapes: Mapping[str, Sequence[int]]) -> bool:
    """Whether a call may have other extents: the graph may have taken one that is free to be a number."""
    for declared in declared_inputs(model.proto, model.overridden)[0]:  # strings too
        fixed = shapes.get(declared.name, (-1,) * len(declared.shape))
        if any(isinstance(own, FreeDim) and given == -1 for own, given in zip(declared.shape, fixed, strict=True)):
            return True
    return False
