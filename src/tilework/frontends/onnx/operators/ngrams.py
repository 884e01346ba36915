"""TfIdfVectorizer: every window of a row is compared with every n-gram, and hits are counted.

Strings are compared by their positions in the list of those that n-grams are made of.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilework import dtypes
from tilework.dims import dim
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.words import place_of_words
from tilework.graph.graph import Array, Value


def _vectorized(node: OnnxNode) -> Value:
    """Counts of n-grams [rows, columns] (or [columns] of one row), times weights."""
    emit = node.emit
    value, pool = _coded(node)
    alone = value.tensor.rank < 2
    if value.tensor.rank > 2:
        raise NodeFault(1119, f"the input {value.type} must have one or two dimensions")
    if alone:
        value = emit.reshape(value, (1, value.tensor.size))
    mode = node.choice("mode", "TF", ("TF", "IDF", "TFIDF"))
    columns = node.integers("ngram_indexes")
    if not columns or min(columns) < 0 or max(columns) >= 2**31:
        raise NodeFault(1108, "attribute 'ngram_indexes' holds nothing, or a column that there is not")
    width = max(columns) + 1
    weights = node.numbers("weights", ())
    if weights and len(weights) != len(columns):
        raise NodeFault(1108, f"attribute 'weights' has {len(weights)} entries, there are {len(columns)} n-grams")
    counts, places = _counts(node, value, pool)
    found = _in_columns(emit, counts, [columns[place] for place in places], width, value)
    if mode == "IDF":
        found = emit.convert(emit.compare("GT", found, 0), dtypes.float32)
    found = emit.convert(found, dtypes.float32)
    if weights and mode != "TF":
        # by column, as onnx.reference and ONNX Runtime have it; the specification speaks of the n-gram's place
        by_column = np.zeros(width, np.float32)
        by_column[: len(weights)] = weights[:width]
        found = emit.apply("multiply", found, emit.constant(by_column))
    return emit.reshape(found, (width,)) if alone else found


def _coded(node: OnnxNode) -> tuple[Value, list[int]]:
    """The input and the pool as integers."""
    if node.given("pool_int64s") == node.given("pool_strings"):
        raise NodeFault(1108, "one of the attributes 'pool_int64s' and 'pool_strings' must be given")
    if node.given("pool_int64s"):
        return node.emit.convert(node.value(0), dtypes.int64), list(node.integers("pool_int64s"))
    texts = node.texts("pool_strings")
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    return place_of_words(node, 0, tuple(places)), [places[text] for text in texts]


def _pools(node: OnnxNode, pool: Sequence[int]) -> list[tuple[Array, int]]:
    """The n-grams of each length from 1 on: [n-grams, length], and the number of the first among all."""
    starts = node.integers("ngram_counts")
    ends = [*starts[1:], len(pool)]
    found: list[tuple[Array, int]] = []
    first = 0
    for length, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        if not 0 <= start <= end <= len(pool) or (end - start) % length:
            raise NodeFault(1108, f"attribute 'ngram_counts' is {list(starts)}, of a pool of {len(pool)} entries")
        grams: Array = np.array(pool[start:end], np.int64).reshape(-1, length)
        if len(np.unique(grams, axis=0)) != len(grams):
            raise NodeFault(1108, f"the pool holds an n-gram of length {length} twice")
        found.append((grams, first))
        first += len(grams)
    if first != len(node.integers("ngram_indexes")):
        raise NodeFault(1108, f"attribute 'ngram_indexes' does not have an entry for each of the {first} n-grams")
    return found


def _counts(node: OnnxNode, value: Value, pool: Sequence[int]) -> tuple[list[Value], list[int]]:
    """Counts [rows, n-grams] of int64, a tensor for each length, and the numbers of the n-grams."""
    emit = node.emit
    shortest, longest, skips = (node.integer(n) for n in ("min_gram_length", "max_gram_length", "max_skip_count"))
    if not 1 <= shortest <= longest or not 0 <= skips < 2**16:
        raise NodeFault(1108, f"n-grams of {shortest} to {longest} integers with up to {skips} skipped")
    found: list[Value] = []
    places: list[int] = []
    for length, (grams, first) in enumerate(_pools(node, pool), 1):
        if not len(grams) or not shortest <= length <= longest:
            continue
        apart = range(1, 2 if length == 1 else skips + 2)
        parts = [hits for distance in apart if (hits := _hits(node, value, grams, distance)) is not None]
        if not parts:
            continue
        total = parts[0]
        for part in parts[1:]:
            total = emit.apply("add", total, part)
        found.append(total)
        places.extend(range(first, first + len(grams)))
    return found, places


def _hits(node: OnnxNode, value: Value, grams: Array, distance: int) -> Value | None:
    """How often each n-gram stands in each row, its integers `distance` apart; None where rows are too short."""
    emit = node.emit
    extent, reach = value.tensor.shape[1], (grams.shape[1] - 1) * distance
    windows = extent - reach
    fits = node.symbols.decide_at_least(windows, 1)
    if fits is False:
        return None
    if fits is None:  # windows that reach beyond the end count for nothing
        value, windows = emit.pad(value, 0, (0, 0), (0, reach)), extent
    same: Value | None = None
    for place in range(grams.shape[1]):
        start = dim(place * distance)
        part = emit.expand_dims(emit.slice_axis(value, 1, start, start + windows), [2])
        equal = emit.compare("EQ", part, emit.constant(np.ascontiguousarray(grams[:, place])))
        same = equal if same is None else emit.apply("and", same, equal)
    assert same is not None
    if fits is None:
        rows = emit.iota((1, windows, 1), 1, dtypes.int64)
        same = emit.apply("and", same, emit.compare("LT", rows, emit.extent(extent - reach, dtypes.int64)))
    return emit.reduce(emit.convert(same, dtypes.int64), [1], "sum", keep=False)


def _in_columns(emit: Emitter, counts: Sequence[Value], columns: Sequence[int], width: int, value: Value) -> Value:
    """The counts in their columns; columns of no n-gram hold 0, those of several their sum."""
    rows = value.tensor.shape[0]
    if not counts:
        return emit.fill(0, dtypes.int64, (rows, width))
    joined = emit.concatenate(list(counts), 1)
    if len(set(columns)) < len(columns):
        places = emit.broadcast(emit.constant(np.array([columns], np.int64)), joined.tensor.shape)
        zeros = emit.fill(0, dtypes.int64, (rows, width))
        return emit.apply("scatter_along_axis", zeros, places, joined, dimension=1, reducer="sum")
    sources = np.full(width, len(columns), np.int64)
    sources[list(columns)] = np.arange(len(columns))
    if len(columns) < width:
        joined = emit.concatenate([joined, emit.fill(0, dtypes.int64, (rows, 1))], 1)
    return emit.apply("take", joined, emit.constant(sources), dimension=1)


CONVERTERS: dict[str, Converter] = {"TfIdfVectorizer": _vectorized}
