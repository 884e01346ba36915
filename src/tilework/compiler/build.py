"""`tilework.build`: a computation as its author scheduled it, as an executable that takes arrays."""

from __future__ import annotations

import re
import time

from tilework.codegen.cpu.driver import emit_driver
from tilework.codegen.cpu.kernel import KernelText, emit_kernel
from tilework.compute.nest import loop_program
from tilework.compute.notation import Computation
from tilework.dims import Dim, dim
from tilework.errors import CodegenError, UsageError
from tilework.graph.graph import InputPolicy, OutputPolicy
from tilework.graph.types import TensorType
from tilework.loops.inside import inside
from tilework.loops.program import LoopProgram
from tilework.machine.cpu import CpuMachine
from tilework.machine.finder import machine as machine_named
from tilework.machine.host import check_runs_here
from tilework.memory.arenas import place_arenas
from tilework.numerics import Level
from tilework.plan.buffers import Arena, ArenaPlace, OutputPlace, PlanBuffer
from tilework.plan.explanation import Explanation, RegionExplanation
from tilework.plan.guard import Guard
from tilework.plan.plan import Plan, PlanInput, PlanOutput, Segment, input_bindings, whole_input
from tilework.plan.steps import KernelStep
from tilework.runtime.context import Context, default_context
from tilework.runtime.executable import Executable
from tilework.runtime.settings import byte_limit, expect
from tilework.schedule.schedule import Schedule

DRIVER = "tilework_plan"
ARENA = "arena"
ALIGNMENT = 64


def build(
    subject: Schedule | LoopProgram | Computation,
    *,
    numerics: Level | None = None,
    machine: str | None = None,
    checked: bool = False,
    memory_limit: int | str | None = None,
    context: Context | None = None,
) -> Executable:
    """The kernel of a schedule, to be called with arrays.

    The executable takes the arguments that the program reads, by position or by name, and returns a tuple of those
    that it writes, as fresh arrays. Symbols get their values from the shapes of what is given. An argument whose old
    contents matter (`accumulate`) is given too, is changed in place, and is returned. An argument that the schedule
    gave another layout is given in that layout (`Layout.pack`).

    Args:
        subject: a schedule; or a loop program or a computation, which then runs as it is written.
        numerics: `"strict"`, `"default"` or `"fast"`, for what is no schedule (a schedule has numerics: its steps were
            checked under them).
        machine: the machine to generate code for, where the schedule names none; by default the host.
        checked: test every access of the generated code (slow). Accesses that neither a proof nor a condition on the
            sizes keeps inside their buffers are tested anyway.
        memory_limit: bytes that one call's temporaries and outputs may take together; text such as `"4G"` will do.
        context: where code, threads and memory live; the process's own by default.

    Raises:
        UsageError: 1002, an argument makes no sense; 1009, the subject is nothing that can be built; 1620, no such
            machine.
        VerificationError: 13xx, the program is wrong in itself, such as an index out of bounds.
        CodegenError: 16xx, there is no code for it; 1653, no argument's shape tells a symbol; 1764, this processor
            cannot run the machine's code.
    """
    start = time.perf_counter()
    expect("checked", checked, bool, "use True or False")
    if memory_limit is not None:
        memory_limit = byte_limit("memory_limit", memory_limit)
    if context is not None:
        expect("context", context, Context, "give a tilework.Context, or leave it out")
    schedule = _schedule(subject, numerics).started()
    target = _target(schedule, machine)
    check_runs_here(target)
    owner = context if context is not None else default_context()
    found = inside(schedule.origin or schedule.program)
    kernel = emit_kernel(
        schedule.program, target, schedule.numerics, checked=checked or bool(found.unproven),
        name="tilework_built_" + re.sub(r"[^A-Za-z0-9_]", "_", schedule.program.name),
    )  # fmt: skip
    guards = tuple(
        Guard(one.value, "nonnegative", f"{one.access} is outside its array at these sizes: {one.value} is negative")
        for one in found.conditions
    )
    plan = _plan(schedule, kernel, guards)
    jit = owner.jit
    driver = emit_driver(plan, plan.segments[0], DRIVER)
    objects = [jit.compile_object(text, target) for text in (kernel.ir, driver)]
    code = jit.load(objects, [DRIVER, kernel.name], uses=[owner.pool.code, owner.native.code])
    explanation = Explanation(
        schedule.program.name,
        target.name,
        schedule.numerics.level,
        (_explained(schedule, kernel),),
        code_bytes=sum(map(len, objects)),
        arena_bytes=plan.arenas[0].bytes,
        compile_milliseconds=(("build", (time.perf_counter() - start) * 1e3),),
    )
    return Executable(
        plan, code, code[DRIVER], {}, owner, explanation, memory_limit=memory_limit,
        step_entries={kernel.name: code[kernel.name]},
    )  # fmt: skip


def _schedule(subject: object, level: Level | None) -> Schedule:
    if isinstance(subject, Schedule):
        if level is not None and level != subject.numerics.level:
            raise UsageError(
                1002, f"numerics={level!r}, and the schedule's are {subject.numerics.level!r}", where="numerics",
                hint="give them to the Schedule: its steps are checked under them",
            )  # fmt: skip
        return subject
    if isinstance(subject, Computation):
        subject = loop_program(subject)
    if not isinstance(subject, LoopProgram):
        raise UsageError(1009, f"a {type(subject).__name__} cannot be built")
    return Schedule(subject, None, level if level is not None else "default")


def _target(schedule: Schedule, name: object) -> CpuMachine:
    known = schedule.machine
    if name is not None:
        expect("machine", name, str, "give the name of a machine, e.g. 'host' or 'x86-64-v3'")
        found = machine_named(str(name))
        if known is not None and known != found:
            hint = "leave it out, or make the schedule for that machine"
            raise UsageError(1002, f"machine={name!r} is not the schedule's", where="machine", hint=hint)
        return found
    found = known if known is not None else machine_named("host")
    if not isinstance(found, CpuMachine):
        hint = "make the schedule for a CPU: Schedule(program, 'host')"
        raise UsageError(1002, "the schedule's machine is no CPU", where="machine", hint=hint)
    return found


def _plan(schedule: Schedule, kernel: KernelText, guards: tuple[Guard, ...]) -> Plan:
    """One call of the kernel: its arguments are inputs and fresh outputs, or both; its workspaces are temporaries."""
    arguments = schedule.program.arguments
    results = [argument for argument in arguments if argument.access != "read"]
    if not results:
        hint = "list what is computed among the outputs of the computation"
        raise UsageError(1009, f"{schedule.program.name} returns nothing", hint=hint)
    inputs: list[PlanInput] = []
    outputs: list[PlanOutput] = []
    buffers: list[PlanBuffer] = []
    for argument in arguments:
        name, kind = argument.buffer.name, TensorType(argument.buffer.shape, argument.buffer.dtype)
        position = len(inputs)
        if argument.access == "write":
            place = OutputPlace(len(outputs))
            buffers.append(PlanBuffer(name, kind.shape, kind.dtype, "host", place, kind.dtype.itemsize))
            outputs.append(PlanOutput(name, kind, name))
            continue
        policy = InputPolicy("mutated", len(outputs)) if argument.access == "accumulate" else InputPolicy()
        inputs.append(PlanInput(name, kind, policy))
        buffers.append(whole_input(position, inputs[-1]))
        if argument.access == "accumulate":
            outputs.append(PlanOutput(name, kind, name, OutputPolicy("alias", position)))
    names = [argument.buffer.name for argument in arguments]
    for extra in kernel.signature.buffers[len(names) :]:
        own = extra.name
        while own in names:
            own += "_"
        names.append(own)
        buffers.append(PlanBuffer(own, extra.shape, extra.dtype, "host", ArenaPlace(ARENA), ALIGNMENT))
    symbols = schedule.program.symbols
    bindings = input_bindings(tuple(inputs))
    unbound = [symbol.name for symbol in symbols if symbol.name not in {binding.symbol for binding in bindings}]
    if unbound:
        raise CodegenError(
            1653, f"no argument of {schedule.program.name} has a shape that tells {', '.join(unbound)}",
            hint="give a placeholder a dimension of that extent, or write the size as a number",
        )  # fmt: skip
    step = KernelStep(
        kernel.name, kernel.signature, tuple(names), tuple(dim(symbol.name) for symbol in kernel.signature.symbols),
        schedule.program, origin=schedule.program.name,
    )  # fmt: skip
    draft = Plan(
        schedule.program.name, tuple(inputs), tuple(outputs), tuple(buffers), (Segment("captured", (step,)),), symbols,
        bindings, guards, (Arena(ARENA, "host", Dim(), ALIGNMENT),),
    )  # fmt: skip
    return place_arenas(draft).plan


def _explained(schedule: Schedule, kernel: KernelText) -> RegionExplanation:
    trace = "; ".join(map(str, schedule.trace))
    return RegionExplanation(schedule.program.name, ("user",), "direct", (kernel.name,), trace, "as scheduled")
