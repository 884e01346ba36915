"""`BoxedExecutable`: a compiled plan with black boxes before and after it, which take and return what is no tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from tilework.errors import CallError, RunError, TileworkError, UsageError
from tilework.fast_dataclass import dataclass
from tilework.plan.protocols import BlackBox
from tilework.runtime.executable import OTHER_SIZES, Executable
from tilework.runtime.ports import Port, StepTime, arguments_by_name


@dataclass(frozen=True, eq=False)
class BoxCall:
    """A black box on values by name. `origin` is the user's own name for it."""

    box: BlackBox
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    origin: str


@dataclass(frozen=True, eq=False)
class Around:
    """What runs before and after a plan. `inputs` and `outputs` are those of the whole, `constants` what boxes read."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    constants: Mapping[str, Any]
    before: tuple[BoxCall, ...]
    after: tuple[BoxCall, ...]


class BoxedExecutable(Executable):
    """Called like an `Executable`. Strings go in and come out as arrays of objects, maps as dictionaries."""

    def __init__(self, *arguments: Any, around: Around, **options: Any) -> None:
        """`around`: the black boxes; the rest as `Executable`."""
        super().__init__(*arguments, **options)
        self._around = around
        self._core_inputs = tuple(given.name for given in self._plan.inputs)
        self._core_outputs = tuple(output.name for output in self._plan.outputs)
        self.inputs = around.inputs
        self.outputs = around.outputs

    def __call__(self, *arrays: Any, **named: Any) -> tuple[Any, ...]:
        given = arguments_by_name(self.inputs, arrays, named)
        values = self._before(given)
        try:
            found = super().__call__(*(values[name] for name in self._core_inputs))
        except CallError as refusal:
            return self._for_other_sizes(refusal, given)(**given)
        return self._after(values, found)

    def run_core(self, *arguments: Any, **options: Any) -> NoReturn:
        """Refused: black boxes take objects, not addresses."""
        del arguments, options
        raise UsageError(1002, f"{self._plan.name} has black boxes around it", hint="call it with arrays")

    def step_times(self, *arrays: Any, **named: Any) -> tuple[tuple[Any, ...], tuple[StepTime, ...]]:
        """As `Executable.step_times`; black boxes are not among the steps."""
        values = self._before(arguments_by_name(self.inputs, arrays, named))
        found, times = super().step_times(*(values[name] for name in self._core_inputs))
        return self._after(values, found), times

    def _variant(self, refusal: CallError, arrays: tuple[object, ...], named: Mapping[str, object]) -> NoReturn:
        del arrays, named  # the plan's inputs, whose sizes are not those of the model's
        raise refusal

    def _for_other_sizes(self, refusal: CallError, given: Mapping[str, Any]) -> Executable:
        if self.variants is None or refusal.code not in OTHER_SIZES:
            raise refusal
        arrays = {name: value for name, value in given.items() if not isinstance(value, (Mapping, list))}
        try:
            return self.variants({name: tuple(np.shape(value)) for name, value in arrays.items()})
        except TileworkError as reason:
            raise refusal from reason

    # -- values --------------------------------------------------------------------------------------------------------
    def _before(self, given: Mapping[str, Any]) -> dict[str, Any]:
        values = {**self._around.constants, **given}
        for call in self._around.before:
            _run(call, values)
        return values

    def _after(self, values: dict[str, Any], found: Sequence[Any]) -> tuple[Any, ...]:
        values.update(zip(self._core_outputs, found, strict=True))
        for call in self._around.after:
            _run(call, values)
        return tuple(values[port.name] for port in self.outputs)


def _run(call: BoxCall, values: dict[str, Any]) -> None:
    box = call.box
    try:
        found = box.run([values[name] for name in call.inputs])
    except TileworkError as error:
        error.where = error.where or call.origin
        raise
    except Exception as problem:
        raise RunError(1805, f"{box.operator} (run by {box.provider}): {problem}", where=call.origin) from problem
    values.update(zip(call.outputs, found, strict=True))
