"""Index notation: the language of every operator's definition and of user computations, and its loop programs.

from tilework import compute as te

a, b = te.placeholder("a", "float32", "M", "K"), te.placeholder("b", "float32", "K", "N")
k = te.reduce_axis("K", "k")
c = te.compute("c", ("M", "N"), lambda i, j: te.sum(a[i, k] * b[k, j], k))
program = te.loop_program(te.computation("matmul", [a, b], [c]))
"""

from __future__ import annotations

from tilework.compute.builder import (
    Guarded,
    Reduction,
    Tensor,
    arg_reducer,
    call,
    cast,
    computation,
    compute,
    compute_several,
    constant,
    define_reducer,
    equal,
    greater,
    greater_equal,
    index,
    less,
    less_equal,
    max,  # noqa: A004 - their names in mathematics
    min,  # noqa: A004
    not_equal,
    placeholder,
    product,
    reduce_axis,
    reduction,
    scan,
    scan_axis,
    scatter,
    select,
    sum,  # noqa: A004
    where,
)
from tilework.compute.nest import loop_program
from tilework.compute.notation import Axis, Computation

__all__ = [
    "Axis", "Computation", "Guarded", "Reduction", "Tensor", "arg_reducer", "call", "cast", "computation", "compute",
    "compute_several", "constant", "define_reducer", "equal", "greater", "greater_equal", "index", "less", "less_equal",
    "loop_program", "max", "min", "not_equal", "placeholder", "product", "reduce_axis", "reduction", "scan",
    "scan_axis", "scatter", "select", "sum", "where",
]  # fmt: skip
