"""What the parts of the plan verifier share: the faults found so far, and words for messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilework.dims import Dim
from tilework.errors import Fault, UsageError
from tilework.plan.buffers import PlanBuffer
from tilework.plan.plan import Plan
from tilework.plan.steps import Step


class Findings:
    """Faults of one plan, and the tables by name that finding them needs."""

    def __init__(self, plan: Plan, samples: Sequence[Mapping[str, int]]) -> None:
        self.plan = plan
        self.samples = samples
        self.faults: list[Fault] = []
        self.buffers = plan.buffer_named
        self.devices = {device.name: device for device in plan.devices}
        self.queues = {queue.name: queue for queue in plan.queues}
        self.spaces = {space.name for space in plan.spaces}
        self.measured = {symbol.name for symbol in plan.symbols if symbol.measured}
        self.names = set(plan.symbol_named)

    def fault(self, code: int, where: str, message: str) -> None:
        """Note a fault."""
        self.faults.append(Fault(code, where, message))

    def alignment(self, where: str, alignment: int) -> None:
        """Note an alignment that is none."""
        if alignment < 1 or alignment & (alignment - 1):
            self.fault(1405, where, f"its alignment {alignment} is no power of two")

    def known(
        self, where: str, what: str, value: Dim, fixed: bool = False, extra: frozenset[str] = frozenset()
    ) -> None:
        """Note names that are no symbols (or, where the value is needed before any step, are measured)."""
        if value.loads():
            self.fault(1416, where, f"{what} {value} has elements of buffers: bind a measured symbol to them")
        for name in sorted(value.names() - self.names - extra):
            self.fault(1416, where, f"{what} {value} uses {name!r}, which is no symbol here")
        for name in sorted(value.names() & self.measured if fixed else ()):
            self.fault(1416, where, f"{what} {value} uses {name!r}, which is measured only while the plan runs")

    def same_shape(self, a: Sequence[Dim], b: Sequence[Dim]) -> bool:
        """Whether two shapes are equal, at least at every sample."""
        return len(a) == len(b) and all(same_dim(x, y, self.samples) for x, y in zip(a, b, strict=True))


def same_dim(a: Dim, b: Dim, samples: Sequence[Mapping[str, int]]) -> bool:
    """Whether two dims are equal: as polynomials, or at every sample."""
    if a == b:
        return True
    if a.is_constant and b.is_constant:
        return False
    try:
        return bool(samples) and all(a.evaluate(values) == b.evaluate(values) for values in samples)
    except UsageError:
        return False


def step_text(path: str, step: Step) -> str:
    """A step for a message: its path, name, and the user's own name for it."""
    return f"step {path} {step.name}" + (f" ({step.origin})" if step.origin else "")


def buffer_text(buffer: PlanBuffer) -> str:
    """A buffer for a message: name, type and shape."""
    return f"{buffer.name}: {buffer.dtype}[{', '.join(map(str, buffer.shape))}]"


def place_text(buffer: PlanBuffer) -> str:
    """Where a buffer is, for a message."""
    return f"{buffer.memory} offset {buffer.offset}"


def at(values: Mapping[str, int]) -> str:
    """Values of symbols for a message; nothing where there are none."""
    return f" at {', '.join(f'{name} = {value}' for name, value in values.items())}" if values else ""
