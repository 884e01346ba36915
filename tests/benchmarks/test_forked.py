"""Mutated models in children: when an interrupt counts."""

from __future__ import annotations

import signal
import time
from collections.abc import Generator

import pytest
from onnx import TensorProto, helper

from benchmarks.harness import forked


@pytest.fixture(autouse=True)
def handler() -> Generator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def nothing() -> None:
    pass


def test_an_interrupt_counts_from_when_a_call_is_said_to_run_until_it_is_over() -> None:
    assert forked.run(nothing, nothing) == "ran"
    interrupt()  # too late: nothing comes of it
    assert forked.run(nothing, interrupt) == "interrupted"
    assert forked.run(interrupt, nothing) == "interrupted"


def test_what_a_call_raises_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        forked.run(lambda: 1 // 0, nothing)
    interrupt()


def endless(slow: bool) -> bytes:
    """A loop of 2^62 trips."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Add", ["s", "s"], ["t"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("c", TensorProto.BOOL, []),
         helper.make_tensor_value_info("s", TensorProto.FLOAT, [])],
        [helper.make_tensor_value_info("d", TensorProto.BOOL, []),
         helper.make_tensor_value_info("t", TensorProto.FLOAT, [])],
    )  # fmt: skip
    nodes = [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)]
    held = [helper.make_tensor("n", TensorProto.INT64, [], [2**62 if slow else 3])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, []) for name in "xy")
    graph = helper.make_graph(nodes, "g", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()


def test_children_are_interrupted_once_they_have_run_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    assert forked.one(endless(slow=False), 1) == {"outcome": "ran"}
    monkeypatch.setattr(forked, "INTERRUPTED_AFTER", 0.0)  # as if it took long to compile
    start = time.monotonic()
    assert forked.one(endless(slow=True), 1) == {"outcome": "interrupted"}
    assert time.monotonic() - start > forked.RUNS_AT_LEAST
