"""`tilework.build`: schedules as executables, against numpy, and what they refuse."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

import tilework
from tilework import compute as te
from tilework.errors import CallError, RunError, TileworkError
from tilework.plan.verify import verify
from tilework.runtime.context import Context, ContextOptions

ANY = cast("Any", tilework)


def dense(m: Any = "M", k: Any = "K", n: Any = "N") -> te.Computation:
    """d = max(a b, 0), through a temporary."""
    a, b = te.placeholder("a", "float32", m, k), te.placeholder("b", "float32", k, n)
    r = te.reduce_axis(k, "r")
    c = te.compute("c", (m, n), lambda i, j: te.sum(a[i, r] * b[r, j], r))
    d = te.compute("d", (m, n), lambda i, j: te.call("maximum", c[i, j], 0.0))
    return te.computation("plan", [a, b], [d])


def integers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("checked", [False, True])
def test_a_schedule_runs_on_arrays(checked: bool) -> None:
    program = te.loop_program(dense())
    schedule = tilework.Schedule(program, "host").split("j", 8).vectorize("j.inner").split("i", 4).parallel("i.outer")
    found: list[Any] = []
    for threads in (1, 2, 3, 8):
        with Context(ContextOptions(threads=threads)) as context:
            kernel = tilework.build(schedule, checked=checked, context=context)
            verify(kernel.plan)
            for m, k, n in ((5, 7, 9), (1, 1, 1), (16, 3, 8), (33, 2, 17)):
                a, b = integers(m, m, k), integers(n, k, n)
                (result,) = kernel(a, b=b)
                np.testing.assert_array_equal(result, np.maximum(a @ b, 0))
            found.append(kernel(integers(1, 33, 20), integers(2, 20, 17))[0])
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].view(np.int32), other.view(np.int32))


def test_a_computation_and_a_program_run_as_they_are_written() -> None:
    a, b = integers(1, 3, 4), integers(2, 4, 5)
    for subject in (dense(3, 4, 5), te.loop_program(dense("M", 4, 5))):
        for level in ("strict", "default", "fast"):
            (result,) = tilework.build(subject, numerics=level)(b=b, a=a)
            np.testing.assert_array_equal(result, np.maximum(a @ b, 0))


def test_several_outputs_and_an_argument_changed_in_place() -> None:
    x = te.placeholder("x", "float64", "N")
    total, doubled = (
        te.compute("t", (), lambda: te.sum(x[te.reduce_axis("N", "k")], te.reduce_axis("N", "k"))),
        (te.compute("d", ("N",), lambda i: x[i] * 2.0)),
    )
    kernel = tilework.build(te.computation("both", [x], [total, doubled]))
    values = np.arange(5.0)
    first, second = kernel(values)
    assert float(first) == 10.0
    np.testing.assert_array_equal(second, values * 2)


def test_sizes_at_which_an_access_would_leave_its_array_are_refused() -> None:
    p, q = te.placeholder("p", "float32", "M"), te.placeholder("q", "float32", "N")
    kernel = tilework.build(te.computation("pq", [p, q], [te.compute("d", ("N",), lambda i: p[i + 1] + q[i])]))
    np.testing.assert_array_equal(kernel(integers(1, 4), integers(1, 3))[0], integers(1, 4)[1:] + integers(1, 3))
    with pytest.raises(CallError) as caught:
        kernel(integers(1, 3), integers(1, 3))
    assert caught.value.code == 1707
    assert "p[i + 1]" in str(caught.value)


def test_accesses_that_no_condition_covers_are_tested_when_they_run() -> None:
    q = te.placeholder("q", "float32", "N")
    kernel = tilework.build(te.computation("e", [q], [te.compute("e", ("N",), lambda i: q[i % 2 + 1])]))
    np.testing.assert_array_equal(kernel(np.arange(3, dtype=np.float32))[0], [1, 2, 1])
    with pytest.raises(RunError) as caught:
        kernel(np.arange(2, dtype=np.float32))
    assert caught.value.code == 1802


def test_calls_are_checked() -> None:
    kernel = tilework.build(dense())
    a, b = integers(1, 3, 4), integers(2, 4, 5)
    for code, arguments, named in (
        (1701, (a,), {}), (1701, (a, b, a), {}), (1701, (a,), {"z": b}), (1701, (a, b), {"a": a}),
        (1702, (a.astype(np.float64), b), {}), (1704, (a[0], b), {}), (1706, (a, a), {}), (1702, (a, "x"), {}),
    ):  # fmt: skip
        with pytest.raises(CallError) as caught:
            kernel(*arguments, **named)
        assert caught.value.code == code


@pytest.mark.parametrize(
    ("code", "subject", "named"),
    [
        (1009, None, {}), (1009, "x", {}), (1002, tilework.Schedule(te.loop_program(dense())), {"numerics": "strict"}),
        (1002, dense(), {"numerics": "strikt"}), (1002, dense(), {"machine": 3}), (1620, dense(), {"machine": "z80"}),
        (1002, dense(), {"checked": 1}), (1002, dense(), {"memory_limit": 0}), (1002, dense(), {"context": 3}),
        (1764, dense(), {"machine": "aarch64"}),
        (1002, tilework.Schedule(te.loop_program(dense()), "x86-64-v4"), {"machine": "x86-64-v3"}),
        (1653, te.computation("f", [], [te.compute("y", ("N",), lambda i: te.index(i, "float32"))]), {}),
    ],
)  # fmt: skip
def test_what_cannot_be_built(code: int, subject: Any, named: dict[str, Any]) -> None:
    with pytest.raises(TileworkError) as caught:
        ANY.build(subject, **named)
    assert caught.value.code == code
    assert caught.value.hint
