"""Scalar expressions to values. An expression is put in order once and then evaluated for every unrolled iteration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from tilework import dtypes
from tilework.errors import CodegenError
from tilework.fast_dataclass import dataclass, field
from tilework.loops.expressions import Call, Constant, Expression, Index, Load, Parameter, children
from tilework.loops.functions import FUNCTIONS
from tilework.lowering import conversions
from tilework.lowering.builder import Scope
from tilework.lowering.indices import Indices
from tilework.lowering.mathematics.expand import expanded
from tilework.lowering.mathematics.exponential import EIGHTH_POWERS
from tilework.lowering.mathematics.huge_angle import TWO_OVER_PI
from tilework.lowering.memory import Memory
from tilework.lowering.registers import Branch, Carried, Loop, Value
from tilework.lowering.scalars import EMIT
from tilework.lowering.state import State, register_kind

_RARE = "rare_select"

Fused: TypeAlias = "tuple[int, int, int, bool, bool]"
"""Operands of a fused multiply-add: factor, factor, addend; whether to negate the product; whether to negate the
addend.
"""


@dataclass(frozen=True)
class Step:
    """One subexpression: the node, where its value goes, the places of its arguments, its fused form where it has
    one.
    """

    node: Expression
    place: int
    arguments: tuple[int, ...]
    fused: Fused | None = None


@dataclass(frozen=True)
class RareSteps:
    """Steps that run only where a lane's condition holds, and what they replace: (place, rare value, usual value)."""

    condition: int
    steps: tuple[Step, ...]
    members: tuple[tuple[int, int, int], ...]


@dataclass
class Plan:
    """An expression in order; the last value computed is its own."""

    expression: Expression
    """Kept alive, so that its identity stays its own."""
    steps: list[Step | RareSteps] = field(default_factory=list["Step | RareSteps"])
    places: int = 0
    result: int = 0


class _Ordering:
    """Puts one expression in order: operands first, products that feed sums fused, rare parts apart."""

    def __init__(self, expression: Expression, *, contract: bool) -> None:
        self.plan = Plan(expression)
        self.place: dict[int, int] = {}
        usual = _reachable([expression], usual_only=True)
        self.usual = frozenset(id(n) for n in usual)
        self.held = _held(_reachable([expression], usual_only=False))
        self.groups: dict[int, list[Call]] = {}
        self.only_rare: dict[int, list[Expression]] = {}
        for node in usual:
            if isinstance(node, Call) and node.function == _RARE:
                self.groups.setdefault(id(node.arguments[0]), []).append(node)
        self.fused: dict[int, tuple[Call, Expression, bool, bool]] = {}
        self.absorbed: set[int] = set()
        if contract:
            self.find_fused(expression)

    def find_fused(self, expression: Expression) -> None:
        nodes = list(_reachable([expression], usual_only=False))
        uses: dict[int, int] = {}
        for node in nodes:
            for child in children(node):
                uses[id(child)] = uses.get(id(child), 0) + 1
        for node in nodes:
            if not (isinstance(node, Call) and node.function in ("add", "subtract") and node.dtype.is_floating):
                continue
            for side in (0, 1):
                product, other = node.arguments[side], node.arguments[1 - side]
                if isinstance(product, Call) and product.function == "multiply" and uses[id(product)] == 1:
                    minus = node.function == "subtract"
                    self.fused[id(node)] = (product, other, minus and side == 1, minus and side == 0)
                    self.absorbed.add(id(product))
                    break

    def operands(self, node: Expression) -> list[Expression]:
        if id(node) in self.fused:
            product, other, _, _ = self.fused[id(node)]
            return [*product.arguments, other]
        return list(children(node))

    def needs(self, node: Expression) -> list[Expression]:
        """What must be computed before a node; for a rare choice, before all that share its condition."""
        if not (isinstance(node, Call) and node.function == _RARE):
            return self.operands(node)
        condition = node.arguments[0]
        members = self.groups[id(condition)]
        found: list[Expression] = [condition, *(m.arguments[2] for m in members)]
        found += [m.arguments[1] for m in members if id(m.arguments[1]) in self.usual]
        for inner in self.seldom(condition):
            found += [child for child in self.operands(inner) if id(child) in self.usual]
        return found

    def seldom(self, condition: Expression) -> list[Expression]:
        """What only the rare values of one condition need, operands first. (What lies below a usual node is usual, or
        belongs to that node's own rare choice.)
        """
        found = self.only_rare.get(id(condition))
        if found is None:
            roots = [m.arguments[1] for m in self.groups[id(condition)]]
            nodes = _reachable(roots, usual_only=False, apart_from=self.usual)
            found = self.only_rare[id(condition)] = [n for n in nodes if id(n) not in self.absorbed]
        return found

    def run(self) -> Plan:
        root = self.plan.expression
        stack: list[tuple[Expression, bool]] = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if id(node) in self.place:
                continue
            if ready:
                self.emit(node)
            else:
                stack.append((node, True))
                # what holds most values meanwhile comes first: nothing else waits for it then
                needs = sorted(self.needs(node), key=lambda n: -self.held[id(n)])
                stack.extend((n, False) for n in reversed(needs) if id(n) not in self.place)
        self.plan.result = self.place[id(root)]
        return self.plan

    def put(self, node: Expression) -> int:
        """A place of its own (what two rare choices need is computed in both)."""
        found = self.place[id(node)] = self.plan.places
        self.plan.places += 1
        return found

    def step(self, node: Expression) -> Step:
        if id(node) in self.fused:
            product, other, negate_product, negate_other = self.fused[id(node)]
            a, b = (self.place[id(p)] for p in product.arguments)
            return Step(node, self.put(node), (), (a, b, self.place[id(other)], negate_product, negate_other))
        arguments = tuple(self.place[id(child)] for child in children(node))
        return Step(node, self.put(node), arguments)

    def emit(self, node: Expression) -> None:
        if not (isinstance(node, Call) and node.function == _RARE):
            self.plan.steps.append(self.step(node))
            return
        condition = node.arguments[0]
        inner = tuple(self.step(n) for n in self.seldom(condition))
        members = self.groups[id(condition)]
        triples = [(self.put(m), self.place[id(m.arguments[1])], self.place[id(m.arguments[2])]) for m in members]
        self.plan.steps.append(RareSteps(self.place[id(condition)], inner, tuple(triples)))


def _held(nodes: Iterable[Expression]) -> dict[int, int]:
    """How many values each node's evaluation holds at once, if the operand that holds most is evaluated first; `nodes`
    come operands first. (Sethi and Ullman, 1970: exact for trees.)
    """
    found: dict[int, int] = {}
    for node in nodes:
        below = sorted((found[id(child)] for child in children(node)), reverse=True)
        found[id(node)] = max(
            (need + place for place, need in enumerate(below)), default=not isinstance(node, Constant)
        )
    return found


def _reachable(
    roots: Iterable[Expression], *, usual_only: bool, apart_from: frozenset[int] = frozenset()
) -> list[Expression]:
    """Every distinct subexpression, operands first; without the rare values where only the usual ones are wanted, and
    without some nodes (by identity) and what is below them.
    """
    seen: set[int] = set(apart_from)
    found: list[Expression] = []
    stack: list[tuple[Expression, bool]] = [(root, False) for root in reversed(list(roots))]
    while stack:
        node, ready = stack.pop()
        if ready:
            found.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            below = children(node)
            if usual_only and isinstance(node, Call) and node.function == _RARE:
                below = (below[0], below[2])
            stack.extend((child, False) for child in reversed(below))
    return found


class Expressions:
    """Evaluates expressions in the current place."""

    def __init__(self, state: State, indices: Indices, memory: Memory) -> None:
        self.state = state
        self.indices = indices
        self.memory = memory
        self._plans: dict[int, tuple[Expression, Plan]] = {}

    def plan(self, expression: Expression) -> Plan:
        """Its subexpressions in order. (The table keeps the expression alive, so that its id stays its own.)"""
        found = self._plans.get(id(expression))
        if found is None:
            ordering = _Ordering(self.expanded(expression), contract=self.state.numerics.contract)
            found = self._plans[id(expression)] = (expression, ordering.run())
        return found[1]

    def expanded(self, expression: Expression) -> Expression:
        """The expression over functions that the machine has."""
        return expanded(expression, self.state.numerics, lookup=self.state.lookup_lanes > 0)

    def evaluate(self, expression: Expression, mask: Value | None, parameters: dict[str, Value] | None = None) -> Value:
        """The value, a scalar or one for each lane. Loads touch memory only in lanes where `mask` holds."""
        plan = self.plan(expression)
        values: list[Value] = [None] * plan.places  # type: ignore[list-item]
        for step in plan.steps:
            if isinstance(step, Step):
                values[step.place] = self._step(step, values, mask, parameters)
            else:
                self._rare(step, values, mask, parameters)
        return values[plan.result]

    def _rare(
        self, group: RareSteps, values: list[Value], mask: Value | None, parameters: dict[str, Value] | None
    ) -> None:
        """A branch around what few lanes need; inside, lane after lane (short to compile), and nothing is hoisted
        out.
        """
        builder = self.state.builder
        condition = values[group.condition]
        some = self.memory.any(condition)
        lanes = max(v.lanes for v in (condition, *(values[usual] for _, _, usual in group.members)))
        branch = Scope(branch=True)
        outside = builder.depth
        builder.scopes.append(branch)
        floor, builder.floor = builder.floor, builder.depth
        loop = Scope()
        index: Value | None = None
        if lanes:
            builder.scopes.append(loop)
            builder.floor = builder.depth
            index = builder.fresh("i64")
        one = self._lane_values(group, values, index)
        for step in group.steps:
            one[step.place] = self._step(step, one, mask, parameters)
        item = Branch(some, branch.block, Scope().block)
        rounds = (
            Loop(index, builder.integer(0), builder.integer(lanes), True, loop.block) if index is not None else None
        )
        for place, seldom, usual in group.members:
            start = values[usual]
            result = one[seldom]
            if index is not None and rounds is not None:
                start = builder.wide(start, lanes)
                inside, after = builder.fresh(start.kind, lanes), builder.fresh(start.kind, lanes, outside + 1)
                chosen = builder.select(one[group.condition], result, one[usual])
                following = builder.pure("insert_at", start.kind, lanes, (inside, chosen, index))
                rounds.carried.append(Carried(inside, start, following, after))
                result = after
            merged = builder.fresh(start.kind, start.lanes, outside)
            item.merged.append((merged, result, start))
            values[place] = merged
        builder.floor = floor
        if rounds is not None:
            builder.scopes.pop()
            branch.block.items.append(rounds)
        builder.scopes.pop()
        builder.scopes[-1].block.items.append(item)

    def _lane_values(self, group: RareSteps, values: list[Value], index: Value | None) -> list[Value]:
        """The values that the rare steps use from outside, those of one lane where there are lanes."""
        one = list(values)
        if index is None:
            return one
        used = {group.condition, *(usual for _, _, usual in group.members)}
        for step in group.steps:
            used.update(step.fused[:3] if step.fused is not None else step.arguments)
        builder = self.state.builder
        for place in used - {step.place for step in group.steps}:
            vector = values[place]
            if vector.lanes:
                one[place] = builder.pure("extract_at", vector.kind, 0, (vector, index))
        return one

    def _step(self, step: Step, values: list[Value], mask: Value | None, parameters: dict[str, Value] | None) -> Value:
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
            return self._call(node, tuple([values[i] for i in step.arguments]))
        if isinstance(node, Load):
            return self.memory.load(node.buffer, node.index, node.dtype, mask)
        if isinstance(node, Constant):
            return builder.constant(register_kind(node.dtype), literal(node))
        if isinstance(node, Index):
            return conversions.cast(builder, self.indices.value(node.value), dtypes.int64, node.dtype)
        assert isinstance(node, Parameter)
        if parameters is None or node.name not in parameters:
            raise CodegenError(1605, f"parameter {node.name} stands outside a reducer", where=self.state.statement)
        return parameters[node.name]

    def _call(self, node: Call, operands: tuple[Value, ...]) -> Value:
        builder = self.state.builder
        if node.function == "cast":
            return conversions.cast(builder, operands[0], node.arguments[0].dtype, node.dtype)
        if node.function == "bitcast":
            return conversions.bitcast(builder, operands[0], node.arguments[0].dtype, node.dtype)
        if node.function == "two_over_pi":
            return builder.op("table", "i64", operands[0], extra=TWO_OVER_PI)
        if node.function == "eighth_power":
            return builder.op("lookup", "i32", operands[0], extra=(EIGHTH_POWERS, self.state.lookup_lanes))
        emit = EMIT.get(node.function)
        if emit is None:
            where = self.state.statement
            raise CodegenError(1603, f"no code can be generated for {node.function} of {node.dtype}", where=where)
        register_kind(node.dtype)
        dtype = node.arguments[0].dtype
        if dtype.is_small_integer and node.function in ("shift_right_logical", "population_count"):
            operands = (conversions.without_sign(builder, operands[0], dtype), *operands[1:])
        if dtype.is_small_integer and node.function == "shift_right_arithmetic":
            operands = (conversions.with_sign(builder, operands[0], dtype), *operands[1:])
        result = emit(builder, self.state.numerics, dtype, operands)
        if node.dtype.is_small_integer:
            return conversions.wrapped(builder, result, node.dtype)
        if node.dtype.is_small_float and not self.state.numerics.contract and node.function in FUNCTIONS:
            return conversions.rounded(builder, result, node.dtype)
        return result


def literal(node: Constant) -> bool | int | float:
    """A literal's value as its type holds it."""
    dtype = node.dtype
    if dtype.is_integer:
        return int(node.value)
    if dtype.kind == "boolean":
        return bool(node.value)
    if dtype.is_small_float:
        return float(dtype.numpy.type(node.value))
    return float(node.value)
