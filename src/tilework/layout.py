"""Layouts: how the elements of a logical array stand in memory.

A layout is an invertible map. Each logical dimension is cut into parts, the outermost of any extent, the others blocks
of fixed extents; the parts of all dimensions, in some order, are the dimensions of a dense row-major physical array.
Transposes (NHWC), blocked channels (NCHW16c), pairs of rows for dot-product instructions and padded rows are layouts:

    nhwc = permuted((0, 2, 3, 1))
    nchw16c = blocked(4, ((1, 16),))      # [n, c // 16, h, w, c % 16]
    pairs = blocked(2, ((0, 2),))         # [k // 2, n, k % 2]
    padded_rows = Layout(2, (Part(0), Part(1), Part(1, 16)))

A dimension that is no multiple of its blocks is padded at its end with `padding`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from tilework.dims import Dim, IntLike, dim
from tilework.errors import UsageError
from tilework.fast_dataclass import dataclass

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Number: TypeAlias = bool | int | float

ALIGNMENT = 64
"""Bytes to which constants are aligned: a cache line, and a vector of the widest machine."""


@dataclass(frozen=True)
class Part:
    """A piece of a logical dimension: a block of fixed extent, or what is left around the blocks (`block` None)."""

    dim: int
    block: int | None = None

    def __str__(self) -> str:
        return str(self.dim) if self.block is None else f"{self.dim}:{self.block}"


@dataclass(frozen=True)
class Layout:
    """The map from arrays of `rank` logical dimensions to physical ones, whose dimensions are the `parts` in order.

    Of each logical dimension one part has no block and comes first; blocks follow from outer to inner. `padding` fills
    what a dimension lacks to a multiple of its blocks. Raises `UsageError` 1006, with every fault, for anything else.
    """

    rank: int
    parts: tuple[Part, ...]
    padding: Number = 0

    def __post_init__(self) -> None:
        faults = tuple(_faults(self.rank, self.parts))
        if faults:
            text = ", ".join(map(str, self.parts))
            raise UsageError(1006, f"({text}) is no layout of {self.rank} dimensions: {'; '.join(faults)}")

    # -- what it is --------------------------------------------------------------------------------------------------
    @property
    def is_row_major(self) -> bool:
        """Whether physical and logical arrays are the same."""
        return self.parts == tuple(Part(d) for d in range(self.rank))

    @property
    def is_permutation(self) -> bool:
        """Whether it only reorders dimensions."""
        return all(part.block is None for part in self.parts)

    @cached_property
    def multiples(self) -> tuple[int, ...]:
        """What each logical dimension is padded to a multiple of: the product of its blocks."""
        return tuple(math.prod(p.block for p in self.parts if p.dim == d and p.block) for d in range(self.rank))

    @cached_property
    def _steps(self) -> tuple[int, ...]:
        """For each part, how many logical elements one step along it is."""
        left = list(self.multiples)
        found: list[int] = []
        for part in self.parts:
            # The first part of a dimension steps over all its blocks, each block over those inside it.
            if part.block is not None:
                left[part.dim] //= part.block
            found.append(left[part.dim])
        return tuple(found)

    # -- shapes and indices ------------------------------------------------------------------------------------------
    def padded_shape(self, shape: Sequence[IntLike]) -> tuple[Dim, ...]:
        """The logical shape with every extent rounded up to its blocks."""
        return tuple(e.ceildiv(m) * m for e, m in zip(self._dims(shape), self.multiples, strict=True))

    def physical_shape(self, shape: Sequence[IntLike]) -> tuple[Dim, ...]:
        """The extents of the physical array that holds a logical array of this shape."""
        extents = self._dims(shape)
        return tuple(
            extents[part.dim].ceildiv(self.multiples[part.dim]) if part.block is None else dim(part.block)
            for part in self.parts
        )

    def pads(self, shape: Sequence[IntLike]) -> bool:
        """Whether arrays of this shape may need padding (for symbolic extents: unless their multiples are plain)."""
        return any(e % m != 0 for e, m in zip(self._dims(shape), self.multiples, strict=True))

    def physical_index(self, index: Sequence[IntLike]) -> tuple[Dim, ...]:
        """Where the element at a logical index stands."""
        logical = self._dims(index)
        return tuple(
            logical[part.dim] // step if part.block is None else logical[part.dim] // step % part.block
            for part, step in zip(self.parts, self._steps, strict=True)
        )

    def logical_index(self, index: Sequence[IntLike]) -> tuple[Dim, ...]:
        """Which element stands at a physical index; at or past the logical extent where that is padding."""
        if len(index) != len(self.parts):
            raise UsageError(
                1006, f"{len(index)} indices do not address {self}, which has {len(self.parts)} dimensions"
            )
        found = [dim(0)] * self.rank
        for part, step, value in zip(self.parts, self._steps, index, strict=True):
            found[part.dim] = found[part.dim] + dim(value) * step
        return tuple(found)

    def element_offset(self, index: Sequence[IntLike], shape: Sequence[IntLike]) -> Dim:
        """Elements from the start of the physical array to the element at a logical index."""
        total = dim(0)
        for extent, value in zip(self.physical_shape(shape), self.physical_index(index), strict=True):
            total = total * extent + value
        return total

    def _dims(self, values: Sequence[IntLike]) -> tuple[Dim, ...]:
        if len(values) != self.rank:
            raise UsageError(1006, f"{len(values)} dimensions do not fit {self}, which is of {self.rank}")
        return tuple(map(dim, values))

    # -- arrays ------------------------------------------------------------------------------------------------------
    def pack(self, array: Array) -> Array:
        """The physical array (a new, dense one, aligned for code to use) of a logical array."""
        padded = [int(extent) for extent in self.padded_shape(array.shape)]
        if tuple(padded) != array.shape:
            whole = np.full(padded, _padding_of(self.padding, array.dtype), array.dtype)
            whole[tuple(slice(0, extent) for extent in array.shape)] = array
            array = whole
        cut = array.reshape([extent for d in range(self.rank) for extent in self._cut(d, padded[d])])
        turned = cut.transpose(self._from_cut)
        found = aligned(turned.shape, turned.dtype)
        found[...] = turned
        return found

    def unpack(self, array: Array, shape: Sequence[int]) -> Array:
        """The logical array (a new, dense one) of this shape that a physical array holds."""
        wanted = tuple(int(extent) for extent in self.physical_shape(shape))
        if array.shape != wanted:
            raise UsageError(
                1006, f"an array of shape {array.shape} holds no {tuple(shape)} under {self}: expected {wanted}"
            )
        padded = [int(extent) for extent in self.padded_shape(shape)]
        cut = array.transpose(np.argsort(self._from_cut)) if array.ndim else array
        return np.array(cut.reshape(padded)[tuple(slice(0, extent) for extent in shape)], order="C")

    def _cut(self, d: int, extent: int) -> list[int]:
        blocks = [part.block for part in self.parts if part.dim == d and part.block is not None]
        return [extent // self.multiples[d], *blocks]

    @cached_property
    def _from_cut(self) -> list[int]:
        """For each part, its number when the parts are sorted by logical dimension, outer before inner."""
        ranked = sorted(range(len(self.parts)), key=lambda i: self.parts[i].dim)
        return [ranked.index(i) for i in range(len(self.parts))]

    # -- composition -------------------------------------------------------------------------------------------------
    def transposed(self, order: Sequence[int]) -> Layout:
        """The layout in which the same memory holds the transpose, whose dimension i is this one's `order[i]`."""
        _check_order(order, self.rank)
        return Layout(self.rank, tuple(Part(list(order).index(p.dim), p.block) for p in self.parts), self.padding)

    def then(self, other: Layout) -> Layout:
        """This layout, and `other` on its physical array; `UsageError` 1006 where no single layout is both."""
        if other.rank != len(self.parts):
            raise UsageError(1006, f"{other} is not of the {len(self.parts)} physical dimensions of {self}")
        parts: list[Part] = []
        for part in other.parts:
            outer = self.parts[part.dim]
            if part.block is not None:
                parts.append(Part(outer.dim, part.block))
            elif outer.block is None:
                parts.append(outer)
            elif outer.block % other.multiples[part.dim]:
                text = f"blocks of {other.multiples[part.dim]} do not divide the block {outer} of {self}"
                raise UsageError(1006, text)
            else:
                parts.append(Part(outer.dim, outer.block // other.multiples[part.dim]))
        order = [other.parts[i].dim for i in range(len(parts))]
        for i, first in enumerate(order):
            for second in order[i + 1 :]:
                if self.parts[first].dim == self.parts[second].dim and first > second:
                    raise UsageError(1006, f"{other} puts a block of {self} outside what is around it")
        return Layout(self.rank, tuple(parts), self.padding)

    def __str__(self) -> str:
        text = ", ".join(map(str, self.parts))
        padding = "" if self.padding == 0 and not isinstance(self.padding, bool) else f"; {self.padding}"
        return f"layout({text}{padding})"


def row_major(rank: int) -> Layout:
    """The layout in which physical and logical arrays are the same."""
    return Layout(rank, tuple(Part(d) for d in range(rank)))


def permuted(order: Sequence[int]) -> Layout:
    """The layout whose physical dimension i is the logical dimension `order[i]`: (0, 2, 3, 1) is NHWC of NCHW."""
    _check_order(order, len(order))
    return Layout(len(order), tuple(Part(d) for d in order))


def blocked(
    rank: int, blocks: Iterable[tuple[int, int]], order: Sequence[int] | None = None, padding: Number = 0
) -> Layout:
    """The outer dimensions in `order` (by default as they are), then the blocks, as (dimension, extent) in order."""
    outer = range(rank) if order is None else order
    return Layout(rank, (*(Part(d) for d in outer), *(Part(d, extent) for d, extent in blocks)), padding)


def lettered(logical: str, physical: str) -> Layout:
    """A layout in the usual letters: `lettered("NCHW", "NCHW16c")`, `lettered("KN", "KN2k")`."""
    pieces = re.findall(r"([A-Z])|([0-9]+)([a-z])", physical)
    if "".join("".join(piece) for piece in pieces) != physical or len(set(logical)) != len(logical):
        raise UsageError(1006, f"{physical!r} of {logical!r}: capitals for dimensions, 16c for a block of dimension C")
    missing = {(letter or small.upper()) for letter, _, small in pieces} - set(logical)
    if missing:
        raise UsageError(1006, f"{physical!r} has {', '.join(sorted(missing))}, which {logical!r} does not have")
    parts = tuple(
        Part(logical.index(letter)) if letter else Part(logical.index(small.upper()), int(extent))
        for letter, extent, small in pieces
    )
    return Layout(len(logical), parts)


def parse_layout(text: str) -> Layout:
    """Read what `str(layout)` prints; raises `UsageError` 1006."""
    number = r"[+-]?(?:[0-9.]+(?:e[+-]?[0-9]+)?|inf)|nan|True|False"
    piece = r"\d+(?::\d+)?"
    match = re.fullmatch(rf"layout\(((?:{piece}(?:, {piece})*)?)(?:; ({number}))?\)", text.strip())
    if match is None:
        raise UsageError(1006, f"{text!r} is no layout: expected layout(0, 1, 0:16) or layout(0, 0:16; 1.5)")
    parts: list[Part] = []
    for part in filter(None, match[1].split(", ")):
        d, _, block = part.partition(":")
        parts.append(Part(int(d), int(block) if block else None))
    padding = _number(match[2]) if match[2] else 0
    return Layout(max((part.dim + 1 for part in parts), default=0), tuple(parts), padding)


def aligned(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """A dense array, its contents undefined, that starts at a multiple of `ALIGNMENT` bytes."""
    size = math.prod(shape) * dtype.itemsize
    room = np.empty(size + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    return room[start : start + size].view(dtype).reshape(shape)


def packed(array: Array, layouts: Iterable[Layout]) -> Array:
    """The array in a layout, that in the next one, and so on."""
    for layout in layouts:
        array = layout.pack(array)
    return array


def _number(text: str) -> Number:
    if text in ("True", "False"):
        return text == "True"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise UsageError(1006, f"{text!r} is no padding value") from None


def _padding_of(value: Number, dtype: np.dtype[Any]) -> Array:
    """The padding value as an element; raises `UsageError` 1006 where the type cannot hold it."""
    with np.errstate(all="ignore"):
        try:
            found = np.array(value).astype(dtype)
        except (TypeError, ValueError, OverflowError):
            found = np.zeros((), dtype)
    exact = dtype.kind not in "biu" or (math.isfinite(value) and found.item() == value)
    if not exact:
        raise UsageError(1006, f"{dtype} cannot hold the padding value {value}")
    return found


def _check_order(order: Sequence[int], rank: int) -> None:
    if sorted(order) != list(range(rank)):
        raise UsageError(1006, f"{tuple(order)} is no order of the dimensions 0 to {rank - 1}")


def _faults(rank: int, parts: tuple[Part, ...]) -> Iterable[str]:
    if rank < 0:
        yield f"rank {rank} is negative"
    seen: set[int] = set()
    for part in parts:
        if not 0 <= part.dim < rank:
            yield f"{part} is of no dimension"
        elif part.block is None and part.dim in seen:
            yield f"dimension {part.dim} has its outermost part twice, or after a block"
        elif part.block is not None and part.dim not in seen:
            yield f"block {part} comes before the part around it"
        if part.block is not None and part.block < 1:
            yield f"block {part} is empty"
        seen.add(part.dim)
    for d in range(rank):
        if d not in seen:
            yield f"dimension {d} is missing"
