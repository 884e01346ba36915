"""The base of operators that hold subgraphs: they have no definition in index notation and are run by evaluation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from tilework import dtypes
from tilework.compute.notation import Computation
from tilework.dims import Symbol
from tilework.errors import Fault, GraphError
from tilework.graph.graph import Attribute, Graph, Node
from tilework.graph.types import TensorType, TokenType, ValueType
from tilework.loops.program import Buffer
from tilework.ops.operator import Array, Environment, Operator, PrecisionFacts, TypeFaults
from tilework.ops.rules import Rule

CONDITION = TensorType((), dtypes.boolean)
"""What decides: one truth value."""


class ControlOperator(Operator):
    """An operator whose meaning is its subgraphs' (`subgraph_names`, in order).

    A subgraph's inputs are bound by position; it may also read values of the graphs around it by name.
    """

    precision = PrecisionFacts(safe_low=True)
    subgraph_names: tuple[str, ...] = ()

    @abstractmethod
    def infer_node(
        self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute], subgraphs: Sequence[Graph] = ()
    ) -> tuple[ValueType, ...]: ...

    @abstractmethod
    def run(self, node: Node, operands: Sequence[Array], environment: Environment) -> tuple[Array, ...]: ...

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        return self.infer_node(operands, attributes)

    def define(
        self, operands: Sequence[Buffer], results: Sequence[Buffer], attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:  # fmt: skip
        raise self.undefined("its subgraphs decide what runs")

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        raise GraphError(1228, f"{self.name} cannot be evaluated without its subgraphs", hint="call `run`")

    def check_count(self, subgraphs: Sequence[Graph]) -> None:
        """`TypeFaults` 1228 unless there are as many subgraphs as names for them."""
        if len(subgraphs) != len(self.subgraph_names):
            wanted = " and ".join(self.subgraph_names)
            message = f"{self.name} takes {len(self.subgraph_names)} subgraphs ({wanted}), it has {len(subgraphs)}"
            raise TypeFaults([Fault(1228, "", message)])


def check_types(rule: Rule, what: str, found: Sequence[ValueType], wanted: Sequence[ValueType]) -> None:
    """A fault for each type that is not the one wanted."""
    if len(found) != len(wanted):
        rule.fault(1229, f"{what}: {len(found)}, where {len(wanted)} are needed")
        return
    for position, (a, b) in enumerate(zip(found, wanted, strict=True)):
        if a != b:
            rule.fault(1229, f"{what}: number {position} is {a}, it must be {b}")


def input_types(graph: Graph) -> tuple[ValueType, ...]:
    return tuple(value.type for value in graph.inputs)


def output_types(rule: Rule, graph: Graph, name: str) -> tuple[ValueType, ...]:
    """The types of a subgraph's outputs; a fault (and a token) for one that it does not define."""
    found: list[ValueType] = []
    for output in graph.outputs:
        value = graph.values.get(output)
        if value is None:
            rule.fault(1229, f"{name}: output {output!r} is not defined in it (return values from around it as inputs)")
        found.append(TokenType() if value is None else value.type)
    return tuple(found)


def truth(array: Array) -> bool:
    """The value of a condition."""
    return bool(array.reshape(()))
