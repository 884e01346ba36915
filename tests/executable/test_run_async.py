"""`run_async` and `profile` of every kind of executable."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tilework
from tests.executable.building import affine, affine_wanted
from tilework.compiler.compile import compile_graph
from tilework.compiler.options import CompileOptions
from tilework.errors import CallError, UsageError
from tilework.runtime.boxed import BoxedExecutable
from tilework.runtime.context import Context
from tilework.runtime.executable import Executable
from tilework.runtime.per_shape import PerShape


def data(rows: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-4, 5, (rows, 4)).astype(np.float32)


def model(nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]) -> bytes:
    made = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 18)], ir_version=9
    )
    return made.SerializeToString()


def tensor(name: str, kind: int, *shape: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def test_results_are_those_of_plain_calls_at_every_size() -> None:
    with Context(threads=2) as context:
        f = compile_graph(affine(3), CompileOptions(), context)
        given = [data(rows, rows) for rows in (0, 1, 17, 70_000, 3, 5000, 1)]
        pending = [f.run_async(x) for x in given] + [f.run_async(x=x) for x in given]
        plain = [f(x)[0] for x in given]  # meanwhile
        for x, one, again, found in zip(given, pending, pending[len(given) :], plain, strict=False):
            np.testing.assert_array_equal(one.result(60)[0], affine_wanted(x, 3))
            np.testing.assert_array_equal(again.result(60)[0], found)
        addresses = {one.result()[0].ctypes.data for one in pending[1 : len(given)]}
        assert len(addresses) == len(given) - 1


def test_executables_of_one_context_take_turns_in_one_thread() -> None:
    with Context(threads=1) as context:
        first, second = (compile_graph(affine(count), CompileOptions(), context) for count in (1, 2))
        order: list[int] = []

        def note(number: int, _: object) -> None:
            order.append(number)

        asked: list[Any] = []
        for number in range(20):
            asked.append((first if number % 2 else second).run_async(data(50, number)))
            asked[-1].add_done_callback(partial(note, number))
        for one in asked:
            one.result(60)
        assert sorted(order) == list(range(20))  # a callback of what was done already runs in the thread that adds it


def test_what_is_wrong_is_told_by_the_result() -> None:
    with Context() as context:
        f = compile_graph(affine(1), CompileOptions(memory_limit=1 << 20), context)
        codes: list[int] = []
        wrong: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
            ((), {}),
            ((data(3), 1), {}),
            ((), {"y": data(3)}),
            ((data(3)[0],), {}),
            ((data(1 << 19),), {}),
        ]
        for arguments, named in wrong:
            pending = f.run_async(*arguments, **named)
            with pytest.raises(CallError) as caught:
                pending.result(60)
            codes.append(caught.value.code)
        assert codes == [1701, 1701, 1701, 1704, 1710]
        np.testing.assert_array_equal(f.run_async(data(3)).result(60)[0], affine_wanted(data(3), 1))
    with pytest.raises(UsageError) as closed:
        f.run_async(data(3))
    assert closed.value.code == 1752


def strings() -> Executable | PerShape:
    upper = helper.make_node("StringNormalizer", ["s"], ["t"], case_change_action="UPPER")
    add = helper.make_node("Add", ["x", "x"], ["y"])
    kinds = [tensor("s", TensorProto.STRING, 2), tensor("x", TensorProto.FLOAT, "N")]
    return tilework.compile(
        model([upper, add], kinds, [tensor("t", TensorProto.STRING, 2), tensor("y", TensorProto.FLOAT, "N")])
    )


def test_models_with_black_boxes() -> None:
    f = strings()
    assert isinstance(f, BoxedExecutable)
    words, x = np.array(["a", "b"], object), np.arange(3, dtype=np.float32)
    given: dict[str, Any] = {"s": words, "x": x}
    results = dict(zip((port.name for port in f.outputs), f.run_async(**given).result(60), strict=True))
    assert list(results["t"]) == ["A", "B"]
    np.testing.assert_array_equal(results["y"], x + x)
    profile = f.profile(**given)
    assert "string_normalizer" in str(profile).lower() or "stringnormalizer" in str(profile).lower()
    assert len(profile.steps) >= 2
    f.trim()


def test_models_that_are_compiled_for_each_call() -> None:
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)]
    kinds = [tensor("x", TensorProto.FLOAT, "N", "M"), tensor("axes", TensorProto.INT64, "K")]
    f = tilework.compile(model(nodes, kinds, [tensor("y", TensorProto.FLOAT, "P")]))
    assert isinstance(f, PerShape)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    pending = [f.run_async(x, np.array([axis])) for axis in (0, 1)]
    np.testing.assert_array_equal(pending[0].result(60)[0], x.sum(0))
    np.testing.assert_array_equal(pending[1].result(60)[0], x.sum(1))
    np.testing.assert_array_equal(f.profile(x, np.array([1])).outputs[0], x.sum(1))
    f.trim()
    np.testing.assert_array_equal(f(x, np.array([0]))[0], x.sum(0))


@pytest.mark.parametrize("cache", ["off", "on"])
def test_what_is_compiled_later_belongs_to_the_same_context(
    cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWORK_CACHE", cache)
    monkeypatch.setenv("TILEWORK_CACHE_DIR", str(tmp_path))
    kinds = [tensor("x", TensorProto.FLOAT, "N"), tensor("y", TensorProto.FLOAT, "M")]
    added = model([helper.make_node("Add", ["x", "y"], ["z"])], kinds, [tensor("z", TensorProto.FLOAT, "K")])
    x, y = np.arange(5, dtype=np.float32), np.ones(1, np.float32)
    for _ in range(2):  # the second time from the cache
        with Context(threads=1) as context:
            f = tilework.compile(added)
            np.testing.assert_array_equal(f.run_async(x, y).result(60)[0], x + 1)  # sizes of their own
            assert f.variants is not None
            if isinstance(f, Executable):
                assert f.context is context
            assert [one.context for one in f.variants.executables] == [context]


def test_a_profile_tells_each_step() -> None:
    f = compile_graph(affine(3))
    x = data(300)
    found = f.profile(x)
    np.testing.assert_array_equal(found.outputs[0], affine_wanted(x, 3))
    assert len(found.steps) == 3
    assert found.seconds == pytest.approx(sum(found.by_step.values()))
    assert list(found.by_step.values()) == sorted(found.by_step.values(), reverse=True)
    assert set(found.by_step) == {region.name for region in f.explain().regions}
    lines = str(found).splitlines()
    assert lines[0].startswith("3 steps, ")
    assert len(lines) == 4
    assert f.profile(x=x).outputs[0].shape == x.shape


SCRIPT = """
import numpy as np, tilework
from tests.executable.building import affine
from tilework.compiler.compile import compile_graph
f = compile_graph(affine(3))
x = np.ones((300_000, 4), np.float32)
"""


@pytest.mark.parametrize("end", ["pending[0].result()", "", "import os; os._exit(0)", "raise SystemExit"])
def test_the_process_ends_while_compiled_code_runs(end: str) -> None:
    script = f"{SCRIPT}pending = [f.run_async(x) for _ in range(200)]\n{end}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_children_of_forks_go_on_asking() -> None:
    script = f"""{SCRIPT}
import os
wanted = np.cumsum(np.cumsum(np.cumsum(x, 1), 1), 1)
pending = [f.run_async(x) for _ in range(20)]
child = os.fork()
if not child:
    os._exit(0 if np.array_equal(f.run_async(x).result(60)[0], wanted) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert all(np.array_equal(one.result(60)[0], wanted) for one in pending)
"""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
