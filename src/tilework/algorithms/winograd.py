"""Convolutions of 3x3 taps with fewer products: Winograd's F(2x2, 3x3).

Results are computed in squares of 2x2, each from a patch of 4x4 of the image (Lavin and Gray, "Fast algorithms for
convolutional neural networks", 2016; Winograd, "Arithmetic complexity of computations", 1980):

    for each batch and block of squares
      image = the block's part of the image, zeros around it
      patches[k, square, c] = the 16 numbers k of B' d B, d the square's patch of channel c
      products[k, square, o] = sum over c of patches[k, square, c] weights'[k, c, o]
      result = the 4 numbers of A' m A, m the square's products of filter o

16 products a square and pair of channels instead of 36. The weights G g G' are computed beforehand, in float64. Both
transforms only add and subtract, sums of up to 4 numbers each: the error is a small multiple of direct evaluation's
where neighbours are alike in size. It goes with the largest number of a patch and the largest of a filter's taps, also
in results where those meet zeros: some eps * sqrt(9 channels) * max |weights| * max |patch|.

Loops are named by statement and axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilework import dtypes
from tilework.algorithms.convolution import ELEMENT, Along, Convolution
from tilework.dims import Dim, dim, maximum, minimum
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Expression, Load, Parameter, constant, rewrite, substitute
from tilework.loops.program import Access, Argument, Buffer, Compute, Loop, LoopProgram, Node, Storage, sequence
from tilework.loops.reducers import reducer

EVEN = 1024.0
"""The largest of a filter's nine taps (over all channels) against the least, beyond which sums would lose the small."""
TAPS, SIDE, PATCH = 3, 2, 4
"""Taps, results and elements of the image along one direction of a square."""
IMAGE, ZERO = "image", "image.zero"
"""The block's part of the image with zeros around it."""
PATCHES, PRODUCTS, SQUARES = "patches", "products", "squares"
"""Transformed patches, their products with the weights, and results in squares before they are put in their places."""
RESULT = "result"

_TO_PATCH = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))
_TO_WEIGHTS = ((1.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0.0, 0.0, 1.0))
_TO_RESULT = ((1, 1, 1, 0), (0, 1, -1, -1))


def applies(found: Convolution) -> bool:
    """Whether a convolution is one of 3x3 taps, in steps of one, with known numbers of channels and filters.

    Transformed weights are halves and quarters: numbers are float32 or float64.
    """
    if found.image.dtype not in (dtypes.float32, dtypes.float64):
        return False
    channels = (found.filter.extent, found.depth.extent)
    taps = (found.rows.tap.extent, found.columns.tap.extent)
    return all(extent == TAPS for extent in taps) and all(extent.value is not None for extent in channels)


def suits(found: Convolution, weights: np.ndarray[Any, Any]) -> bool:
    """Whether the sums of a filter's taps are as good as the taps: all are finite, far from the largest float, and of
    the nine none is larger than another by more than `EVEN` (those that are zero aside).
    """
    sizes = np.abs(_ordered(found, weights))
    if not sizes.size:
        return True
    largest = sizes.max(axis=0)
    if not np.all(largest <= np.finfo(weights.dtype).max / 4):  # NaN is not, either
        return False
    least = np.where(largest > 0, largest, np.inf).min(axis=(1, 2))
    return bool(np.all(largest.max(axis=(1, 2)) <= EVEN * least))


def transformed(found: Convolution, weights: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The weights as the products read them: (16, depth, filters)."""
    taps = _ordered(found, weights).astype(np.float64)
    to = np.array(_TO_WEIGHTS)
    made = np.einsum("ai,coij,bj->abco", to, taps, to, optimize=True)
    return np.ascontiguousarray(made.astype(weights.dtype)).reshape(PATCH * PATCH, *taps.shape[:2])


def _ordered(found: Convolution, weights: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The weights by depth, filter, row and column of taps."""
    names = [next(iter(entry.names())) for entry in found.weights.index]
    return weights.transpose([
        names.index(axis.name) for axis in (found.depth, found.filter, found.rows.tap, found.columns.tap)
    ])  # fmt: skip


def winograd(found: Convolution, rows: int, columns: int) -> LoopProgram:
    """The loop program with blocks of so many rows and columns of squares; the weights are those of `transformed`.

    Inside, channels and filters lie next to each other, whatever the order of the image's and the result's dimensions.
    What is beyond the image is zero, and what is beyond the result is not stored. A block of a free number of rows ends
    with them.
    """
    return _Program(found, rows, columns).program()


@dataclass(frozen=True)
class _Side:
    """One direction of the blocks: `squares` of each, `blocks` of them, named by the loop `block`."""

    along: Along
    squares: int
    block: str

    @property
    def blocks(self) -> Dim:
        return self.along.place.extent.ceildiv(SIDE * self.squares)

    @property
    def single(self) -> bool:
        return self.blocks == 1

    @property
    def whole(self) -> bool:
        """Whether the blocks are the results, and no more."""
        return self.blocks * (SIDE * self.squares) == self.along.place.extent

    @property
    def near(self) -> int:
        """Elements of the image that a block needs."""
        return self.squares * SIDE + (TAPS - 1)

    def place(self, within: Dim) -> Dim:
        """The row or column of the result that one of the block is."""
        return within if self.single else dim(self.block) * (self.squares * SIDE) + within

    @property
    def active(self) -> Dim:
        """Squares of a block that are computed."""
        extent = self.along.place.extent
        if extent.value is not None:
            return dim(self.squares)
        return minimum(self.squares, extent.ceildiv(SIDE) - dim(self.block) * self.squares)

    def stored(self, within: Dim) -> tuple[Dim, ...]:
        """The guard of a row or column that may be beyond the result."""
        return () if self.single or self.whole else (self.along.place.extent - 1 - self.place(within),)


@dataclass
class _Program:
    found: Convolution
    rows: int
    columns: int

    def __post_init__(self) -> None:
        found = self.found
        self.dtype = found.image.dtype
        self.depth, self.filters = found.depth.extent, found.filter.extent
        self.y = _Side(found.rows, self.rows, "block.y")
        self.x = _Side(found.columns, self.columns, "block.x")

    # -- pieces --------------------------------------------------------------------------------------------------------
    def buffer(self, name: str, *shape: Dim | int) -> Buffer:
        return Buffer(name, tuple(map(dim, shape)), self.dtype)

    @property
    def batch_names(self) -> dict[str, Dim]:
        """Where a batch is in the program; of one image there is no loop."""
        named = enumerate(self.found.batch)
        return {axis.name: dim(f"batch.{n}") if axis.extent != 1 else Dim() for n, axis in named}

    def nest(self, statement: Compute, loops: Sequence[tuple[str, Dim]]) -> Node:
        node: Node = statement
        for variable, extent in reversed(loops):
            node = Loop(variable, extent, "serial", node)
        return node

    def over_squares(self, name: str, channels: Dim) -> list[tuple[str, Dim]]:
        return [(f"{name}.r", self.y.active), (f"{name}.t", dim(self.columns)), (f"{name}.c", channels)]

    # -- the program ---------------------------------------------------------------------------------------------------
    def program(self) -> LoopProgram:
        found, whole = self.found, self.found.computation
        near = self.buffer(IMAGE, self.y.near, self.x.near, self.depth)
        # an odd number of squares: the sixteen numbers of one would else be in few sets of the caches
        count = self.rows * self.columns | 1
        patches = self.buffer(PATCHES, PATCH * PATCH, count, self.depth)
        products = self.buffer(PRODUCTS, PATCH * PATCH, count, self.filters)
        stored = [near, patches, products]
        nodes = [*self.copied(near), self.patches(near, patches), self.products(patches, products)]
        if self.in_place:
            nodes.append(self.results(products))
        else:
            squares = self.buffer(SQUARES, self.rows * SIDE, self.columns * SIDE, self.filters)
            stored.append(squares)
            nodes += [self.squares(products, squares), self.placed(squares)]
        body = sequence(*nodes)
        for made in reversed(stored):
            body = Storage(made, body)
        loops = [(f"batch.{n}", axis.extent) for n, axis in enumerate(found.batch) if axis.extent != 1]
        loops += [(side.block, side.blocks) for side in (self.y, self.x) if not side.single]
        for variable, extent in reversed(loops):
            body = Loop(variable, extent, "serial", body)
        arguments = [Argument(self.argument(given), "read") for given in whole.inputs]
        return LoopProgram(whole.name, (*arguments, Argument(found.output, "write")), body, whole.symbols)

    def argument(self, given: Buffer) -> Buffer:
        if given.name != self.found.weights.buffer:
            return given
        return Buffer(given.name, (dim(PATCH * PATCH), self.depth, self.filters), given.dtype)

    @property
    def in_place(self) -> bool:
        """Whether squares are stored where they belong: all are whole, and filters lie beside each other."""
        return self.y.whole and self.x.whole and self.found.place[-1] == dim(self.found.filter.name)

    # -- the image -----------------------------------------------------------------------------------------------------
    def copied(self, near: Buffer) -> list[Node]:
        """The block's rows of the image, and zeros where there is none."""
        found = self.found
        letters = "yxc"
        zero = Compute(
            ZERO, (Access(near.name, tuple(dim(f"{ZERO}.{letter}") for letter in letters)),),
            (constant(0.0, self.dtype),),
        )  # fmt: skip
        around = (self.y.active * SIDE + (TAPS - 1), *near.shape[1:])
        loops = [(f"{ZERO}.{letter}", extent) for letter, extent in zip(letters, around, strict=True)]
        y, x, c = (dim(f"{IMAGE}.{letter}") for letter in letters)
        to: list[Dim] = []
        over: list[tuple[str, Dim]] = []
        guards: list[Dim] = []
        index = list(found.image.index)
        for side, place in ((self.y, y), (self.x, x)):
            first, count, inside = self.part(side, place)
            to.append(place + first)
            over.append((str(place), count))
            guards += inside
            index[side.along.dimension] = side.place(place + first) + side.along.start
        names = {**self.batch_names, found.depth.name: c}
        value = Load(found.image.buffer, tuple(entry.substitute(names) for entry in index), self.dtype)
        copy = Compute(IMAGE, (Access(near.name, (*to, c)),), (value,), guards=tuple(guards))
        return [self.nest(zero, loops), self.nest(copy, [*over, (str(c), self.depth)])]

    def part(self, side: _Side, place: Dim) -> tuple[int, Dim, tuple[Dim, ...]]:
        """Of a block's rows or columns those that a copy walks over: the first, how many, and which of them exist."""
        extent = self.found.buffer(self.found.image.buffer).shape[side.along.dimension]
        if side.single:
            first = max(0, -side.along.start)
            return first, maximum(0, minimum(side.near, extent - side.along.start) - first), ()
        at = side.place(place) + side.along.start
        count = self.y.active * SIDE + (TAPS - 1) if side is self.y else dim(side.near)
        return 0, count, (at, extent - 1 - at)

    # -- transforms ----------------------------------------------------------------------------------------------------
    def patches(self, near: Buffer, patches: Buffer) -> Node:
        """Sixteen numbers of each square and channel of the image."""
        r, t, c = (dim(f"{PATCHES}.{letter}") for letter in "rtc")
        elements = [
            [Load(near.name, (r * SIDE + i, t * SIDE + j, c), self.dtype) for j in range(PATCH)] for i in range(PATCH)
        ]
        targets = [Access(patches.name, (dim(k), r * self.columns + t, c)) for k in range(PATCH * PATCH)]
        statement = Compute(PATCHES, tuple(targets), tuple(_both(_TO_PATCH, elements)))
        return self.nest(statement, self.over_squares(PATCHES, self.depth))

    def products(self, patches: Buffer, products: Buffer) -> Node:
        """Sixteen matrix products: of squares and channels with channels and filters."""
        k, p, o, c = (f"{PRODUCTS}.{letter}" for letter in "kpoc")
        one = Load(patches.name, (dim(k), dim(p), dim(c)), self.dtype)
        other = Load(self.found.weights.buffer, (dim(k), dim(c), dim(o)), self.dtype)
        add = reducer("sum", self.dtype)
        target = Access(products.name, (dim(k), dim(p), dim(o)))
        statement = Compute(PRODUCTS, (target,), (one * other,), add, add.identity, (c,))
        count = self.y.active * self.columns
        return self.nest(statement, [(k, dim(PATCH * PATCH)), (p, count), (o, self.filters), (c, self.depth)])

    def four(self, name: str, products: Buffer) -> list[Expression]:
        """The four results of a square, row by row."""
        r, t, c = (dim(f"{name}.{letter}") for letter in "rtc")
        elements = [
            [Load(products.name, (dim(i * PATCH + j), r * self.columns + t, c), self.dtype) for j in range(PATCH)]
            for i in range(PATCH)
        ]
        return _both(_TO_RESULT, elements)

    def finished(self, element: Expression, row: Dim, column: Dim, channel: Dim) -> tuple[Access, Expression]:
        """Where an element of a block of the convolution goes, and what is computed from it there."""
        found = self.found
        names = {
            **self.batch_names, found.filter.name: channel, found.rows.place.name: self.y.place(row),
            found.columns.place.name: self.x.place(column),
        }  # fmt: skip
        moved = substitute(found.tail, names)
        value = rewrite(moved, lambda leaf: element if isinstance(leaf, Parameter) and leaf.name == ELEMENT else leaf)
        return Access(found.output.name, tuple(entry.substitute(names) for entry in found.place)), value

    def results(self, products: Buffer) -> Node:
        """All four results of each square, in their places."""
        r, t, c = (dim(f"{RESULT}.{letter}") for letter in "rtc")
        made = [
            self.finished(element, r * SIDE + number // SIDE, t * SIDE + number % SIDE, c)
            for number, element in enumerate(self.four(RESULT, products))
        ]
        statement = Compute(RESULT, tuple(access for access, _ in made), tuple(value for _, value in made))
        return self.nest(statement, self.over_squares(RESULT, self.filters))

    def squares(self, products: Buffer, squares: Buffer) -> Node:
        """The four results of each square, with filters beside each other."""
        r, t, c = (dim(f"{SQUARES}.{letter}") for letter in "rtc")
        targets = [Access(squares.name, (r * SIDE + dy, t * SIDE + dx, c)) for dy in range(SIDE) for dx in range(SIDE)]
        statement = Compute(SQUARES, tuple(targets), tuple(self.four(SQUARES, products)))
        return self.nest(statement, self.over_squares(SQUARES, self.filters))

    def placed(self, squares: Buffer) -> Node:
        """Results in their places, those that exist, in the order of the output's dimensions."""
        found = self.found
        y, x, c = (dim(f"{RESULT}.{letter}") for letter in "yxc")
        access, value = self.finished(Load(squares.name, (y, x, c), self.dtype), y, x, c)
        guards = (*self.y.stored(y), *self.x.stored(x))
        columns = found.columns.place.extent if self.x.single else dim(self.columns * SIDE)
        extents = {
            found.rows.place.name: (str(y), found.rows.place.extent if self.y.single else self.y.active * SIDE),
            found.columns.place.name: (str(x), columns),
            found.filter.name: (str(c), self.filters),
        }
        order = [extents.pop(name) for entry in found.place for name in sorted(entry.names()) if name in extents]
        return self.nest(Compute(RESULT, (access,), (value,), guards=guards), [*extents.values(), *order])


def _both(matrix: Sequence[Sequence[int]], elements: Sequence[Sequence[Expression]]) -> list[Expression]:
    """matrix elements matrix', row by row."""
    half = [[_combined(row, [line[j] for line in elements]) for j in range(len(elements[0]))] for row in matrix]
    return [_combined(column, line) for line in half for column in matrix]


def _combined(signs: Sequence[int], values: Sequence[Expression]) -> Expression:
    """The sum of values times 1, 0 or -1, of which the first that counts need not be positive."""
    plus = [value for sign, value in zip(signs, values, strict=True) if sign > 0]
    minus = [value for sign, value in zip(signs, values, strict=True) if sign < 0]
    total = plus[0]
    for value in plus[1:]:
        total = total + value
    for value in minus:
        total = total - value
    return total
