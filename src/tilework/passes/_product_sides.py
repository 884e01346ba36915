"""Operands of products of dequantised numbers: where their scales and sums belong in the result."""

from __future__ import annotations

from typing import TypeVar

from tilework.dims import Dim
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Array, Node
from tilework.ops._attributes import integers_of
from tilework.passes._dequantised import Dequantised

_T = TypeVar("_T")


@dataclass(frozen=True)
class Side:
    """An operand of a matrix product, and what its dimensions are for."""

    side: Dequantised
    first: bool
    batch: tuple[int, ...]
    free: tuple[int, ...]
    contracting: tuple[int, ...]

    @staticmethod
    def of(node: Node, name: str, side: Dequantised) -> Side:
        batch = integers_of(node.attributes, f"{name}_batching_dimensions")
        contracting = integers_of(node.attributes, f"{name}_contracting_dimensions")
        free = tuple(d for d in range(side.value.tensor.rank) if d not in {*batch, *contracting})
        return Side(side, name == "lhs", batch, free, contracting)

    def moved(self, array: Array, roles: list[Side]) -> Array | None:
        """What broadcasts against the operand, as it broadcasts against the product; None where it differs along what
        is contracted.
        """
        if array.size == 1:
            return array.reshape(())
        whole = array.reshape(
            (1,) * (len(self.batch) + len(self.free) + len(self.contracting) - array.ndim) + array.shape
        )
        if any(whole.shape[d] != 1 for d in self.contracting):
            return None
        turned = whole.transpose(*self.batch, *self.free, *self.contracting)
        kept = list(turned.shape[: len(self.batch) + len(self.free)])
        return turned.reshape(self.spread(kept, 1, roles))

    def spread(self, shape: list[_T], one: _T, roles: list[Side]) -> tuple[_T, ...]:
        """Extents of batch and free dimensions among those of the product, where the other's are 1."""
        other = roles[1] if self.first else roles[0]
        batch, free, ones = shape[: len(self.batch)], shape[len(self.batch) :], [one] * len(other.free)
        return (*batch, *free, *ones) if self.first else (*batch, *ones, *free)


def fits(count: Dim) -> bool:
    """Whether sums of that many products of 9-bit integers stay within 31 bits."""
    return count.is_constant and int(count) * 255 * 255 < 2**31


def along(array: Array, rank: int, axis: int) -> Array | None:
    """What broadcasts against a tensor as one number, or as one for each element of an axis; None for anything else."""
    if array.size == 1:
        return array.reshape(())
    whole = array.reshape((1,) * (rank - array.ndim) + array.shape)
    return array.reshape(-1) if whole.shape[axis] == array.size else None


def placed(array: Array, rank: int, axis: int) -> Array:
    """One number for each element of an axis, so that it broadcasts."""
    return array.reshape([-1 if d == axis else 1 for d in range(rank)])
