"""`BoxedExecutable`: compiled parts and black boxes in turn. Boxes take and return what is no tensor, too."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from tilework.errors import CallError, FileFormatError, RunError, TileworkError, UsageError
from tilework.fast_dataclass import dataclass
from tilework.graph.types import TensorType
from tilework.plan.explanation import Explanation
from tilework.plan.plan import Plan
from tilework.plan.protocols import BlackBox
from tilework.runtime.context import Context, default_context
from tilework.runtime.executable import OTHER_SIZES, Executable, Stepped
from tilework.runtime.ports import Port, StepTime, arguments_by_name


@dataclass(frozen=True, eq=False)
class BoxCall:
    """A black box on values by name. `origin` is the user's own name for it."""

    box: BlackBox
    inputs: tuple[str, ...]
    outputs: tuple[Port, ...]
    origin: str

    def run(self, values: dict[str, Any]) -> None:
        """Put the results beside the values. Raises `RunError` 1805 where it fails, or returns something else than it
        should; errors of Tilework pass, with the box named.
        """
        box = self.box
        try:
            found = box.run([values[name] for name in self.inputs])
        except TileworkError as error:
            error.where = error.where or self.origin
            raise
        except Exception as problem:
            raise RunError(1805, f"{self._text}: {problem}", where=self.origin) from problem
        if len(found) != len(self.outputs):
            raise RunError(1805, f"{self._text} made {len(found)} values of {len(self.outputs)}", where=self.origin)
        for port, value in zip(self.outputs, found, strict=True):
            values[port.name] = self._checked(port, value)

    @property
    def _text(self) -> str:
        return f"{self.box.operator} (run by {self.box.provider})"

    def _checked(self, port: Port, value: Any) -> Any:
        """A result; None stands for one that nobody reads."""
        kind = port.type
        if value is None or not isinstance(kind, TensorType):
            return value
        array = np.asarray(value)
        if array.dtype != kind.dtype.numpy:  # shapes are looked at by the part that reads it
            text = f"{self._text} made {array.dtype.name}{list(array.shape)} of {port.name}, which is {kind}"
            raise RunError(1805, text, where=self.origin)
        return array


@dataclass(frozen=True, eq=False)
class CompiledPart:
    """A compiled part on values by name. `boxes` are the origins of the boxes that made some of what it reads; none for
    the first part, as the arguments of a call alone decide what boxes before it make.
    """

    executable: Executable
    boxes: tuple[str, ...]

    def run(self, values: dict[str, Any]) -> None:
        """Put the results beside the values. Raises as an `Executable`."""
        found = self.executable(*(values[port.name] for port in self.executable.inputs))
        self._keep(values, found)

    def step_times(self, values: dict[str, Any]) -> tuple[StepTime, ...]:
        """The same step by step."""
        found, times = self.executable.step_times(*(values[port.name] for port in self.executable.inputs))
        self._keep(values, found)
        return times

    def _keep(self, values: dict[str, Any], found: Sequence[Any]) -> None:
        values.update(zip((port.name for port in self.executable.outputs), found, strict=True))

    def explained(self, refusal: CallError) -> TileworkError:
        """The refusal of sizes in the caller's terms: those between parts are no arguments of a call."""
        if not self.boxes:
            return refusal
        text = f"what {', '.join(self.boxes)} made does not fit what follows: {refusal.message}"
        return RunError(1805, text, where=self.boxes[0])


class BoxedExecutable(Executable):
    """Called like an `Executable`, which it is by what it offers: its code, memory and states are those of its parts.

    Strings go in and come out as arrays of objects, maps as dictionaries. What parts hand on to each other are fresh
    arrays, and each part has the memory limit for itself.
    """

    def __init__(  # its parts are what `Executable` is made of
        self,
        name: str,
        inputs: tuple[Port, ...],
        outputs: tuple[Port, ...],
        constants: Mapping[str, Any],
        steps: tuple[BoxCall | CompiledPart, ...],
        explanation: Explanation,
    ) -> None:
        """`inputs` and `outputs` are those of the whole, `constants` what boxes read and the caller wants; the first
        part takes every tensor among the inputs.
        """
        self.name = name
        self.inputs = inputs
        self.outputs = outputs
        self.variants = None
        self.overriding = None
        self._values = dict(constants)
        self._steps = steps
        self._parts_in_turn = tuple(step for step in steps if isinstance(step, CompiledPart))
        self._explanation = explanation

    def __call__(self, *arrays: Any, **named: Any) -> tuple[Any, ...]:
        """Run the model. Raises as an `Executable`; `RunError` 1805 where a box fails or makes what does not fit."""
        try:
            given = arguments_by_name(self.inputs, arrays, named)
        except CallError as refusal:
            other = self._overridden(refusal, named)
            if other is None:
                raise
            return other(*arrays, **named)
        values = {**self._values, **given}
        for step in self._steps:
            try:
                step.run(values)
            except CallError as refusal:
                reason = step.explained(refusal) if isinstance(step, CompiledPart) else refusal
                return self._for_other_sizes(refusal, reason, given)(**given)
        return tuple(values[port.name] for port in self.outputs)

    def stepped(self, *arrays: Any, **named: Any) -> Stepped:
        """As `Executable.stepped`; a black box is a step with the name of its operator."""
        try:
            given = arguments_by_name(self.inputs, arrays, named)
        except CallError as refusal:
            other = self._overridden(refusal, named)
            if other is None:
                raise
            return other.stepped(*arrays, **named)
        values = {**self._values, **given}
        times: list[StepTime] = []
        for step in self._steps:
            if isinstance(step, CompiledPart):
                try:
                    times += step.step_times(values)
                except CallError as refusal:
                    other = self._for_other_sizes(refusal, step.explained(refusal), given)
                    return other.stepped(**given)
                continue
            start = time.perf_counter()
            step.run(values)
            seconds = time.perf_counter() - start
            times.append(StepTime(step.box.operator, step.origin, seconds, start, "black box"))
        return Stepped(self, tuple(values[port.name] for port in self.outputs), tuple(times))

    def _for_other_sizes(self, refusal: CallError, reason: TileworkError, given: Mapping[str, Any]) -> Executable:
        if self.variants is None or refusal.code not in OTHER_SIZES:
            raise reason
        arrays = {name: value for name, value in given.items() if not isinstance(value, (Mapping, list))}
        try:
            return self.variants({name: tuple(np.shape(value)) for name, value in arrays.items()})
        except TileworkError as refused:
            raise reason from refused

    # -- what it is ----------------------------------------------------------------------------------------------------
    def run_core(self, *arguments: Any, **options: Any) -> NoReturn:
        """Refused: black boxes take objects, not addresses."""
        del arguments, options
        raise UsageError(1002, f"{self.name} has black boxes in it", hint="call it with arrays")

    def sections(self) -> NoReturn:
        """Refused, 1905: what a black box does is in no file."""
        raise FileFormatError(1905, f"{self.name} has black boxes in it")

    @property
    def context(self) -> Context:
        return self._parts_in_turn[0].executable.context if self._parts_in_turn else default_context()

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of all parts, in order."""
        return tuple(part.executable.plan for part in self._parts_in_turn)

    @property
    def threads(self) -> int:
        """Threads that the parts use."""
        return max((part.executable.threads for part in self._parts_in_turn), default=1)

    @property
    def plan(self) -> Plan:
        """The plan of the first part. `plans` has all."""
        return self.plans[0]

    @property
    def copies(self) -> Mapping[tuple[str, str], int]:
        """How often arguments of the parts were converted or copied: (value's name, reason) to a count."""
        found = Counter[tuple[str, str]]()
        for part in self._parts_in_turn:
            found.update(part.executable.copies)
        return dict(found)

    def trim(self) -> None:
        """Give back the memory of states that are not in use."""
        for part in self._parts_in_turn:
            part.executable.trim()

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(f"{p.name}: {p.type}" for p in ports) for ports in (self.inputs, self.outputs))
        return f"<tilework.BoxedExecutable {self.name!r}: ({inputs}) -> ({outputs})>"
