"""`scan`: a subgraph run over the slices of tensors, in order, passing a state on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tilework.dims import Dim
from tilework.graph.graph import Attribute, Graph, Node
from tilework.graph.types import TensorType, ValueType
from tilework.ops._attributes import same_dim
from tilework.ops.control._base import ControlOperator, check_types, input_types, output_types
from tilework.ops.operator import Array, Environment
from tilework.ops.rules import Rule


class Scan(ControlOperator):
    """`scan(state..., scanned...; state_count, reverse; subgraph body)`.

    `body(state..., slices...)` returns the next state and any number of tensors. For each position along dimension 0 of
    the scanned tensors (from the end with `reverse`) it runs once. Results: the last state, then each further tensor
    with the positions as a new dimension 0.
    """

    name = "scan"
    subgraph_names = ("body",)

    def infer_node(
        self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute], subgraphs: Sequence[Graph] = ()
    ) -> tuple[ValueType, ...]:
        self.check_count(subgraphs)
        rule = Rule(self.name, operands, attributes)
        rule.count(1, None)
        count = rule.integer("state_count")
        rule.flag("reverse", False)
        if not 0 <= count < len(operands):
            rule.stop(1225, f"attribute 'state_count' is {count}; {len(operands)} operands leave at least one to scan")
        state, (body,) = tuple(operands[:count]), subgraphs
        slices: list[ValueType] = []
        lengths: list[Dim] = []
        for position, operand in enumerate(operands[count:], count):
            if not isinstance(operand, TensorType) or operand.rank == 0:
                rule.stop(1223, f"operand {position} is {operand}; what is scanned must have a dimension 0")
            lengths.append(operand.shape[0])
            slices.append(TensorType(operand.shape[1:], operand.dtype))
            same_dim(rule, lengths[0], operand.shape[0], f"dimension 0 of operands {count} and {position}")
        check_types(rule, "inputs of body", input_types(body), (*state, *slices))
        results = output_types(rule, body, "body")
        check_types(rule, "state that body returns", results[:count], state)
        stacked: list[ValueType] = []
        for position, result in enumerate(results[count:], count):
            if isinstance(result, TensorType):
                stacked.append(TensorType((lengths[0], *result.shape), result.dtype))
            else:
                rule.fault(1229, f"result {position} of body is a token; only a state can be one")
        rule.finish()
        return (*state, *stacked)

    def run(self, node: Node, operands: Sequence[Array], environment: Environment) -> tuple[Array, ...]:
        attributes = environment.attributes(node)
        count = int(attributes["state_count"])
        state, scanned = tuple(operands[:count]), operands[count:]
        order = range(scanned[0].shape[0])
        steps: list[tuple[int, tuple[Array, ...]]] = []
        for position in reversed(order) if attributes.get("reverse", False) else order:
            found = environment.evaluate(node.subgraphs[0], (*state, *(array[position] for array in scanned)))
            state = found[:count]
            steps.append((position, found[count:]))
        if not steps:
            types = environment.result_types(node)
            stacked = types[len(types) - (len(node.outputs) - count) :]
            return (*state, *(np.zeros(tuple(int(d) for d in t.shape), t.dtype.numpy) for t in stacked))
        steps.sort(key=lambda step: step[0])
        return (*state, *(np.stack(parts) for parts in zip(*(found for _, found in steps), strict=True)))


OPERATOR = Scan()
