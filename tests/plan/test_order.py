from __future__ import annotations

from tests.plan.building import at, draft, flag, slot, step
from tilework.dims import dim
from tilework.plan.buffers import Queue
from tilework.plan.order import bits, order_of
from tilework.plan.plan import Segment, alias_key, step_count
from tilework.plan.steps import Branch, Repeat

TWO_QUEUES = (Queue("main", "cpu"), Queue("side", "cpu"))


def test_queues_signals_and_segments() -> None:
    first = (
        step("a", ["x"], "a", signals=(1,)),
        step("b", ["a"], "b"),
        step("c", ["a"], "c", queue="side", waits=(1,)),
    )
    plan = draft(first, "a", "b", "c").replace(queues=TWO_QUEUES)
    plan = plan.replace(segments=(*plan.segments, Segment("captured", (step("y", ["b", "c"], "y", queue="side"),))))
    order = order_of(plan)
    at_path = {node.path: index for index, node in enumerate(order.nodes)}
    a, b, c, y = (at_path[p] for p in ("0.0", "0.1", "0.2", "1.0"))
    assert order.before(a, b)
    assert order.before(a, c)
    assert not order.apart(b, c)
    assert order.before(b, y)
    assert order.before(c, y)
    assert not order.total
    assert order.faults == ()
    assert step_count(plan) == 4


def test_one_queue_is_a_line() -> None:
    assert order_of(draft((step("a", ["x"], "a"), step("y", ["a"], "y")), "a")).total


def test_control_steps_hold_every_queue_inside() -> None:
    inside = Branch("if", "flag", (step("p", ["x"], "a", queue="side"),), (step("q", ["x"], "b"),))
    steps = (step("before", ["x"], "c", queue="side"), inside, step("after", ["c"], "y", queue="side"))
    plan = draft(steps, "a", "b", "c").replace(queues=TWO_QUEUES)
    plan = plan.replace(buffers=(*plan.buffers, flag("flag")))
    order = order_of(plan)
    at_path = {node.path: index for index, node in enumerate(order.nodes)}
    assert order.before(at_path["0.0"], at_path["0.1"])
    assert order.before(at_path["0.1 done"], at_path["0.2"])
    assert order.apart(at_path["0.1.then.0"], at_path["0.1.else.0"])
    assert not order.before(at_path["0.1.then.0"], at_path["0.1.else.0"])


def test_lives_of_carried_and_local_values() -> None:
    body = (step("t", ["state"], "t"), step("n", ["t"], "state"))
    plan = draft((step("f", ["x"], "state"), Repeat("loop", body, dim(2)), step("y", ["state"], "y")), "state", "t")
    order = order_of(plan)
    paths = {name: [order.nodes[n].path for n in bits(order.life([name]))] for name in ("state", "t")}
    assert paths["t"] == ["0.1.body.0", "0.1.body.1"]
    assert set(paths["state"]) == {"0.0", "0.1", "0.1.body.0", "0.1.body.1", "0.1 done", "0.2"}


def test_alias_keys_cannot_meet() -> None:
    assert alias_key(at("s", slot(0))) != alias_key(at("a", slot(0), alias_set="s"))
