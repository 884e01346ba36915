"""How large a value may be: what arrays of numpy and addresses of 64 bits can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tilework.dims import Bound
from tilework.graph.types import TensorType

MOST_DIMENSIONS = 64
"""Dimensions that an array of numpy may have."""

MOST_BYTES = 2**63 - 1
"""Bytes that can be addressed, dimensions of extent 0 counted as 1 (numpy counts so too)."""


def beyond_limits(tensor: TensorType, bounds: Mapping[str, tuple[Bound, Bound]]) -> str | None:
    """Why no array can ever hold a tensor, or None. `bounds`: those of the symbols in its shape, by name."""
    if tensor.rank > MOST_DIMENSIONS:
        return f"it has {tensor.rank} dimensions, at most {MOST_DIMENSIONS} are possible"
    least = math.prod(max(extent.bounds(bounds)[0], 1) for extent in tensor.shape) * tensor.dtype.itemsize
    if least > MOST_BYTES:
        return f"{tensor} needs {'' if tensor.size.is_constant else 'at least '}{least} bytes, 2**63 or more"
    return None
