from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from tilework.dims import dim
from tilework.dtypes import bfloat16
from tilework.errors import UsageError
from tilework.layout import ALIGNMENT, Layout, Part, blocked, lettered, parse_layout, permuted, row_major

LAYOUTS = [
    row_major(0),
    row_major(1),
    row_major(3),
    permuted((0, 2, 3, 1)),
    permuted((2, 0, 1)),
    blocked(4, ((1, 16),)),
    blocked(2, ((0, 2),)),
    blocked(2, ((1, 8), (0, 4), (1, 2)), (1, 0)),
    Layout(2, (Part(0), Part(1), Part(1, 16))),
    Layout(3, (Part(2), Part(0), Part(2, 3), Part(1), Part(0, 5), Part(2, 2)), padding=-7),
    blocked(1, ((0, 1),)),
]


def random_layout(generator: np.random.Generator) -> Layout:
    rank = int(generator.integers(1, 4))
    pending: list[list[Part]] = []
    for d in range(rank):
        blocks = generator.integers(1, 5, generator.integers(0, 3))
        pending.append([Part(d), *(Part(d, int(block)) for block in blocks)])
    parts: list[Part] = []
    while any(pending):
        full = [parts_of_one for parts_of_one in pending if parts_of_one]
        parts.append(full[int(generator.integers(0, len(full)))].pop(0))
    return Layout(rank, tuple(parts), padding=int(generator.integers(-3, 4)))


def shapes(layout: Layout, generator: np.random.Generator) -> list[tuple[int, ...]]:
    return [
        tuple(int(e) for e in generator.integers(0, 9, layout.rank)),
        tuple(int(e) for e in generator.integers(1, 20, layout.rank)),
        (1,) * layout.rank,
        tuple(layout.multiples),
    ]


def check(layout: Layout, shape: tuple[int, ...], generator: np.random.Generator) -> None:
    """`pack` agrees with the index map element by element, and `unpack` undoes it."""
    array = generator.integers(-100, 100, shape).astype(np.float32)
    packed = layout.pack(array)
    assert packed.flags.c_contiguous
    assert packed.shape == tuple(int(extent) for extent in layout.physical_shape(shape))
    for place in product(*(range(extent) for extent in packed.shape)):
        logical = tuple(int(i) for i in layout.logical_index(place))
        assert tuple(int(i) for i in layout.physical_index(logical)) == place
        inside = all(i < extent for i, extent in zip(logical, shape, strict=True))
        assert packed[place] == (array[logical] if inside else layout.padding)
        if inside:
            assert packed.reshape(-1)[int(layout.element_offset(logical, shape))] == array[logical]
    back = layout.unpack(packed, shape)
    assert back.flags.c_contiguous
    np.testing.assert_array_equal(back, array)
    if 0 not in shape:
        assert layout.pads(shape) == (packed.size != array.size)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_layouts_are_invertible(layout: Layout) -> None:
    generator = np.random.default_rng(1)
    for shape in shapes(layout, generator)[1:]:
        check(layout, tuple(min(e, 7) if layout.rank > 3 else e for e in shape), generator)


@pytest.mark.parametrize("seed", range(20))
def test_random_layouts_are_invertible(seed: int) -> None:
    generator = np.random.default_rng(seed)
    layout = random_layout(generator)
    for shape in shapes(layout, generator):
        check(layout, tuple(min(e, 8) for e in shape), generator)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_text_comes_back(layout: Layout) -> None:
    assert parse_layout(str(layout)) == layout


@pytest.mark.parametrize("padding", [0, 3, -2, 1.5, -math.inf, 1e-30, True])
def test_padding_comes_back(padding: float) -> None:
    layout = blocked(1, ((0, 4),), padding=padding)
    back = parse_layout(str(layout))
    assert (back, type(back.padding)) == (layout, type(padding))


@pytest.mark.parametrize(
    "text", ["", "layout", "layout(0 1)", "layout(0:)", "layout(0, )", "layout(0; x)", "layout(0; 1.2.3)", "layout(1)"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="TW1006"):
        parse_layout(text)


def test_shapes_and_indices_may_be_symbols() -> None:
    layout = blocked(4, ((1, 16),))
    shape = layout.physical_shape(("n", dim("c") * 16, "h", "w"))
    assert shape == (dim("n"), dim("c"), dim("h"), dim("w"), dim(16))
    assert layout.physical_shape(("n", "c", "h", "w"))[1] == (dim("c") + 15) // 16
    assert layout.physical_index(("n", "c", "h", "w")) == (dim("n"), dim("c") // 16, dim("h"), dim("w"), dim("c") % 16)
    assert layout.logical_index(("a", "b", "c", "d", "e")) == (dim("a"), dim("b") * 16 + "e", dim("c"), dim("d"))
    assert not layout.pads(("n", dim("c") * 16, "h", "w"))
    assert layout.pads(("n", "c", "h", "w"))
    assert layout.padded_shape((1, 17, 1, 1)) == (1, 32, 1, 1)


def test_familiar_layouts() -> None:
    array = np.arange(2 * 5 * 3 * 4).reshape(2, 5, 3, 4)
    np.testing.assert_array_equal(permuted((0, 2, 3, 1)).pack(array), array.transpose(0, 2, 3, 1))
    packed = lettered("NCHW", "NCHW4c").pack(array)
    assert packed.shape == (2, 2, 3, 4, 4)
    np.testing.assert_array_equal(packed[:, 1, :, :, 0], array[:, 4])
    assert not packed[:, 1, :, :, 1:].any()
    pairs = lettered("KN", "KN2k").pack(np.arange(8).reshape(4, 2))
    np.testing.assert_array_equal(pairs, [[[0, 2], [1, 3]], [[4, 6], [5, 7]]])
    assert lettered("KN", "NK8n") == blocked(2, ((1, 8),), (1, 0))


@pytest.mark.parametrize("seed", range(10))
def test_transposed_is_the_same_memory(seed: int) -> None:
    generator = np.random.default_rng(seed)
    layout = random_layout(generator)
    order = [int(d) for d in generator.permutation(layout.rank)]
    array = generator.integers(0, 50, [int(e) for e in generator.integers(1, 7, layout.rank)])
    np.testing.assert_array_equal(layout.transposed(order).pack(array.transpose(order)), layout.pack(array))


def test_layouts_compose() -> None:
    generator = np.random.default_rng(3)
    array = generator.integers(0, 50, (4, 32))
    first = blocked(2, ((1, 16),))
    for second in (
        permuted((1, 0, 2)),
        blocked(3, ((2, 4),)),
        blocked(3, ((0, 2), (2, 8)), (1, 0, 2)),
        Layout(3, (Part(0), Part(1), Part(1, 2), Part(2))),
    ):
        both = first.then(second)
        np.testing.assert_array_equal(both.pack(array), second.pack(first.pack(array)))
    for bad in (permuted((2, 0, 1)), blocked(3, ((2, 3),)), row_major(2), blocked(3, ((1, 2),))):
        with pytest.raises(UsageError, match="TW1006"):
            first.then(bad)


@pytest.mark.parametrize(
    ("rank", "parts", "words"),
    [
        (2, (Part(0),), "dimension 1 is missing"),
        (1, (Part(0), Part(0)), "twice"),
        (1, (Part(0, 4), Part(0)), "before"),
        (1, (Part(0), Part(0, 0)), "empty"),
        (1, (Part(0), Part(3)), "no dimension"),
        (-1, (), "negative"),
    ],
)
def test_what_is_no_layout(rank: int, parts: tuple[Part, ...], words: str) -> None:
    with pytest.raises(UsageError, match=f"TW1006.*{words}"):
        Layout(rank, parts)


def test_every_fault_is_named() -> None:
    with pytest.raises(UsageError) as caught:
        Layout(3, (Part(0), Part(0), Part(2, 0)))
    assert all(words in str(caught.value) for words in ("twice", "empty", "before", "dimension 1 is missing"))


def test_orders_and_letters_are_checked() -> None:
    for wrong in (lambda: permuted((0, 0)), lambda: row_major(2).transposed((0,)), lambda: lettered("NC", "NX")):
        with pytest.raises(UsageError, match="TW1006"):
            wrong()
    for physical in ("N C", "NC16", "NCc"):
        with pytest.raises(UsageError, match="TW1006"):
            lettered("NC", physical)
    with pytest.raises(UsageError, match="TW1006"):
        row_major(2).physical_shape((1,))
    with pytest.raises(UsageError, match="TW1006"):
        row_major(2).logical_index((1,))
    with pytest.raises(UsageError, match="TW1006"):
        row_major(2).unpack(np.zeros((2, 3)), (3, 2))


def test_padding_must_fit_the_type() -> None:
    layout = blocked(1, ((0, 4),), padding=-math.inf)
    assert layout.pack(np.ones(3, np.float32))[0, 3] == -math.inf
    assert layout.pack(np.ones(3, bfloat16.numpy))[0, 3] == -math.inf
    with pytest.raises(UsageError, match="TW1006"):
        layout.pack(np.ones(3, np.int8))
    with pytest.raises(UsageError, match="TW1006"):
        blocked(1, ((0, 4),), padding=300).pack(np.ones(3, np.uint8))
    with pytest.raises(UsageError, match="TW1006"):
        blocked(1, ((0, 4),), padding=0.5).pack(np.ones(3, np.int8))
    assert blocked(1, ((0, 4),), padding=True).pack(np.zeros(1, np.bool_)).tolist() == [[False, True, True, True]]


def test_packing_never_shares_memory() -> None:
    array = np.arange(4.0)
    packed = row_major(1).pack(array)
    packed[0] = 9
    assert array[0] == 0
    back = row_major(1).unpack(packed, (4,))
    back[1] = 8
    assert packed[1] == 1


@pytest.mark.parametrize("shape", [(0, 3), (5, 7), (300, 1000)])
def test_what_is_packed_is_aligned(shape: tuple[int, int]) -> None:
    array = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    for layout in (permuted((1, 0)), blocked(2, ((1, 16),))):
        found = layout.pack(array)
        assert not found.size or found.ctypes.data % ALIGNMENT == 0
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(layout.unpack(found, shape), array)
