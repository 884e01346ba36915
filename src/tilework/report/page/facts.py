"""What a page is about: a compiled model at given sizes, as it was measured or as it is predicted."""

from __future__ import annotations

from collections.abc import Mapping

from tilework.cost.roofline import Prediction, Roofline, predict_boundary
from tilework.errors import UsageError
from tilework.fast_dataclass import dataclass, field
from tilework.machine.cpu import CpuMachine
from tilework.plan.explanation import Explanation, RegionExplanation
from tilework.plan.plan import Plan
from tilework.plan.steps import KernelStep
from tilework.runtime.ports import StepKind
from tilework.runtime.profile import Profile, StepProfile, evaluated


@dataclass(frozen=True, eq=False)
class Subject:
    """A compiled model, at the `sizes` of its symbols on so many `threads`; with a `profile` where it ran."""

    explanation: Explanation
    plans: tuple[Plan, ...]
    sizes: Mapping[str, int]
    threads: int
    profile: Profile | None = None


@dataclass(frozen=True)
class EngineTimes:
    """An engine that a model was timed beside: seconds a call, with the interval that holds the true median (infinite
    ends: too few rounds), and the ratio of ours to it. `peak_bytes` is None where nobody knows.
    """

    name: str
    version: str
    low: float
    middle: float
    high: float
    ratio: str
    compile_seconds: float
    first_seconds: float
    peak_bytes: int | None


@dataclass(frozen=True)
class Row:
    """A step of a call, or a region of which only a prediction is known.

    `number` is the region's, as `tilework explain --region` counts (None for what is no region). `seconds` are those of
    a call: measured, or predicted where nothing ran; None where neither is known.
    """

    name: str
    number: int | None
    origin: str
    kind: StepKind
    operators: tuple[str, ...]
    algorithm: str
    seconds: float | None
    share: float
    runs: int
    flops: int | None
    bytes: int | None
    prediction: Prediction | None

    @property
    def title(self) -> str:
        """Its name, with the number of the region."""
        return self.name if self.number is None else f"{self.number} {self.name}"

    @property
    def intensity(self) -> float | None:
        """Operations a byte; None where there is nothing to divide."""
        return self.flops / self.bytes if self.flops and self.bytes else None

    @property
    def flops_per_second(self) -> float | None:
        """Operations a second."""
        return self.flops / self.seconds if self.flops and self.seconds else None

    @property
    def bytes_per_second(self) -> float | None:
        """Bytes a second."""
        return self.bytes / self.seconds if self.bytes and self.seconds else None

    @property
    def of_roof(self) -> float | None:
        """The least time over the time that it took; above 1 where the roof is lower than what the machine does."""
        return self.prediction.seconds / self.seconds if self.prediction is not None and self.seconds else None


@dataclass(frozen=True, eq=False)
class Facts:
    """Everything that a page shows. Rows have the slowest first."""

    title: str
    subject: Subject
    machine: CpuMachine
    roofline: Roofline
    rows: tuple[Row, ...]
    region: str | None
    """Whose schedule is shown open; None: the slowest."""
    engines: tuple[EngineTimes, ...] = field(default=())

    @property
    def measured(self) -> bool:
        """Whether times are measured."""
        return self.subject.profile is not None

    @property
    def seconds(self) -> float:
        """The time of all steps of a call."""
        return sum(row.seconds or 0.0 for row in self.rows)


def facts_of(
    subject: Subject, title: str, machine: CpuMachine, roofline: Roofline, region: int | None,
    engines: tuple[EngineTimes, ...],
) -> Facts:  # fmt: skip
    """Put together what a page shows. Raises `UsageError` 1002 for a region that there is not."""
    regions = subject.explanation.regions
    if region is not None and not 0 <= region < len(regions):
        text = f"region={region}: there are {len(regions)} regions, numbered from 0"
        raise UsageError(1002, text, where="region", hint="give the number of one, as the page and `explain` show it")
    numbers = {found.name: number for number, found in enumerate(regions)}
    rows = _measured(subject, subject.profile, machine, roofline, numbers) if subject.profile is not None else (
        _predicted(subject, machine, roofline)
    )  # fmt: skip
    rows.sort(key=lambda row: -(row.seconds or 0.0))
    chosen = None if region is None else regions[region].name
    return Facts(title, subject, machine, roofline, tuple(rows), chosen, engines)


def _measured(
    subject: Subject, profile: Profile, machine: CpuMachine, roofline: Roofline, numbers: Mapping[str, int]
) -> list[Row]:
    regions = subject.explanation.regions

    def row(step: StepProfile) -> Row:
        number = numbers.get(step.name)
        algorithm = regions[number].algorithm if number is not None else ""
        return Row(
            step.name, number, step.origin, step.kind, step.operators, algorithm, step.seconds, step.share, step.runs,
            step.flops, step.bytes, _prediction(step.flops, step.bytes, step.runs, machine, roofline),
        )  # fmt: skip

    return [row(step) for step in profile.steps]


def _predicted(subject: Subject, machine: CpuMachine, roofline: Roofline) -> list[Row]:
    origins = {
        step.name: step.origin for plan in subject.plans for _, step in plan.walk() if isinstance(step, KernelStep)
    }

    def counted(region: RegionExplanation) -> tuple[int | None, int | None, Prediction | None]:
        flops, moved = evaluated(region.flops, subject.sizes), evaluated(region.bytes, subject.sizes)
        return flops, moved, _prediction(flops, moved, 1, machine, roofline)

    found = [(region, *counted(region)) for region in subject.explanation.regions]
    whole = sum(prediction.seconds for *_, prediction in found if prediction is not None)
    return [
        Row(
            region.name, number, origins.get(region.name, ""), "kernel", region.operators, region.algorithm,
            None if prediction is None else prediction.seconds,
            prediction.seconds / whole if prediction is not None and whole else 0.0, 1, flops, moved, prediction,
        )
        for number, (region, flops, moved, prediction) in enumerate(found)
    ]  # fmt: skip


def _prediction(
    flops: int | None, moved: int | None, runs: int, machine: CpuMachine, roofline: Roofline
) -> Prediction | None:
    """The least time of all runs in a call, each of which is taken to do an equal part."""
    if flops is None or moved is None or runs < 1:
        return None
    one = predict_boundary(flops // runs, moved // runs, machine, roofline)
    return Prediction(one.seconds * runs, one.bound, {name: part * runs for name, part in one.parts.items()})
