"""`tilework.compile`: its settings, each checked where it is given; machines by argument and by environment."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilework
from tilework import dtypes
from tilework.dims import Symbol
from tilework.errors import CodegenError, OutOfMemoryError, TileworkError, UsageError
from tilework.frontends.compile import load_graph, lower, options
from tilework.graph.graph import Graph
from tilework.machine.finder import machine
from tilework.machine.host import check_runs_here
from tilework.ops.builder import GraphBuilder

HOST = machine("host")
OTHER = "aarch64" if HOST.architecture == "x86" else "x86-64-v3"


def graph() -> Graph:
    builder = GraphBuilder("doubled", [Symbol("N", 0, 1 << 50)])
    x = builder.input("x", dtypes.float32, "N", 4)
    return builder.build([builder.apply_one("add", x, x)])


# -- settings ----------------------------------------------------------------------------------------------------------
WRONG: dict[str, tuple[Any, ...]] = {
    "memory_limit": ("1Q", "", "G", 10**30, -1, 0, 1.5, True, [1]),
    "context": (5, "default", {1}),
    "numerics": (5, "sloppy", ["strict"], b"fast", True),
    "checked": ("no", 1, [1]),
    "machine": (5, b"host", ["host"]),
    "shapes": (
        5, "x=1x2", [("x", (1, 2))], {1: (2,)},
        {"x": 5}, {"x": "12"}, {"x": (1.5, 4)}, {"x": (None, 4)}, {"x": (True, 4)}, {"x": (-2, 4)}, {"x": ("1", 4)},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_setting_that_makes_no_sense_is_refused_when_compiling(name: str, value: Any) -> None:
    with pytest.raises(UsageError) as caught:
        tilework.compile(graph(), **{name: value})
    assert caught.value.code == 1002
    assert name in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("limit", [1 << 20, np.int64(1 << 20), np.uint8(200)])
def test_limits_that_are_whole_numbers(limit: Any) -> None:
    found = tilework.compile(graph(), memory_limit=limit)
    (y,) = found(np.ones((2, 4), np.float32))
    assert (y == 2).all()
    with pytest.raises(OutOfMemoryError, match="memory_limit") as caught:
        found(np.ones((1 << 18, 4), np.float32))
    assert caught.value.code == 1710
    assert "memory_limit_bytes" not in str(caught.value)


@pytest.mark.parametrize("model", [5, None, [1], {"x": 1}])
def test_what_no_frontend_reads(model: object) -> None:
    with pytest.raises(UsageError) as caught:
        load_graph(model)
    assert caught.value.code == 1008


# -- machines ----------------------------------------------------------------------------------------------------------
def test_the_machine_of_the_environment_is_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_MACHINE", OTHER)
    assert options().machine == OTHER
    assert options(machine="host").machine == "host"
    assert lower(graph()).explanation.machine == OTHER
    assert lower(graph(), machine="host").explanation.machine == "host"
    with pytest.raises(CodegenError) as caught:
        tilework.compile(graph())
    assert caught.value.code == 1764
    assert OTHER in str(caught.value)
    assert tilework.compile(graph(), machine="host").explain().machine == "host"


def test_a_machine_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError) as caught:
        tilework.compile(graph(), machine="z80")
    assert (caught.value.code, caught.value.where) == (1620, "machine")
    monkeypatch.setenv("TILEWORK_MACHINE", "x86-64-v9")
    with pytest.raises(UsageError) as named:
        tilework.compile(graph())
    assert named.value.code == 1620
    assert named.value.where == "environment variable TILEWORK_MACHINE"


@pytest.mark.parametrize("name", ["x86-64-v3", "x86_64_v3", "x86-64-v4", "aarch64"])
def test_code_for_a_machine_runs_here_or_is_refused(name: str) -> None:
    target = machine(name)
    fits = target.architecture == HOST.architecture and target.available <= HOST.available
    if not fits:
        with pytest.raises(CodegenError) as caught:
            tilework.compile(graph(), machine=name)
        assert caught.value.code == 1764
        return
    found = tilework.compile(graph(), machine=name)
    assert found.explain().machine == target.name
    x = np.arange(400, dtype=np.float32).reshape(100, 4)
    assert (found(x)[0] == 2 * x).all()


def test_a_feature_that_this_processor_lacks_is_named() -> None:
    from dataclasses import replace

    with pytest.raises(CodegenError, match="lacks of-the-future") as caught:
        check_runs_here(replace(HOST, name="next", features=f"{HOST.features},+of-the-future"))
    assert caught.value.code == 1764
    check_runs_here(HOST)


# -- executables as objects --------------------------------------------------------------------------------------------
def test_an_executable_shows_its_name_inputs_and_outputs() -> None:
    text = repr(tilework.compile(graph()))
    assert "doubled" in text
    assert "x: float32[N, 4]" in text
    assert "-> (" in text


@pytest.mark.parametrize("take", [copy.copy, copy.deepcopy, pickle.dumps])
def test_executables_are_neither_copied_nor_pickled(take: Callable[[object], object]) -> None:
    found = tilework.compile(graph())
    with pytest.raises(TypeError, match="compile the model again"):
        take(found)


def test_an_executable_inside_something_that_is_pickled() -> None:
    with pytest.raises(TypeError, match="compile the model again"):
        pickle.dumps([tilework.compile(graph())])


def test_a_copy_of_an_argument_for_which_there_is_no_memory() -> None:
    found = tilework.compile(graph())
    huge = np.broadcast_to(np.float32(1), (1 << 48, 4))
    with pytest.raises(OutOfMemoryError) as caught:
        found(huge)
    assert caught.value.code == 1710
    assert caught.value.where == "x"
    assert "not contiguous" in str(caught.value)
    assert "contiguous" in caught.value.hint
    assert (found(np.ones((1, 4), np.float32))[0] == 2).all()


def test_a_conversion_for_which_there_is_no_memory() -> None:
    class Greedy:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray[Any, Any]:
            return np.zeros((1 << 50, 4), np.uint8).astype(np.float32)

    with pytest.raises(TileworkError) as caught:
        tilework.compile(graph())(Greedy())
    assert caught.value.code == 1710


def test_only_public_names_are_listed() -> None:
    assert dir(tilework) == sorted(tilework.__all__)
