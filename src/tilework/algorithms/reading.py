"""Reading a computation's stages as expressions of each other, to find an algorithm's pattern in them.

Patterns are found by what stages compute, whatever operators they come from: stages that compute each element on its
own are read through.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilework.compute.notation import Computation, Stage
from tilework.dims import Dim, dim
from tilework.loops.expressions import Call, Constant, Expression, Index, Load, loads, rewrite, substitute, walk


class OtherPatternError(Exception):
    """The computation is something else than what a reader looks for; never leaves the reader."""


def need(condition: object) -> None:
    """Raise `OtherPatternError` unless the condition holds."""
    if not condition:
        raise OtherPatternError


class Reading:
    """The stages of a computation by what they write, and its axes by name."""

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.stages = {target.name: stage for stage in computation.stages for target in stage.targets}
        self.axes = {axis.name: axis for stage in computation.stages for axis in stage.axes}

    def element(self, stage: Stage, index: tuple[Dim, ...]) -> Expression:
        """The value of a stage's element at `index`, its reduction axes as they are named."""
        plain = stage.index is None and not stage.guards and len(stage.targets) == 1 and not stage.exclusive
        need(plain and all(axis.kind != "scan" for axis in stage.axes) and not any(i.loads() for i in index))
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


def pair(expression: Expression, function: str) -> tuple[Expression, Expression]:
    """The two arguments of a call of `function`."""
    need(called(expression) == function)
    assert isinstance(expression, Call)
    one, other = expression.arguments
    return one, other


def called(expression: Expression) -> str:
    """The function that an expression is a call of, else nothing."""
    return expression.function if isinstance(expression, Call) else ""


def is_constant(expression: Expression, value: float) -> bool:
    """Whether it is this number."""
    return isinstance(expression, Constant) and expression.value == value


def names(expression: Expression) -> set[str]:
    """Every name in its indices."""
    return {name for entry in _dims(expression) for name in entry.names()}


def only_name(entry: Dim) -> str:
    """The name that an index is, and nothing else."""
    found = entry.names()
    need(len(found) == 1 and entry == dim(min(found)))
    return min(found)


def _dims(expression: Expression) -> Iterator[Dim]:
    for node in walk(expression):
        if isinstance(node, Load):
            yield from node.index
        elif isinstance(node, Index):
            yield node.value
