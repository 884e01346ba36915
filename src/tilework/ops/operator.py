"""The base of every operator: type rule, definition, reference values, counts and precision facts.

One operator is one file `ops/<family>/<name>.py` (a Python keyword gets a trailing underscore) with `OPERATOR`, an
instance of a subclass of `Operator`. `ops.registry` finds it by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from tilework.compute.notation import Computation
from tilework.dims import Dim, Symbol
from tilework.errors import Fault
from tilework.graph.graph import Attribute, Node
from tilework.graph.types import TensorType, ValueType
from tilework.loops.program import Buffer

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


@dataclass(frozen=True)
class Counts:
    """Work of one application: arithmetic operations (a multiply-add is two) and bytes read and written once each."""

    flops: Dim
    bytes: Dim


@dataclass(frozen=True)
class PrecisionFacts:
    """What may be done to its precision: `safe_low` operands in 16 bits lose nothing that matters; `accumulate` names
    the type in which sums of 16-bit operands are kept; `keep_float32` operators are never computed lower."""

    safe_low: bool = False
    accumulate: str = "float32"
    keep_float32: bool = False


class TypeFaults(Exception):  # noqa: N818 - a carrier, turned into a VerificationError by the verifier
    """Every fault that a type rule found; the verifier gives them the node's name."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = tuple(faults)


class Operator(ABC):
    """An operator. Subclasses set `name` and implement the rest; all methods are pure."""

    name: ClassVar[str] = ""
    precision: PrecisionFacts = PrecisionFacts()
    elementwise: bool = False
    """Whether output element i depends on element i (after broadcasting) of each operand alone."""

    @abstractmethod
    def infer(
        self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]
    ) -> tuple[ValueType, ...]:
        """The result types. Raises `TypeFaults` with all faults at once (codes 12xx; `where` may be left empty)."""

    @abstractmethod
    def define(
        self, operands: Sequence[Buffer], results: Sequence[Buffer], attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        """The definition in index notation, from operand buffers (named by the caller) to result buffers.

        Names of axes, stages and temporaries start with the first result's name, so that definitions can be joined.
        """

    @abstractmethod
    def reference(self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]) -> tuple[Array, ...]:
        """The same in plain numpy, independent of `define`: the oracle. Attributes and types hold integers only."""

    def counts(self, operands: Sequence[ValueType], results: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> Counts:
        """Flops and bytes; by default no flops, every operand read and every result written once."""
        total = sum((t.bytes for t in (*operands, *results) if isinstance(t, TensorType)), Dim())
        return Counts(Dim(), total)


def node_location(node: Node) -> str:
    """How messages name a node: the user's own name where there is one."""
    return f"{node.location} ({node.operator})" if node.location else f"{node.name} ({node.operator})"
