"""`while`: a subgraph repeated for as long as another says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tilework.dims import Dim, dim
from tilework.graph.graph import Attribute, Graph, Node
from tilework.graph.types import TensorType, ValueType
from tilework.ops.control._base import CONDITION, ControlOperator, check_types, input_types, output_types, truth
from tilework.ops.control._changing import changing_symbols, extents_of, substituted
from tilework.ops.operator import Array, Environment
from tilework.ops.rules import Rule


class While(ControlOperator):
    """`while(state...; extents, rows; subgraphs condition, body)`: `body` maps the state to the next; the results are
    the first state of which `condition` is false, then what `body` returns besides the state, stacked along a new
    dimension 0, a row a trip.

    A state may change its size: the extents that do are measured symbols of the body, which the condition has too, and
    are what the state has at the start of a trip. `extents` are those symbols' values at the end, one each in the order
    of the body's symbols; `rows` (left out without rows) holds the number of trips: measured symbols of the graph
    around, which this node binds.
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
        state = input_types(body)
        symbols = changing_symbols(body)
        extents = rule.dims("extents", len(symbols), ())
        rows = rule.dims("rows", default=())
        self._check_state(rule, "operands, which are what body takes,", operands, state, symbols)
        check_types(rule, "inputs of condition", input_types(condition), state)
        check_types(rule, "results of condition", output_types(rule, condition, "condition"), (CONDITION,))
        results = output_types(rule, body, "body")
        if len(results) < len(state):
            rule.stop(1229, f"results of body: {len(results)}, where {len(state)} are needed")
        self._check_state(rule, "results of body", results[: len(state)], state, symbols)
        stacked: list[ValueType] = []
        own = {symbol.name for symbol in body.symbols}
        for position, result in enumerate(results[len(state) :], len(state)):
            if len(rows) != 1:
                rule.stop(1225, "attribute 'rows' must hold the number of trips: body returns more than the state")
            if not isinstance(result, TensorType):
                rule.fault(1229, f"result {position} of body is a token; only a state can be one")
            elif any(extent.names() & own for extent in result.shape):
                rule.fault(1229, f"result {position} of body is {result}: rows must be of one size")
            else:
                stacked.append(TensorType((rows[0], *result.shape), result.dtype))
        rule.finish()
        ends = dict(zip(symbols, extents, strict=True))
        return (*(substituted(kind, ends) for kind in state), *stacked)

    @staticmethod
    def _check_state(
        rule: Rule, what: str, found: Sequence[ValueType], state: Sequence[ValueType], symbols: Sequence[str]
    ) -> None:
        """A fault for each type that is not the state's, whatever the changing extents are."""
        values = extents_of(found, state, symbols)
        check_types(rule, what, found, [substituted(kind, values) for kind in state])

    def run(self, node: Node, operands: Sequence[Array], environment: Environment) -> tuple[Array, ...]:
        condition, body = node.subgraphs
        count = len(body.inputs)
        state = tuple(operands)
        rows: list[tuple[Array, ...]] = []
        while truth(environment.evaluate(condition, state)[0]):
            found = environment.evaluate(body, state)
            state = found[:count]
            rows.append(found[count:])
        if rows:
            return (*state, *(np.stack(parts) for parts in zip(*rows, strict=True)))
        types = environment.result_types(node)[count:] if len(node.outputs) > count else ()
        empty = (np.zeros((0, *(int(extent) for extent in kind.shape[1:])), kind.dtype.numpy) for kind in types)
        return (*state, *empty)


def end_extents(node: Node) -> dict[str, Dim]:
    """The extents of a `while`'s results by the symbols of the body that change."""
    extents = node.attributes.get("extents", ())
    assert isinstance(extents, tuple)
    found = [extent if isinstance(extent, Dim) else dim(int(str(extent))) for extent in extents]
    return dict(zip(changing_symbols(node.subgraphs[1]), found, strict=True))


def rows_symbol(node: Node) -> str:
    """The symbol that is the number of trips; empty where a `while` collects nothing."""
    rows = node.attributes.get("rows", ())
    return str(rows[0]) if isinstance(rows, tuple) and rows else ""


OPERATOR = While()
