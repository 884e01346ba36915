"""The loop program of a computation that a person wrote: verified, then the plain nest of every stage."""

from __future__ import annotations

from tilework.compute.notation import Computation
from tilework.compute.plain import plain_program
from tilework.compute.verify import verify
from tilework.loops.program import LoopProgram


def loop_program(computation: Computation) -> LoopProgram:
    """The default loop program of a computation: where every schedule of it starts; see `compute.plain`.

    Raises `VerificationError` with every fault of the computation: names (1350), what reads or writes outside its
    array (1325), an axis that nothing goes over (1320), and the others that `compute.verify` lists.
    """
    verify(computation)
    return plain_program(computation)
