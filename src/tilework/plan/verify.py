"""The verifier of plans: every fault at once, each with its code and the step or buffer it is at.

`verify_tables` looks at what stands around the steps, `verify_steps` at each step, `verify_order` at what depends on
happens-before, `verify_memory` at which bytes meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilework.errors import Fault, VerificationError
from tilework.plan.boxes import unwritten_boxes
from tilework.plan.findings import Findings
from tilework.plan.order import order_of
from tilework.plan.plan import Plan
from tilework.plan.proof import sample_symbols
from tilework.plan.verify_memory import memory_faults
from tilework.plan.verify_order import order_faults
from tilework.plan.verify_steps import StepVerifier
from tilework.plan.verify_tables import TableVerifier


def verify(plan: Plan, samples: Iterable[Mapping[str, int]] | None = None) -> None:
    """Raise `VerificationError` with every fault of a plan (codes 1401 to 1423).

    What no proof decides for all values of the symbols is tried on `samples` (by default on corners of their bounds and
    random values), so a plan with symbols is right for those, and for all where the proofs succeed.
    """
    found = plan_faults(plan, samples)
    if found:
        raise VerificationError(f"plan {plan.name}", found)


def plan_faults(plan: Plan, samples: Iterable[Mapping[str, int]] | None = None) -> tuple[Fault, ...]:
    """Every fault of a plan; what needs names and shapes to be right is looked at only when they are."""
    values = tuple(samples) if samples is not None else sample_symbols(plan.symbols, plan.guards)
    findings = Findings(plan, values)
    TableVerifier(findings).run()
    steps = StepVerifier(findings)
    for position, segment in enumerate(plan.segments):
        steps.steps(segment.steps, f"{position}.")
    order = order_of(plan)
    found = [*findings.faults, *order.faults]
    if not any(fault.code in (1401, 1402, 1403, 1410, 1416) for fault in found):
        found.extend(order_faults(order, values))
        if not any(fault.code == 1404 for fault in found):
            found.extend(unwritten_boxes(order, values))
        found.extend(memory_faults(order, values))
    return tuple(dict.fromkeys(found))
