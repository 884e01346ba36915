"""Where long loops look for signals: often enough that a call ends soon, seldom enough that it costs nothing.

A loop whose whole run is short has no looks in it. Any other looks after pieces of about equal work, between its
iterations, so nothing is called from where the time is spent. Loops nested in it decide for themselves.
"""

from __future__ import annotations

from tilework.dims import Dim
from tilework.loops.program import Loop, Node
from tilework.lowering.indices import Indices
from tilework.lowering.parallel import work
from tilework.lowering.registers import Value
from tilework.lowering.state import FunctionState, State

SHORT = 1 << 20
"""Units of work (see `parallel.work`; each from a tenth of a nanosecond to, for a missed cache, a hundred) that a loop
may do without a look.
"""
PIECE = 1 << 18
"""Units of work between two looks: some 50 microseconds or more, where a look takes some 30 nanoseconds."""
_UNKNOWN_PIECE = 256
"""Iterations between two looks where the work of one depends on data (loops inside it that are long look as well)."""


class Polls:
    """Decides for the loops of one program."""

    def __init__(self, state: State, indices: Indices) -> None:
        self.state = state
        self.indices = indices
        self._work: dict[int, tuple[Node, Dim]] = {}

    def piece(self, loop: Loop) -> Value | None:
        """The iterations of a loop between two looks (i64), for the place where it starts; None: it needs no look."""
        state, builder = self.state, self.state.builder
        units = self._iteration(loop).substitute(state.environment)
        extent = loop.extent.substitute(state.environment)
        if not (units.loads() or extent.loads()) and (units * extent).bounds(state.prover.bounds)[1] <= SHORT:
            return None
        if units.value is not None:
            return builder.integer(max(1, PIECE // max(1, units.value)))
        if units.loads() or not all(_exists(name, state.function) or name in state.symbols for name in units.names()):
            return builder.integer(_UNKNOWN_PIECE)
        each = builder.op("smax", "i64", self.indices.value(units), builder.integer(1))
        count = builder.op("udiv", "i64", builder.integer(PIECE), each)
        return builder.op("smax", "i64", count, builder.integer(1))

    def _iteration(self, loop: Loop) -> Dim:
        """The work of one iteration (the widest, in a triangular nest)."""
        found = self._work.get(id(loop))
        if found is None:
            units = work(loop.body)
            if loop.variable in units.names():
                units = units.substitute({loop.variable: loop.extent - 1})
            found = self._work[id(loop)] = (loop, units)
        return found[1]


def _exists(name: str, function: FunctionState | None) -> bool:
    """Whether a loop variable has a scalar value in a function or one around it."""
    while function is not None:
        if name in function.variables:
            return True
        function = function.outer
    return False
