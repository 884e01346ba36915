"""Operators that are functions of others: those a model brings along, and those whose body the package onnx knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tilework.dims import Dim
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.schema import STANDARD_DOMAINS
from tilework.frontends.onnx.tensors import ELEMENT_TYPES

if TYPE_CHECKING:
    from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto

OperandType: TypeAlias = "tuple[DType, tuple[Dim, ...]]"

Functions = Mapping["tuple[str, str]", "FunctionProto"]


@dataclass(frozen=True)
class Body:
    """A function put in a node's place: its nodes (attributes filled in), names of inputs and outputs, versions."""

    nodes: list[NodeProto]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    versions: Mapping[str, int]


def model_functions(model: ModelProto) -> dict[tuple[str, str], FunctionProto]:
    """The functions that a model brings along, by domain and name."""
    return {(function.domain, function.name): function for function in model.functions}


def body_of(
    node: NodeProto,
    functions: Functions,
    versions: Mapping[str, int],
    operands: Sequence[OperandType | None],
    is_converted: bool,
) -> Body | None:
    """The body that stands for a node, or None where its operator has none.

    A function that the model brings along comes before a converter, the body that the package onnx has after it.
    """
    function = functions.get((node.domain, node.op_type))
    around: Mapping[str, int] = {}
    if function is None and not is_converted:
        function = _standard(node, versions, operands)
        around = versions  # bodies of other domains do not import ai.onnx
    if function is None:
        return None
    if len(node.input) > len(function.input) or len(node.output) > len(function.output):
        raise NodeFault(1117, f"its function takes {len(function.input)} inputs and has {len(function.output)} outputs")
    given = {attribute.name: attribute for attribute in node.attribute}
    for attribute in function.attribute_proto:
        given.setdefault(attribute.name, attribute)
    for name in function.attribute:
        if name not in given:
            raise NodeFault(1108, f"attribute {name!r} is missing")
    return Body(
        [_filled(inner, given) for inner in function.node],
        tuple(function.input),
        tuple(function.output),
        {**around, **{"" if o.domain in STANDARD_DOMAINS else o.domain: o.version for o in function.opset_import}},
    )


def _filled(node: NodeProto, given: Mapping[str, AttributeProto]) -> NodeProto:
    """A node of a function with the attributes of the call in the places that refer to them."""
    from onnx import NodeProto as Proto

    found = Proto()
    found.CopyFrom(node)
    left = [found]
    while left:
        inner = left.pop()
        kept: list[AttributeProto] = []
        for attribute in inner.attribute:
            if attribute.ref_attr_name:
                value = given.get(attribute.ref_attr_name)
                if value is not None:
                    kept.append(_renamed(value, attribute.name))
            else:
                kept.append(_renamed(attribute, attribute.name))
        del inner.attribute[:]
        inner.attribute.extend(kept)
        for attribute in inner.attribute:
            for graph in (attribute.g, *attribute.graphs):
                left.extend(graph.node)
    return found


def _renamed(attribute: AttributeProto, name: str) -> AttributeProto:
    from onnx import AttributeProto as Proto

    found = Proto()
    found.CopyFrom(attribute)
    found.name = name
    return found


def has_body(node: NodeProto, versions: Mapping[str, int]) -> bool:
    """Whether the package onnx has a body for a node's operator."""
    return _schema(node, versions) is not None


def _schema(node: NodeProto, versions: Mapping[str, int]) -> Any:
    """The schema of a node's operator where there is a body for the model's version of it, else None."""
    from onnx import defs

    domain = "" if node.domain in STANDARD_DOMAINS else node.domain
    version = versions.get(domain, 0)
    if not 1 <= version < 2**31:
        return None
    try:
        schema: Any = defs.get_schema(node.op_type, version, domain)
    except defs.SchemaError:
        return None
    bodies = (*schema.function_opset_versions, *schema.context_dependent_function_opset_versions)
    return schema if any(_fits(made, schema, versions) for made in bodies) else None


def _fits(made: int, schema: Any, versions: Mapping[str, int]) -> bool:
    """Whether a body may be used; bodies are numbered by the version of ai.onnx whose operators they use."""
    return made <= versions.get("", 0) or bool(schema.domain)


def _standard(
    node: NodeProto, versions: Mapping[str, int], operands: Sequence[OperandType | None]
) -> FunctionProto | None:
    """The body that the package onnx has: fixed, or made for this node and the types of its operands."""
    from onnx import FunctionProto

    schema = _schema(node, versions)
    if schema is None:
        return None
    written = [v for v in schema.function_opset_versions if _fits(v, schema, versions)]
    made = [v for v in schema.context_dependent_function_opset_versions if _fits(v, schema, versions)]
    if written:
        function = FunctionProto.FromString(schema.get_function_with_opset_version(max(written)))
    else:
        types = [_type(operand) for operand in operands]
        whole = _with_defaults(node, schema)
        make = schema.get_context_dependent_function_with_opset_version
        content: bytes = make(max(made), whole.SerializeToString(), types)
        function = FunctionProto.FromString(content)
    del function.attribute[:]  # the schema says what must be given; the rest may be missing or has a default
    function.attribute_proto.extend(a.default_value for a in schema.attributes.values() if a.default_value.name)
    return function


def _with_defaults(node: NodeProto, schema: Any) -> NodeProto:
    from onnx import NodeProto as Proto

    found = Proto()
    found.CopyFrom(node)
    given = {attribute.name for attribute in node.attribute}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.name:
            found.attribute.append(attribute.default_value)
    return found


def _type(operand: OperandType | None) -> bytes:
    """A type as protobuf has it; symbolic dims are left open."""
    from onnx import TypeProto

    found = TypeProto()
    if operand is None:
        return found.SerializeToString()
    dtype, shape = operand
    numbers = {known: number for number, known in ELEMENT_TYPES.items()}
    found.tensor_type.elem_type = numbers[dtype]
    found.tensor_type.shape.SetInParent()
    for extent in shape:
        one = found.tensor_type.shape.dim.add()
        if extent.is_constant:
            one.dim_value = extent.constant
    return found.SerializeToString()
