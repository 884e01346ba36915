"""Inputs that change, outputs that are inputs or views of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.executable.building import F32, N
from tilework.compiler.compile import compile_graph
from tilework.dims import dim
from tilework.errors import CallError, GraphError
from tilework.graph.graph import Array, GraphSignature, InputPolicy, OutputPolicy, Value
from tilework.ops.builder import GraphBuilder
from tilework.plan.interpret import interpret_plan
from tilework.plan.verify import verify
from tilework.runtime.executable import Executable

READ, FRESH = InputPolicy(), OutputPolicy()


def compiled(
    count: int,
    build: Callable[..., list[Value]],
    inputs: tuple[InputPolicy, ...],
    outputs: tuple[OutputPolicy, ...],
) -> Executable:
    """Inputs x0, x1, ... of [N] float32; the plan must verify."""
    builder = GraphBuilder("g", [N])
    given = [builder.input(f"x{k}", F32, "N") for k in range(count)]
    found = compile_graph(builder.build(build(builder, *given), GraphSignature(inputs, outputs)))
    verify(found.plan)
    return found


def interpreted(f: Executable, *arrays: Array) -> tuple[Array, ...]:
    return interpret_plan(f.plan, [array.copy() for array in arrays], f._constants)  # pyright: ignore[reportPrivateUsage]


def mutated(by: int) -> InputPolicy:
    return InputPolicy("mutated", by)


def alias(of: int) -> OutputPolicy:
    return OutputPolicy("alias", of)


def doubled(b: GraphBuilder, x: Value) -> list[Value]:
    return [b.apply_one("add", x, x)]


def negated(b: GraphBuilder, x: Value) -> list[Value]:
    return [b.apply_one("negate", x)]


def swapped(_: GraphBuilder, x: Value, y: Value) -> list[Value]:
    return [y, x]


def numbers(count: int = 7, start: int = 0) -> Array:
    return np.arange(start, start + count, dtype=np.float32)


def test_an_input_changed_in_place() -> None:
    f = compiled(1, doubled, (mutated(0),), (alias(0),))
    x = numbers()
    (wanted,) = interpreted(f, x)
    (y,) = f(x)
    assert y is x
    np.testing.assert_array_equal(x, numbers() * 2)
    np.testing.assert_array_equal(wanted, x)
    f(x)
    np.testing.assert_array_equal(x, numbers() * 4)


def test_a_strided_argument_is_changed_too() -> None:
    f = compiled(1, doubled, (mutated(0),), (alias(0),))
    base = np.arange(14, dtype=np.float32)
    (y,) = f(base[::2])
    np.testing.assert_array_equal(base[::2], numbers() * 4)
    np.testing.assert_array_equal(base[1::2], np.arange(1, 14, 2))
    np.testing.assert_array_equal(y, numbers() * 4)
    assert sum(f.copies.values()) == 1


def test_readonly_arrays_are_not_changed() -> None:
    f = compiled(1, doubled, (mutated(0),), (alias(0),))
    x = numbers()
    x.flags.writeable = False
    with pytest.raises(CallError):
        f(x)
    np.testing.assert_array_equal(x, numbers())


def test_what_reads_the_old_contents_gets_them() -> None:
    """The changed output comes first; the second output is the input as it was."""

    def build(b: GraphBuilder, x: Value) -> list[Value]:
        return [b.apply_one("negate", x), x, b.apply_one("add", x, x)]

    f = compiled(1, build, (mutated(0),), (alias(0), FRESH, FRESH))
    x = numbers()
    wanted = interpreted(f, x)
    changed, old, double = f(x)
    assert changed is x
    np.testing.assert_array_equal(x, -numbers())
    np.testing.assert_array_equal(old, numbers())
    np.testing.assert_array_equal(double, numbers() * 2)
    for have, want in zip((changed, old, double), wanted, strict=True):
        np.testing.assert_array_equal(have, want)


def test_two_inputs_change_places() -> None:
    f = compiled(2, swapped, (mutated(0), mutated(1)), (alias(0), alias(1)))
    x, y = numbers(), numbers(start=100)
    wanted = interpreted(f, x, y)
    first, second = f(x, y)
    assert first is x
    assert second is y
    np.testing.assert_array_equal(x, numbers(start=100))
    np.testing.assert_array_equal(y, numbers())
    np.testing.assert_array_equal(wanted[0], x)
    np.testing.assert_array_equal(wanted[1], y)


def test_an_input_that_changes_to_itself() -> None:
    def build(_: GraphBuilder, x: Value) -> list[Value]:
        return [x]

    f = compiled(1, build, (mutated(0),), (alias(0),))
    x = numbers()
    assert f(x)[0] is x
    np.testing.assert_array_equal(x, numbers())


def test_one_new_value_for_two_inputs_and_an_output() -> None:
    def build(b: GraphBuilder, x: Value, y: Value) -> list[Value]:
        total = b.apply_one("add", x, y)
        return [total, total, total]

    f = compiled(2, build, (mutated(0), mutated(1)), (alias(0), alias(1), FRESH))
    x, y = numbers(), numbers(start=3)
    f(x, y)
    for array in (x, y):
        np.testing.assert_array_equal(array, numbers() + numbers(start=3))


def test_arguments_that_overlap() -> None:
    """What is read is what was there before the call."""

    def build(b: GraphBuilder, x: Value, y: Value) -> list[Value]:
        return [b.apply_one("add", x, y)]

    f = compiled(2, build, (mutated(0), READ), (alias(0),))
    base = np.arange(10, dtype=np.float32)
    f(base[:8], base[2:])
    np.testing.assert_array_equal(base[:8], np.arange(8) + np.arange(2, 10))
    both = compiled(2, swapped, (mutated(0), mutated(1)), (alias(0), alias(1)))
    with pytest.raises(CallError) as caught:
        both(base[:8], base[2:])
    assert caught.value.code == 1711


def test_an_alias_of_a_reader() -> None:
    def build(b: GraphBuilder, x: Value) -> list[Value]:
        return [x, b.apply_one("negate", x)]

    f = compiled(1, build, (READ,), (alias(0), FRESH))
    x = numbers()
    same, negated = f(x)
    assert same is x
    np.testing.assert_array_equal(negated, -x)


def test_an_alias_of_what_an_input_becomes() -> None:
    def build(b: GraphBuilder, x: Value) -> list[Value]:
        new = b.apply_one("negate", x)
        return [new, new]

    f = compiled(1, build, (mutated(0),), (alias(0), alias(0)))
    x = numbers()
    assert f(x)[1] is x
    np.testing.assert_array_equal(x, -numbers())


def test_views() -> None:
    def build(b: GraphBuilder, x: Value) -> list[Value]:
        back = b.apply_one("reverse", x, dimensions=(0,))
        return [back, b.apply_one("negate", back)]

    view = OutputPolicy("view", 0, (dim(-1),), dim("N") - 1)
    f = compiled(1, build, (READ,), (view, FRESH))
    x = numbers()
    wanted = interpreted(f, x)
    back, negated = f(x)
    assert np.shares_memory(back, x)
    assert back.strides == (-4,)
    np.testing.assert_array_equal(back, x[::-1])
    np.testing.assert_array_equal(negated, -x[::-1])
    np.testing.assert_array_equal(wanted[0], back)
    x[0] = 50
    assert back[-1] == 50


def test_a_view_that_nothing_else_reads_costs_no_step() -> None:
    view = OutputPolicy("view", 0, (dim(-1),), dim("N") - 1)

    def build(b: GraphBuilder, x: Value) -> list[Value]:
        return [b.apply_one("reverse", x, dimensions=(0,))]

    f = compiled(1, build, (READ,), (view,))
    assert [step.name for _, step in f.plan.walk()] == []
    np.testing.assert_array_equal(f(numbers())[0], numbers()[::-1])


def test_donated_inputs() -> None:
    f = compiled(1, negated, (InputPolicy("donated"),), (FRESH,))
    np.testing.assert_array_equal(f(numbers())[0], -numbers())


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ((READ,), (alias(0), FRESH)),  # not the input's value
        ((mutated(0),), (FRESH, FRESH)),  # new contents that are elsewhere
        ((mutated(0),), (alias(0), alias(0))),  # an alias that does not hold what the input becomes
    ],
)
def test_signatures_that_the_graph_does_not_keep(
    inputs: tuple[InputPolicy, ...], outputs: tuple[OutputPolicy, ...]
) -> None:
    def build(b: GraphBuilder, x: Value) -> list[Value]:
        return [b.apply_one("negate", x), b.apply_one("abs", x)]

    with pytest.raises(GraphError) as caught:
        compiled(1, build, inputs, outputs)
    assert caught.value.code == 1207
