"""`import_model`: an ONNX model becomes a `Graph`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from tilework.dims import Extreme, dim
from tilework.errors import Fault, FrontendError, TileworkError, UsageError
from tilework.frontends.onnx.body import BodyImporter
from tilework.frontends.onnx.carried import carried_into_branches
from tilework.frontends.onnx.check import node_called, structural_faults
from tilework.frontends.onnx.containers import TENSOR, Structure
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.full_check import checker_words
from tilework.frontends.onnx.signature import DeclaredInput, declared_inputs, given_extents, unsupported_operators
from tilework.frontends.onnx.source import LoadedModel, Source, load
from tilework.frontends.onnx.symbols import NearPositions, SymbolTable
from tilework.frontends.onnx.unify import Unified
from tilework.graph.graph import Array, Graph, walk
from tilework.graph.types import OpaqueType, TensorType

Check = Literal["own", "auto", "full"]

_Imported: TypeAlias = "tuple[Graph, tuple[Structure, ...]]"
"""A graph, and what each output of its model is beside the tensors that are the graph's outputs."""

ALWAYS_NEAR = 1
"""Elements from an end of a free dimension that a slice always takes to be inside: all but one, the last one."""

MOST_RESTARTS = 1000
"""Times that an import starts again after learning that a free dimension has one value or equals another."""


def import_model(
    source: Source,
    shapes: Mapping[str, Sequence[int]] | None = None,
    *,
    check: Check = "auto",
    values: Mapping[str, Array] | None = None,
) -> Graph:
    """Import an ONNX model.

    Dimensions that the model leaves free become symbols (one per name in the model); shape arithmetic is evaluated on
    them, so that one graph serves every extent. Bounds that the operators need become bounds of the symbols. Two free
    dimensions that meet in an elementwise operator are taken to be equal.

    Args:
        source: the path of a file, its bytes, or a `ModelProto` (not changed). Data files must lie in its folder.
        shapes: extents of inputs by name, in elements; -1 leaves a dimension as the model has it. Shapes that the
            model declares for its outputs are not held against what it computes for these.
        check: `"own"` runs Tilework's checks alone, `"auto"` adds the words of ONNX's checker (in a child process)
            where those find damage, `"full"` always runs it.
        values: what inputs are known to hold, by name. They stay inputs of the graph, which no longer reads them.

    Returns:
        The graph; inputs and outputs have the model's names, node locations are ONNX node names. Initialisers are
        constants, also those listed among the inputs (unless a `LoadedModel` says that they are overridden).

    Raises:
        FrontendError: 1101-1125; `faults` lists everything that was found.
        MissingPackageError: 1007, without the package onnx.
    """
    if check not in ("own", "auto", "full"):
        raise UsageError(1002, f"check is {check!r}", hint="use 'own', 'auto' or 'full'")
    if shapes is not None and not isinstance(shapes, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        text = f"shapes is {shapes!r}, it must map names of inputs to shapes"
        raise UsageError(1002, text, hint="write shapes={'x': (1, 3, 224, 224)}")
    model = load(source)
    graph, structures = _import_parts(model, shapes, check, values)
    faults = [
        Fault(1115, f"output {output.name}", f"it is {kind}, not a tensor")
        for output, kind in zip(model.proto.graph.output, structures, strict=True)
        if kind != TENSOR
    ]
    if faults:
        raise _error(model, faults, "own")
    return graph


def import_parts(source: Source, values: Mapping[str, Array] | None = None) -> tuple[Graph, tuple[Structure, ...]]:
    """As `import_model`, for models whose outputs may be sequences and optionals.

    The graph's outputs are the tensors of all outputs in order; with it comes what each of the model's outputs is.
    """
    return _import_parts(load(source), {}, "auto", values)


def _import_parts(
    model: LoadedModel, shapes: Mapping[str, Sequence[int]] | None, check: Check, values: Mapping[str, Array] | None
) -> _Imported:
    try:
        try:
            return _import(model, dict(shapes or {}), check, values or {})
        except FrontendError as error:
            carried = _carried(model, error)
            if carried is None:
                raise
            with contextlib.suppress(FrontendError):
                return _import_parts(carried, shapes, "own", values)
            raise
    except UnicodeDecodeError:
        raise _error(model, [Fault(1103, "model", "a name in it is no UTF-8 text")], check) from None
    except RecursionError:
        raise _error(model, [Fault(1104, "model", "expressions or subgraphs are nested too deep")], check) from None


def _carried(model: LoadedModel, error: FrontendError) -> LoadedModel | None:
    """The model with what follows from an `If` inside its branches, where these return different types and data decide
    which one runs. (What sizes or an input itself say is compiled for.)
    """
    graph = model.proto.graph
    wrong = {fault.where for fault in error.faults}
    chosen = {n.input[0] for p, n in enumerate(graph.node) if n.op_type == "If" and node_called(n, p) in wrong}
    if not error.decided_by or chosen & set(error.decided_by):
        return None
    carried = carried_into_branches(graph, error.faults)
    if carried is None:
        return None
    proto = type(model.proto)()
    proto.CopyFrom(model.proto)
    proto.graph.CopyFrom(carried)
    return replace(model, proto=proto)


def input_types(source: Source) -> tuple[tuple[str, TensorType | OpaqueType], ...]:
    """Names and types of a model's inputs as it declares them, free dimensions as symbols; overridden initialisers come
    last. Raises as `import_model`.
    """
    model = load(source)
    inputs, faults = declared_inputs(model.proto, model.overridden)
    if faults:
        raise _error(model, faults, "own")
    symbols = SymbolTable()
    found: list[tuple[str, TensorType | OpaqueType]] = []
    for declared in inputs:
        shape = tuple(dim(e) if isinstance(e, int) else symbols.free(e.key, e.stem) for e in declared.shape)
        kind = OpaqueType(declared.opaque) if declared.opaque else TensorType(shape, declared.dtype)
        found.append((declared.name, kind))
    return tuple(found)


def _import(
    model: LoadedModel, shapes: Mapping[str, Sequence[int]], check: Check, values: Mapping[str, Array]
) -> _Imported:
    faults = structural_faults(model.proto)
    if faults:
        raise _error(model, faults, check)
    if check == "full":
        words = checker_words(model)
        if words is not None:
            raise _error(model, [Fault(1122, "onnx.checker", words)], "own")
    faults = unsupported_operators(model.proto)
    inputs, found = declared_inputs(model.proto, model.overridden)
    given, wrong = given_extents(inputs, shapes)
    faults += [*found, *wrong]
    if faults:
        raise _error(model, faults, "own")
    near = NearPositions(ALWAYS_NEAR)
    try:
        settled = _settled(model, inputs, dict(given), near, values)
    except FrontendError:
        if not near.passed_over:
            raise
        # extents with minima and maxima in them may be what did not fit
        return _settled(model, inputs, given, NearPositions(NearPositions.WIDEST), values)
    if near.passed_over and _assumed(settled[0]):
        with contextlib.suppress(FrontendError):
            wide = _settled(model, inputs, dict(given), NearPositions(NearPositions.WIDEST), values)
            if _assumed(wide[0]) < _assumed(settled[0]):
                return wide
    return settled


def _assumed(graph: Graph) -> int:
    """How often extents are assumed to be equal."""
    return sum(node.operator == "assume" for node in walk(graph))


def _settled(
    model: LoadedModel,
    inputs: Sequence[DeclaredInput],
    given: dict[str, int | str],
    near: NearPositions,
    values: Mapping[str, Array],
) -> _Imported:
    """Import again and again until nothing more is learnt of the free dimensions."""
    bounds: dict[str, tuple[float, float]] = {}
    shapes_hold = not given and not values
    for _ in range(MOST_RESTARTS):
        symbols = SymbolTable(given, bounds, near)
        try:
            importer = BodyImporter(model, symbols)
            graph = importer.whole(inputs, shapes_hold, values)
        except Unified as learnt:
            value = learnt.value if isinstance(learnt.value, int) else symbols.key(learnt.value)
            given[symbols.key(learnt.symbol)] = value
            shapes_hold = shapes_hold and learnt.certain
            bounds = {}
            continue
        except NodeFault as fault:
            raise _error(model, [fault.at("model")], "own") from None
        except TileworkError as error:
            raise _error(model, [Fault(error.code, error.where or "model", error.message)], "own") from error
        if importer.faults:
            raise _error(model, importer.faults, "own", importer.decided_by)
        if dict(symbols.bounds) != bounds and _has_extremes(graph):
            bounds = dict(symbols.bounds)  # the bounds found on the way decide what was left open before them
            continue
        return graph, importer.structures
    raise _error(model, [Fault(1121, "model", "its free dimensions contradict each other")], "own")


def _has_extremes(graph: Graph) -> bool:
    """Whether a shape has a minimum or maximum in it."""
    return any(
        isinstance(atom, Extreme)
        for node in graph.nodes
        for value in node.outputs
        if isinstance(value.type, TensorType)
        for extent in value.type.shape
        if extent.terms
        for atom in extent.atoms()
    )


_DAMAGE = frozenset({1103, 1104, 1108, 1109, 1112, 1113, 1114, 1117})
"""Codes after which ONNX's own checker is asked too."""


def _error(model: LoadedModel, faults: Sequence[Fault], check: Check, decided_by: Iterable[str] = ()) -> FrontendError:
    """One error with every fault; its code is the first one's."""
    listed = list(dict.fromkeys(faults))
    if check != "own" and any(fault.code in _DAMAGE for fault in listed):
        words = checker_words(model)
        if words is not None:
            listed.append(Fault(1122, "onnx.checker", words))
    count = f"{len(listed)} fault{'s' if len(listed) != 1 else ''}"
    text = f"{model.called} cannot be imported: {count}"
    return FrontendError(listed[0].code, text, faults=listed, decided_by=decided_by)
