"""Tiles of registers read along another dimension than the one that their lanes run along.

R vectors of W lanes (both powers of two) become W vectors of R lanes in log2(min(R, W)) stages of two-input shuffles.
A stage exchanges one bit of an element's row number with one bit of its lane number:

- lanes within `SEGMENT_BITS` of each other are interleaved (`unpcklps` and its like, `zip1` and `zip2`). Such a stage
  moves the other lane bits of a segment up by one, so these stages take the row bits from the highest to the lowest;
- whole segments change places (`vperm2f128`, `vshuff64x2`).

Source: J. O. Eklundh, A fast computer method for matrix transposing (1972), with interleaving where it is cheaper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilework.lowering.builder import Builder
from tilework.lowering.registers import BITS, Value

SEGMENT_BITS = 128
"""Instructions of x86 and AArch64 interleave the elements of two vectors within segments of so many bits."""


def column_of(builder: Builder, rows: tuple[Value, ...], number: int) -> Value:
    """One column of a tile; all of them are made at once."""
    depth = max(builder.floor, *(row.depth for row in rows))
    memo = builder.scopes[depth].memo
    key = ("column", rows, number)
    if key not in memo:
        memo.update({("column", rows, c): column for c, column in enumerate(transposed(builder, rows))})
    return memo[key]


def transposed(builder: Builder, rows: Sequence[Value]) -> list[Value]:
    """The columns of a tile: column c holds lane c of every row. Rows and lanes are powers of two, at least 2."""
    width = rows[0].lanes
    side = min(len(rows), width)
    vectors = _joined(builder, rows, side)
    lanes = vectors[0].lanes
    segment = min(side, max(1, SEGMENT_BITS // BITS[rows[0].kind]))
    bit = segment // 2
    while bit:
        low = [base + i // 2 + i % 2 * lanes for base in range(0, lanes, segment) for i in range(segment)]
        vectors = _stage(builder, vectors, bit, low, [lane + segment // 2 for lane in low])
        bit //= 2
    bit = segment
    while bit < side:
        low = [lane + lanes - bit if lane & bit else lane for lane in range(lanes)]
        vectors = _stage(builder, vectors, bit, low, [lane + bit for lane in low])
        bit *= 2
    if width == side:
        return vectors
    return [_shuffle(builder, v, v, range(at, at + side)) for at in range(0, width, side) for v in vectors]


def _joined(builder: Builder, rows: Sequence[Value], side: int) -> list[Value]:
    """`side` vectors: row r has the lanes of rows r, r + side, r + 2 side, ... one after another."""
    vectors = list(rows)
    while len(vectors) > side:
        lanes = range(2 * vectors[0].lanes)
        vectors = [
            _shuffle(builder, vectors[block + i], vectors[block + side + i], lanes)
            for block in range(0, len(vectors), 2 * side)
            for i in range(side)
        ]
    return vectors


def _stage(builder: Builder, vectors: list[Value], bit: int, low: list[int], high: list[int]) -> list[Value]:
    """Every two vectors whose numbers differ in `bit` only, shuffled into two: lanes `low` and lanes `high` of both."""
    found = list(vectors)
    for i, first in enumerate(vectors):
        if not i & bit:
            second = vectors[i | bit]
            found[i], found[i | bit] = _shuffle(builder, first, second, low), _shuffle(builder, first, second, high)
    return found


def _shuffle(builder: Builder, a: Value, b: Value, lanes: Iterable[int]) -> Value:
    order = tuple(lanes)
    return builder.pure("shuffle", a.kind, len(order), (a, b), order)
