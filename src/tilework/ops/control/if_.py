"""`if`: one of two subgraphs runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilework.graph.graph import Attribute, Graph, Node
from tilework.graph.types import ValueType
from tilework.ops.control._base import CONDITION, ControlOperator, check_types, input_types, output_types, truth
from tilework.ops.operator import Array, Environment
from tilework.ops.rules import Rule


class If(ControlOperator):
    """`if(pred, operands...; subgraphs then, else)`: the results of one subgraph, given the operands after `pred`."""

    name = "if"
    subgraph_names = ("then", "else")

    def infer_node(
        self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute], subgraphs: Sequence[Graph] = ()
    ) -> tuple[ValueType, ...]:
        self.check_count(subgraphs)
        rule = Rule(self.name, operands, attributes)
        rule.count(1, None)
        check_types(rule, "the condition", operands[:1], (CONDITION,))
        results = [output_types(rule, graph, name) for graph, name in zip(subgraphs, self.subgraph_names, strict=True)]
        for graph, name in zip(subgraphs, self.subgraph_names, strict=True):
            check_types(rule, f"inputs of {name}", input_types(graph), operands[1:])
        check_types(rule, "results of else, where those of then are", results[1], results[0])
        rule.finish()
        return results[0]

    def run(self, node: Node, operands: Sequence[Array], environment: Environment) -> tuple[Array, ...]:
        return environment.evaluate(node.subgraphs[0 if truth(operands[0]) else 1], operands[1:])


OPERATOR = If()
