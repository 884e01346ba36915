"""Scalar expressions to values. An expression is put in order once and then evaluated for every unrolled iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tilework import dtypes
from tilework.errors import CodegenError
from tilework.loops.expressions import Call, Constant, Expression, Index, Load, Parameter, children, walk
from tilework.lowering import conversions
from tilework.lowering.indices import Indices
from tilework.lowering.mathematics.expand import expanded
from tilework.lowering.memory import Memory
from tilework.lowering.registers import Value
from tilework.lowering.scalars import EMIT
from tilework.lowering.state import State, register_kind

_SMALL = (dtypes.float16, dtypes.bfloat16)

Fused: TypeAlias = "tuple[int, int, int, bool, bool]"
"""Operands of a fused multiply-add: factor, factor, addend; whether to negate the product; whether to negate the addend."""


@dataclass(frozen=True)
class Step:
    """One subexpression: the node, the steps of its arguments, and the fused form where there is one."""

    node: Expression
    arguments: tuple[int, ...]
    fused: Fused | None = None


class Expressions:
    """Evaluates expressions in the current place."""

    def __init__(self, state: State, indices: Indices, memory: Memory) -> None:
        self.state = state
        self.indices = indices
        self.memory = memory
        self._plans: dict[int, tuple[Expression, tuple[Step, ...]]] = {}

    def plan(self, expression: Expression) -> tuple[Step, ...]:
        """Its subexpressions, operands first. (The table keeps the expression alive, so that its id stays its own.)"""
        found = self._plans.get(id(expression))
        if found is None:
            found = self._plans[id(expression)] = (expression, self._order(expanded(expression, self.state.numerics)))
        return found[1]

    def _order(self, expression: Expression) -> tuple[Step, ...]:
        nodes = list(walk(expression))
        uses: dict[int, int] = {}
        for node in nodes:
            for child in children(node):
                uses[id(child)] = uses.get(id(child), 0) + 1
        contract = self.state.numerics.contract
        fused: dict[int, tuple[Call, Expression, bool, bool]] = {}
        absorbed: set[int] = set()
        if contract:
            for node in nodes:
                if isinstance(node, Call) and node.function in ("add", "subtract") and node.dtype.is_floating:
                    for side in (0, 1):
                        product, other = node.arguments[side], node.arguments[1 - side]
                        if isinstance(product, Call) and product.function == "multiply" and uses[id(product)] == 1:
                            minus = node.function == "subtract"
                            fused[id(node)] = (product, other, minus and side == 1, minus and side == 0)
                            absorbed.add(id(product))
                            break
        steps: list[Step] = []
        position: dict[int, int] = {}
        for node in nodes:
            if id(node) in absorbed:
                continue
            form: Fused | None = None
            arguments: tuple[int, ...] = ()
            if id(node) in fused:
                product, other, negate_product, negate_other = fused[id(node)]
                a, b = (position[id(p)] for p in product.arguments)
                form = (a, b, position[id(other)], negate_product, negate_other)
            else:
                arguments = tuple(position[id(child)] for child in children(node))
            position[id(node)] = len(steps)
            steps.append(Step(node, arguments, form))
        return tuple(steps)

    def evaluate(self, expression: Expression, mask: Value | None, parameters: dict[str, Value] | None = None) -> Value:
        """The value, a scalar or one for each lane. Loads touch memory only in lanes where `mask` holds."""
        values: list[Value] = []
        for step in self.plan(expression):
            values.append(self._step(step, values, mask, parameters))
        return values[-1]

    def _step(
        self, step: Step, values: list[Value], mask: Value | None, parameters: dict[str, Value] | None
    ) -> Value:
        node = step.node
        builder = self.state.builder
        if step.fused is not None:
            a, b, c = (values[i] for i in step.fused[:3])
            if step.fused[3]:
                a = builder.op("fneg", a.kind, a)
            if step.fused[4]:
                c = builder.op("fneg", c.kind, c)
            return builder.op("fma", a.kind, a, b, c)
        if isinstance(node, Call):
            operands = tuple([values[i] for i in step.arguments])
            if node.function == "cast":
                return conversions.cast(builder, operands[0], node.arguments[0].dtype, node.dtype)
            if node.function == "bitcast":
                return conversions.bitcast(builder, operands[0], node.arguments[0].dtype, node.dtype)
            emit = EMIT.get(node.function)
            if emit is None:
                raise CodegenError(1603, f"no code can be generated for the function {node.function}", where=self.state.statement)
            register_kind(node.dtype)
            result = emit(builder, self.state.numerics, node.arguments[0].dtype, operands)
            if node.dtype in _SMALL and not self.state.numerics.contract:
                return conversions.rounded(builder, result, node.dtype)
            return result
        if isinstance(node, Load):
            return self.memory.load(node.buffer, node.index, node.dtype, mask)
        if isinstance(node, Constant):
            value = literal(node)
            return builder.constant(register_kind(node.dtype), value)
        if isinstance(node, Index):
            return conversions.cast(builder, self.indices.value(node.value), dtypes.int64, node.dtype)
        assert isinstance(node, Parameter)
        if parameters is None or node.name not in parameters:
            raise CodegenError(1605, f"parameter {node.name} stands outside a reducer", where=self.state.statement)
        return parameters[node.name]


def literal(node: Constant) -> bool | int | float:
    """A literal's value as its type holds it."""
    dtype = node.dtype
    if dtype.is_integer:
        return int(node.value)
    if dtype.kind == "boolean":
        return bool(node.value)
    if dtype in _SMALL:
        return float(dtype.numpy.type(node.value))
    return float(node.value)
