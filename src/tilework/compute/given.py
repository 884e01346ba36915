"""What people give to the functions that build computations: understood, or refused with what to write instead."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import NoReturn, cast

import numpy as np

from tilework.compute.notation import Axis
from tilework.dims import Dim, dim, parse_dim
from tilework.dtypes import DType, dtype_named
from tilework.errors import LoopProgramError, UsageError
from tilework.loops.expressions import Expression

LARGEST_EXTENT = 1 << 62
"""More elements than any memory has; indices are signed numbers of 64 bits."""


def name_of(value: object, what: str) -> str:
    """A name: a text that is not empty."""
    if isinstance(value, str) and value:
        return value
    raise LoopProgramError(1352, f"{value!r} is no name of {what}", hint="give a text that is not empty")


def extent(value: object, where: str) -> Dim:
    """A size: an integer, a dim, or a text such as "N" or "2*N + 1". Raises 1352, 1329 (negative), 1004 (text)."""
    hint = 'give a whole number, a name such as "N", or an expression of them'
    if isinstance(value, str):
        try:
            found = parse_dim(value)
        except UsageError as error:
            raise UsageError(error.code, error.message, where=where, hint=hint) from None
    elif isinstance(value, Dim):
        found = value
    else:
        try:
            found = dim(operator.index(cast("int", value)))
        except TypeError:
            found = None
        if found is None or isinstance(value, bool):
            raise LoopProgramError(1352, f"{value!r} is no extent", where=where, hint=hint)
    size = found.value
    if size is not None and size < 0:
        raise LoopProgramError(1329, f"the extent is {size}", where=where)
    if size is not None and size > LARGEST_EXTENT:
        raise LoopProgramError(1352, f"no array has {size} elements", where=where, hint="give at most 2**62")
    return found


def extents(shape: object, where: str) -> tuple[Dim | Axis, ...]:
    """The extents of a shape, scan axes kept; one extent alone is a shape of one dimension."""
    if isinstance(shape, Iterable) and not isinstance(shape, str):
        entries = tuple(cast("Iterable[object]", shape))
    else:
        entries = (cast("object", shape),)
    return tuple(
        entry if isinstance(entry, Axis) else extent(entry, f"dimension {number} of {where}")
        for number, entry in enumerate(entries)
    )


def element_type(value: object, where: str) -> DType:
    """An element type: a `DType`, its name, or what numpy takes for one. Raises `UsageError` 1003."""
    if isinstance(value, DType):
        return value
    try:
        if value is None:
            raise TypeError("nothing is given")
        name = value if isinstance(value, str) else np.dtype(cast("np.dtype[np.generic]", value)).name
    except TypeError:
        hint = 'give a type, as dtypes.float32, or its name, as "float32"'
        raise UsageError(1003, f"{value!r} is no element type", where=where, hint=hint) from None
    return dtype_named(name)


def axes_of(value: object, where: str) -> tuple[Axis, ...]:
    """Axes to reduce over: one, or several."""
    entries = tuple(cast("Iterable[object]", value)) if isinstance(value, (tuple, list)) else (value,)
    for entry in entries:
        if not isinstance(entry, Axis):
            hint = 'make an axis first: k = reduce_axis("K", "k")'
            raise LoopProgramError(1352, f"{entry!r} is no axis", where=where, hint=hint)
    return cast("tuple[Axis, ...]", entries)


def expressions_of(value: object, where: str) -> tuple[Expression, ...]:
    """Values that elements can have: one expression, or a tuple of them."""
    entries = tuple(cast("Iterable[object]", value)) if isinstance(value, (tuple, list)) else (value,)
    for entry in entries:
        if not isinstance(entry, Expression):
            _no_expression(entry, where)
    return cast("tuple[Expression, ...]", entries)


def _no_expression(value: object, where: str) -> NoReturn:
    if value is None:
        text, hint = "the function returns nothing", "return an expression, such as a[i, j] * 2.0"
    elif isinstance(value, bool):
        text = f"{value} is no expression"
        hint = "write equal(x, y) for x == y, and constant(value, dtype) for a literal"
    elif isinstance(value, (int, float)):
        text, hint = f"{value!r} has no type", f"write constant({value!r}, float32), with the type you mean"
    elif isinstance(value, Dim):
        text, hint = f"{value} is an index, no number", f"write index({value}, float32), with the type you mean"
    elif isinstance(value, NotAnElement):
        text, hint = f"a {type(value).__name__.lower()} is no operand", value.alone
    else:
        text, hint = f"a {type(value).__name__} is no expression", "return an expression, such as a[i, j] * 2.0"
    raise LoopProgramError(1352, text, where=where, hint=hint)


class NotAnElement:
    """Base of what defines a whole tensor: no operand of a sum or product."""

    alone = "let compute return it alone, and use the elements of the tensor that this makes"

    def _refused(self, _: object = None) -> NoReturn:
        raise LoopProgramError(
            1352, f"a {type(self).__name__.lower()} defines a tensor and is no operand", hint=self.alone
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refused
    __neg__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _refused
