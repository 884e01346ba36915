"""Why a call stopped: from what compiled code left in the call's frame to an error that names the operation."""

from __future__ import annotations

from tilework.codegen.cpu.frame_layout import FrameLayout
from tilework.error_codes import CODES
from tilework.errors import RunError, TileworkError
from tilework.plan.plan import Plan
from tilework.plan.steps import Allocate, Carry, Check, KernelStep, LibraryStep, Step, measured_by
from tilework.runtime.arguments import but_sizes, range_text, told_by_inputs
from tilework.runtime.frame import Frame
from tilework.runtime.measured import MeasuredMemory


def step_at(plan: Plan, status: int) -> Step | None:
    """The step at which a driver stopped that returned this."""
    steps = [step for _, step in plan.walk()]
    return steps[status - 1] if 0 < status <= len(steps) else None


def failure(
    plan: Plan, layout: FrameLayout, frame: Frame, step: Step | None, memory: MeasuredMemory | None
) -> BaseException:
    """What to raise for a call that stopped at this step.

    That is a `RunError` (18xx), or what stopped an allocation that the call made (`memory`), a KeyboardInterrupt too.
    """
    error = frame.error
    origin = (step.origin or step.name) if step is not None else plan.name
    if memory is not None and memory.error is not None:
        if isinstance(memory.error, TileworkError):
            memory.error.where = memory.error.where or origin
        return memory.error
    if error is None and memory is not None and memory.interrupted:
        return KeyboardInterrupt()
    if error is None:
        return RunError(1802, f"the call stopped at {origin} and gave no reason", where=origin)
    code, detail = error
    if isinstance(step, Check):
        guard = step.guards[detail]
        values = {name: int(frame.words[slot]) for name, slot in layout.symbols.items()}
        return RunError(code, but_sizes(guard.message, guard.value.names(), values, _told(plan)), where=origin)
    if isinstance(step, (Allocate, Carry)):
        readings = step.readings if isinstance(step, Allocate) else step.sizes
        symbol = plan.symbol_named[readings[detail].symbol]
        value = int(frame.words[layout.symbols[symbol.name]])
        return RunError(code, f"{origin} makes a size of {value}, which must be {range_text(symbol)}", where=origin)
    faults = step.kernel.faults if isinstance(step, (KernelStep, LibraryStep)) else ()
    if isinstance(step, KernelStep) and detail < len(step.fault_origins):
        origin = step.fault_origins[detail]
    title = CODES[code].title if code in CODES else "fault"
    reason = f": {faults[detail]}" if detail < len(faults) else ""
    if isinstance(step, KernelStep) and detail < len(step.fault_reasons) and step.fault_reasons[detail]:
        reason = f": {step.fault_reasons[detail]}"
    return RunError(code, f"{title} in {origin}{reason}", where=origin)


def _told(plan: Plan) -> dict[str, str]:
    """What tells each size: a dimension of an input, or the operation that measures it."""
    found = told_by_inputs(plan.inputs, plan.bindings)
    for _, step in plan.walk():
        found.update((name, f"of {step.origin or step.name}") for name in measured_by(step))
    return found
