"""`population_count`: how many bits of an integer are set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.dtypes import DType
from tilework.ops.elementwise._base import Unary
from tilework.ops.elementwise._bits import as_unsigned
from tilework.ops.operator import Array


class PopulationCount(Unary):
    """How many bits of an integer are set (of its two's complement)."""

    name = "population_count"
    function = "population_count"

    def evaluate(self, operands: Sequence[Array], dtype: DType, attributes: Mapping[str, Any]) -> Array:
        return self.of(as_unsigned(operands[0], dtype))

    def of(self, x: Array) -> Array:
        return np.bitwise_count(x)


OPERATOR = PopulationCount()
