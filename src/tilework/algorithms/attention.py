"""Attention among the stages of a computation: scores of queries and keys, a softmax over keys, a weighted sum.

    result[b, i, e] = sum over j of weight[b, i, j] value[b, j, e]
    weight[b, i, j] = exp(x[b, i, j] - largest[b, i]) / total[b, i],   x = score(sum over k of query key; b, i, j)

It is found by what stages compute from each other, whatever operators they come from. Stages that compute each element
on its own (a transpose, a scale, a mask, shared heads) are read through.
"""

from __future__ import annotations

from tilework import dtypes
from tilework.algorithms.reading import OtherPatternError, Reading, called, is_constant, names, need, only_name, pair
from tilework.compute.notation import Axis, Computation, Stage
from tilework.dims import Dim, dim
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass
from tilework.loops.equal import same_expression
from tilework.loops.expressions import (
    Call,
    Expression,
    Load,
    Parameter,
    call,
    rewrite,
    substitute,
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
        return _AttentionReading(computation).attention()
    except OtherPatternError:
        return None


class _AttentionReading(Reading):
    def attention(self) -> Attention:
        last = self.computation.stages[-1]
        need(last.targets == self.computation.outputs)
        place = last.where
        if last.reducer is None:
            element = self.expanded(self.element(last, place))
            need(isinstance(element, Load))
            assert isinstance(element, Load)
            summed, index = self.stages.get(element.buffer), element.index
            need(summed is not None)
            assert summed is not None
        else:
            summed, index = last, place
        key, value = self.sum_of(summed, index)
        one, other = pair(value, "multiply")
        weights, values = (one, other) if self.inner_loads(one) else (other, one)
        need(not self.inner_loads(values))
        hidden, weights = self.unhidden(weights, key)
        x = self.softmax_argument(weights, key)
        products = self.inner_loads(x)
        need(len({(load.buffer, load.index) for load in products}) == 1)
        depth, product = self.sum_of(self.stages[products[0].buffer], products[0].index)
        parameter = Parameter(SCORE, products[0].dtype)
        score = rewrite(
            x, lambda leaf: parameter if isinstance(leaf, Load) and leaf.buffer == products[0].buffer else leaf
        )
        one, other = pair(product, "multiply")
        query, keys = (other, one) if key in names(one) else (one, other)
        need(not self.inner_loads(query) and not self.inner_loads(keys))
        need({load.dtype for load in products} == {query.dtype} and query.dtype in (dtypes.float32, dtypes.float64))
        need(query.dtype == keys.dtype == values.dtype == score.dtype == self.computation.outputs[0].dtype)
        asks = names(query) | (names(score) - {key})
        asks |= names(hidden) if hidden is not None else frozenset()
        gives = (names(keys) | names(values)) - {key, depth}
        free = list(map(only_name, place))
        need(len(set(free)) == len(free))
        # an axis of one element may be left out of an index: it is whatever is still missing
        single = [name for name in free if self.axes[name].extent == 1]
        several = [name for name in free if name not in single]
        columns = [name for name in several if name in names(values) and name not in asks | names(keys)]
        columns = columns or single[-1:]
        rows = [name for name in several if name in asks and name not in gives]
        rows = rows or [name for name in single if name not in columns][-1:]
        need(len(columns) == 1 and rows and key not in names(query) and key in names(keys) & names(values))
        need(depth in names(query) & names(keys) and depth not in asks - names(query) | names(values))
        row, column = rows[-1], columns[0]
        batch = tuple(self.axes[name] for name in free if name not in (row, column))
        known = {*free, key, depth}
        parts = [query, keys, values, score, *([hidden] if hidden is not None else [])]
        need(all(names(part) <= known | {s.name for s in self.computation.symbols} for part in parts))
        return Attention(
            self.computation, batch, self.axes[row], self.axes[key], self.axes[depth], self.axes[column], query, keys,
            values, score, hidden, place,
        )  # fmt: skip

    # -- stages ---------------------------------------------------------------------------------------------------
    def reduced(self, stage: Stage | None, index: tuple[Dim, ...]) -> tuple[str, Expression]:
        """The one reduction axis of a stage, and the value that it combines for the element at `index`."""
        need(stage is not None and stage.reducer is not None and stage.init is not None and stage.accumulate is None)
        assert stage is not None
        need(len(stage.reduction_axes) == 1)
        return stage.reduction_axes[0].name, self.expanded(self.element(stage, index))

    def sum_of(self, stage: Stage | None, index: tuple[Dim, ...]) -> tuple[str, Expression]:
        found = self.reduced(stage, index)
        assert stage is not None
        assert stage.reducer is not None
        need(stage.reducer.name == "sum")
        return found

    # -- the softmax -----------------------------------------------------------------------------------------------
    def unhidden(self, weights: Expression, key: str) -> tuple[Expression | None, Expression]:
        """Weights that a condition of the row makes zero: the condition, and what they are else."""
        if not (isinstance(weights, Call) and weights.function == "select"):
            return None, weights
        condition, yes, no = weights.arguments
        need(not self.inner_loads(condition) and key not in names(condition))
        if is_constant(yes, 0.0):
            return condition, no
        need(is_constant(no, 0.0))
        return call("not", condition), yes

    def softmax_argument(self, weights: Expression, key: str) -> Expression:
        """x, where the weights are the softmax of x over the axis `key`."""
        one, other = pair(weights, "multiply")
        power, share = (one, other) if called(one) == "exp" else (other, one)
        whole, total = pair(share, "divide")
        need(is_constant(whole, 1.0) and isinstance(total, Load))
        assert isinstance(total, Load)
        x, largest = self.argument_of(power)
        axis, term = self.sum_of(self.stages.get(total.buffer), total.index)
        need(same_expression(substitute(term, {axis: dim(key)}), power))
        stage = self.stages.get(largest.buffer)
        axis, term = self.reduced(stage, largest.index)
        assert stage is not None
        assert stage.reducer is not None
        need(stage.reducer.name in _LARGEST and same_expression(substitute(term, {axis: dim(key)}), x))
        need(all(key not in entry.names() for entry in (*total.index, *largest.index)))
        return x

    def argument_of(self, power: Expression) -> tuple[Expression, Load]:
        """x and the row's maximum, of exp(min(x - maximum, 0))."""
        need(called(power) == "exp")
        assert isinstance(power, Call)
        below, zero = pair(power.arguments[0], "minimum")
        need(is_constant(zero, 0.0))
        x, largest = pair(below, "subtract")
        need(isinstance(largest, Load))
        assert isinstance(largest, Load)
        return x, largest
