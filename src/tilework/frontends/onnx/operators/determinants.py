"""Det: determinants by elimination, a column at a time."""

from __future__ import annotations

from collections.abc import Sequence

from tilework import dtypes
from tilework.dims import product
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, element
from tilework.frontends.onnx.unify import equal
from tilework.graph.graph import Value


def _det(node: OnnxNode) -> Value:
    """Gaussian elimination of [..., m, m]; the pivot is the largest element of its column in rows not used yet.

    Rows stay where they are: those used are marked, and the sign counts the unused rows before the pivot's.
    """
    value, emit = node.value(0), node.emit
    rank = value.tensor.rank
    if rank < 2:
        raise NodeFault(1119, f"the input {value.type} has no matrix")
    lead, size = value.tensor.shape[:-2], value.tensor.shape[-1]
    equal(node.symbols, value.tensor.shape[-2], size, "rows and columns of the matrices")
    value = emit.assumed(value, (*lead, size, size))
    if size == 0:
        return emit.fill(1.0, element(value), lead)
    wide = dtypes.float64 if element(value) == dtypes.float64 else dtypes.float32
    batch = product(lead)
    matrices = emit.reshape(emit.convert(value, wide), (batch, size, size))
    inner = emit.inside("columns")
    state = [matrices, emit.fill(False, dtypes.boolean, (batch, size)), emit.fill(1.0, wide, (batch,))]
    formals = [inner.builder.input(inner.builder.fresh("state"), v.tensor.dtype, *v.tensor.shape) for v in state]
    column = inner.builder.input(inner.builder.fresh("column"), dtypes.int64)
    body = inner.builder.build(_eliminated(inner, formals, column))
    columns = emit.iota((size,), 0, dtypes.int64)
    found = emit.builder.apply_all(
        "scan", [*state, columns], {"state_count": 3, "reverse": False}, location=emit.location, subgraphs=(body,)
    )
    return emit.convert(emit.reshape(found[2], lead), element(value))


def _eliminated(emit: Emitter, state: Sequence[Value], column: Value) -> list[Value]:
    """One column: the matrices [b, m, m] without it below its pivot, rows used [b, m], products of pivots [b]."""
    matrices, used, pivots = state
    rows = emit.iota(used.tensor.shape, 1, dtypes.int64)
    entries = emit.apply("take", matrices, column, dimension=2)
    sizes = emit.apply("select", used, -1.0, emit.apply("abs", entries))
    pivot = emit.apply("arg_reduce", sizes, dimension=1, direction="maximum", keep_dimensions=True)
    chosen = emit.compare("EQ", rows, pivot)
    picked = emit.apply("select", emit.expand_dims(chosen, [2]), matrices, emit.zeros_like(matrices))
    row = emit.reduce(picked, [1], "sum")  # [b, 1, m]
    divisor = emit.apply("take", row, column, dimension=2)  # [b, 1]
    free = emit.apply("not", used)
    before = emit.apply("and", free, emit.compare("LT", rows, pivot))
    passed = emit.reduce(emit.convert(before, dtypes.int32), [1], "sum", keep=False)
    sign = emit.apply(
        "subtract", 1.0, emit.convert(emit.apply("multiply", emit.apply("and", passed, 1), 2), divisor.tensor.dtype)
    )
    total = emit.apply("multiply", pivots, emit.apply("multiply", sign, emit.drop_dims(divisor, [1])))
    left = emit.apply("and", free, emit.apply("not", chosen))
    # where the pivot is 0 the whole column is, and so the determinant
    clear = emit.apply("and", left, emit.compare("NE", divisor, 0.0))
    factors = emit.apply("select", clear, emit.apply("divide", entries, divisor), emit.zeros_like(entries))
    reduced = emit.apply("subtract", matrices, emit.apply("multiply", emit.expand_dims(factors, [2]), row))
    return [reduced, emit.apply("or", used, chosen), total]


CONVERTERS: dict[str, Converter] = {"Det": _det}
