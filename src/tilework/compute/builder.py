"""Writing a computation as a person would.

    a, b = placeholder("a", float32, "M", "K"), placeholder("b", float32, "K", "N")
    k = reduce_axis("K", "k")
    c = compute("c", ("M", "N"), lambda i, j: sum(a[i, k] * b[k, j], k))
    program = computation("matmul", [a, b], [c])

A computed tensor remembers its stages; `computation` gathers those that its outputs need. Axes are named by the
function's parameters (`c.i` where another stage has `i` already).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias
from typing import cast as typing_cast

from tilework import dtypes
from tilework.compute.given import NotAnElement, axes_of, element_type, expressions_of, extent, extents, name_of
from tilework.compute.notation import Axis, Computation, Stage
from tilework.dims import Dim, IntLike, Symbol, dim, loaded
from tilework.dtypes import DType
from tilework.errors import LoopProgramError
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import (
    Expression,
    Load,
    Operand,
    Parameter,
    call,
    cast,
    constant,
    index,
    substitute,
    walk,
)  # fmt: skip
from tilework.loops.program import Buffer, Reducer
from tilework.loops.reducers import reducer as built_in_reducer

__all__ = [
    "Guarded", "Reduction", "Tensor", "arg_reducer", "call", "cast", "computation", "compute", "compute_several",
    "constant", "define_reducer", "equal", "greater", "greater_equal", "index", "less", "less_equal", "max", "min",
    "not_equal", "placeholder", "product", "reduce_axis", "reduction", "rename_axes", "scan", "scan_axis", "scatter",
    "select", "sum", "where",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Tensor:
    """A named array of a computation: an input, or what a stage defines. `tensor[i, j]` is an element."""

    buffer: Buffer
    stages: tuple[Stage, ...] = ()
    """Stages to run, in order, so that it holds its values: those of the tensors it reads, then its own."""
    sources: tuple[Buffer, ...] = ()
    """The inputs that those stages read."""

    @property
    def name(self) -> str:
        return self.buffer.name

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.buffer.shape

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    def __getitem__(self, place: Place | tuple[Place, ...]) -> Expression:
        return _Element(self.name, _places(self.buffer, place), self.dtype, self)

    def at(self, *place: Place) -> Dim:
        """An element as an index, which makes an access depend on data (the tensor holds integers).

        A computed tensor that is read in no other way must be listed among `reads`.
        """
        return loaded(self.name, _places(self.buffer, place))


@dataclass(frozen=True, eq=False)
class _Element(Load):
    """A load that knows its tensor, so that `compute` finds the stages it needs."""

    tensor: Tensor


Place: TypeAlias = "IntLike | Axis"


@dataclass(frozen=True, eq=False)
class Reduction(NotAnElement):
    """Values to be combined over axes; what `compute`'s function may return. `types` are those of the targets."""

    values: tuple[Expression, ...]
    axes: tuple[Axis, ...]
    reducer: Reducer
    types: tuple[DType, ...]
    exclusive: bool = False
    accumulate: DType | None = None
    guards: tuple[Dim, ...] = ()

    @property
    def is_scan(self) -> bool:
        return any(axis.kind == "scan" for axis in self.axes)


@dataclass(frozen=True, eq=False)
class Guarded(NotAnElement):
    """A value that is defined only where conditions hold; see `where`."""

    value: Expression | tuple[Expression, ...]
    guards: tuple[Dim, ...]


Body: TypeAlias = Expression | tuple[Expression, ...] | Reduction | Guarded
Definition: TypeAlias = (
    Callable[[], Body]
    | Callable[[Dim], Body]
    | Callable[[Dim, Dim], Body]
    | Callable[[Dim, Dim, Dim], Body]
    | Callable[[Dim, Dim, Dim, Dim], Body]
    | Callable[[Dim, Dim, Dim, Dim, Dim], Body]
    | Callable[[Dim, Dim, Dim, Dim, Dim, Dim], Body]
)
"""A function of one dim per dimension (of any number, whatever the type says)."""


def _places(buffer: Buffer, place: Place | tuple[Place, ...]) -> tuple[Dim, ...]:
    parts = place if isinstance(place, tuple) else (place,)
    if len(parts) != len(buffer.shape):
        raise LoopProgramError(
            1352, f"{buffer.name} has {len(buffer.shape)} dimensions, not {len(parts)}",
            hint="give one index for each dimension",
        )  # fmt: skip
    for part in parts:
        if _is_expression(part):
            hint = "an element of integers is an index as tensor.at(i)"
            raise LoopProgramError(1352, f"an element of {buffer.name} is chosen by a value", hint=hint)
    return tuple(dim(p.name if isinstance(p, Axis) else p) for p in parts)


def _is_expression(value: object) -> bool:
    return isinstance(value, Expression)


def placeholder(name: str, dtype: DType | str, *shape: IntLike) -> Tensor:
    """An input of the computation.

    `dtype` may be a name ("float32") or numpy's type. An extent is an integer, a dim, or a text: a symbol ("N") or an
    expression of symbols ("2*N + 1"). Raises `LoopProgramError` 1352 or 1329, `UsageError` 1003 or 1004, for others.
    """
    where = f"placeholder {name_of(name, 'an array')}"
    entries: object = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    sizes = tuple(entry.extent if isinstance(entry, Axis) else entry for entry in extents(entries, where))
    found = Buffer(name, sizes, element_type(dtype, where))
    return Tensor(found, (), (found,))


def reduce_axis(size: IntLike, name: str = "k") -> Axis:
    """An axis to reduce over; use it as an index. Its name differs from those of the result's axes."""
    return Axis(name_of(name, "an axis"), extent(size, f"axis {name}"), "reduction")


def scan_axis(size: IntLike, name: str = "s") -> Axis:
    """An axis whose points follow one another: an entry of the result's shape, and what a scan goes along."""
    return Axis(name_of(name, "an axis"), extent(size, f"axis {name}"), "scan")


# -- reductions --------------------------------------------------------------------------------------------------------
def reduction(
    reducer: Reducer | str,
    values: Expression | Sequence[Expression],
    axes: Axis | Sequence[Axis],
    *,
    accumulate: DType | None = None,
    where: Sequence[IntLike] = (),
) -> Reduction:
    """Combine values over axes by a built-in reducer (by name) or another, starting from its identity.

    `where` lists conditions (dims >= 0) under which a point takes part.
    """
    parts, over = expressions_of(values, "a reduction"), axes_of(axes, "a reduction")
    found = built_in_reducer(reducer, accumulate or parts[0].dtype) if isinstance(reducer, str) else reducer
    if found.arity != len(parts):
        raise LoopProgramError(
            1352, f"{found.name} combines {found.arity} components, not {len(parts)}",
            hint="give as many values as it combines",
        )  # fmt: skip
    converted = tuple(cast(part, right.dtype) for part, right in zip(parts, found.right, strict=True))
    types = tuple(part.dtype for part in (parts if accumulate is not None else converted))
    return Reduction(converted, over, found, types, False, accumulate, tuple(dim(condition) for condition in where))


def sum(value: Expression, axes: Axis | Sequence[Axis], *, accumulate: DType | None = None) -> Reduction:  # noqa: A001 - its name in mathematics
    """The sum over axes."""
    return reduction("sum", value, axes, accumulate=accumulate)


def product(value: Expression, axes: Axis | Sequence[Axis]) -> Reduction:
    """The product over axes."""
    return reduction("product", value, axes)


def max(value: Expression, axes: Axis | Sequence[Axis]) -> Reduction:  # noqa: A001
    """The largest value over axes (NaN where there is one)."""
    return reduction("maximum", value, axes)


def min(value: Expression, axes: Axis | Sequence[Axis]) -> Reduction:  # noqa: A001
    """The smallest value over axes (NaN where there is one)."""
    return reduction("minimum", value, axes)


def scan(found: Reduction, *, exclusive: bool = False) -> Reduction:
    """Keep every partial result along a scan axis; `exclusive`: before the point itself is combined."""
    if not found.is_scan:
        hint = 's = scan_axis("N", "s") is an entry of the shape, and what to reduce over'
        raise LoopProgramError(1352, "a scan goes along a scan axis", hint=hint)
    return replace(found, exclusive=exclusive)


def define_reducer(
    name: str,
    types: Sequence[DType],
    combine: Callable[[tuple[Parameter, ...], tuple[Parameter, ...]], Sequence[Expression]],
    identity: Sequence[bool | int | float],
    *,
    relaxable: bool = True,
) -> Reducer:
    """A reducer from a function of two partial results (tuples of components)."""
    left = tuple(Parameter(f"left{n}", t) for n, t in enumerate(types))
    right = tuple(Parameter(f"right{n}", t) for n, t in enumerate(types))
    start = tuple(constant(v, t) for v, t in zip(identity, types, strict=True))
    return Reducer(name, left, right, tuple(combine(left, right)), start, relaxable)


def arg_reducer(kind: str, dtype: DType, index_dtype: DType = dtypes.int64) -> Reducer:
    """`argmax` or `argmin` over (value, position) pairs: the first position of the extreme, or of the first NaN."""
    if kind not in ("argmax", "argmin"):
        raise LoopProgramError(1352, f"{kind!r} is neither argmax nor argmin", hint="use 'argmax' or 'argmin'")
    better = "greater" if kind == "argmax" else "less"

    def combine(left: tuple[Parameter, ...], right: tuple[Parameter, ...]) -> tuple[Expression, ...]:
        (a, i), (b, j) = left, right
        # The identity's position is below every other; it loses to any real element of the same value.
        earlier = call("or", call("less", i, 0), call("and", call("greater_equal", j, 0), call("less", j, i)))
        tie = call("and", call("equal", a, b), earlier)
        wins = call("or", call(better, b, a), tie)
        if dtype.is_floating:
            nan_a, nan_b = call("is_nan", a), call("is_nan", b)
            both = call("and", call("and", nan_a, nan_b), earlier)
            only = call("and", nan_b, call("not", nan_a))
            wins = call("or", call("or", only, both), call("and", wins, call("not", nan_a)))
        return call("select", wins, b, a), call("select", wins, j, i)

    extreme = built_in_reducer("maximum" if kind == "argmax" else "minimum", dtype).identity[0]
    return define_reducer(f"{kind}.{dtype}.{index_dtype}", (dtype, index_dtype), combine, (extreme.value, -1))


# -- values ------------------------------------------------------------------------------------------------------------
def select(condition: Expression, first: Operand, second: Operand) -> Expression:
    """`first` where the condition holds, else `second`; both are evaluated."""
    if not isinstance(first, Expression) and isinstance(second, Expression):
        first = constant(first, second.dtype)
    if isinstance(first, Expression) and not isinstance(second, Expression):
        second = constant(second, first.dtype)
    return call("select", condition, first, second)


def where(value: Expression | tuple[Expression, ...], *conditions: IntLike) -> Guarded:
    """Define the element only where every condition (a dim) is >= 0."""
    return Guarded(value, tuple(dim(condition) for condition in conditions))


def less(a: Expression, b: Operand) -> Expression:
    """Whether a < b."""
    return call("less", a, b)


def less_equal(a: Expression, b: Operand) -> Expression:
    """Whether a <= b."""
    return call("less_equal", a, b)


def greater(a: Expression, b: Operand) -> Expression:
    """Whether a > b."""
    return call("greater", a, b)


def greater_equal(a: Expression, b: Operand) -> Expression:
    """Whether a >= b."""
    return call("greater_equal", a, b)


def equal(a: Expression, b: Operand) -> Expression:
    """Whether a = b."""
    return call("equal", a, b)


def not_equal(a: Expression, b: Operand) -> Expression:
    """Whether a and b differ."""
    return call("not_equal", a, b)


# -- stages ------------------------------------------------------------------------------------------------------------
def compute(name: str, shape: Iterable[IntLike | Axis], body: Definition, *, reads: Sequence[Tensor] = ()) -> Tensor:
    """A tensor of this shape whose element at (i, j, ...) is `body(i, j, ...)`; see `compute_several`."""
    (only,) = compute_several((name,), shape, body, reads=reads)
    return only


def compute_several(
    names: Sequence[str], shape: Iterable[IntLike | Axis], body: Definition, *, reads: Sequence[Tensor] = ()
) -> tuple[Tensor, ...]:
    """Several tensors defined by one statement: `body` returns an expression for each, or one reduction of them.

    `body` is called once, with a dim for each dimension; a dimension given as a `scan_axis` is one. `reads` are
    computed tensors that the body uses only through `Tensor.at`.
    """
    where = f"compute {', '.join(name_of(name, 'a tensor') for name in names)}"
    if not callable(body):
        hint = "give a function of one index for each dimension, such as lambda i, j: a[i, j] * 2.0"
        raise LoopProgramError(1352, f"a {type(body).__name__} defines no elements", where=where, hint=hint)
    parameters = inspect.signature(body).parameters
    entries = extents(shape, where)
    open_ended = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters.values())
    given = [name for name, p in parameters.items() if p.default is inspect.Parameter.empty]
    labels = [f"i{n}" for n in range(len(entries))] if open_ended else given
    if len(labels) != len(entries):
        raise LoopProgramError(
            1352, f"{names[0]} has {len(entries)} dimensions; its function takes {len(labels)}",
            hint="let the function take one index for each dimension",
        )  # fmt: skip
    axes = tuple(
        entry if isinstance(entry, Axis) else Axis(label, entry) for entry, label in zip(entries, labels, strict=True)
    )
    called = typing_cast("Callable[..., Body]", body)
    result = called(*(dim(axis.name) for axis in axes))
    sizes = tuple(axis.extent for axis in axes)
    if isinstance(result, Reduction):
        values, types = result.values, result.types
        if result.is_scan and not set(result.axes) <= set(axes):
            hint = f'give the axis as an entry of the shape: compute("{names[0]}", (s,), ...)'
            raise LoopProgramError(1352, "a scan axis must be an entry of the shape", where=names[0], hint=hint)
        stage = Stage(
            names[0], (), axes if result.is_scan else (*axes, *result.axes), values, None, result.reducer,
            result.reducer.identity, result.guards, result.accumulate, result.exclusive,
        )  # fmt: skip
    else:
        guards = result.guards if isinstance(result, Guarded) else ()
        value = result.value if isinstance(result, Guarded) else result
        values = expressions_of(value, where)
        types = tuple(v.dtype for v in values)
        stage = Stage(names[0], (), axes, values, guards=guards)
    if len(types) != len(names):
        hint = "return one value for each name"
        raise LoopProgramError(1352, f"{len(types)} values are given for {', '.join(names)}", hint=hint)
    targets = tuple(Buffer(n, sizes, t) for n, t in zip(names, types, strict=True))
    stages, sources = _gathered((*reads, *_tensors(values)))
    stages = (*stages, replace(stage, targets=targets))
    return tuple(Tensor(target, stages, sources) for target in targets)


def scatter(
    name: str, old: Tensor, axes: Sequence[Axis], place: Sequence[IntLike], value: Expression, reducer: Reducer | str,
    *, reads: Sequence[Tensor] = (),
) -> Tensor:  # fmt: skip
    """A copy of `old` in which `result[place] = reducer(result[place], value)` for every point of the axes, in order.

    `place` may hold loaded elements (`Tensor.at`), and two points may meet. `axes` are `reduce_axis`es.
    """

    def same(*place: Dim) -> Expression:
        return old[place]

    copy = compute(f"{name}.copy", old.shape, same)
    found = built_in_reducer(reducer, old.dtype) if isinstance(reducer, str) else reducer
    target = Buffer(name, old.shape, old.dtype)
    first = replace(copy.stages[-1], targets=(target,))
    second = Stage(name, (target,), tuple(axes), (cast(value, old.dtype),), tuple(dim(p) for p in place), found)
    stages, sources = _gathered((*reads, *_tensors((value,)), old))
    return Tensor(target, (*stages, first, second), sources)


def _tensors(values: Iterable[Expression]) -> list[Tensor]:
    return [node.tensor for value in values for node in walk(value) if isinstance(node, _Element)]


def _gathered(tensors: Iterable[Tensor]) -> tuple[tuple[Stage, ...], tuple[Buffer, ...]]:
    """The stages of some tensors, each after those it needs (a tensor lists them so), and the inputs they read."""
    stages: dict[int, Stage] = {}
    sources: dict[str, Buffer] = {}
    for tensor in tensors:
        stages.update((id(stage), stage) for stage in tensor.stages)
        sources.update((source.name, source) for source in tensor.sources)
    return tuple(stages.values()), tuple(sources.values())


def computation(
    name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], symbols: Iterable[Symbol] = ()
) -> Computation:
    """The computation of some tensors from others. Symbols that are not described are at least 1.

    Raises `LoopProgramError` 1352 where an input is missing or an output is an input, 1350 where a tensor that is
    computed has an input's name.
    """
    name_of(name, "a computation")
    _check_tensors("input", inputs)
    _check_tensors("output", outputs)
    gathered, sources = _gathered(outputs)
    stages = _unique_axes(gathered)
    missing = {source.name for source in sources} - {tensor.name for tensor in inputs}
    if missing:
        listed = ", ".join(sorted(missing))
        raise LoopProgramError(1352, f"{listed} must be inputs of {name}", hint="list every placeholder that is read")
    given = {tensor.name for tensor in inputs}
    for stage in stages:
        for target in stage.targets:
            if target.name in given:
                raise LoopProgramError(
                    1350, f"the tensor {target.name} has the name of an input", where=f"computation {name}",
                    hint="give what is computed a name of its own: arrays are not changed in place",
                )  # fmt: skip
    described = {symbol.name: symbol for symbol in symbols}
    buffers = [t.buffer for t in (*inputs, *outputs)] + [t for stage in stages for t in stage.targets]
    extents = [e for b in buffers for e in b.shape] + [a.extent for stage in stages for a in stage.axes]
    used = dict.fromkeys(found for extent in extents for found in sorted(extent.names()))
    kept = [described.get(found, Symbol(found, 1)) for found in used]
    kept += [symbol for symbol in described.values() if symbol.name not in used]
    return Computation(name, tuple(t.buffer for t in inputs), tuple(t.buffer for t in outputs), stages, tuple(kept))


def _check_tensors(what: str, tensors: Iterable[object]) -> None:
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            hint = "give what placeholder and compute return"
            raise LoopProgramError(1352, f"a {type(tensor).__name__} is no {what}", hint=hint)
        if bool(tensor.stages) == (what == "input"):
            hint = "inputs are placeholders, and outputs what compute makes of them"
            raise LoopProgramError(1352, f"{tensor.name} cannot be an {what}", hint=hint)


def _unique_axes(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Rename axes that two stages share: their loops are different loops."""
    taken: set[str] = set()
    found: list[Stage] = []
    for stage in stages:
        renamed: dict[str, str] = {}
        for axis in stage.axes:
            name = axis.name if axis.name not in taken else f"{stage.name}.{axis.name}"
            while name in taken:
                name += "_"
            taken.add(name)
            if name != axis.name:
                renamed[axis.name] = name
        found.append(rename_axes(stage, renamed) if renamed else stage)
    return tuple(found)


def rename_axes(stage: Stage, names: dict[str, str]) -> Stage:
    """The same stage with other axis names."""
    new = {old: dim(name) for old, name in names.items()}
    memo: dict[int, Expression] = {}
    return replace(
        stage,
        axes=tuple(replace(axis, name=names.get(axis.name, axis.name)) for axis in stage.axes),
        values=tuple(substitute(value, new, memo=memo) for value in stage.values),
        index=None if stage.index is None else tuple(i.substitute(new) for i in stage.index),
        guards=tuple(g.substitute(new) for g in stage.guards),
    )
