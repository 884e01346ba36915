"""Plans that are read in part: the same plan as one that is read whole, whatever is asked first."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from tests.plan.building import chain, random_plan
from tilework.errors import ParseError
from tilework.plan import parse, written
from tilework.plan.parse import parse_plan
from tilework.plan.plan import Plan
from tilework.plan.text import plan_text
from tilework.plan.written import WrittenPlan

TEXTS = [plan_text(plan) for plan in (chain(), *(random_plan(np.random.default_rng(seed)) for seed in range(8)))]
TEXT = TEXTS[0]


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_the_plan_that_the_text_states(text: str) -> None:
    plan = WrittenPlan.of(text)
    whole = parse_plan(text)
    for name in ("name", "inputs", "outputs", "symbols", "bindings", "guards", "arenas", "spaces", "devices", "queues"):
        assert getattr(plan, name) == getattr(whole, name)
    assert plan.text == text
    assert plan_text(plan) == plan_text(whole)
    assert plan.buffers == whole.buffers
    assert plan.buffer_named.keys() == whole.buffer_named.keys()


def test_steps_are_read_when_they_are_asked_for_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(text: str) -> Plan:
        read.append(text)
        return parse_plan(text)

    monkeypatch.setattr(written, "parse_plan", counted)
    plan = WrittenPlan.of(TEXT)
    assert plan.symbol_named is not None
    assert not read
    assert plan.segments is plan.segments
    assert plan.buffers is not None
    assert len(read) == 1


def test_threads_get_the_same_steps() -> None:
    plan = WrittenPlan.of(TEXT)
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(plan.segments)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len({id(one) for one in found}) == 1


def test_a_changed_copy_is_not_what_was_written() -> None:
    plan = WrittenPlan.of(TEXT)
    for other in (plan.replace(name="other"), replace(plan, name="other")):
        assert isinstance(other, Plan)
        assert getattr(other, "text", None) is None
        assert plan_text(other) == plan_text(parse_plan(TEXT).replace(name="other"))
        with pytest.raises(AttributeError, match="nothing"):
            _ = other.nothing  # type: ignore[attr-defined]


def test_what_is_wrong_is_refused_when_it_is_read() -> None:
    for text in (
        "",
        "plan",
        "plan p",
        "plan p\n",
        "plot p\n\nsegment captured\n",
        "plan p\n  symbol\n\n",
        "plan p q\n\n",
    ):
        with pytest.raises(ParseError) as caught:
            WrittenPlan.of(text)
        assert caught.value.code == 1419
    plan = WrittenPlan.of("plan p\n  space host\n\nsegment captured\n  dance a:\n")
    with pytest.raises(ParseError) as caught:
        _ = plan.segments
    assert caught.value.code == 1419
    assert parse.line_cursor("a", 1).name() == "a"
