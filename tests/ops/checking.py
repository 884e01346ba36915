"""One application of an operator, three ways: reference, definition on integers, definition on symbols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilework.compute.nest import loop_program
from tilework.compute.verify import verify as verify_computation
from tilework.dims import Symbol, dim
from tilework.dtypes import dtype_of
from tilework.graph.types import TensorType
from tilework.loops.interpret import interpret
from tilework.loops.program import Buffer
from tilework.loops.verify import verify as verify_program
from tilework.ops.operator import Array, Counts, Operator, TypeFaults
from tilework.ops.registry import operator

Shape = Sequence[int | str]


def types_of(arrays: Sequence[Array], shapes: Sequence[Shape] | None = None) -> list[TensorType]:
    """Operand types; `shapes` (with names for symbols) stand in for the arrays' own."""
    own = [array.shape for array in arrays] if shapes is None else shapes
    return [TensorType(tuple(dim(d) for d in s), dtype_of(a)) for a, s in zip(arrays, own, strict=True)]


def symbol_values(arrays: Sequence[Array], shapes: Sequence[Shape]) -> dict[str, int]:
    found: dict[str, int] = {}
    for array, shape in zip(arrays, shapes, strict=True):
        for extent, entry in zip(array.shape, shape, strict=True):
            if isinstance(entry, str):
                assert found.setdefault(entry, extent) == extent
            else:
                assert entry == extent
    return found


def reference(name: str, arrays: Sequence[Array], **attributes: Any) -> Array:
    """The reference's first result, its types checked against the type rule."""
    results = operator(name).infer(types_of(arrays), attributes)
    found = operator(name).reference(arrays, attributes, [t for t in results if isinstance(t, TensorType)])
    for array, result in zip(found, results, strict=True):
        assert isinstance(result, TensorType)
        assert array.dtype == result.dtype.numpy
        assert array.shape == tuple(int(d) for d in result.shape)
    return found[0]


def interpreted(
    name: str | Operator, arrays: Sequence[Array], shapes: Sequence[Shape] | None = None, **attributes: Any
) -> Array:
    """The first result of the definition's plain loop nest."""
    found = operator(name) if isinstance(name, str) else name
    types = types_of(arrays, shapes)
    values = {} if shapes is None else symbol_values(arrays, shapes)
    results = [t for t in found.infer(types, attributes) if isinstance(t, TensorType)]
    operands = [Buffer(f"x{n}", t.shape, t.dtype) for n, t in enumerate(types)]
    targets = [Buffer(f"y{n}", t.shape, t.dtype) for n, t in enumerate(results)]
    definition = found.define(operands, targets, attributes, [Symbol(s) for s in values])
    held = {f"x{n}": array.copy() for n, array in enumerate(arrays)}
    for target in targets:
        shape = tuple(int(d.evaluate(values)) for d in target.shape)
        held[target.name] = np.full(shape, 77, target.dtype.numpy)
    verify_computation(definition)
    program = loop_program(definition)
    verify_program(program)
    interpret(program, held, values)
    return held["y0"]


def check(
    name: str, arrays: Sequence[Array], shapes: Sequence[Shape] | None = None, tolerance: float = 0.0, **attributes: Any
) -> Array:
    """Definition against reference, on integers and (given `shapes`) on symbols; returns the reference's result."""
    wanted = reference(name, arrays, **attributes)
    same(interpreted(name, arrays, **attributes), wanted, tolerance)
    if shapes is not None:
        same(interpreted(name, arrays, shapes, **attributes), wanted, tolerance)
    return wanted


def same(found: Array, wanted: Array, tolerance: float = 0.0) -> None:
    """Equal shapes, types and values (NaN equals NaN) up to a relative and absolute tolerance."""
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    if found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, wanted)
    else:
        a, b = found.astype(np.float64), wanted.astype(np.float64)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
        if not tolerance:
            zero = a == 0
            np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]))


def faults(name: str, types: Sequence[Any], **attributes: Any) -> list[int]:
    """The codes of all faults that the type rule finds."""
    try:
        operator(name).infer(types, attributes)
    except TypeFaults as found:
        return [fault.code for fault in found.faults]
    return []


def counted(name: str, types: Sequence[TensorType], **attributes: Any) -> Counts:
    found = operator(name)
    return found.counts(types, found.infer(types, attributes), attributes)


def whole(generator: np.random.Generator, *shape: int, dtype: Any = np.float32) -> Array:
    """Small integers, so that sums and products are exact in every type."""
    low = 0 if np.dtype(dtype).kind == "u" else -4
    return generator.integers(low, 5, shape).astype(dtype)
