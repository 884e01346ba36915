"""Inputs of a model, the extents given for them, and what the model uses that cannot be imported."""

from __future__ import annotations

import contextlib
import operator
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, SupportsIndex, cast

import numpy as np

from tilework import dtypes
from tilework.dims import dim
from tilework.dtypes import DType
from tilework.errors import Fault
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.check import listed, node_called, opsets, scopes
from tilework.frontends.onnx.converters import converters, qualified
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.functions import has_body, model_functions
from tilework.frontends.onnx.operand import STRINGS
from tilework.frontends.onnx.outputs import spelled
from tilework.frontends.onnx.schema import ML_DOMAIN, STANDARD_DOMAINS, schema_of
from tilework.frontends.onnx.sequences import SEQUENCE_OPERATORS
from tilework.frontends.onnx.tensors import MOST_ELEMENTS, STRING_ELEMENTS, element_type
from tilework.graph.limits import beyond_limits
from tilework.graph.types import TensorType

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

CONTROL_FLOW = frozenset({"If", "Loop", "Scan"})
"""Operators with subgraphs that the importer itself takes apart."""
_NAME = re.compile(r"[^\W\d]")
"""What a name of a dimension has: a letter or an underscore."""


@dataclass(frozen=True)
class FreeDim:
    """A dimension that the model leaves free: its key (the model's name for it, or its place) and what to call it."""

    key: str
    stem: str


@dataclass(frozen=True)
class DeclaredInput:
    """An input as the model declares it. `opaque` is the ONNX type of strings and maps, empty for others."""

    name: str
    dtype: DType
    shape: tuple[int | FreeDim, ...]
    opaque: str = ""


def declared_inputs(model: ModelProto, overridden: Collection[str] = ()) -> tuple[list[DeclaredInput], list[Fault]]:
    """The inputs that are no initialisers, then those of `overridden`, and what is wrong with the others."""
    constants = {tensor.name for tensor in model.graph.initializer}
    plain = [value for value in model.graph.input if value.name not in constants]
    given = [value for value in model.graph.input if value.name in constants and value.name in overridden]
    found: list[DeclaredInput] = []
    faults: list[Fault] = []
    for value in (*plain, *given):
        try:
            found.append(_declared(value))
        except NodeFault as fault:
            faults.append(fault.at(f"input {value.name}"))
    return found, faults


def overridable_initialisers(model: ModelProto) -> frozenset[str]:
    """The initialisers that the model lists among its inputs too, with a type that an input can have."""
    constants = {tensor.name for tensor in model.graph.initializer}
    found: set[str] = set()
    for value in model.graph.input:
        if value.name in constants:
            with contextlib.suppress(NodeFault):
                found.add(_declared(value).name)
    return frozenset(found)


def _declared(value: ValueInfoProto) -> DeclaredInput:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        if kind is None:
            raise NodeFault(1114, "it has no type")
        if kind == "map_type":
            return DeclaredInput(value.name, dtypes.int64, (), spelled(value.type))
        raise NodeFault(1115, f"it is a {kind.removesuffix('_type').replace('_', ' ')}, not a tensor")
    tensor = value.type.tensor_type
    strings = tensor.elem_type == STRING_ELEMENTS
    dtype = dtypes.int64 if strings else element_type(tensor.elem_type)
    if not tensor.HasField("shape"):
        raise NodeFault(1114, "its number of dimensions is not declared")
    shape: list[int | FreeDim] = []
    for place, extent in enumerate(tensor.shape.dim):
        if extent.WhichOneof("value") == "dim_value" and extent.dim_value >= 0:
            if extent.dim_value > MOST_ELEMENTS:
                raise NodeFault(1124, f"dimension {place} is {extent.dim_value}")
            shape.append(extent.dim_value)
        elif extent.dim_value < -1:
            raise NodeFault(1114, f"dimension {place} is declared as {extent.dim_value}")
        elif _NAME.search(extent.dim_param):
            shape.append(FreeDim(extent.dim_param, extent.dim_param))
        else:
            # no name, or one like "?" that exporters give every unknown extent; a key that no name can be confused with
            shape.append(FreeDim(f"{value.name}[{place}] (unnamed)", f"{value.name}_{place}"))
    reason = beyond_limits(TensorType(tuple(dim(e) if isinstance(e, int) else dim(1) for e in shape), dtype), {})
    if reason is not None:
        raise NodeFault(1124, reason)
    return DeclaredInput(value.name, dtype, tuple(shape), STRINGS if strings else "")


def given_extents(
    inputs: Sequence[DeclaredInput], shapes: Mapping[str, Sequence[int]]
) -> tuple[dict[str, int | str], list[Fault]]:
    """The values of free dimensions that follow from the shapes a caller gives, by key."""
    known = {declared.name: declared for declared in inputs}
    given: dict[str, int | str] = {}
    faults: list[Fault] = []
    for name, shape in shapes.items():
        declared = known.get(name)
        where = f"shape of {name}"
        if declared is None:
            faults.append(Fault(1118, where, f"the model has no such input; it has {listed(known) or 'none'}"))
            continue
        extents = _entries(shape)
        if extents is None:
            faults.append(Fault(1118, where, f"it is {shape!r}, it must be a tuple of integers, one per dimension"))
            continue
        if len(extents) != len(declared.shape):
            faults.append(Fault(1118, where, f"it has {len(extents)} dimensions, the input has {len(declared.shape)}"))
            continue
        for place, (entry, wanted) in enumerate(zip(extents, declared.shape, strict=True)):
            extent = _integer(entry)
            if extent is None:
                text = f"dimension {place} is {entry!r}, it must be an integer (-1 leaves it as the model has it)"
                faults.append(Fault(1118, where, text))
                continue
            if extent == -1:
                continue
            if extent < 0 or extent > MOST_ELEMENTS:
                faults.append(Fault(1118, where, f"dimension {place} is {extent}"))
            elif isinstance(wanted, int):
                if wanted != extent:
                    faults.append(Fault(1118, where, f"dimension {place} is {extent}, the model has {wanted} there"))
            elif given.setdefault(wanted.key, extent) != extent:
                text = f"dimension {place} ({wanted.stem}) is {extent} here and {given[wanted.key]} before"
                faults.append(Fault(1118, where, text))
    return given, faults


def _entries(shape: object) -> tuple[object, ...] | None:
    """The entries of a shape as a caller gives it; None where it is no list of anything."""
    if isinstance(shape, (str, bytes, Mapping)) or not isinstance(shape, Iterable):
        return None
    return tuple(cast("Iterable[object]", shape))


def _integer(entry: object) -> int | None:
    """The integer that an entry is (numpy's too); None for booleans, fractions, text and nothing."""
    if isinstance(entry, (bool, np.bool_)):
        return None
    try:
        return operator.index(cast("SupportsIndex", entry))
    except TypeError:
        return None


def unsupported_operators(model: ModelProto) -> list[Fault]:
    """One fault per operator that cannot be imported, with the nodes that use it."""
    versions = opsets(model)
    known = {*converters(), *CONTROL_FLOW, *SEQUENCE_OPERATORS}
    own = model_functions(model)
    users: dict[tuple[int, str], list[str]] = {}
    for scope in scopes(model):
        for node in scope.graph.node:
            standard = node.domain in STANDARD_DOMAINS
            if (node.domain, node.op_type) in own:
                continue
            if qualified(node.domain, node.op_type) in known:
                if schema_of(node, versions) is not None or not (standard or node.domain == ML_DOMAIN):
                    continue
                called, version = (
                    ("ai.onnx" if standard else node.domain),
                    versions.get("" if standard else node.domain),
                )
                what = (1107, f"{node.op_type} does not exist in version {version} of {called}")
                if version is None:
                    what = (1105, f"{node.op_type} is an operator of {called}, of which the model imports no version")
            elif has_body(node, versions):
                continue
            elif standard:
                what = (1107, f"{node.op_type} is not supported")
            else:
                what = (1105, f"{node.op_type} of the domain {node.domain!r} is not supported")
            users.setdefault(what, []).append(node_called(node))
    return [
        Fault(code, "operators", f"{text} ({len(nodes)} node{'s' if len(nodes) != 1 else ''}: {listed(nodes, 5)})")
        for (code, text), nodes in users.items()
    ]
