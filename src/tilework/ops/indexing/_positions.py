"""Positions that a tensor holds: how they are typed, wrapped and checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilework.compute.notation import Axis
from tilework.dims import Dim, IntLike, loaded
from tilework.errors import RunError
from tilework.graph.types import TensorType, ValueType
from tilework.loops.program import Buffer
from tilework.ops._stages import at
from tilework.ops.operator import Array, Counts
from tilework.ops.rules import INTEGER, Rule
from tilework.ops.shape._base import undecided

_SIGN_SHIFT = 1 << 62
"""x // 2**62 is -1 for a negative x and 0 for any other, for all x that could be a position."""


def check_indices(rule: Rule, indices: TensorType) -> None:
    """A fault unless an operand holds integers that int64 can hold."""
    rule.kind(indices, INTEGER, "indices")
    if indices.dtype.name == "uint64":
        rule.fault(1222, "indices have elements of uint64; convert them to int64, in which offsets are computed")


def wrapped(indices: Buffer, index: Sequence[Axis | IntLike], extent: Dim) -> Dim:
    """The position that an element of `indices` names in 0 .. extent - 1, a negative one counted from the end.

    It wraps once: anything below -extent or above extent - 1 stays outside, where the access is checked at run time.
    """
    position = loaded(indices.name, at(*index))
    if indices.dtype.kind == "unsigned":
        return position
    return position - position // _SIGN_SHIFT * extent


def numpy_positions(indices: Array, extent: int, name: str) -> Array:
    """The same in numpy, checked: `RunError` 1801 where a position lies outside."""
    at_end = np.asarray(indices).astype(np.int64)
    positions = np.where(at_end < 0, at_end + extent, at_end)
    outside = (positions < 0) | (positions >= extent)
    if outside.any():
        first = int(at_end[outside][0])
        raise RunError(1801, f"index {first} is outside a dimension of {extent} elements", where=name)
    return positions


def tuple_length(rule: Rule, indices: TensorType, most: int) -> int:
    """The positions in each tuple along the last dimension of `indices`: a constant, 1 to `most`."""
    found = indices.shape[-1].value if indices.rank else None
    if found is None or not 1 <= found <= most:
        rule.stop(1223, f"the last dimension of the indices ({indices}) must be a constant from 1 to {most}")
    return found


def wrapped_tuple(indices: Buffer, outer: Sequence[Axis | IntLike], extents: Sequence[Dim]) -> list[Dim]:
    """The positions of one tuple, each wrapped in (and checked against) its own dimension."""
    length = int(indices.shape[-1])
    return [wrapped(indices, (*outer, place), extents[place]) for place in range(length)]


def numpy_tuples(indices: Array, extents: Sequence[int], name: str) -> list[Array]:
    """The same in numpy: one array of checked positions per place in the tuples."""
    return [numpy_positions(indices[..., place], extents[place], name) for place in range(indices.shape[-1])]


def check_fits(rule: Rule, indices: tuple[Dim, ...], operand: tuple[Dim, ...], dimension: int) -> None:
    """A fault where indices have not the operand's rank or, but for one dimension, surely more than its extents."""
    if len(indices) != len(operand):
        rule.fault(1223, f"indices have rank {len(indices)}, the operand has rank {len(operand)}; they must be equal")
        return
    for position, (small, large) in enumerate(zip(indices, operand, strict=True)):
        room = large - small
        if position != dimension and room.is_constant and room.constant < 0:
            rule.fault(1223, f"dimension {position}: the indices' extent {small} must be at most the operand's {large}")


def rooms_to_fit(operands: Sequence[ValueType], dimension: int) -> tuple[Dim, ...]:
    """Dims that are not negative where indices, the second operand, fit the first as `check_fits` says."""
    operand, indices = operands[:2]
    assert isinstance(operand, TensorType)
    assert isinstance(indices, TensorType)
    pairs = enumerate(zip(indices.shape, operand.shape, strict=True))
    return undecided(large - small for position, (small, large) in pairs if position != dimension)


def take_counts(indices: ValueType, result: ValueType) -> Counts:
    """No arithmetic; the positions, and what is taken (not the whole operand) read and written."""
    assert isinstance(indices, TensorType)
    assert isinstance(result, TensorType)
    return Counts(Dim(), indices.bytes + result.bytes * 2)
