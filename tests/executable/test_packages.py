"""`.tilework` files: what is saved runs again as it did, elsewhere, and nothing else is loaded."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilework
from tilework.cache.entry import Entry, decoded
from tilework.cache.keys import Key, key_of
from tilework.errors import TileworkError
from tilework.plan.text import plan_text

rng = np.random.default_rng(0)


def model(nodes: list[Any], inputs: dict[str, tuple[Any, ...]], outputs: list[str], held: dict[str, Any]) -> bytes:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    for output in graph.output:
        output.ClearField("type")
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()


def mlp() -> tuple[bytes, list[Any]]:
    """Two layers with a free batch."""
    held = {
        "w": rng.standard_normal((7, 33)).astype(np.float32), "b": rng.standard_normal(33).astype(np.float32),
        "v": rng.standard_normal((33, 5)).astype(np.float32),
    }  # fmt: skip
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["y"]), helper.make_node("Softmax", ["y"], ["z"], axis=1),
    ]  # fmt: skip
    return model(nodes, {"x": ("N", 7)}, ["z", "y"], held), [rng.standard_normal((n, 7), np.float32) for n in (1, 6)]


def measured() -> tuple[bytes, list[Any]]:
    """A size that the call measures, and an `If`."""
    then = helper.make_graph(
        [helper.make_node("Exp", ["x"], ["t"])], "t", [], [helper.make_empty_tensor_value_info("t")]
    )
    other = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["o"])], "o", [], [helper.make_empty_tensor_value_info("o")]
    )
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    held = {"zero": np.float32(0)}
    arrays = [np.array([[0, 1, 2], [0, 0, -9]], np.float32), np.array([[3, 0, 0, 1]], np.float32)]
    return model(nodes, {"x": ("N", "M")}, ["places", "y"], held), arrays


@pytest.fixture
def packaged(tmp_path: Path) -> Callable[[bytes], Path]:
    def save(source: bytes) -> Path:
        tilework.compile(source).save(tmp_path / "m.tilework")  # type: ignore[union-attr]
        return tmp_path / "m.tilework"

    return save


def code(call: Callable[[], object]) -> int:
    with pytest.raises(TileworkError) as caught:
        call()
    assert caught.value.hint
    return caught.value.code


@pytest.mark.parametrize("make", [mlp, measured])
def test_what_is_loaded_does_what_was_saved(make: Callable[[], tuple[bytes, list[Any]]], tmp_path: Path) -> None:
    source, arrays = make()
    first = tilework.compile(source)
    assert isinstance(first, tilework.Executable)
    first.save(tmp_path / "m.tilework")
    second = tilework.load(tmp_path / "m.tilework")
    assert (second.inputs, second.outputs) == (first.inputs, first.outputs)
    for array in (*arrays, *arrays):
        for one, other in zip(first(array), second(array), strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
    assert second.explain() == first.explain()
    # and again, from what was loaded
    second.save(tmp_path / "again.tilework")
    assert (tmp_path / "again.tilework").read_bytes() == (tmp_path / "m.tilework").read_bytes()


def test_steps_can_be_timed(packaged: Callable[[bytes], Path]) -> None:
    source, (array, *_) = mlp()
    outputs, times = tilework.load(packaged(source)).step_times(array)
    assert len(times) > 1
    np.testing.assert_array_equal(outputs[0], tilework.load(packaged(source))(array)[0])


def test_neither_onnx_nor_the_compiler_is_imported(packaged: Callable[[bytes], Path]) -> None:
    source, (array, *_) = mlp()
    path = packaged(source)
    script = (
        "import sys, numpy as np, tilework\n"
        f"tilework.load({str(path)!r})(np.ones({array.shape}, np.float32))\n"
        "wrong = ('onnx', 'tilework.compiler', 'tilework.frontends', 'tilework.passes', 'tilework.recipes')\n"
        "print([name for name in wrong if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_neither_loading_nor_calling_reads_steps(
    packaged: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(text: str) -> Any:
        raise AssertionError(text)

    source, arrays = mlp()
    path = packaged(source)
    with monkeypatch.context() as patch:
        patch.setattr("tilework.plan.written.parse_plan", never)
        loaded = tilework.load(path)
        for array in arrays:
            loaded(array)
        assert loaded.explain().regions
    assert plan_text(loaded.plan) == loaded.plan.text  # type: ignore[attr-defined]
    assert len(loaded.plan.segments[0].steps) > 1


def test_sizes_that_the_plan_does_not_allow_are_refused(packaged: Callable[[bytes], Path]) -> None:
    source, _ = mlp()
    loaded = tilework.load(packaged(source))
    assert code(lambda: loaded(np.ones((2, 8), np.float32))) in (1705, 1706, 1707)


# -- files that are not loaded -----------------------------------------------------------------------------------------
def test_every_damage_is_seen(packaged: Callable[[bytes], Path]) -> None:
    path = packaged(mlp()[0])
    raw = path.read_bytes()
    places = np.random.default_rng(3).choice(len(raw), 300, replace=False)
    for at in (0, 8, 12, 16, len(raw) - 1, *map(int, places)):
        other = bytearray(raw)
        other[at] ^= 1 << (at % 8)
        path.write_bytes(other)
        assert code(lambda: tilework.load(path)) == 1903
    for size in (0, 10, len(raw) // 2, len(raw) - 1):
        path.write_bytes(raw[:size])
        assert code(lambda: tilework.load(path)) == 1903


def test_what_is_no_package(tmp_path: Path) -> None:
    path = tmp_path / "m.tilework"
    assert code(lambda: tilework.load(path)) == 1903
    assert code(lambda: tilework.load(tmp_path)) == 1903
    os.mkfifo(path)
    assert code(lambda: tilework.load(path)) == 1903
    path.unlink()
    path.write_bytes(onnx.ModelProto().SerializeToString() or b"x")
    assert code(lambda: tilework.load(path)) == 1903
    path.write_bytes(Entry(key_of("object", {}), {"object": b"x"}).encoded())
    assert code(lambda: tilework.load(path)) == 1903
    assert code(lambda: tilework.load(7)) == 1002  # type: ignore[arg-type]
    assert code(lambda: tilework.load(path, context=7)) == 1002  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write(packaged: Callable[[bytes], Path], mode: int) -> None:
    path = packaged(mlp()[0])
    assert path.stat().st_mode & 0o077 == 0
    path.chmod(mode)
    assert code(lambda: tilework.load(path)) == 1904


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user(packaged: Callable[[bytes], Path]) -> None:
    path = packaged(mlp()[0])
    os.chown(path, 12345, 12345)
    assert code(lambda: tilework.load(path)) == 1904


@pytest.mark.parametrize(
    ("part", "text", "expected"),
    [("tilework", "0.0.0", 1903), ("layout", "0", 1903), ("features", "sse2,avx99", 1764),
     ("triple", "aarch64-unknown-linux-gnu", 1764)],
)  # fmt: skip
def test_another_version_or_processor(packaged: Callable[[bytes], Path], part: str, text: str, expected: int) -> None:
    path = packaged(mlp()[0])
    found = decoded(path.read_bytes())
    parts = {**dict(found.key.parts), part: text}
    path.write_bytes(Entry(Key(found.key.kind, tuple(sorted(parts.items()))), found.sections).encoded())
    assert code(lambda: tilework.load(path)) == expected


@pytest.mark.parametrize("name", ["head", "plan", "object 0"])
@pytest.mark.parametrize("content", [None, b"", b"{}", b"[]", b"plan p"])
def test_parts_that_do_not_fit(packaged: Callable[[bytes], Path], name: str, content: bytes | None) -> None:
    path = packaged(mlp()[0])
    found = decoded(path.read_bytes())
    sections = {n: bytes(c) for n, c in found.sections.items() if n != name}
    if content is not None:
        sections[name] = content
    path.write_bytes(Entry(found.key, sections).encoded())
    assert code(lambda: tilework.load(path)) in (1903, 1419, 1651, 1683)


def test_empty_constants_and_no_inputs(packaged: Callable[[bytes], Path]) -> None:
    held = {"c": np.ones((0, 3), np.float32), "d": np.full((2, 3), 7, np.float32)}
    source = model([helper.make_node("Concat", ["c", "d", "c"], ["y"], axis=0)], {}, ["y"], held)
    np.testing.assert_array_equal(tilework.load(packaged(source))()[0], held["d"])
    source = model([helper.make_node("Concat", ["c", "x"], ["y"], axis=0)], {"x": ("N", 3)}, ["y"], held)
    np.testing.assert_array_equal(tilework.load(packaged(source))(held["d"])[0], held["d"])


def test_a_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tilework.compile(mlp()[0])
    assert isinstance(found, tilework.Executable)
    assert code(lambda: found.save(tmp_path / "none" / "m.tilework")) == 1901

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert code(lambda: found.save(tmp_path / "m.tilework")) == 1901
    assert list(tmp_path.iterdir()) == []


def test_devices_are_written_to_and_links_stay(tmp_path: Path) -> None:
    source, (x, _) = mlp()
    found = tilework.compile(source)
    assert isinstance(found, tilework.Executable)
    device = Path(os.devnull).stat().st_rdev
    found.save(os.devnull)
    assert Path(os.devnull).stat().st_rdev == device
    (tmp_path / "link").symlink_to("file")
    found.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    np.testing.assert_array_equal(tilework.load(tmp_path / "file")(x)[0], found(x)[0])
    assert code(lambda: found.save(tmp_path)) == 1901


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("StringNormalizer", ["s"], ["t"])], "g",
        [helper.make_tensor_value_info("s", TensorProto.STRING, ["N"])],
        [helper.make_tensor_value_info("t", TensorProto.STRING, ["N"])],
    )  # fmt: skip
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()
    found = tilework.compile(source)
    assert code(lambda: found.save(tmp_path / "m.tilework")) == 1905  # type: ignore[union-attr]


def test_two_copies_have_the_same_bytes(packaged: Callable[[bytes], Path], tmp_path: Path) -> None:
    """But for the times of the stages, a package depends on the model alone."""
    source, _ = mlp()
    digests: set[str] = set()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        path = packaged(source).rename(tmp_path / name / "m.tilework")
        sections = dict(decoded(path.read_bytes()).sections)
        del sections["explanation"]
        digests.add(hashlib.sha256(b"".join(bytes(content) for content in sections.values())).hexdigest())
    assert len(digests) == 1


@pytest.mark.parametrize("path", [None, 3, b"m.tilework", "a\0b", "a\ud800"])
def test_what_is_no_path(path: Any) -> None:
    found = tilework.compile(mlp()[0])
    assert code(lambda: found.save(path)) == 1002
    assert code(lambda: tilework.load(path)) == 1002


def test_what_is_compiled_for_each_call_cannot_be_saved(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("ReduceSum", ["x", "axes"], ["y"])], "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3]),
            helper.make_tensor_value_info("axes", TensorProto.INT64, [1]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )  # fmt: skip
    graph.output[0].type.tensor_type.ClearField("shape")
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()
    found = tilework.compile(source)
    assert type(found).__name__ == "PerShape"
    assert code(lambda: found.save(tmp_path / "m.tilework")) == 1905


@pytest.mark.parametrize("part", ["features", "machine", "triple", "layout", "tilework"])
def test_a_whole_package_of_another_writer(packaged: Callable[[bytes], Path], part: str) -> None:
    path = packaged(mlp()[0])
    entry = decoded(path.read_bytes())
    parts = tuple(pair for pair in entry.key.parts if pair[0] != part)
    path.write_bytes(Entry(Key(entry.key.kind, parts), entry.sections).encoded())
    assert code(lambda: tilework.load(path)) == 1903
