"""Arguments as bare memory: what `Executable.run_core` checks of addresses, shapes and strides before a call."""

from __future__ import annotations

from collections.abc import Sequence

from tilework.codegen.cpu.frame_layout import FrameLayout
from tilework.errors import CallError
from tilework.plan.plan import Plan
from tilework.runtime.arguments import guard_refusal
from tilework.runtime.frame import Frame


def bind_bare(
    plan: Plan,
    layout: FrameLayout,
    frame: Frame,
    addresses: Sequence[int],
    dims: Sequence[Sequence[int]],
    strides: Sequence[Sequence[int] | None],
) -> None:
    """Put the addresses of all inputs, and the sizes that their shapes tell, into a call's frame.

    Raises:
        CallError: 1704 rank, 1705 dimension, 1712 strides or alignment, or what a guard of the plan refuses.
    """
    values: dict[str, int] = {}
    for binding in plan.bindings:
        given = plan.inputs[binding.position]
        shape = dims[binding.position]
        if len(shape) != given.type.rank:
            raise CallError(1704, f"{given.name} has rank {len(shape)}, not {given.type.rank}", where=given.name)
        value, rest = divmod(shape[binding.dimension] - binding.addend, binding.factor)
        symbol = plan.symbol_named[binding.symbol]
        low, high = symbol.bounds
        if rest or not low <= value <= high or value % symbol.multiple:
            message = f"dimension {binding.dimension} of {given.name} is {shape[binding.dimension]}; {symbol}"
            raise CallError(1705, message, where=given.name)
        values[binding.symbol] = value
    for given, shape, step, address in zip(plan.inputs, dims, strides, addresses, strict=True):
        expected = tuple(int(extent.evaluate(values)) for extent in given.type.shape)
        if len(shape) != len(expected):
            raise CallError(1704, f"{given.name} has rank {len(shape)}, not {len(expected)}", where=given.name)
        if tuple(shape) != expected:
            raise CallError(1705, f"{given.name} has shape {tuple(shape)}, not {expected}", where=given.name)
        if step is not None and tuple(step) != _dense(expected) and 0 not in expected:
            raise CallError(1712, f"{given.name} is not dense (element strides {tuple(step)})", where=given.name)
        if address % given.type.dtype.itemsize:
            raise CallError(1712, f"{given.name} is not aligned to its elements", where=given.name)
    for name, value in values.items():
        frame.words[layout.symbols[name]] = value
    for slot, address in zip(layout.inputs, addresses, strict=True):
        frame.words[slot] = address
    for guard in plan.guards:
        if not guard.holds(values):
            raise guard_refusal(guard, values, plan.inputs, plan.bindings)


def _dense(shape: Sequence[int]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
