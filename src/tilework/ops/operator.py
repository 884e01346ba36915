"""The base of every operator: type rule, definition, reference values, counts and precision facts.

One operator is one file `ops/<family>/<name>.py` (a Python keyword gets a trailing underscore) with `OPERATOR`, an
instance of a subclass of `Operator`. `ops.registry` finds it by name. Files whose name starts with an underscore hold
what a family shares, and are no operators.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from tilework.compute.notation import Computation
from tilework.dims import Dim, Symbol
from tilework.errors import Fault, GraphError, RunError
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Attribute, Graph, Node
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
    """What may be done to its precision.

    `safe_low`: operands in 16 bits lose nothing that matters. `accumulate` names the type in which sums of 16-bit
    operands are kept. `keep_float32`: never computed lower.
    """

    safe_low: bool = False
    accumulate: str = "float32"
    keep_float32: bool = False


class TypeFaults(Exception):  # noqa: N818 - a carrier, turned into a VerificationError by the verifier
    """Every fault that a type rule found; the verifier gives them the node's name."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = tuple(faults)


class Environment(Protocol):
    """What the graph interpreter offers to an operator that holds subgraphs."""

    @property
    def symbols(self) -> Mapping[str, int]:
        """The value of every symbol bound so far."""
        ...

    def attributes(self, node: Node) -> Mapping[str, Any]:
        """The node's attributes with every symbolic integer evaluated."""
        ...

    def result_types(self, node: Node) -> tuple[TensorType, ...]:
        """The types of the node's tensor results with every symbol that has a value evaluated."""
        ...

    def evaluate(self, subgraph: Graph, arguments: Sequence[Array]) -> tuple[Array, ...]:
        """The outputs of a subgraph of the running node for these inputs; what it captures is found by name."""
        ...


TOKEN: Array = np.zeros(0, np.bool_)
"""What stands for a token among the arrays of the interpreter."""
TOKEN.flags.writeable = False


class Operator(ABC):
    """An operator. Subclasses set `name` and implement the rest; all methods are pure."""

    name: str = ""
    precision: PrecisionFacts = PrecisionFacts()
    elementwise: bool = False
    """Whether output element i depends on element i (after broadcasting) of each operand alone."""
    view: bool = False
    """Whether the result is the first operand's bytes in the same order, so that it may share its memory."""
    index_operands: tuple[int, ...] = ()
    """Operands whose elements are positions: code tests them against the extent, so they are read from memory even
    where their one element is known.
    """

    @abstractmethod
    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        """The result types. Raises `TypeFaults` with all faults at once (codes 12xx; `where` may be left empty)."""

    def infer_node(
        self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute], subgraphs: Sequence[Graph] = ()
    ) -> tuple[ValueType, ...]:
        """As `infer`, for a node with subgraphs; operators of control flow override it, others refuse subgraphs."""
        if subgraphs:
            raise TypeFaults([Fault(1228, "", f"{self.name} takes no subgraphs, it has {len(subgraphs)}")])
        return self.infer(operands, attributes)

    def measured(self, attributes: Mapping[str, Attribute]) -> Mapping[str, int]:
        """Symbols that are bound before it runs, and the operand whose only element is the value of each."""
        return {}

    def refusal(self, attributes: Mapping[str, Attribute]) -> str:
        """Why running it is always an error; empty for all operators that compute something."""
        return ""

    def requirements(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[Dim, ...]:
        """Dims that must be >= 0 when it runs, and that types alone do not decide (a symbolic slice within its tensor).

        Whoever runs the definition checks them first: it may otherwise read or write outside its buffers.
        """
        return ()

    def sentence(self, needed: Dim, attributes: Mapping[str, Attribute]) -> str:
        """What one of the requirements says, for people; empty where the dim itself says it."""
        return ""

    @abstractmethod
    def define(
        self,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        """The definition in index notation, from operand buffers (named by the caller) to result buffers.

        Tokens have no buffer. Names of axes, stages and temporaries start with the first result's name and a dot, so
        that definitions can be joined. Raises `GraphError` 1230 where index notation cannot say it (`undefined`).
        """

    @abstractmethod
    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        """The same in plain numpy, independent of `define`: the oracle. Attributes and types hold integers only.

        `results` are the tensor results' types. A token is given, and returned, as `TOKEN`.
        """

    def run(self, node: Node, operands: Sequence[Array], environment: Environment) -> tuple[Array, ...]:
        """What the interpreter calls: `reference`; operators of control flow override it and evaluate subgraphs."""
        return self.reference(operands, environment.attributes(node), environment.result_types(node))

    def runtime_fault(self, message: str) -> RunError:
        """The error for `reference` to raise where these values (not their types) are a fault."""
        return RunError(1242, f"{self.name}: {message}")

    def undefined(self, why: str) -> GraphError:
        """The error for `define` to raise where index notation cannot say what the operator does."""
        return GraphError(1230, f"{self.name} has no definition in index notation: {why}")

    def counts(
        self, operands: Sequence[ValueType], results: Sequence[ValueType], attributes: Mapping[str, Attribute]
    ) -> Counts:
        """Flops and bytes; by default no flops, every operand read and every result written once."""
        total = sum((t.bytes for t in (*operands, *results) if isinstance(t, TensorType)), Dim())
        return Counts(Dim(), total)
