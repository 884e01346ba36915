"""What a pass is."""

from __future__ import annotations

from typing import ClassVar, Protocol

from tilework.graph.graph import Graph


class Pass(Protocol):
    """A frozen dataclass whose fields are its options.

    `run` expects a verified graph and returns one that computes the same values for all inputs: bit for bit (of a NaN
    only that it is one), with the same inputs, output names, signature and order of effects. Where nothing changes it
    returns the very graph it was given. A run-time fault of the graph may disappear, never appear.
    """

    name: ClassVar[str]

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph."""
        ...
