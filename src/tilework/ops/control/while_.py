"""`while`: a subgraph repeated for as long as another says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilework.graph.graph import Attribute, Graph, Node
from tilework.graph.types import ValueType
from tilework.ops.control._base import CONDITION, ControlOperator, check_types, input_types, output_types, truth
from tilework.ops.operator import Array, Environment
from tilework.ops.rules import Rule


class While(ControlOperator):
    """`while(state...; subgraphs condition, body)`: `body` maps the state to the next; the result is the first state of
    which `condition` is false.
    """

    name = "while"
    subgraph_names = ("condition", "body")

    def infer_node(
        self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute], subgraphs: Sequence[Graph] = ()
    ) -> tuple[ValueType, ...]:
        self.check_count(subgraphs)
        rule = Rule(self.name, operands, attributes)
        rule.count(1, None)
        condition, body = subgraphs
        check_types(rule, "inputs of condition", input_types(condition), operands)
        check_types(rule, "inputs of body", input_types(body), operands)
        check_types(rule, "results of condition", output_types(rule, condition, "condition"), (CONDITION,))
        check_types(rule, "results of body", output_types(rule, body, "body"), operands)
        rule.finish()
        return tuple(operands)

    def run(self, node: Node, operands: Sequence[Array], environment: Environment) -> tuple[Array, ...]:
        condition, body = node.subgraphs
        state = tuple(operands)
        while truth(environment.evaluate(condition, state)[0]):
            state = environment.evaluate(body, state)
        return state


OPERATOR = While()
