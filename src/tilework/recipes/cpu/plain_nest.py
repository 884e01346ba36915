"""plain_nest: every stage as its plain loop nest, in order. Runs whatever has a definition; fast at nothing."""

from __future__ import annotations

from tilework.candidates.candidate import Candidate
from tilework.candidates.region import Region
from tilework.machine.cpu import CpuMachine
from tilework.numerics import Numerics
from tilework.schedule.schedule import Schedule


class PlainNest:
    """The default schedule of any computation: no step at all."""

    name = "plain_nest"

    def candidates(self, region: Region, machine: CpuMachine, numerics: Numerics) -> tuple[Candidate, ...]:
        """One candidate, always."""

        def schedule() -> Schedule:
            return Schedule(region.definition.program, machine, numerics, origin=region.definition.program)

        return (Candidate("direct", self.name, schedule, note="the plain nest of each stage"),)


RECIPE = PlainNest()
