"""What definitions of elementwise and shape operators share (beside `_stages`): broadcasting, stages over a box."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilework.compute.notation import Axis, Computation, Stage
from tilework.dims import Dim, Symbol
from tilework.loops.expressions import Expression, Load
from tilework.loops.program import Buffer
from tilework.ops._stages import at, axes


def broadcast_load(buffer: Buffer, index: Sequence[Dim]) -> Load:
    """The element that numpy's broadcasting reads at a result index: 0 along dimensions that are literally 1."""
    skip = len(index) - len(buffer.shape)
    pairs = zip(buffer.shape, index[skip:], strict=True)
    return Load(buffer.name, tuple(Dim() if extent == 1 else entry for extent, entry in pairs), buffer.dtype)


def computation(
    name: str, operands: Sequence[Buffer], results: Sequence[Buffer], stages: Sequence[Stage], symbols: Sequence[Symbol]
) -> Computation:
    """Stages between operands (each buffer listed once) and results."""
    inputs = tuple({operand.name: operand for operand in operands}.values())
    return Computation(f"{results[0].name}.{name}", inputs, tuple(results), tuple(stages), tuple(symbols))


def mapped(
    name: str,
    operands: Sequence[Buffer],
    results: Sequence[Buffer],
    symbols: Sequence[Symbol],
    value: Callable[[tuple[Dim, ...]], Expression],
) -> Computation:
    """One stage that computes each element of the only result from its index."""
    (result,) = results
    over = axes(result.name, result.shape)
    stage = Stage(f"{result.name}.{name}", (result,), over, (value(at(*over)),))
    return computation(name, operands, results, [stage], symbols)


def copied(
    name: str,
    result: Buffer,
    shape: Sequence[Dim],
    value: Callable[[tuple[Dim, ...]], Expression],
    index: Callable[[tuple[Dim, ...]], Sequence[Dim]],
    guards: Callable[[tuple[Dim, ...]], Sequence[Dim]] | None = None,
) -> Stage:
    """A stage `<result>.<name>` over a box of `shape` that writes `value` at `index`, where `guards` (>= 0) hold."""
    over: tuple[Axis, ...] = axes(f"{result.name}.{name}", shape)
    point = at(*over)
    held = () if guards is None else tuple(guards(point))
    return Stage(f"{result.name}.{name}", (result,), over, (value(point),), index=tuple(index(point)), guards=held)
