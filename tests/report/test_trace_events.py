"""Traces against the trace event format: the fields of every event, their order, their names, what lies in what."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.executable.test_profile import boxed, loop
from tests.report.pages import HOSTILE, hostile_profile
from tilework.report.trace_events import trace, trace_text
from tilework.runtime.profile import Profile

PROFILES: Any = {
    "names": hostile_profile,
    "loop": lambda: loop().profile(np.asarray(3), np.ones(32, np.float32), calls=2),
    "boxes": lambda: boxed().profile(np.array([-1, 2], np.float32), calls=1),
}


@pytest.fixture(scope="module", params=PROFILES)
def profile(request: pytest.FixtureRequest) -> Profile:
    return PROFILES[request.param]()


def test_every_event_has_its_fields(profile: Profile) -> None:
    text = trace_text(profile, HOSTILE[0])
    assert text.isascii()
    found = json.loads(text)
    assert set(found) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert found["displayTimeUnit"] == "ms"
    named: set[tuple[int, int]] = set()
    processes: set[int] = set()
    last = 0.0
    for event in found["traceEvents"]:
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert isinstance(event["args"], dict)
        assert event["ts"] >= last, "events are sorted, metadata first"
        last = event["ts"]
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert event["args"]["name"]
            if event["name"] == "process_name":
                processes.add(event["pid"])
            else:
                named.add((event["pid"], event["tid"]))
            continue
        assert event["ph"] == "X"
        assert event["cat"] == "tilework"
        assert event["dur"] >= 0
        assert (event["pid"], event["tid"]) in named
        assert event["pid"] in processes


def test_slices_of_a_thread_do_not_cross(profile: Profile) -> None:
    by_thread: defaultdict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for event in trace(profile)["traceEvents"]:
        if event["ph"] == "X":
            by_thread[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for slices in by_thread.values():
        for (_, end), (start, _) in pairwise(slices):
            assert start >= end - 2e-3, "one after another, to the digits that are written"


def test_all_calls_and_stages_are_there(profile: Profile) -> None:
    events = [event for event in trace(profile)["traceEvents"] if event["ph"] == "X"]
    stages = [(event["name"], event["dur"]) for event in events if event["pid"] == 1]
    wanted = [(name, pytest.approx(ms * 1e3, abs=1e-3)) for name, ms in profile.explanation.compile_milliseconds]
    assert stages == wanted
    calls = [event for event in events if event["name"].startswith("call ")]
    assert len(calls) == len(profile.timeline)
    steps = [event["name"] for event in events if "kind" in event["args"]]
    assert steps == [step.name for call in profile.timeline for step in call.steps or ()]
    for event in events:
        if "kind" in event["args"]:
            inside = [
                c for c in calls if c["ts"] <= event["ts"] and event["ts"] + event["dur"] <= c["ts"] + c["dur"] + 2e-3
            ]
            assert len(inside) == 1
            assert inside[0]["args"]["run"] == "step by step"
