"""What the package onnx says of operators: operand counts, element types, attributes; read once per operator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from tilework.fast_dataclass import dataclass

if TYPE_CHECKING:
    from onnx import NodeProto

STANDARD_DOMAINS = frozenset({"", "ai.onnx"})
ML_DOMAIN = "ai.onnx.ml"
"""Classical machine learning: trees, linear models, encoders."""


@dataclass(frozen=True)
class Parameter:
    """A formal input: its name, whether it must be given, the type strings it takes, and its type variable.

    `variable` is empty where the operands need not have one type.
    """

    name: str
    required: bool
    types: frozenset[str]
    variable: str


@dataclass(frozen=True)
class Schema:
    """One version of an operator. Attributes: the name of the type, and whether it must be given."""

    inputs: tuple[int, int]
    outputs: tuple[int, int]
    parameters: tuple[Parameter, ...]
    attributes: Mapping[str, tuple[str, bool]]


def schema_of(node: NodeProto, versions: Mapping[str, int]) -> Schema | None:
    """The schema of a node's operator at the model's version; None where the package onnx knows none."""
    domain = "" if node.domain in STANDARD_DOMAINS else node.domain
    version = versions.get(domain)
    if version is None or version < 1:
        return None
    return _schema(node.op_type, min(version, 2**31 - 1), domain)


@lru_cache(maxsize=1024)  # schemas do not change under a running process
def _schema(operator: str, version: int, domain: str) -> Schema | None:
    from onnx import defs

    try:
        found = defs.get_schema(operator, version, domain)
    except defs.SchemaError:
        return None
    single = defs.OpSchema.FormalParameterOption.Single
    parameters = tuple(
        Parameter(
            parameter.name,
            parameter.option == single,
            frozenset(parameter.types),
            "" if parameter.type_str.startswith("tensor(") or not parameter.is_homogeneous else parameter.type_str,
        )
        for parameter in found.inputs
    )
    attributes = {
        name: (str(attribute.type).rpartition(".")[2], attribute.required)
        for name, attribute in found.attributes.items()
    }
    return Schema((found.min_input, found.max_input), (found.min_output, found.max_output), parameters, attributes)
