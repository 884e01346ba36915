"""Plans that the compiler does not emit yet: branches, repeats and copies, through the driver and step by step."""

from __future__ import annotations

import numpy as np
import pytest

from tests.executable.building import buffer_of, executable, kernel, step
from tilework import dtypes
from tilework.codegen.cpu.kernel import KernelText
from tilework.dims import Dim, IntLike, Symbol, dim, loaded
from tilework.dtypes import DType
from tilework.errors import CodegenError, RunError
from tilework.graph.types import tensor
from tilework.loops.expressions import Load, call, cast, index
from tilework.loops.program import LoopProgram
from tilework.plan.buffers import Arena, ArenaPlace, InputPlace, OutputPlace, Place, PlanBuffer
from tilework.plan.interpret import interpret_plan
from tilework.plan.plan import Plan, PlanInput, PlanOutput, Segment, input_bindings
from tilework.plan.protocols import Array
from tilework.plan.steps import Branch, CopyStep, Repeat, Step
from tilework.plan.verify import verify
from tilework.runtime.executable import Executable

F32, BOOL = dtypes.float32, dtypes.boolean
Made = tuple[KernelText, LoopProgram]
N = Symbol("n", 0, 1000)
TRUE, FALSE = np.array(True), np.array(False)


def plan_buffer(name: str, place: Place, *shape: IntLike, dtype: DType = F32, alias: str = "") -> PlanBuffer:
    alignment = dtype.itemsize if isinstance(place, (InputPlace, OutputPlace)) else 64
    return PlanBuffer(name, tuple(map(dim, shape)), dtype, "host", place, alignment, alias)


def plan(
    inputs: tuple[PlanInput, ...], buffers: tuple[PlanBuffer, ...], steps: tuple[Step, ...], arena: IntLike
) -> Plan:
    """One output `y` of n elements; the plan is verified."""
    found = Plan(
        "by hand", inputs, (PlanOutput("y", tensor(F32, "n"), "y"),), buffers, (Segment("captured", steps),), (N,),
        input_bindings(inputs), (), (Arena("arena", "host", dim(arena)),),
    )  # fmt: skip
    verify(found)
    return found


X = PlanInput("x", tensor(F32, "n"))
FLAG = PlanInput("flag", tensor(BOOL))


def plus(amount: int, name: str = "") -> Made:
    x, y = buffer_of("x", F32, "n"), buffer_of("y", F32, "n")
    value = Load("x", (dim("i"),), F32) + amount
    return kernel(name or f"plus_{amount}".replace("-", "minus_"), [x], y, value, loops=[("i", "n")])


def every_way(f: Executable, *arrays: Array, constants: dict[str, Array] | None = None) -> Array:
    """The output of the driver, of running step by step, and of the plan's interpreter: they must agree."""
    (driven,) = f(*arrays)
    (stepped,), times = f.step_times(*arrays)
    (wanted,) = interpret_plan(f.plan, list(arrays), constants or {})
    np.testing.assert_array_equal(driven, wanted)
    np.testing.assert_array_equal(stepped, wanted)
    assert all(time.seconds >= 0 for time in times)
    return driven


def counting_plan(trips: Dim) -> Executable:
    """y = x, then y += 1 in every trip: two buffers written in turn."""
    one = plus(1)
    size = (dim("n") * 4 + 63) // 64 * 64
    buffers = (
        plan_buffer("x", InputPlace(0), "n"), plan_buffer("y", OutputPlace(0), "n"),
        plan_buffer("a", ArenaPlace("arena", dim(0)), "n"),
    )  # fmt: skip
    steps = (
        CopyStep("start", "x", "y"),
        Repeat("loop", (step("add", one, ["y", "a"]), CopyStep("back", "a", "y")), trips=trips),
    )
    return executable(plan((X,), buffers, steps, size), [one[0]])


def test_copies() -> None:
    buffers = (plan_buffer("x", InputPlace(0), "n"), plan_buffer("y", OutputPlace(0), "n"))
    f = executable(plan((X,), buffers, (CopyStep("copy", "x", "y"),), 0), [])
    for count in (0, 1, 7, 1000):
        x = np.random.default_rng(count).random(count).astype(np.float32)
        np.testing.assert_array_equal(every_way(f, x), x)


def test_branches() -> None:
    up, down = plus(10), plus(-10)
    buffers = (
        plan_buffer("x", InputPlace(0), "n"), plan_buffer("flag", InputPlace(1), dtype=BOOL),
        plan_buffer("y", OutputPlace(0), "n"),
    )  # fmt: skip
    branch = Branch("if", "flag", (step("up", up, ["x", "y"]),), (step("down", down, ["x", "y"]),))
    f = executable(plan((X, FLAG), buffers, (branch,), 0), [up[0], down[0]])
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(every_way(f, x, TRUE), x + 10)
    np.testing.assert_array_equal(every_way(f, x, FALSE), x - 10)


def test_a_branch_with_nothing_on_one_side() -> None:
    up = plus(10)
    buffers = (
        plan_buffer("x", InputPlace(0), "n"), plan_buffer("flag", InputPlace(1), dtype=BOOL),
        plan_buffer("y", OutputPlace(0), "n"),
    )  # fmt: skip
    steps = (CopyStep("start", "x", "y"), Branch("if", "flag", (step("up", up, ["x", "y"]),)))
    f = executable(plan((X, FLAG), buffers, steps, 0), [up[0]])
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(every_way(f, x, TRUE), x + 10)
    np.testing.assert_array_equal(every_way(f, x, FALSE), x)


@pytest.mark.parametrize(
    ("trips", "count"), [(dim(0), 0), (dim(3), 3), (dim("n"), 6), (dim("n") // 4, 1), (dim("n") - 8, 0)]
)
def test_repeats_by_number(trips: Dim, count: int) -> None:
    x = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(every_way(counting_plan(trips), x), x + count)


def number_kernel() -> Made:
    """y = x + 10 k + m."""
    x, y = buffer_of("x", F32, "n"), buffer_of("y", F32, "n")
    value = Load("x", (dim("i"),), F32) + cast(index(dim("k") * 10 + dim("m")), F32)
    return kernel("number", [x], y, value, loops=[("i", "n")], symbols=("k", "m"))


def test_trips_know_their_number() -> None:
    """Nested repeats; how often the inner one runs depends on the trip of the outer one."""
    number = number_kernel()
    buffers = (
        plan_buffer("x", InputPlace(0), "n"), plan_buffer("y", OutputPlace(0), "n"),
        plan_buffer("a", ArenaPlace("arena", dim(0)), "n"),
    )  # fmt: skip
    inner = Repeat(
        "inner", (step("number", number, ["y", "a"]), CopyStep("back", "a", "y")), trips=dim("k") % 3, iteration="m"
    )
    steps = (CopyStep("start", "x", "y"), Repeat("outer", (inner,), trips=dim("n") + 1, iteration="k"))
    f = executable(plan((X,), buffers, steps, (dim("n") * 4 + 63) // 64 * 64), [number[0]])
    x = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(every_way(f, x), x + sum(10 * k + m for k in range(7) for m in range(k % 3)))


def test_a_fault_deep_inside_names_its_step() -> None:
    """In the second trip, in the second step of the branch's other side."""
    x, at, y = buffer_of("x", F32, "n"), buffer_of("at", dtypes.int64), buffer_of("y", F32, "n")
    moved = loaded("at", ()) + dim("k") + dim("i") * 0
    taking = kernel("taking", [x, at], y, Load("x", (moved,), F32), loops=[("i", "n")], symbols=("k",))
    one = plus(1)
    buffers = (
        plan_buffer("x", InputPlace(0), "n"), plan_buffer("flag", InputPlace(1), dtype=BOOL),
        plan_buffer("at", InputPlace(2), dtype=dtypes.int64), plan_buffer("y", OutputPlace(0), "n"),
        plan_buffer("a", ArenaPlace("arena", dim(0)), "n"),
    )  # fmt: skip
    otherwise = (step("one", one, ["x", "a"]), step("taking", taking, ["a", "at", "y"]))
    branch = Branch("if", "flag", (step("up", one, ["x", "y"]),), otherwise)
    position = PlanInput("at", tensor(dtypes.int64))
    steps = (CopyStep("start", "x", "y"), Repeat("loop", (branch,), trips=dim(2), iteration="k"))
    made = plan((X, FLAG, position), buffers, steps, (dim("n") * 4 + 63) // 64 * 64)
    f = executable(made, [one[0], taking[0]])
    data = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(every_way(f, data, FALSE, np.array(1, np.int64)), [3.0] * 4)
    for way in (f, f.step_times):
        with pytest.raises(RunError) as caught:
            way(data, FALSE, np.array(3, np.int64))
        assert "user's taking" in str(caught.value)
    np.testing.assert_array_equal(every_way(f, data, TRUE, np.array(3, np.int64)), data + 1)


def test_repeat_until_a_condition_fails() -> None:
    """Double y while its first element is below 100."""
    y, next_y = buffer_of("x", F32, "n"), buffer_of("y", F32, "n")
    double = kernel("double", [y], next_y, Load("x", (dim("i"),), F32) * 2, loops=[("i", "n")])
    flag = buffer_of("more", BOOL)
    below = call("less", Load("x", (dim(0),), F32), 100)
    test = kernel("below", [y], flag, below, loops=[])
    size = (dim("n") * 4 + 63) // 64 * 64
    buffers = (
        plan_buffer("x", InputPlace(0), "n"), plan_buffer("y", OutputPlace(0), "n"),
        plan_buffer("a", ArenaPlace("arena", dim(64)), "n"),
        plan_buffer("more", ArenaPlace("arena", dim(0)), dtype=BOOL),
    )  # fmt: skip
    body = (step("double", double, ["y", "a"]), CopyStep("back", "a", "y"), step("again", test, ["y", "more"]))
    steps = (CopyStep("start", "x", "y"), step("test", test, ["y", "more"]), Repeat("while", body, condition="more"))
    bounded = Symbol("n", 1, 1000)
    made = Plan(
        "while", (X,), (PlanOutput("y", tensor(F32, "n"), "y"),), buffers, (Segment("captured", steps),), (bounded,),
        input_bindings((X,)), (), (Arena("arena", "host", size + 64),),
    )  # fmt: skip
    verify(made)
    f = executable(made, [double[0], test[0]])
    for first, wanted in ((3.0, 192.0), (100.0, 100.0), (99.0, 198.0)):
        x = np.array([first, 1, 2], np.float32)
        np.testing.assert_array_equal(every_way(f, x), x * (wanted / first))
    limited = made.replace(
        segments=(Segment("captured", (*steps[:2], Repeat("while", body, trips=dim(2), condition="more"))),)
    )
    verify(limited)
    np.testing.assert_array_equal(
        every_way(executable(limited, [double[0], test[0]]), np.array([1, 0], np.float32)), [4, 0]
    )


def test_buffers_inside_an_output() -> None:
    """A buffer at an offset within the output's memory: halves written by two steps."""
    one = plus(1)
    two = plus(2)
    half = dim("n")
    x = PlanInput("x", tensor(F32, "n"))
    buffers = (
        plan_buffer("x", InputPlace(0), "n"),
        plan_buffer("y", OutputPlace(0), half * 2, alias="whole"),
        plan_buffer("low", OutputPlace(0), half, alias="whole"),
        plan_buffer("high", OutputPlace(0, half * 4), half, alias="whole"),
    )  # fmt: skip
    steps = (step("low", one, ["x", "low"]), step("high", two, ["x", "high"]))
    made = Plan(
        "halves", (x,), (PlanOutput("y", tensor(F32, half * 2), "y"),), buffers,
        (Segment("captured", steps),), (N,), input_bindings((x,)), (), (Arena("arena", "host", dim(0)),),
    )  # fmt: skip
    verify(made)
    f = executable(made, [one[0], two[0]])
    x_data = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(every_way(f, x_data), [*(x_data + 1), *(x_data + 2)])


def test_plans_that_one_native_call_cannot_run() -> None:
    buffers = (plan_buffer("x", InputPlace(0), "n"), plan_buffer("y", OutputPlace(0), "n"))
    copied = plan((X,), buffers, (CopyStep("copy", "x", "y"),), 0)
    twice = copied.replace(segments=(*copied.segments, Segment("captured", ())))
    with pytest.raises(CodegenError) as caught:
        executable(twice, [])
    assert caught.value.code == 1651
    arenas = copied.replace(arenas=(Arena("one", "host", dim(64)), Arena("two", "host", dim(64))))
    with pytest.raises(CodegenError):
        executable(arenas, [])
