"""Outputs as a model declares them, held against what its nodes compute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tilework.errors import Fault
from tilework.frontends.onnx.containers import Held, TensorSequence
from tilework.frontends.onnx.operand import Operand
from tilework.frontends.onnx.tensors import ELEMENT_TYPES, ONNX_NAMES, STRING_ELEMENTS, element_type_called

if TYPE_CHECKING:
    from onnx import TypeProto, ValueInfoProto


def spelled(declared: TypeProto) -> str:
    """How ONNX spells a declared type (`seq(map(string,tensor(float)))`); empty for what has no spelling here."""
    kind = declared.WhichOneof("value")
    if kind == "tensor_type":
        number = declared.tensor_type.elem_type
        found = ELEMENT_TYPES.get(number)
        return f"tensor({element_type_called(number) if found is None else ONNX_NAMES.get(found, found.name)})"
    if kind == "sequence_type":
        return f"seq({spelled(declared.sequence_type.elem_type)})"
    if kind == "map_type":
        keys = declared.map_type.key_type
        key = "string" if keys == STRING_ELEMENTS else element_type_called(keys)
        return f"map({key},{spelled(declared.map_type.value_type)})"
    return ""


def output_faults(declared: ValueInfoProto, computed: Held, shapes_hold: bool) -> Iterator[Fault]:
    """What of an output's declaration can never be true: its kind, element type, constant extents and their number.

    What is left open (no type, no shape, a named or unnamed dimension, -1) contradicts nothing. So does a shape without
    any constant extent, whatever its rank: exporters write `[]` and `[batch]` for shapes that they do not know.
    `shapes_hold`: the computed shape is the model's own; where extents were given or taken for granted, it is not
    compared.
    """
    where = f"output {declared.name}"
    kind = declared.type.WhichOneof("value")
    if kind is None:
        return
    if isinstance(computed, Operand) and computed.opaque:
        if spelled(declared.type) not in (computed.opaque, "tensor(undefined)"):
            yield Fault(1125, where, f"it is declared as {spelled(declared.type)}, the model computes {computed}")
        return
    of_tensors = "sequence_type" if isinstance(computed, TensorSequence) else "optional_type"
    if kind != ("tensor_type" if isinstance(computed, Operand) else of_tensors):
        text = f"it is declared as a {kind.removesuffix('_type').replace('_', ' ')}, the model computes {computed}"
        yield Fault(1125, where, text)
        return
    if not isinstance(computed, Operand):
        return
    tensor = declared.type.tensor_type
    if tensor.elem_type and ELEMENT_TYPES.get(tensor.elem_type) != computed.dtype:
        wanted = element_type_called(tensor.elem_type)
        yield Fault(1125, where, f"it is declared with elements of type {wanted}, the model computes {computed}")
    if not tensor.HasField("shape"):
        return
    extents = [extent.dim_value if extent.HasField("dim_value") else None for extent in tensor.shape.dim]
    for place, extent in enumerate(extents):
        if extent is not None and extent < -1:
            yield Fault(1114, where, f"dimension {place} is declared as {extent}")
    if not shapes_hold or all(extent is None or extent < 0 for extent in extents):
        return
    if len(extents) != computed.rank:
        text = f"it is declared with {len(extents)} dimensions, the model computes {computed} with {computed.rank}"
        yield Fault(1125, where, text)
        return
    for place, (extent, own) in enumerate(zip(extents, computed.shape, strict=True)):
        if extent is not None and extent >= 0 and own.is_constant and own != extent:
            yield Fault(1125, where, f"dimension {place} is declared as {extent}, the model computes {computed}")
