"""Attention among the stages of a computation: scores of queries and keys, a softmax over keys, a weighted sum.

    result[b, i, e] = sum over j of weight[b, i, j] value[b, j, e]
    weight[b, i, j] = exp(x[b, i, j] - largest[b, i]) / total[b, i],   x = score(sum over k of query key; b, i, j)

It is found by what stages compute from each other, whatever operators they come from. Stages that compute each element
on its own (a transpose, a scale, a mask, shared heads) are read through.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilework import dtypes
from tilework.compute.notation import Axis, Computation, Stage
from tilework.dims import Dim, dim
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass
from tilework.loops.equal import same_expression
from tilework.loops.expressions import (
    Call,
    Constant,
    Expression,
    Index,
    Load,
    Parameter,
    call,
    loads,
    rewrite,
    substitute,
    walk,
)  # fmt: skip
from tilework.loops.program import Buffer

SCORE = "score"
"""The parameter that stands for the product of a query and a key."""
_LARGEST = frozenset(("larger", "maximum"))


@dataclass(frozen=True, eq=False)
class Attention:
    """What is computed, as expressions over named axes; loads are of the computation's inputs alone."""

    computation: Computation
    batch: tuple[Axis, ...]
    row: Axis
    """The queries of a batch; `key`: its keys; `depth`: what scores are summed over; `column`: what values have."""
    key: Axis
    depth: Axis
    column: Axis
    query: Expression
    """Over batch, row and depth."""
    keys: Expression
    """Over batch, key and depth."""
    values: Expression
    """Over batch, key and column."""
    score: Expression
    """Over batch, row and key, with the parameter `score`: scale and mask."""
    hidden: Expression | None
    """Over batch and row: where it holds, all weights are zero."""
    place: tuple[Dim, ...]
    """The element of the output, over batch, row and column."""

    @property
    def output(self) -> Buffer:
        (only,) = self.computation.outputs
        return only

    @property
    def dtype(self) -> DType:
        return self.query.dtype


def attention_of(computation: Computation) -> Attention | None:
    """The attention that a computation is; None where it is anything else, or more than that."""
    sums = [stage for stage in computation.stages if stage.reducer is not None]
    if len(sums) != 4 or len(computation.outputs) != 1:
        return None
    try:
        return _Reading(computation).attention()
    except _Other:
        return None


class _Other(Exception):  # noqa: N818 - no error: an answer
    """The computation is something else."""


def _need(condition: object) -> None:
    if not condition:
        raise _Other


class _Reading:
    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.stages = {target.name: stage for stage in computation.stages for target in stage.targets}
        self.axes = {axis.name: axis for stage in computation.stages for axis in stage.axes}

    def attention(self) -> Attention:
        last = self.computation.stages[-1]
        _need(last.targets == self.computation.outputs)
        place = last.where
        if last.reducer is None:
            element = self.expanded(self.element(last, place))
            _need(isinstance(element, Load))
            assert isinstance(element, Load)
            summed, index = self.stages.get(element.buffer), element.index
            _need(summed is not None)
            assert summed is not None
        else:
            summed, index = last, place
        key, value = self.sum_of(summed, index)
        one, other = _pair(value, "multiply")
        weights, values = (one, other) if self.inner_loads(one) else (other, one)
        _need(not self.inner_loads(values))
        hidden, weights = self.unhidden(weights, key)
        x = self.softmax_argument(weights, key)
        products = self.inner_loads(x)
        _need(len({(load.buffer, load.index) for load in products}) == 1)
        depth, product = self.sum_of(self.stages[products[0].buffer], products[0].index)
        parameter = Parameter(SCORE, products[0].dtype)
        score = rewrite(
            x, lambda leaf: parameter if isinstance(leaf, Load) and leaf.buffer == products[0].buffer else leaf
        )
        one, other = _pair(product, "multiply")
        query, keys = (other, one) if key in _names(one) else (one, other)
        _need(not self.inner_loads(query) and not self.inner_loads(keys))
        _need({load.dtype for load in products} == {query.dtype} and query.dtype in (dtypes.float32, dtypes.float64))
        _need(query.dtype == keys.dtype == values.dtype == score.dtype == self.computation.outputs[0].dtype)
        asks = _names(query) | (_names(score) - {key})
        asks |= _names(hidden) if hidden is not None else frozenset()
        gives = (_names(keys) | _names(values)) - {key, depth}
        free = list(map(_only_name, place))
        _need(len(set(free)) == len(free))
        # an axis of one element may be left out of an index: it is whatever is still missing
        single = [name for name in free if self.axes[name].extent == 1]
        several = [name for name in free if name not in single]
        columns = [name for name in several if name in _names(values) and name not in asks | _names(keys)]
        columns = columns or single[-1:]
        rows = [name for name in several if name in asks and name not in gives]
        rows = rows or [name for name in single if name not in columns][-1:]
        _need(len(columns) == 1 and rows and key not in _names(query) and key in _names(keys) & _names(values))
        _need(depth in _names(query) & _names(keys) and depth not in asks - _names(query) | _names(values))
        row, column = rows[-1], columns[0]
        batch = tuple(self.axes[name] for name in free if name not in (row, column))
        known = {*free, key, depth}
        parts = [query, keys, values, score, *([hidden] if hidden is not None else [])]
        _need(all(_names(part) <= known | {s.name for s in self.computation.symbols} for part in parts))
        return Attention(
            self.computation, batch, self.axes[row], self.axes[key], self.axes[depth], self.axes[column], query, keys,
            values, score, hidden, place,
        )  # fmt: skip

    # -- stages ---------------------------------------------------------------------------------------------------
    def element(self, stage: Stage, index: tuple[Dim, ...]) -> Expression:
        """The value of a stage's element at `index`, its reduction axes as they are named."""
        plain = stage.index is None and not stage.guards and len(stage.targets) == 1 and not stage.exclusive
        _need(plain and all(axis.kind != "scan" for axis in stage.axes) and not any(i.loads() for i in index))
        free = [axis.name for axis in stage.axes if axis.kind == "parallel"]
        return substitute(stage.values[0], dict(zip(free, index, strict=True)))

    def expanded(self, expression: Expression) -> Expression:
        """The expression with loads of what is computed element by element replaced by its computation."""

        def leaf(node: Expression) -> Expression:
            stage = self.stages.get(node.buffer) if isinstance(node, Load) else None
            if stage is None or stage.reducer is not None:
                return node
            assert isinstance(node, Load)
            return self.expanded(self.element(stage, node.index))

        return rewrite(expression, leaf)

    def inner_loads(self, expression: Expression) -> list[Load]:
        """Loads of what the computation itself reduces to."""
        return [load for load in loads(expression) if load.buffer in self.stages]

    def reduced(self, stage: Stage | None, index: tuple[Dim, ...]) -> tuple[str, Expression]:
        """The one reduction axis of a stage, and the value that it combines for the element at `index`."""
        _need(stage is not None and stage.reducer is not None and stage.init is not None and stage.accumulate is None)
        assert stage is not None
        _need(len(stage.reduction_axes) == 1)
        return stage.reduction_axes[0].name, self.expanded(self.element(stage, index))

    def sum_of(self, stage: Stage | None, index: tuple[Dim, ...]) -> tuple[str, Expression]:
        found = self.reduced(stage, index)
        assert stage is not None
        assert stage.reducer is not None
        _need(stage.reducer.name == "sum")
        return found

    # -- the softmax -----------------------------------------------------------------------------------------------
    def unhidden(self, weights: Expression, key: str) -> tuple[Expression | None, Expression]:
        """Weights that a condition of the row makes zero: the condition, and what they are else."""
        if not (isinstance(weights, Call) and weights.function == "select"):
            return None, weights
        condition, yes, no = weights.arguments
        _need(not self.inner_loads(condition) and key not in _names(condition))
        if _is_constant(yes, 0.0):
            return condition, no
        _need(_is_constant(no, 0.0))
        return call("not", condition), yes

    def softmax_argument(self, weights: Expression, key: str) -> Expression:
        """x, where the weights are the softmax of x over the axis `key`."""
        one, other = _pair(weights, "multiply")
        power, share = (one, other) if _function(one) == "exp" else (other, one)
        whole, total = _pair(share, "divide")
        _need(_is_constant(whole, 1.0) and isinstance(total, Load))
        assert isinstance(total, Load)
        x, largest = self.argument_of(power)
        axis, term = self.sum_of(self.stages.get(total.buffer), total.index)
        _need(same_expression(substitute(term, {axis: dim(key)}), power))
        stage = self.stages.get(largest.buffer)
        axis, term = self.reduced(stage, largest.index)
        assert stage is not None
        assert stage.reducer is not None
        _need(stage.reducer.name in _LARGEST and same_expression(substitute(term, {axis: dim(key)}), x))
        _need(all(key not in entry.names() for entry in (*total.index, *largest.index)))
        return x

    def argument_of(self, power: Expression) -> tuple[Expression, Load]:
        """x and the row's maximum, of exp(min(x - maximum, 0))."""
        _need(_function(power) == "exp")
        assert isinstance(power, Call)
        below, zero = _pair(power.arguments[0], "minimum")
        _need(_is_constant(zero, 0.0))
        x, largest = _pair(below, "subtract")
        _need(isinstance(largest, Load))
        assert isinstance(largest, Load)
        return x, largest


def _function(expression: Expression) -> str:
    return expression.function if isinstance(expression, Call) else ""


def _pair(expression: Expression, function: str) -> tuple[Expression, Expression]:
    _need(_function(expression) == function)
    assert isinstance(expression, Call)
    one, other = expression.arguments
    return one, other


def _is_constant(expression: Expression, value: float) -> bool:
    return isinstance(expression, Constant) and expression.value == value


def _names(expression: Expression) -> set[str]:
    return {name for entry in _dims(expression) for name in entry.names()}


def _dims(expression: Expression) -> Iterator[Dim]:
    for node in walk(expression):
        if isinstance(node, Load):
            yield from node.index
        elif isinstance(node, Index):
            yield node.value


def _only_name(entry: Dim) -> str:
    names = entry.names()
    _need(len(names) == 1 and entry == dim(min(names)))
    return min(names)
