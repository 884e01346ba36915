from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.plan.building import N, aligned, at, chain, combine, flag, plan_of, slot, step
from tilework.dims import Dim, Symbol, dim, maximum
from tilework.dtypes import float32, float64, int64
from tilework.errors import VerificationError
from tilework.graph.graph import InputPolicy, OutputPolicy
from tilework.graph.types import tensor
from tilework.plan.buffers import (
    CPU,
    Arena,
    ConstantPlace,
    Device,
    InputPlace,
    MeasuredPlace,
    MemorySpace,
    OutputPlace,
    PlanBuffer,
    Queue,
)
from tilework.plan.guard import Guard
from tilework.plan.plan import Binding, Plan, PlanOutput, Segment
from tilework.plan.steps import (
    Allocate,
    BlackBoxStep,
    Branch,
    CopyStep,
    Extent,
    KernelStep,
    Reading,
    Repeat,
    Step,
)
from tilework.plan.verify import plan_faults, verify

SIZE = aligned("n")
TWO_QUEUES = (Queue("main", "cpu"), Queue("side", "cpu"))


def codes(plan: Plan) -> list[int]:
    return [fault.code for fault in plan_faults(plan)]


def with_steps(plan: Plan, *steps: Step) -> Plan:
    return plan.replace(segments=(Segment("captured", steps),))


def with_buffer(plan: Plan, name: str, **changes: object) -> Plan:
    return plan.replace(buffers=tuple(replace(b, **changes) if b.name == name else b for b in plan.buffers))


def steps_of(plan: Plan) -> tuple[KernelStep, ...]:
    return tuple(s for s in plan.segments[0].steps if isinstance(s, KernelStep))


class Nothing:
    identity = operator = provider = reason = "nothing"

    def run(self, inputs: object) -> list[np.ndarray]:
        return []


def test_a_sound_plan_has_no_faults() -> None:
    verify(chain())


def test_all_faults_are_reported_at_once() -> None:
    plan = chain()
    one, two, three = steps_of(plan)
    broken = with_steps(plan, replace(one, arguments=("x", "nowhere")), replace(two, queue="none"), three)
    broken = broken.replace(symbols=(N, Symbol("m")))
    with pytest.raises(VerificationError) as caught:
        verify(broken)
    found = [(fault.code, fault.message) for fault in caught.value.faults]
    assert len(found) == 3
    assert any("nowhere" in text for _, text in found)
    assert any("'none'" in text for _, text in found)
    assert {code for code, _ in found} == {1401, 1416}
    assert "user one" in str(caught.value)


@pytest.mark.parametrize("table", ["spaces", "devices", "queues", "arenas", "buffers", "symbols", "inputs", "outputs"])
def test_duplicate_names(table: str) -> None:
    plan = chain()
    entries = getattr(plan, table)
    assert 1402 in codes(plan.replace(**{table: (*entries, entries[0])}))


def test_device_queue_and_arena_must_name_what_exists() -> None:
    plan = chain()
    assert codes(plan.replace(devices=(CPU, Device("d", "cuda", ("vram",))))) == [1401]
    assert codes(plan.replace(queues=(Queue("main", "cpu"), Queue("q", "d")))) == [1401]
    assert codes(plan.replace(arenas=(*plan.arenas, Arena("other", "vram", dim(0))))) == [1401]


def test_places_must_exist() -> None:
    plan = chain()
    assert 1401 in codes(with_buffer(plan, "a", place=slot(0, "none")))
    assert 1401 in codes(with_buffer(plan, "x", place=InputPlace(4)))
    assert 1401 in codes(with_buffer(plan, "y", place=OutputPlace(4)))


def test_number_of_arguments() -> None:
    plan = chain()
    one, two, three = steps_of(plan)
    assert codes(with_steps(plan, replace(one, arguments=("x",)), two, three)) == [1403]
    assert codes(with_steps(plan, replace(one, symbols=()), two, three)) == [1403]


def test_shape_and_type_must_fit_the_signature() -> None:
    plan = chain()
    assert 1404 in codes(with_buffer(plan, "b", shape=(dim("n") + 1,)))
    assert 1404 in codes(with_buffer(plan, "b", shape=(dim("n"), dim(1))))
    assert 1404 in codes(with_buffer(plan, "b", dtype=float64))


def test_equal_shapes_need_not_be_written_alike() -> None:
    length = maximum("n", 0)
    assert length != dim("n")
    assert codes(with_buffer(chain(), "b", shape=(length,))) == []


def test_kernel_symbols_must_lie_in_their_bounds() -> None:
    plan = chain()
    one, two, three = steps_of(plan)
    narrow = replace(one.kernel, symbols=(Symbol("n", 0, 32),))
    (fault,) = plan_faults(with_steps(plan, replace(one, kernel=narrow), two, three))
    assert fault.code == 1404
    assert "n = " in fault.message


def test_kernel_extents_use_only_the_kernels_symbols() -> None:
    plan = chain()
    one, two, three = steps_of(plan)
    formal = replace(one.kernel.buffers[0], shape=(dim("free"),))
    kernel = replace(one.kernel, buffers=(formal, *one.kernel.buffers[1:]))
    assert 1416 in codes(with_steps(plan, replace(one, kernel=kernel), two, three))


def test_meaning_must_fit_the_kernel() -> None:
    plan = chain()
    one, two, three = steps_of(plan)
    _, other = combine("other", 2)
    assert codes(with_steps(plan, replace(one, meaning=other), two, three)) == [1423]
    fewer = replace(one.meaning, arguments=one.meaning.arguments[:1])
    assert codes(with_steps(plan, replace(one, meaning=fewer), two, three)) == [1423]
    access = replace(
        one.meaning, arguments=(replace(one.meaning.arguments[0], access="write"), one.meaning.arguments[1])
    )
    assert codes(with_steps(plan, replace(one, meaning=access), two, three)) == [1423]
    more = replace(one.meaning, symbols=(*one.meaning.symbols, Symbol("k")))
    assert codes(with_steps(plan, replace(one, meaning=more), two, three)) == [1423]


def test_alignment() -> None:
    plan = chain()
    assert 1405 in codes(with_buffer(plan, "b", place=slot(dim("n") * 4)))
    assert 1405 in codes(with_buffer(plan, "b", alignment=48))
    assert 1405 in codes(with_buffer(plan, "b", alignment=128))
    assert 1405 in codes(with_buffer(plan, "b", alignment=2))
    assert codes(with_buffer(plan, "b", alignment=16)) == []


def test_overlapping_buffers_are_found_with_the_values_at_which_they_meet() -> None:
    plan = plan_of(
        (step("one", ["x"], "a"), step("two", ["x"], "b"), step("three", ["a", "b"], "y")),
        (at("a", slot(0)), at("b", slot(64))),
        arena=SIZE + 64,
    )
    (fault,) = plan_faults(plan)
    assert fault.code == 1406
    assert "n = " in fault.message
    small = plan.replace(symbols=(Symbol("n", 0, 16),))
    assert codes(small) == [], "16 floats fill 64 bytes exactly"


def test_bytes_can_be_used_again_after_the_last_read() -> None:
    plan = plan_of(
        (step("one", ["x"], "a"), step("two", ["a"], "b"), step("three", ["b"], "c"), step("four", ["c"], "y")),
        (at("a", slot(0)), at("b", slot(SIZE)), at("c", slot(0))),
        arena=SIZE * 2,
    )
    verify(plan)
    late = with_steps(plan, *plan.segments[0].steps[:3], step("four", ["c", "a"], "y"))
    assert codes(late) == [1406]


def test_in_place_needs_the_kernels_leave_and_the_same_offset() -> None:
    def made(in_place: bool, offset: Dim | int) -> Plan:
        return plan_of(
            (step("one", ["x"], "a"), step("two", ["a"], "b", in_place=in_place), step("three", ["b"], "y")),
            (at("a", slot(0)), at("b", slot(offset))),
            arena=SIZE + 64,
        )

    assert codes(made(True, 0)) == []
    assert set(codes(made(False, 0))) == {1406, 1412}
    assert set(codes(made(True, 64))) == {1406, 1412}


def test_in_place_is_refused_while_the_old_value_is_still_needed() -> None:
    plan = plan_of(
        (step("one", ["x"], "a"), step("two", ["a"], "b"), step("three", ["b", "a"], "y")),
        (at("a", slot(0)), at("b", slot(0))),
        arena=SIZE,
    )
    assert codes(plan) == [1406]


def test_races_on_one_buffer() -> None:
    plan = plan_of(
        (step("one", ["x"], "a"), step("two", ["a"], "y", queue="side")), (at("a", slot(0)),), arena=SIZE
    ).replace(queues=TWO_QUEUES)
    assert 1407 in codes(plan)
    ordered = with_steps(plan, step("one", ["x"], "a", signals=(1,)), step("two", ["a"], "y", queue="side", waits=(1,)))
    verify(ordered)


def test_concurrent_buffers_may_not_share_bytes() -> None:
    def made(offset: Dim | int, wait: tuple[int, ...]) -> Plan:
        return plan_of(
            (
                step("one", ["x"], "a"),
                step("two", ["a"], "p", signals=(1,)),
                step("three", ["x"], "b", queue="side", waits=wait),
                step("four", ["b"], "q", queue="side"),
            ),
            (at("a", slot(0)), at("b", slot(offset))),
            outputs=("p", "q"),
            arena=SIZE * 2,
        ).replace(queues=TWO_QUEUES)

    assert codes(made(SIZE, ())) == []
    assert codes(made(0, ())) == [1406]
    assert codes(made(0, (1,))) == []


def test_read_before_written() -> None:
    plan = chain()
    one, two, three = steps_of(plan)
    assert codes(with_steps(plan, two, one, three)) == [1408]


def test_a_write_in_one_arm_of_a_branch_is_not_sure() -> None:
    def made(otherwise: tuple[Step, ...]) -> Plan:
        return plan_of(
            (Branch("if", "flag", (step("one", ["x"], "a"),), otherwise), step("two", ["a"], "y")),
            (at("a", slot(0)), flag("flag")),
            arena=SIZE,
        )

    assert codes(made(())) == [1408]
    assert codes(made((step("other", ["x"], "a", scale=5),))) == []


def test_a_write_in_a_loop_that_may_not_run_is_not_sure() -> None:
    def made(trips: int) -> Plan:
        loop = Repeat("loop", (step("one", ["x"], "a"),), dim(trips))
        return plan_of((loop, step("two", ["a"], "y")), (at("a", slot(0)),), arena=SIZE)

    assert codes(made(0)) == [1408]
    assert codes(made(2)) == []


def test_values_carried_through_a_loop_keep_their_bytes() -> None:
    def made(offset: Dim | int) -> Plan:
        body = (step("temporary", ["state"], "t", in_place=False), step("next", ["t"], "state", in_place=False))
        return plan_of(
            (step("first", ["x"], "state"), Repeat("loop", body, dim(3)), step("last", ["state"], "y")),
            (at("state", slot(0)), at("t", slot(offset))),
            arena=SIZE * 2,
        )

    assert codes(made(SIZE)) == []
    assert set(codes(made(0))) == {1406, 1412}


def test_a_buffer_that_a_loop_only_reads_lives_through_it() -> None:
    body = (step("use", ["a"], "t"), step("spoil", ["x"], "b"), step("more", ["b", "t"], "y"))
    plan = plan_of(
        (step("first", ["x"], "a"), Repeat("loop", body, dim(2))),
        (at("a", slot(0)), at("t", slot(SIZE)), at("b", slot(0))),
        arena=SIZE * 2,
    )
    assert codes(plan) == [1406], "b is written after the last read of a in the text, but a is read again next trip"


def test_arms_of_a_branch_may_share_bytes() -> None:
    then = (step("p", ["x"], "a"), step("q", ["a"], "y"))
    otherwise = (step("r", ["x"], "b"), step("s", ["b"], "y"))
    plan = plan_of(
        (Branch("if", "flag", then, otherwise),), (at("a", slot(0)), at("b", slot(0)), flag("flag")), arena=SIZE
    )
    assert codes(plan) == []


def test_waits_need_a_signal() -> None:
    plan = chain()
    one, two, three = steps_of(plan)
    assert codes(with_steps(plan, one, replace(two, waits=(7,)), three)) == [1409]
    inside = Branch("if", "flag", (replace(one, signals=(7,)),), (one,))
    plan = plan.replace(buffers=(*plan.buffers, flag("flag")))
    assert codes(with_steps(plan, inside, replace(two, waits=(7,)), three)) == [1409]
    assert codes(with_steps(plan, replace(one, signals=(7,)), replace(two, signals=(7,)), three)) == [1402]


def test_a_signal_must_come_earlier_in_the_plan() -> None:
    plan = chain().replace(queues=TWO_QUEUES)
    one, two, three = steps_of(plan)
    late = with_steps(
        plan, replace(two, queue="side", waits=(1,)), replace(one, signals=(1,)), replace(three, queue="side")
    )
    assert codes(late) == [1409]


def test_cycles_of_waits() -> None:
    plan = chain().replace(queues=TWO_QUEUES)
    one, two, three = steps_of(plan)
    broken = with_steps(
        plan,
        replace(one, waits=(2,), signals=(1,)),
        replace(two, queue="side", waits=(1,), signals=(2,)),
        replace(three, queue="side"),
    )
    (fault,) = plan_faults(broken)
    assert fault.code == 1410
    assert "0.0" in fault.message
    assert "0.1" in fault.message
    itself = with_steps(plan, replace(one, waits=(1,), signals=(1,)), two, three)
    assert codes(itself) == [1410]


def test_memory_must_be_in_reach() -> None:
    plan = chain()
    spaces = (MemorySpace("host"), MemorySpace("vram"))
    arenas = (*plan.arenas, Arena("far", "vram", SIZE))
    moved = with_buffer(plan.replace(spaces=spaces, arenas=arenas), "a", place=slot(0, "far"), space="vram")
    assert codes(moved) == [1411, 1411]
    assert 1411 in codes(with_buffer(plan.replace(spaces=spaces), "a", space="vram"))


def test_copies_reach_further() -> None:
    device = Device("gpu", "cuda_sim", ("vram",), ("host",))
    plan = plan_of((CopyStep("up", "x", "far", "q"), CopyStep("down", "far", "y", "q")), (), arena=0).replace(
        spaces=(MemorySpace("host"), MemorySpace("vram")),
        devices=(CPU, device),
        queues=(Queue("main", "cpu"), Queue("q", "gpu")),
        arenas=(Arena("far", "vram", SIZE),),
    )
    far = PlanBuffer("far", (dim("n"),), float32, "vram", slot(0, "far"))
    plan = plan.replace(buffers=(*plan.buffers, far))
    verify(plan)
    assert codes(plan.replace(devices=(CPU, replace(device, copy_spaces=())))) == [1411, 1411]


def test_copies_need_equal_types_and_sizes() -> None:
    plan = plan_of((CopyStep("c", "x", "y"),), ())
    verify(plan)
    verify(with_buffer(plan, "x", shape=(dim(1), dim("n"))))
    assert 1404 in codes(with_buffer(plan, "x", shape=(dim("n") // 2,)))


def test_arguments_of_a_kernel_may_not_share_bytes_unasked() -> None:
    plan = plan_of(
        (step("one", ["x"], "a"), step("two", ["a"], "a", in_place=False), step("three", ["a"], "y")),
        (at("a", slot(0)),),
        arena=SIZE,
    )
    assert codes(plan) == [1412]
    assert codes(with_steps(plan, step("one", ["x"], "a"), step("two", ["a"], "a"), step("three", ["a"], "y"))) == []


def test_alias_sets_are_in_one_memory() -> None:
    plan = with_buffer(with_buffer(chain(), "a", alias_set="s"), "y", alias_set="s")
    assert codes(plan) == [1412]


def test_windows_on_one_value() -> None:
    plan = plan_of(
        (step("low", ["x"], "whole"), step("use", ["window"], "y")),
        (at("whole", slot(0), alias_set="s"), at("window", slot(0), alias_set="s")),
        arena=SIZE,
    )
    verify(plan)
    assert codes(with_buffer(plan, "window", alias_set="")) == [1408]


def test_outputs_must_be_written() -> None:
    plan = chain()
    one, two, _ = steps_of(plan)
    assert codes(with_steps(plan, one, two)) == [1413]


def test_output_buffers_must_fit() -> None:
    plan = chain()
    outputs = (PlanOutput("o", tensor(float32, 1, "n"), "y"),)
    assert codes(plan.replace(outputs=outputs)) == [1413]
    assert codes(plan.replace(outputs=(PlanOutput("o", tensor(float32, "n"), "a"),))) == [1412]
    assert 1401 in codes(plan.replace(outputs=(PlanOutput("o", tensor(float32, "n"), "z"),)))


def test_aliases_and_mutated_inputs() -> None:
    plan = plan_of((step("one", ["x"], "x"),), (), outputs=())
    assert 1414 in codes(plan)
    mutated = plan.replace(
        inputs=(replace(plan.inputs[0], policy=InputPolicy("mutated", 0)),),
        outputs=(PlanOutput("o", tensor(float32, "n"), "x", OutputPolicy("alias", 0)),),
    )
    verify(mutated)
    assert codes(mutated.replace(outputs=())) == [1412]
    fresh = mutated.replace(outputs=(replace(mutated.outputs[0], policy=OutputPolicy()),))
    assert 1412 in codes(fresh)
    wrong = mutated.replace(outputs=(replace(mutated.outputs[0], policy=OutputPolicy("alias", 3)),))
    assert 1412 in codes(wrong)


def test_views_stay_inside_the_input() -> None:
    plan = plan_of((), (), outputs=())

    def view(*numbers: int) -> Plan:
        stride, offset = numbers
        policy = OutputPolicy("view", 0, (dim(stride),), dim(offset))
        return plan.replace(outputs=(PlanOutput("o", tensor(float32, dim("n") // 2), "x", policy),))

    assert codes(view(2, 1)) == []
    assert codes(view(2, 2)) == [1412]
    assert codes(view(3, 0)) == [1412]
    assert codes(view(-1, 0)) == [1412]
    none = OutputPolicy("view", 0)
    assert codes(plan.replace(outputs=(PlanOutput("o", tensor(float32, "n"), "x", none),))) == [1412]


def test_constants_are_never_written() -> None:
    plan = chain()
    assert 1414 in codes(with_buffer(plan, "a", place=ConstantPlace("0123")))


def test_buffers_stay_inside_their_memory() -> None:
    plan = chain()
    assert codes(plan.replace(arenas=(Arena("scratch", "host", SIZE),))) == [1415]
    assert 1415 in codes(with_buffer(plan, "a", place=slot(-64)))
    assert 1415 in codes(with_buffer(plan, "x", place=InputPlace(0, dim(4))))


def test_symbols_are_bound() -> None:
    plan = chain()
    assert 1416 in codes(plan.replace(bindings=()))
    assert 1416 in codes(plan.replace(symbols=(N, Symbol("k", measured=True))))
    assert 1416 in codes(with_buffer(plan, "a", shape=(dim("m"),)))
    assert 1416 in codes(plan.replace(guards=(Guard(dim("m"), "zero", "no"),)))
    assert 1416 in codes(plan.replace(bindings=(Binding("n", 0, 0, 2),)))
    assert 1401 in codes(plan.replace(bindings=(*plan.bindings, Binding("k", 0, 0))))
    assert 1401 in codes(plan.replace(bindings=(Binding("n", 2, 0),)))
    assert 1401 in codes(plan.replace(bindings=(Binding("n", 0, 1),)))
    assert 1402 in codes(plan.replace(bindings=plan.bindings * 2))


def test_control_reads_one_boolean() -> None:
    plan = plan_of((Branch("if", "x", (step("one", ["x"], "y"),), (step("two", ["x"], "y"),)),), ())
    assert codes(plan) == [1417]
    plan = plan_of((Repeat("loop", (step("one", ["x"], "y"),), dim(1), "x"),), ())
    assert 1417 in codes(plan)


def test_loops_must_be_able_to_end() -> None:
    assert 1417 in codes(plan_of((step("zero", ["x"], "y"), Repeat("loop", (step("one", ["x"], "y"),))), ()))


def test_trip_numbers_are_seen_inside_only() -> None:
    body = replace(step("one", ["x"], "y", length=4), symbols=())
    kernel = replace(body.kernel, symbols=(Symbol("t"),))
    inner = replace(body, kernel=kernel, symbols=(dim("t"),))
    plan = plan_of((Repeat("loop", (inner,), dim(2), iteration="t"),), ())
    four = plan.replace(
        inputs=(replace(plan.inputs[0], type=tensor(float32, 4)),),
        outputs=(PlanOutput("o", tensor(float32, 4), "y"),),
        buffers=tuple(replace(b, shape=(dim(4),)) for b in plan.buffers),
        symbols=(),
        bindings=(),
    )
    verify(four)
    assert 1416 in codes(with_steps(four, inner))
    named = plan.replace(segments=(Segment("captured", (Repeat("loop", (), dim(2), iteration="n"),)),))
    assert 1402 in codes(named)


def counted() -> Plan:
    """Measure m from a buffer, allocate m elements, fill them."""
    m = Symbol("m", 0, 9, measured=True)
    count = PlanBuffer("count", (dim(1),), int64, "host", ConstantPlace("c0"))
    return plan_of(
        (
            Allocate("measure", (Reading("m", "count"),), ("big", "y")),
            fill("big"),
            step("end", ["big"], "y", length="m"),
        ),
        (count, at("big", MeasuredPlace(), "m")),
        symbols=(N, m),
    ).replace(
        outputs=(PlanOutput("o", tensor(float32, "m"), "y"),),
        buffers=(at("x", InputPlace(0)), at("y", OutputPlace(0), "m"), count, at("big", MeasuredPlace(), "m")),
    )


def fill(name: str) -> KernelStep:
    made = step("fill", [name], name, length="m")
    kernel = replace(made.kernel, buffers=(replace(made.kernel.buffers[1]),), may_alias=())
    meaning = replace(made.meaning, arguments=made.meaning.arguments[1:])
    return replace(made, kernel=kernel, meaning=meaning, arguments=(name,))


def test_measured_buffers() -> None:
    plan = counted()
    verify(plan)
    allocate, filling, end = plan.segments[0].steps
    assert isinstance(allocate, Allocate)
    assert set(codes(with_steps(plan, replace(allocate, buffers=()), filling, end))) == {1418}
    assert set(codes(with_steps(plan, filling, allocate, end))) == {1416, 1418}
    extra = replace(allocate, buffers=(*allocate.buffers, "x"))
    assert codes(with_steps(plan, extra, filling, end)) == [1418]
    wrong = replace(allocate, readings=(Reading("n", "count"),))
    assert 1416 in codes(with_steps(plan, wrong, filling, end))
    beyond = replace(allocate, readings=(Reading("m", "count", 1),))
    assert codes(with_steps(plan, beyond, filling, end)) == [1417]
    floating = replace(allocate, readings=(Reading("m", "x"),))
    assert codes(with_steps(plan, floating, filling, end)) == [1417]


def test_measuring_in_one_arm_is_not_enough() -> None:
    plan = counted()
    allocate, filling, end = plan.segments[0].steps
    plan = plan.replace(buffers=(*plan.buffers, flag("flag")))
    assert set(codes(with_steps(plan, Branch("if", "flag", (allocate,)), filling, end))) == {1416, 1418}
    assert codes(with_steps(plan, Branch("if", "flag", (allocate,), (allocate,)), filling, end)) == []


def test_black_boxes_measure_their_results() -> None:
    m = Symbol("m", 0, 9, measured=True)
    box = BlackBoxStep("box", Nothing(), ("x",), ("y",), (Extent("m", 0, 0),))
    plan = plan_of((box,), (), symbols=(N, m)).replace(outputs=(PlanOutput("o", tensor(float32, "m"), "y"),))
    plan = with_buffer(plan, "y", shape=(dim("m"),))
    verify(plan)
    assert 1403 in codes(with_steps(plan, replace(box, measures=(Extent("m", 1, 0),))))
    assert 1404 in codes(with_steps(plan, replace(box, measures=(Extent("m", 0, 1),))))
    assert 1404 in codes(with_buffer(plan, "y", shape=(dim("m") + 1,)))


def test_effects_need_an_order() -> None:
    boxes = [
        BlackBoxStep(f"box{k}", Nothing(), ("x",), (), ordered=True, queue=q) for k, q in enumerate(("main", "side"))
    ]
    plan = plan_of((*boxes, step("one", ["x"], "y")), ()).replace(queues=TWO_QUEUES)
    assert codes(plan) == [1407]
    assert codes(with_steps(plan, boxes[0], replace(boxes[1], ordered=False), step("one", ["x"], "y"))) == []


def test_segments_run_one_after_another() -> None:
    plan = chain().replace(queues=TWO_QUEUES)
    one, two, three = steps_of(plan)
    side = replace(two, queue="side")
    verify(plan.replace(segments=tuple(Segment("interactive", (s,)) for s in (one, side, three))))
    assert 1407 in codes(plan.replace(segments=(Segment("interactive", (one, side, three)),)))


def test_own_samples() -> None:
    plan = chain().replace(arenas=(Arena("scratch", "host", dim(128)),))
    assert 1415 in codes(plan)
    assert plan_faults(plan, [{"n": 16}]) == ()


def test_every_byte_that_is_read_was_written_by_some_part() -> None:
    """Two parts fill a whole: with one of them missing, or both at one place, half of it is never written."""

    def made(steps: tuple[Step, ...], second: Dim) -> Plan:
        half, whole = dim("n"), dim("n") * 2
        buffers = (
            replace(at("a", slot(0), half, alias_set="all"), alignment=4),
            replace(at("b", slot(second), half, alias_set="all"), alignment=4),
            at("all", slot(0), whole, alias_set="all"),
            at("result", slot(aligned(whole)), whole),
        )
        return plan_of(steps, buffers, arena=aligned(whole) * 2)

    one, two = step("one", ["x"], "a"), step("two", ["x"], "b", scale=2)
    read = step("read", ["all"], "result", length="m", in_place=False)
    read = replace(read, symbols=(dim("n") * 2,))
    last = step("last", ["a"], "y")
    assert codes(made((one, two, read, last), dim("n") * 4)) == []
    assert codes(made((one, read, last), dim("n") * 4)) == [1408]
    assert codes(made((two, read, one, last), dim("n") * 4)) == [1408]
    assert codes(made((one, two, read, last), dim(0))) == [1408]
    assert codes(made((two, last, one), dim("n") * 4)) == [1408], "another part is not this one"
