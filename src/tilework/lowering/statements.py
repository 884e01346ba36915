"""One statement in its place: guards, the start of a reduction, combining, writing.

Guards that are known fold away; one that is the same for all lanes is a branch; one that differs is a mask. A reduction
over the lanes themselves is combined by halves where its order may change, else lane after lane.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from tilework.dims import Dim
from tilework.dtypes import DType
from tilework.errors import CodegenError
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Expression, Load, Parameter, cast, loads, rewrite
from tilework.loops.program import Access, Compute, Reducer
from tilework.lowering import conversions
from tilework.lowering.builder import Scope
from tilework.lowering.cells import Cells, extract, moves
from tilework.lowering.expressions import Expressions, literal
from tilework.lowering.indices import Indices
from tilework.lowering.memory import Memory
from tilework.lowering.registers import Branch, Value
from tilework.lowering.state import State, moved_as, register_kind


@dataclass(frozen=True)
class Facts:
    """What is the same wherever a statement occurs."""

    plain_guards: tuple[Dim, ...]
    loaded_guards: tuple[Dim, ...]
    inner_guards: tuple[Dim, ...]
    """Guards that do not apply to the start of the reduction."""
    combined: tuple[Expression, ...]
    """The reducer's expressions over `left` parameters and the statement's values."""
    reads_target: bool
    """Whether a value reads another element of a buffer that the statement writes."""
    scatters: bool


class Statements:
    """Emits statements of the current function."""

    def __init__(self, state: State, indices: Indices, memory: Memory, cells: Cells, expressions: Expressions) -> None:
        self.state = state
        self.indices = indices
        self.memory = memory
        self.cells = cells
        self.expressions = expressions
        self.assumed: set[Dim] = set()
        """Guards that a branch around the current place has tested."""
        self._facts: dict[int, Facts] = {}

    # -- facts ---------------------------------------------------------------------------------------------------------
    def facts(self, node: Compute) -> Facts:
        found = self._facts.get(id(node))
        if found is None:
            found = self._facts[id(node)] = self._find_facts(node)
        return found

    def _find_facts(self, node: Compute) -> Facts:
        reduced = set(node.reduction) if node.reducer is not None and node.init is not None else set[str]()
        inner = tuple(g for g in node.guards if g.names() & reduced)
        outer = [g for g in node.guards if not g.names() & reduced]
        targets = {access.buffer: access.index for access in node.targets}
        reads = any(
            load.buffer in targets and load.index != targets[load.buffer]
            for value in node.values
            for load in loads(value)
        )
        return Facts(
            tuple(g for g in outer if not g.loads()),
            tuple(g for g in outer if g.loads()),
            tuple(sorted(inner, key=lambda g: bool(g.loads()))),
            _combined(node) if node.reducer is not None else (),
            reads,
            any(i.loads() for access in node.targets for i in access.index if i.terms),
        )

    # -- conditions ----------------------------------------------------------------------------------------------------
    @contextmanager
    def branch(self, condition: Value) -> Generator[None]:
        """What is emitted inside runs only where a scalar condition holds; cells written there are merged after it."""
        state, builder = self.state, self.state.builder
        before = dict(state.function.cells)
        scope = Scope(branch=True)
        builder.scopes.append(scope)
        yield
        builder.scopes.pop()
        item = Branch(condition, scope.block, Scope().block)
        after = state.function.cells
        for key, value in list(after.items()):
            old = before.get(key)
            if old is value:
                continue
            old = old if old is not None else self.cells.empty(self.cells.layouts[key[0]])
            merged = builder.fresh(value.kind, value.lanes)
            item.merged.append((merged, value, old))
            after[key] = merged
        builder.scopes[-1].block.items.append(item)

    def guarded(self, guards: tuple[Dim, ...], mask: Value | None, then: Callable[[Value | None], None]) -> None:
        """Run `then` with the lanes in which the guards hold, in a branch where some hold for all lanes or none."""
        scalar: Value | None = None
        self.memory.guard_mask = mask
        for guard in guards:
            if guard in self.assumed:
                continue
            holds = self.indices.holds(guard)
            if holds is True:
                continue
            if holds is False:
                return
            if holds.lanes:
                mask = self.state.builder.both(mask, holds)
                self.memory.guard_mask = mask
            else:
                scalar = self.state.builder.both(scalar, holds)
        if mask is not None and isinstance(mask.constant, (tuple, bool)):
            lanes = mask.constant if isinstance(mask.constant, tuple) else (mask.constant,)
            if not any(lanes):
                return
            mask = None if all(lanes) else mask
        if scalar is None:
            then(mask)
            return
        with self.branch(scalar):
            then(mask)

    def conditional(
        self,
        plain: tuple[Dim, ...],
        loaded: tuple[Dim, ...],
        then: Callable[[Value | None], None],
        mask: Value | None = None,
    ) -> None:
        """As `guarded`; guards with loaded elements are tested one by one after those without."""
        self.guarded(plain, mask, lambda inner: self._one_by_one(loaded, inner, then))
        self.memory.guard_mask = None

    def _one_by_one(self, guards: tuple[Dim, ...], mask: Value | None, then: Callable[[Value | None], None]) -> None:
        if guards:
            self.guarded(guards[:1], mask, lambda inner: self._one_by_one(guards[1:], inner, then))
        else:
            self.memory.guard_mask = mask
            then(mask)

    # -- the statement -------------------------------------------------------------------------------------------------
    def compute(self, node: Compute) -> None:
        """Emit a statement where it stands."""
        state = self.state
        facts = self.facts(node)
        state.statement = node.name
        lane = state.lane
        if lane is not None and self._lane_by_lane(node, facts):
            state.lane = None
            for i in range(lane.width):
                state.environment[lane.variable] = i
                self.compute(node)
            del state.environment[lane.variable]
            state.lane = lane
            return
        self.conditional(facts.plain_guards, facts.loaded_guards, lambda mask: self._run(node, facts, mask))

    def varies(self, access: Access) -> bool:
        """Whether an access touches another element in each lane."""
        if self.state.lane is None:
            return False
        if access.buffer in self.cells.layouts:
            return self.cells.varies(access.buffer, access.index)
        return self.indices.resolve(self.memory.facts(access.buffer, access.index).flat).varies

    def _lane_by_lane(self, node: Compute, facts: Facts) -> bool:
        """Whether the lanes must run one after another: they may meet, or order matters."""
        if facts.reads_target:
            return True
        for access in node.targets:
            if not self.varies(access):
                if node.reducer is None:
                    return True
                return not (node.reducer.relaxable and self.state.numerics.reassociate)
            if node.reducer is not None and access.buffer not in self.cells.layouts:
                found = self.indices.resolve(self.memory.facts(access.buffer, access.index).flat)
                if found.vector:
                    return True
        return False

    def _run(self, node: Compute, facts: Facts, mask: Value | None) -> None:
        if node.reducer is None:
            kinds = [self._moved_as(node, *pair) for pair in zip(node.targets, node.values, strict=True)]
            values = [
                self.expressions.evaluate(value, mask)
                if bits is None or not isinstance(value, Load)
                else self.memory.load(value.buffer, value.index, bits, mask)
                for value, bits in zip(node.values, kinds, strict=True)
            ]
            for access, value, source, bits in zip(node.targets, values, node.values, kinds, strict=True):
                if bits is None:
                    self.write(access, value, source.dtype, mask)
                elif access.buffer in self.cells.layouts:
                    self.cells.write(access.buffer, access.index, value, mask)
                else:
                    self.memory.store(access.buffer, access.index, bits, value, mask)
            return
        reducer = node.reducer
        first = self._first(node) if node.init is not None else False
        if first is True:
            start: list[Value] | None = [self._start(node, i) for i in range(len(node.targets))]
        else:
            start = None
        if facts.inner_guards and first is not False:
            # The start is not subject to the guards that name a reduction variable: it is a write of its own.
            condition = None if first is True else first
            if condition is None or condition.lanes:
                self._write_start(node, self.state.builder.both(mask, condition), guarded=condition is None)
            else:
                with self.branch(condition):
                    self._write_start(node, mask)
            first, start = False, None

        def combine(inner: Value | None) -> None:
            self._combine(node, reducer, facts, first, start, inner)

        plain = tuple(g for g in facts.inner_guards if not g.loads())
        loaded = tuple(g for g in facts.inner_guards if g.loads())
        if facts.inner_guards:
            self.conditional(plain, loaded, combine, mask)
        else:
            combine(mask)

    def _moved_as(self, node: Compute, target: Access, value: Expression) -> DType | None:
        """The type as which a statement moves elements, where it does not have to convert them on the way."""
        if not moves(node, target, value, self.state.buffers):
            return None
        layouts = [self.cells.layouts.get(name) for name in (target.buffer, *(load.buffer for load in loads(value)))]
        return None if any(layout is not None and not layout.bits for layout in layouts) else moved_as(value.dtype)

    def _combine(
        self,
        node: Compute,
        reducer: Reducer,
        facts: Facts,
        first: Value | bool,
        start: list[Value] | None,
        mask: Value | None,
    ) -> None:
        across = self.state.lane is not None and not self.varies(node.targets[0])
        if across and mask is not None and any(a.buffer not in self.cells.layouts for a in node.targets):
            some = self.memory.any(mask)
            if some.constant is None:  # where no lane runs, the target may not even exist
                with self.branch(some):
                    self._combine_in(node, reducer, facts, first, start, mask, across)
                return
        self._combine_in(node, reducer, facts, first, start, mask, across)

    def _combine_in(
        self, node: Compute, reducer: Reducer, facts: Facts, first: Value | bool, start: list[Value] | None,
        mask: Value | None, across: bool,
    ) -> None:  # fmt: skip
        builder = self.state.builder
        old: dict[str, Value] = {}
        for position, (access, left) in enumerate(zip(node.targets, reducer.left, strict=True)):
            if start is not None:
                old[left.name] = start[position]
                continue
            value = self.read(access, left.dtype, None if across else mask)
            if isinstance(first, Value):
                value = builder.select(first, self._start(node, position), value)
            old[left.name] = value
        if not across:
            results = self._evaluate(facts.combined, mask, old)
        else:
            values = self._across(node, reducer, mask)
            parameters = {**old, **{right.name: v for right, v in zip(reducer.right, values, strict=True)}}
            results = self._evaluate(reducer.combine, None, parameters)
            mask = None
        for access, value, combined in zip(node.targets, results, reducer.combine, strict=True):
            self.write(access, value, combined.dtype, mask)

    def _evaluate(self, parts: tuple[Expression, ...], mask: Value | None, parameters: dict[str, Value]) -> list[Value]:
        return [self.expressions.evaluate(part, mask, parameters) for part in parts]

    def _across(self, node: Compute, reducer: Reducer, mask: Value | None) -> list[Value]:
        """The values of all lanes combined to one, by halves."""
        builder = self.state.builder
        assert self.state.lane is not None
        width = self.state.lane.width
        values: list[Value] = []
        for value, right, identity in zip(node.values, reducer.right, reducer.identity, strict=True):
            found = conversions.cast(builder, self.expressions.evaluate(value, mask), value.dtype, right.dtype)
            found = builder.wide(found, width)
            if mask is not None:
                found = builder.select(
                    mask, found, builder.constant(register_kind(right.dtype), literal(identity), width)
                )
            values.append(found)

        def together(left: list[Value], right: list[Value]) -> list[Value]:
            names = {p.name: v for p, v in zip(reducer.left, left, strict=True)}
            names |= {p.name: v for p, v in zip(reducer.right, right, strict=True)}
            return self._evaluate(reducer.combine, None, names)

        while width % 2 == 0 and width > 1:
            half = width // 2
            low, high = tuple(range(half)), tuple(range(half, width))
            values = together([self.lanes_of(v, low) for v in values], [self.lanes_of(v, high) for v in values])
            width = half
        total = [extract(self.state, v, 0) for v in values]
        for i in range(1, width):
            total = together(total, [extract(self.state, v, i) for v in values])
        return total

    def lanes_of(self, value: Value, lanes: tuple[int, ...]) -> Value:
        """Some lanes of a vector; one lane is a scalar."""
        if len(lanes) == 1:
            return extract(self.state, value, lanes[0])
        if value.constant is not None:
            whole = value.constant
            return self.state.builder.constant(
                value.kind, tuple(whole[i] for i in lanes) if isinstance(whole, tuple) else whole, len(lanes)
            )
        return self.state.builder.pure("shuffle", value.kind, len(lanes), (value, value), lanes)

    # -- the start of a reduction --------------------------------------------------------------------------------------
    def _first(self, node: Compute) -> Value | bool:
        """Whether this is the first iteration of the reduction: known, or a condition."""
        builder = self.state.builder
        condition: Value | None = None
        for name in node.reduction:
            number = self.state.environment.get(name)
            if number is not None:
                if number:
                    return False
                continue
            if self.state.lane is not None and name == self.state.lane.variable:
                if self.varies(node.targets[0]):
                    width = self.state.lane.width
                    condition = builder.both(condition, builder.constant("i1", (True, *[False] * (width - 1)), width))
                continue
            condition = builder.both(condition, builder.compare("eq", self.state.variable(name), builder.integer(0)))
        return True if condition is None else condition

    def _start(self, node: Compute, position: int) -> Value:
        """The literal that component `position` starts from, in its combining type."""
        assert node.init is not None
        assert node.reducer is not None
        constant = node.init[position]
        value = self.state.builder.constant(register_kind(constant.dtype), literal(constant))
        return conversions.cast(self.state.builder, value, constant.dtype, node.reducer.left[position].dtype)

    def _write_start(self, node: Compute, mask: Value | None, *, guarded: bool = True) -> None:
        assert node.reducer is not None
        for position, access in enumerate(node.targets):
            kind = node.reducer.left[position].dtype
            self.write(access, self._start(node, position), kind, mask, guarded=guarded)

    # -- elements ------------------------------------------------------------------------------------------------------
    def dtype(self, access: Access) -> DType:
        """The element type of the buffer that is accessed."""
        found = self.state.buffers.get(access.buffer)
        if found is None:
            raise CodegenError(1605, f"there is no buffer {access.buffer}", where=self.state.statement)
        return found.dtype

    def read(self, access: Access, dtype: DType, mask: Value | None) -> Value:
        """The element as a value of another type."""
        held = self.dtype(access)
        return conversions.cast(
            self.state.builder, self.memory.load(access.buffer, access.index, held, mask), held, dtype
        )

    def write(self, access: Access, value: Value, source: DType, mask: Value | None, *, guarded: bool = True) -> None:
        """Convert the value to the element's type and write it, in the lanes of the mask (`guarded`: of the guards)."""
        held = self.dtype(access)
        small = held.is_small_float
        if not (small and value.kind == "f32" and source.is_floating):  # storing rounds these
            value = conversions.cast(self.state.builder, value, source, held)
        if access.buffer in self.cells.layouts:
            if small:
                value = conversions.rounded(self.state.builder, value, held)
            self.cells.write(access.buffer, access.index, value, mask, guarded=guarded)
        else:
            self.memory.store(access.buffer, access.index, held, value, mask)


def _combined(node: Compute) -> tuple[Expression, ...]:
    """The reducer's expressions with the statement's values in place of the right parameters (and their types cast)."""
    assert node.reducer is not None
    values = {
        right.name: cast(value, right.dtype) for right, value in zip(node.reducer.right, node.values, strict=True)
    }
    lefts = {left.name for left in node.reducer.left}

    def leaf(expression: Expression) -> Expression:
        if isinstance(expression, Parameter) and expression.name not in lefts:
            return values.get(expression.name, expression)
        return expression

    memo: dict[int, Expression] = {}
    return tuple(rewrite(part, leaf, memo) for part in node.reducer.combine)
