"""Initialisers that are inputs too: constants, unless a call gives them by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

import tilework
from tilework.errors import CallError, FrontendError
from tilework.frontends.onnx import compiled, kept
from tilework.runtime.boxed import BoxedExecutable
from tilework.runtime.context import Context
from tilework.runtime.executable import Executable
from tilework.runtime.per_shape import PerShape

rng = np.random.default_rng(41)


def integers(*shape: int) -> Any:
    return rng.integers(-9, 10, shape).astype(np.float32)


def affine(rows: Any = "N", ir: int = 9) -> ModelProto:
    """y = x @ w + b, both listed among the inputs, w before x; b's extent is M, w's rows are K."""
    held = {"w": np.arange(12, dtype=np.float32).reshape(3, 4), "b": np.ones(4, np.float32), "two": np.float32(2)}
    floats = {"w": ("K", 4), "x": (rows, "K"), "b": ("M",)}
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["t"]),
            helper.make_node("Add", ["t", "b"], ["s"]),
            helper.make_node("Mul", ["s", "two"], ["y"]),
        ],
        "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in floats.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, None])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in held.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=ir)


W, B = np.arange(12, dtype=np.float32).reshape(3, 4), np.ones(4, np.float32)


def expected(x: Any, w: Any = W, b: Any = B) -> Any:
    return 2 * (x @ w + b)


def text(source: str, opset: int = 18) -> ModelProto:
    return parser.parse_model(f'<ir_version: 9, opset_import: ["": {opset}]> {source}')


@pytest.mark.parametrize("ir", [3, 9])
@pytest.mark.parametrize("checked", [False, True])
def test_any_subset_may_be_given_by_name(ir: int, checked: bool) -> None:
    executable = tilework.compile(affine(ir=ir), checked=checked)
    assert [port.name for port in executable.inputs] == ["x"]
    assert [str(port.type) for port in executable.overridable] == ["float32[K, 4]", "float32[M]"]
    for n in (1, 3, 0):
        x, w, b = integers(n, 3), integers(3, 4), integers(4)
        np.testing.assert_array_equal(executable(x)[0], expected(x))
        np.testing.assert_array_equal(executable(x, w=w)[0], expected(x, w))
        np.testing.assert_array_equal(executable(b=b, x=x)[0], expected(x, b=b))
        np.testing.assert_array_equal(executable(x, b=b, w=w)[0], expected(x, w, b))
        np.testing.assert_array_equal(executable(x)[0], expected(x))
    if isinstance(executable, Executable):
        np.testing.assert_array_equal(executable.step_times(x, w=w)[0][0], expected(x, w))


def test_another_size_than_that_of_the_default() -> None:
    """Where the model leaves it free; also one that broadcasts."""
    executable = tilework.compile(affine())
    x, w = integers(2, 5), integers(5, 4)
    np.testing.assert_array_equal(executable(x, w=w)[0], expected(x, w))
    np.testing.assert_array_equal(executable(x, w=w, b=integers(1) * 0 + 3)[0], expected(x, w, np.float32(3)))
    with pytest.raises(CallError) as refused:
        executable(x)
    assert refused.value.code == 1705


def test_compiled_once_for_each_set(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    plain = compiled.compile_overridden

    def counted(source: Any, shapes: Any, options: Any, context: Any, overridden: Any, check: Any) -> Any:
        asked.append(overridden)
        return plain(source, shapes, options, context, overridden, check)

    monkeypatch.setattr(compiled, "compile_overridden", counted)
    executable = tilework.compile(affine())
    x = integers(2, 3)
    executable(x)
    for _ in range(3):
        executable(x, w=integers(3, 4))
        executable(x, w=integers(3, 4), b=integers(4))
        executable(x, b=integers(4), w=integers(3, 4))
    assert asked == [("w",), ("w", "b")]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"w": np.zeros((3, 4))}, 1702),
        ({"w": np.zeros((3, 4, 1), np.float32)}, 1704),
        ({"w": np.zeros((3, 5), np.float32)}, 1705),
        ({"w": np.zeros((2, 4), np.float32)}, 1706),
        ({"w": W, "q": W}, 1701),
        ({"two": np.zeros((), np.float32)}, 1701),  # no input
        ({"w": [[object()]]}, 1709),
    ],
)
def test_what_does_not_fit_is_refused(given: Mapping[str, Any], code: int) -> None:
    executable = tilework.compile(affine())
    x = integers(2, 3)
    for _ in range(2):
        with pytest.raises(CallError) as refused:
            executable(x, **given)
        assert refused.value.code == code
    with pytest.raises(CallError) as refused:
        executable(w=W)
    assert (refused.value.code, "x" in refused.value.message) == (1701, True)
    with pytest.raises(CallError) as refused:
        executable(x, W)  # by name alone
    assert refused.value.code == 1701
    np.testing.assert_array_equal(executable(x)[0], expected(x))


def test_shapes_and_axes_that_a_call_gives() -> None:
    """The graph depends on the initialiser, so that each value has its own code."""
    executable = tilework.compile(
        text("g (float[n, 6] x, int64[r] s) => (float[?] y) <int64[2] s = {-1, 3}> { y = Reshape(x, s) }")
    )
    x = integers(2, 6)
    assert executable(x)[0].shape == (4, 3)
    for shape in ((3, 4), (12,), (2, 2, -1)):
        np.testing.assert_array_equal(executable(x, s=np.array(shape))[0], x.reshape(shape))
    assert executable(x)[0].shape == (4, 3)


def test_a_model_that_is_compiled_at_each_call() -> None:
    executable = tilework.compile(
        text(
            "g (float[n] x, int64[r] s, float[1] w) => (float[?] y) <float[1] w = {3}>"
            "{ t = Mul(x, w) y = Reshape(t, s) }"
        )
    )
    assert isinstance(executable, PerShape)
    assert [port.name for port in executable.overridable] == ["w"]
    x, s = integers(6), np.array([2, 3])
    np.testing.assert_array_equal(executable(x, s, w=np.array([5], np.float32))[0], 5 * x.reshape(2, 3))
    assert executable.outputs[0].name == "y"
    np.testing.assert_array_equal(executable(x, s)[0], 3 * x.reshape(2, 3))


def test_strings_and_what_stands_beside_black_boxes() -> None:
    executable = tilework.compile(
        text(
            "g (string[n] x, string[k] t, float[1] w, float[n] f) => (string[?] y, float[?] z)"
            '<string[2] t = {"c", "d"}, float[1] w = {3}> { y = Concat<axis = 0>(x, t) z = Mul(f, w) }'
        )
    )
    assert isinstance(executable, BoxedExecutable)
    assert [str(port.type) for port in executable.overridable] == ['opaque "tensor(string)"', "float32[1]"]
    x, f = np.array(["a", "b"], object), integers(2)
    for given, last, scale in (
        ({}, ["c", "d"], 3),
        ({"t": np.array(["e"], object)}, ["e"], 3),
        ({"w": B[:1]}, ["c", "d"], 1),
    ):
        y, z = executable(x, f, **given)
        assert list(y) == ["a", "b", *last]
        np.testing.assert_array_equal(z, scale * f)


def test_a_model_that_is_not_to_be_compiled_with_it() -> None:
    """The plain one is served all the same."""
    executable = tilework.compile(
        text("g (float[n, 2] x, float[2] s) => (float[?, ?] y) <float[2] s = {1, 2}> { y = Upsample(x, s) }", 9)
    )
    x = integers(1, 2)
    np.testing.assert_array_equal(executable(x)[0], np.repeat(x, 2, 1))
    np.testing.assert_array_equal(executable(x, s=np.array([2, 1], np.float32))[0], np.repeat(x, 2, 0))
    for _ in range(2):
        with pytest.raises(FrontendError):
            executable(x, s=np.array([-1, 1], np.float32))


def test_the_same_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_CACHE", "on")
    monkeypatch.setenv("TILEWORK_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(kept, "are_as_loaded", lambda: True)
    path = tmp_path / "m.onnx"
    path.write_bytes(affine().SerializeToString())
    first = tilework.compile(path, context=Context())
    with monkeypatch.context() as alone:
        alone.setattr(compiled, "compile_model", None)
        second = tilework.compile(path, context=Context())
    assert second.overridable == first.overridable
    x, w = integers(2, 3), integers(3, 4)
    np.testing.assert_array_equal(second(x)[0], expected(x))
    np.testing.assert_array_equal(second(x, w=w)[0], expected(x, w))
    assert isinstance(first, Executable)
    assert isinstance(second, Executable)
    first.save(tmp_path / "a.tilework")
    second.save(tmp_path / "b.tilework")
    assert (tmp_path / "a.tilework").read_bytes() == (tmp_path / "b.tilework").read_bytes()
    packaged = tilework.load(tmp_path / "a.tilework")
    assert packaged.overridable == first.overridable
    np.testing.assert_array_equal(packaged(x)[0], expected(x))
    with pytest.raises(CallError, match="no model to compile") as refused:
        packaged(x, w=w)
    assert refused.value.code == 1701


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_compiles_its_own() -> None:
    executable = tilework.compile(affine())
    x, w = integers(2, 3), integers(3, 4)
    executable(x)
    child = os.fork()
    if not child:
        os._exit(0 if (executable(x, w=w)[0] == expected(x, w)).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_equal_to_onnx_runtime() -> None:
    peer = pytest.importorskip("onnxruntime")
    model = affine()
    session = peer.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    executable = tilework.compile(model)
    assert [port.name for port in executable.overridable] == [v.name for v in session.get_overridable_initializers()]
    x, b = integers(2, 3), integers(4)
    np.testing.assert_array_equal(executable(x, b=b)[0], session.run(None, {"x": x, "b": b})[0])
