"""Encoders of categories and features (ai.onnx.ml): lookups of keys, imputation, one-hot rows, extraction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from tilework import dtypes
from tilework.dims import dim
from tilework.dtypes import DType, dtype_of, integer_range
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, Result, element
from tilework.frontends.onnx.positions import counted_from_front
from tilework.frontends.onnx.words import place_of_words, positions, spoken
from tilework.graph.graph import Array, Value

MOST_COUNTED = 256
"""Keys up to which an element is compared with each of them; more are searched by halves."""

Words: TypeAlias = tuple[str, ...]


# -- lookups -----------------------------------------------------------------------------------------------------------
def place_of(emit: Emitter, value: Value, keys: Array) -> Value:
    """The position (int64) among keys of which the last of equal ones counts, or their number where there is none.

    NaN is equal to NaN here.
    """
    last = {_comparable(key): place for place, key in enumerate(keys.tolist())}
    nan = last.pop("nan", None)
    ordered = sorted((key, place) for key, place in last.items() if not isinstance(key, str))
    missing = emit.fill(len(keys), dtypes.int64, value.tensor.shape)
    found = missing
    if ordered:
        held = np.array([key for key, _ in ordered], keys.dtype)
        rank = _rank(emit, value, held)
        places = np.array([place for _, place in ordered], np.int64)
        hit = emit.compare("EQ", emit.apply("take", emit.constant(held), rank, dimension=0), value)
        found = emit.apply("select", hit, emit.apply("take", emit.constant(places), rank, dimension=0), missing)
    if nan is not None:
        here = emit.fill(nan, dtypes.int64, value.tensor.shape)
        found = emit.apply("select", emit.apply("is_nan", value), here, found)
    return found


def _comparable(key: float) -> float | str:
    return "nan" if math.isnan(key) else key


def _rank(emit: Emitter, value: Value, keys: Array) -> Value:
    """The position (int32) of the largest of sorted keys that is not larger than each element, or 0."""
    if len(keys) <= MOST_COUNTED:
        spread = emit.expand_dims(value, [value.tensor.rank])
        reached = emit.convert(emit.compare("GE", spread, emit.constant(keys[1:])), dtypes.int32)
        if len(keys) == 1:
            return emit.fill(0, dtypes.int32, value.tensor.shape)
        return emit.reduce(reached, (value.tensor.rank,), "sum", keep=False)
    step = 1 << (len(keys) - 1).bit_length()
    padded = np.concatenate([keys, np.repeat(keys[-1:], step - len(keys))])
    rank = emit.fill(0, dtypes.int32, value.tensor.shape)
    while step > 1:
        step //= 2
        ahead = emit.apply("add", rank, step)
        reached = emit.compare("GE", value, emit.apply("take", emit.constant(padded), ahead, dimension=0))
        rank = emit.apply("select", reached, ahead, rank)
    return emit.apply("minimum", rank, len(keys) - 1)


def looked_up(node: OnnxNode, keys: Array | Words, values: Array | Words, default: object) -> Result:
    """The value of each element's key, or the default; keys and values are numbers or strings."""
    if len(keys) != len(values):
        raise NodeFault(1108, f"it has {len(keys)} keys and {len(values)} values")
    emit = node.emit
    if isinstance(keys, tuple):
        place = place_of_words(node, 0, keys)
    else:
        value = node.value(0)
        if dtype_of(keys) != element(value):
            raise NodeFault(1119, f"the input {value.type} has keys of {dtype_of(keys)}")
        place = place_of(emit, value, keys)
    if isinstance(values, tuple):
        return spoken(place, (*values, str(default)))
    table = np.concatenate([values, np.array([default], values.dtype)])
    return emit.apply("take", emit.constant(table), place, dimension=0)


_TENSORS = (dtypes.int16, dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)
_SUFFIXES: Mapping[str, DType | None] = {"int64s": dtypes.int64, "floats": dtypes.float32, "strings": None}


def _list_of(node: OnnxNode, stem: str) -> tuple[Array | Words, str] | None:
    """The attribute `stem_<suffix>` that is given, with its suffix; raises `NodeFault` 1108 where several are."""
    found = [suffix for suffix in (*_SUFFIXES, "tensor") if node.given(f"{stem}_{suffix}")]
    if len(found) > 1:
        raise NodeFault(1108, f"only one of {', '.join(f'{stem}_{suffix}' for suffix in found)} may be given")
    if not found:
        return None
    (suffix,) = found
    name = f"{stem}_{suffix}"
    if suffix == "tensor":
        given = node.strings_or_tensor(name)
        if not isinstance(given, tuple) and dtype_of(given) not in _TENSORS:
            raise NodeFault(1108, f"attribute {name!r} holds {dtype_of(given)}")
        return given, suffix
    if suffix == "strings":
        return node.texts(name), suffix
    if suffix == "floats":
        return np.array(node.numbers(name), np.float32), suffix
    return np.array(node.integers(name), np.int64), suffix


def _label_encoder(node: OnnxNode) -> Result:
    if node.opset < 2:
        return _label_encoder_1(node)
    keys, values = _list_of(node, "keys"), _list_of(node, "values")
    if keys is None or values is None:
        raise NodeFault(1108, "keys and values must be given, one attribute of each")
    return looked_up(node, keys[0], values[0], _default(node, *values))


def _default(node: OnnxNode, values: Array | Words, suffix: str) -> object:
    """What an unknown key gives: the attribute for the type of the values."""
    if isinstance(values, tuple):
        if suffix == "tensor" and node.given("default_tensor"):
            return next(iter(node.strings_or_tensor("default_tensor")))
        return node.text("default_string", "_Unused")
    if suffix == "tensor":
        if node.given("default_tensor"):
            given = node.tensor("default_tensor").reshape(-1)
            if given.size != 1 or given.dtype != values.dtype:
                raise NodeFault(1108, f"default_tensor must be one {dtype_of(values)}")
            return given[0]
        return -0.0 if values.dtype.kind == "f" else -1
    return node.number("default_float", -0.0) if suffix == "floats" else node.integer("default_int64", -1)


def _label_encoder_1(node: OnnxNode) -> Result:
    """Version 1: strings to their positions in a list, and positions to strings."""
    words = node.texts("classes_strings", ())
    if node.operand(0).words is not None:
        places = np.arange(len(words), dtype=np.int64)
        return looked_up(node, words, places, node.integer("default_int64", -1))
    value, emit = node.value(0), node.emit
    none = emit.fill(len(words), dtypes.int64, value.tensor.shape)
    low, high = emit.compare("GE", value, 0), emit.compare("LT", value, len(words))
    place = emit.apply("select", emit.apply("and", low, high), value, none)
    return spoken(place, (*words, node.text("default_string", "_Unused")))


def _category_mapper(node: OnnxNode) -> Result:
    """Strings to integers or back, by what the input is."""
    words, numbers = node.texts("cats_strings", ()), np.array(node.integers("cats_int64s", ()), np.int64)
    if node.operand(0).words is not None:
        return looked_up(node, words, numbers, node.integer("default_int64", -1))
    return looked_up(node, numbers, words, node.text("default_string", "_Unused"))


def _one_hot_encoder(node: OnnxNode) -> Value:
    """A row per element with 1 at its category; unknown ones give zeros, or stop the call where `zeros` is 0."""
    emit = node.emit
    words, numbers = node.texts("cats_strings", ()), node.integers("cats_int64s", ())
    if bool(words) == bool(numbers):
        raise NodeFault(1108, "one of cats_strings and cats_int64s must be given, and hold categories")
    if words:
        place, count = place_of_words(node, 0, words), len(words)
    else:
        value = emit.convert(node.value(0), dtypes.int64)
        place, count = place_of(emit, value, np.array(numbers, np.int64)), len(numbers)
    if not node.flag("zeros", True):
        # the position after the last category is outside the identity: the call stops there
        return emit.apply("take", emit.constant(np.eye(count, dtype=np.float32)), place, dimension=0)
    spread = emit.expand_dims(place, [place.tensor.rank])
    shape = (*(1 for _ in place.tensor.shape), count)
    hit = emit.compare("EQ", spread, emit.iota(shape, place.tensor.rank, dtypes.int64))
    return emit.convert(hit, dtypes.float32)


# -- features ----------------------------------------------------------------------------------------------------------
def _imputer(node: OnnxNode) -> Value:
    """Elements equal to one value (NaN too) replaced by another: one for all, or one for each feature."""
    value, emit = node.value(0), node.emit
    kind = element(value)
    numbers: Sequence[float]
    if kind.is_floating:
        numbers, replaced = node.numbers("imputed_value_floats", ()), node.number("replaced_value_float", 0.0)
    else:
        numbers, replaced = node.integers("imputed_value_int64s", ()), node.integer("replaced_value_int64", 0)
        low, high = integer_range(kind)
        if not all(low <= number <= high for number in (*numbers, replaced)):
            raise NodeFault(1108, f"values to replace or to put in do not fit {kind}")
    if not numbers:
        raise NodeFault(1108, f"no values to put in are given for elements of {kind}")
    if len(numbers) > 1:
        if not value.tensor.rank:
            raise NodeFault(1108, f"there are {len(numbers)} values to put in for a single number")
        emit.equal_shapes(value.tensor.shape[-1:], (dim(len(numbers)),))
    if math.isnan(replaced):
        hit = emit.apply("is_nan", value)
    else:
        hit = emit.compare("EQ", value, emit.scalar(replaced, kind))
    filler = emit.constant(np.array(numbers, kind.numpy).reshape(-1 if len(numbers) > 1 else ()))
    return emit.apply("select", hit, emit.broadcast(filler, value.tensor.shape), value)


def _array_feature_extractor(node: OnnxNode) -> Result:
    """Columns (the last dimension) by position; a vector gives one row."""
    operand, indices, emit = node.operand(0), node.value(1), node.emit
    words = operand.words
    value = node.value(0) if words is None else positions(emit, operand)
    if not value.tensor.rank:
        raise NodeFault(1119, f"the input {operand} has no dimension")
    flat = emit.reshape(indices, (indices.tensor.size,))
    known = node.operand(1).array
    extent = value.tensor.shape[-1]
    if known is not None and known.size:
        least, most = int(known.min()), int(known.max())
        if least < 0 or node.symbols.decide_at_least(extent, most + 1) is False:
            raise NodeFault(1119, f"index {least if least < 0 else most} is outside a dimension of {extent}")
    else:
        flat = counted_from_front(emit, flat, extent)
    if value.tensor.rank == 1:
        value = emit.expand_dims(value, [0])
    found = emit.apply("take", value, flat, dimension=value.tensor.rank - 1)
    return found if words is None else spoken(found, words)


CONVERTERS: dict[str, Converter] = {
    "ai.onnx.ml::ArrayFeatureExtractor": _array_feature_extractor, "ai.onnx.ml::CategoryMapper": _category_mapper,
    "ai.onnx.ml::Imputer": _imputer, "ai.onnx.ml::LabelEncoder": _label_encoder,
    "ai.onnx.ml::OneHotEncoder": _one_hot_encoder,
}  # fmt: skip
