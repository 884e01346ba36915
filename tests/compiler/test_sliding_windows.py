"""Convolutions and poolings of any strides, dilations, groups, padding, layout and size, against the interpreter.

Tiles of results, the ends of padded rows, lanes a few elements apart and windows written out are all in here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilework
from tests.compiler.checking import check_graph
from tilework import dtypes
from tilework.compiler.compile import compile_graph
from tilework.dims import Symbol
from tilework.graph.graph import Graph
from tilework.ops.builder import GraphBuilder
from tilework.runtime.context import ContextOptions

DRAWS = 24
SYMBOL = Symbol("n", 0, 6)
SIZES = ({"n": 0}, {"n": 1}, {"n": 3})


def _padding(random: np.random.Generator, window: int) -> tuple[int, int]:
    """Mostly what keeps the size; sometimes uneven, sometimes negative."""
    if random.random() < 0.5:
        return window // 2, window // 2
    low, high = random.integers(-1, window + 1, 2)
    return int(low), int(high)


def _spatial(random: np.random.Generator, windows: tuple[int, ...], dilations: tuple[int, ...]) -> list[int]:
    """Sizes that are a little or a good deal larger than the window."""
    reach = [w * d for w, d in zip(windows, dilations, strict=True)]
    return [int(random.integers(r + 2, r + int(random.choice([4, 24])))) for r in reach]


def convolution(seed: int) -> Graph:
    """A random convolution of one to three spatial dimensions; the batch may be symbolic."""
    random = np.random.default_rng(seed)
    rank = int(random.choice([1, 2, 2, 2, 3]))
    windows = tuple(int(w) for w in random.choice([1, 2, 3, 3, 5, 7] if rank < 3 else [1, 2, 3], rank))
    strides = tuple(int(s) for s in random.choice([1, 1, 2, 3], rank))
    dilations = tuple(int(d) for d in random.choice([1, 1, 1, 2], rank))
    groups = int(random.choice([1, 1, 2, 5, 16, 24]))
    inner = 1 if groups > 2 and random.random() < 0.7 else int(random.choice([1, 3, 8, 17]))
    outer = groups * (1 if groups > 5 else int(random.choice([1, 2, 7, 16, 40])))
    padding = tuple(_padding(random, w) for w in windows)
    spatial = _spatial(random, windows, dilations)
    batch: Any = SYMBOL.name if random.random() < 0.3 else int(random.choice([1, 1, 2]))
    last = random.random() < 0.5  # channels last
    builder = GraphBuilder("convolution", [SYMBOL] if batch == SYMBOL.name else [])
    image = (batch, *spatial, inner * groups) if last else (batch, inner * groups, *spatial)
    kernel = (*windows, inner, outer) if last else (outer, inner, *windows)
    x = builder.input("x", dtypes.float32, *image)
    if random.random() < 0.5:
        w = builder.constant(random.integers(-4, 5, kernel).astype(np.float32))
    else:
        w = builder.input("w", dtypes.float32, *kernel)
    axes = tuple(range(1, rank + 1))
    layouts: dict[str, Any] = (
        {"input_dimensions": (0, rank + 1, *axes), "output_dimensions": (0, rank + 1, *axes)} if last else {}
    )
    if last:
        features = (0, rank + 1, *axes)
        kernel_order = (rank + 1, rank, *(a - 1 for a in axes))
        layouts = {"input_dimensions": features, "kernel_dimensions": kernel_order, "output_dimensions": features}
    y = builder.apply_one(
        "convolution", x, w, window_strides=strides, padding=padding, rhs_dilation=dilations,
        feature_group_count=groups, **layouts,
    )  # fmt: skip
    return builder.build([y])


def pooling(seed: int) -> Graph:
    """A random pooling, channels first or last."""
    random = np.random.default_rng(seed)
    windows = tuple(int(w) for w in random.choice([2, 3, 3, 5], 2))
    strides = tuple(int(s) for s in random.choice([1, 2, 2, 3], 2))
    dilations = tuple(int(d) for d in random.choice([1, 1, 1, 2], 2))
    padding = tuple(_padding(random, w) for w in windows)
    spatial = _spatial(random, windows, dilations)
    batch: Any = SYMBOL.name if random.random() < 0.3 else int(random.choice([1, 2]))
    channels = int(random.choice([1, 3, 8, 19, 64]))

    def placed(inner: tuple[Any, ...], batch: Any, channels: Any) -> tuple[Any, ...]:
        return (batch, *inner, channels) if last else (batch, channels, *inner)

    last = random.random() < 0.5
    builder = GraphBuilder("pooling", [SYMBOL] if batch == SYMBOL.name else [])
    x = builder.input("x", dtypes.float32, *placed(tuple(spatial), batch, channels))
    y = builder.apply_one(
        "reduce_window", x, reducer=str(random.choice(["maximum", "minimum", "sum"])),
        window_dimensions=placed(windows, 1, 1), window_strides=placed(strides, 1, 1),
        window_dilations=placed(dilations, 1, 1), base_dilations=(1,) * 4, padding=placed(padding, (0, 0), (0, 0)),
    )  # fmt: skip
    return builder.build([y])


def _sizes(graph: Graph) -> tuple[dict[str, int], ...]:
    return SIZES if graph.symbols else ({},)


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("seed", range(DRAWS))
def test_convolutions(seed: int, checked: bool) -> None:
    graph = convolution(seed)
    check_graph(graph, checked=checked, special=seed % 4 == 3, seed=seed, sizes=_sizes(graph))


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("seed", range(DRAWS))
def test_poolings(seed: int, checked: bool) -> None:
    graph = pooling(seed)
    check_graph(graph, checked=checked, special=seed % 4 == 3, seed=seed, sizes=_sizes(graph))


@pytest.mark.parametrize("build", [convolution, pooling])
@pytest.mark.parametrize("seed", range(100, 106))
def test_threads_change_no_bit(build: Any, seed: int) -> None:
    graph = build(seed)
    random = np.random.default_rng(seed)
    shapes = [tuple(int(d.evaluate({"n": 3})) for d in value.tensor.shape) for value in graph.inputs]
    inputs = [random.standard_normal(shape, np.float32) for shape in shapes]
    found: set[bytes] = set()
    for threads in (1, 2, 3, 8):
        with tilework.Context(ContextOptions(threads=threads)) as context:
            found.add(compile_graph(graph, context=context)(*inputs)[0].tobytes())
    assert len(found) == 1
