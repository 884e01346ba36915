"""Compiled models that are kept: found by what decides them and by nothing else, and the same as when compiled."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilework
from tilework.cache.store import Store
from tilework.compiler import own_sources as own
from tilework.errors import TileworkError
from tilework.frontends.onnx import compiled, kept
from tilework.frontends.onnx.model_files import locations_of
from tilework.machine.cpu import CpuMachine
from tilework.plan.text import plan_text
from tilework.runtime.context import Context
from tilework.runtime.kept_reasons import PER_CALL

rng = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWORK_CACHE", "on")
    monkeypatch.setenv("TILEWORK_CACHE_DIR", str(tmp_path / "kept"))
    # as for an installation: the sources of these tests may just have been written
    monkeypatch.setattr(kept, "are_as_loaded", lambda: True)
    return tmp_path / "kept"


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One for each model that is imported and compiled."""
    found: list[object] = []
    plain = compiled.compile_model

    def counted(source: Any, *rest: Any, **named: Any) -> Any:
        found.append(source)
        return plain(source, *rest, **named)

    monkeypatch.setattr(compiled, "compile_model", counted)
    return found


def proto(
    nodes: list[Any] | None = None, inputs: Mapping[str, tuple[Any, ...]] | None = None, scale: float = 2.0
) -> onnx.ModelProto:
    """y = (x @ w) * scale, the rows free, or other nodes on these constants."""
    held = {"w": np.arange(12, dtype=np.float32).reshape(3, 4), "s": np.array(scale, np.float32)}
    usual = [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Mul", ["t", "s"], ["y"])]
    graph = helper.make_graph(
        nodes or usual, "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (inputs or {"x": ("N", 3)}).items()],
        [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
    )  # fmt: skip
    graph.output[0].ClearField("type")
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(proto().SerializeToString())
    return path


def compile_anew(source: Any, **named: Any) -> tilework.Executable:
    """In a context of its own, as in another process."""
    found = tilework.compile(source, context=Context(), **named)
    assert isinstance(found, tilework.Executable)
    return found


def rows(n: int) -> np.ndarray[Any, Any]:
    return rng.integers(-4, 5, (n, 3)).astype(np.float32)


# -- hits --------------------------------------------------------------------------------------------------------------
def test_a_kept_model_is_what_was_compiled(model: Path, count: list[object], tmp_path: Path) -> None:
    first, second = compile_anew(model), compile_anew(model)
    assert len(count) == 1
    assert (second.inputs, second.outputs) == (first.inputs, first.outputs)
    assert second.explain() == first.explain()
    assert plan_text(second.plan) == plan_text(first.plan)
    assert repr(second) == repr(first)
    for n in (1, 5, 0):
        x = rows(n)
        np.testing.assert_array_equal(first(x)[0], second(x)[0])
    first.save(tmp_path / "a.tilework")
    second.save(tmp_path / "b.tilework")
    assert (tmp_path / "a.tilework").read_bytes() == (tmp_path / "b.tilework").read_bytes()


def test_path_bytes_and_object_of_the_same_model_are_one(model: Path, count: list[object], tmp_path: Path) -> None:
    raw = model.read_bytes()
    other = tmp_path / "elsewhere" / "another name"
    other.parent.mkdir()
    other.write_bytes(raw)
    for source in (model, str(model), other, raw, bytearray(raw), memoryview(raw)):
        compile_anew(source)
    assert len(count) == 1
    loaded = onnx.load_from_string(raw)
    for _ in range(2):
        compile_anew(loaded)
    assert len(count) <= 2  # protobuf may write it in another order


def test_threads_do_not_matter(model: Path, count: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    compile_anew(model)
    monkeypatch.setenv("TILEWORK_NUM_THREADS", "3")
    compile_anew(model)
    assert len(count) == 1


def test_neither_onnx_nor_a_stage_of_compiling_is_needed(model: Path) -> None:
    script = (
        "import sys, numpy as np\n"
        "from tilework import compile\n"
        "from tilework.frontends.onnx import kept\n"
        "kept.are_as_loaded = lambda: True\n"
        f"y, = compile({str(model)!r})(np.ones((2, 3), np.float32))\n"
        "wrong = ('onnx', 'tilework.compiler.compile', 'tilework.lowering')\n"
        "print([name for name in wrong if name in sys.modules], y.tolist())\n"
    )
    found = [subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
             for _ in range(2)]  # fmt: skip
    assert found[0].startswith("['onnx'")
    assert found[1].startswith("[] ")
    assert found[0].partition("] ")[2] == found[1].partition("] ")[2]


def test_further_shapes_compile_as_without_a_cache(tmp_path: Path, count: list[object]) -> None:
    """Two free dimensions that are added are taken to be equal; a call with 1 and n is compiled for itself."""
    path = tmp_path / "add.onnx"
    path.write_bytes(
        proto([helper.make_node("Add", ["x", "z"], ["y"])], {"x": ("N",), "z": ("M",)}).SerializeToString()
    )
    for _ in range(2):
        found = compile_anew(path)
        one, many = np.ones(1, np.float32), np.arange(4, dtype=np.float32)
        np.testing.assert_array_equal(found(one, many)[0], many + 1)
        np.testing.assert_array_equal(found(many, many)[0], 2 * many)
        assert found.variants is not None
        assert len(found.variants.shapes) == 1
        with pytest.raises(TileworkError) as refused:
            found(many, np.ones(3, np.float32))
        assert refused.value.code in (1705, 1706, 1707)
    assert len(count) == 1
    fixed = compile_anew(path, shapes={"x": (4,), "z": (4,)})
    again = compile_anew(path, shapes={"x": (4,), "z": (4,)})
    assert fixed.variants is None
    assert again.variants is None


def test_what_is_compiled_at_each_call_and_what_is_refused_stay_so(tmp_path: Path, count: list[object]) -> None:
    graph = helper.make_graph(
        [helper.make_node("ReduceSum", ["x", "axes"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3]),
         helper.make_tensor_value_info("axes", TensorProto.INT64, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )  # fmt: skip
    graph.output[0].type.tensor_type.ClearField("shape")
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()
    for _ in range(2):
        found = tilework.compile(source, context=Context())
        assert type(found).__name__ == "PerShape"
        x = rows(5)
        for axis in (0, 1, 0):  # what decides is part of the key
            np.testing.assert_array_equal(found(x, np.array([axis]))[0], x.sum(axis, keepdims=True))
    assert len(count) == 1
    wrong = proto([helper.make_node("NoSuchOperator", ["x"], ["y"])]).SerializeToString()
    said: list[str] = []
    for _ in range(2):
        with pytest.raises(TileworkError) as refused:
            compile_anew(wrong)
        said.append(str(refused.value))
    assert said[0] == said[1]
    for source in (b"", b"no model", tmp_path, tmp_path / "none", "", "a\0b"):
        with pytest.raises(TileworkError) as refused:
            compile_anew(source)
        assert refused.value.code in (1101, 1102)


def _of_two_ranks() -> bytes:
    """y = x + 1, or of four rows their sums + 1."""
    text = """<ir_version: 9, opset_import: ["" : 18]>
    g (float[N, 3] x) => (float y) {
        one = Constant <value = int64[1] {1}> ()
        four = Constant <value = int64[1] {4}> ()
        rows = Shape <start = 0, end = 1> (x)
        same = Equal (rows, four)
        scalar = Squeeze (same)
        y0 = If (scalar) <
            then_branch = a () => (t) { t = ReduceSum <keepdims = 0> (x, one) },
            else_branch = b () => (e) { e = Identity (x) }
        >
        step = Constant <value_float = 1.0> ()
        y = Add (y0, step)
    }"""
    model = onnx.parser.parse_model(text)
    model.graph.output[0].ClearField("type")
    return model.SerializeToString()


def test_sizes_and_ranks_that_a_call_decides_are_found_again(
    tmp_path: Path, count: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tilework.runtime.per_shape import PerShape

    path = tmp_path / "ranks.onnx"
    path.write_bytes(_of_two_ranks())
    x = rows(4)
    made: list[object] = []
    plain = compiled.compile_exactly

    def counted(*rest: Any, **named: Any) -> Any:
        made.append(rest)
        return plain(*rest, **named)

    monkeypatch.setattr(compiled, "compile_exactly", counted)
    reasons: list[str] = []
    for n in (1, 2):
        found = tilework.compile(path, context=Context())
        assert isinstance(found, PerShape)
        np.testing.assert_array_equal(found(x)[0], x.sum(1) + 1)
        reasons.append(str(found.reason))
        assert len(made) == 1
        assert len(count) == 1
        assert [str(port.type) for port in found.inputs] == ["float32[N, 3]"]
        path = path.rename(tmp_path / f"{n}.onnx")
    assert reasons[0].replace("ranks.onnx", "1.onnx") == reasons[1]
    found = tilework.compile(path, context=Context())
    np.testing.assert_array_equal(found(x[:2])[0], x[:2] + 1)  # other sizes
    assert len(made) == 2
    monkeypatch.setenv("TILEWORK_CACHE_LIMIT", "40K")  # every entry is a large one
    for _ in range(2):
        found = tilework.compile(path, context=Context())
        np.testing.assert_array_equal(found(x[:3])[0], x[:3] + 1)
    assert len(made) == 4


@pytest.mark.parametrize("told", [b"", b"{}", b'{"inputs": [["x", ["float32", ["N +"]]]]}', b'{"inputs": [["x", 3]]}'])
def test_a_reason_that_cannot_be_read_is_set_aside(place: Path, count: list[object], told: bytes) -> None:
    tilework.compile(_of_two_ranks(), context=Context())
    store = Store(place, 1 << 30)
    (entry,) = [
        entry for entry in map(store.read, [kept.path for kept in store.entries()]) if entry.key.kind == PER_CALL
    ]
    store.put(entry.key, {"why": told})
    count.clear()
    for _ in range(2):
        x = rows(4)
        np.testing.assert_array_equal(tilework.compile(_of_two_ranks(), context=Context())(x)[0], x.sum(1) + 1)
    assert len(count) == 1
    assert store.set_aside == 1


def test_black_boxes_are_compiled_each_time(count: list[object]) -> None:
    graph = helper.make_graph(
        [helper.make_node("StringNormalizer", ["s"], ["t"], case_change_action="UPPER")], "g",
        [helper.make_tensor_value_info("s", TensorProto.STRING, ["N"])],
        [helper.make_tensor_value_info("t", TensorProto.STRING, ["N"])],
    )  # fmt: skip
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()
    for _ in range(2):
        assert compile_anew(source)(np.array(["a"], object))[0].tolist() == ["A"]
    assert len(count) == 2


def test_sizes_that_the_call_measures(count: list[object]) -> None:
    source = proto([helper.make_node("NonZero", ["x"], ["y"])]).SerializeToString()
    x = np.array([[0, 1, 2], [0, 0, -9]], np.float32)
    found = [compile_anew(source)(x)[0] for _ in range(2)]
    assert len(count) == 1
    np.testing.assert_array_equal(*found)


# -- misses: one part of the key is another ----------------------------------------------------------------------------
def _weights(model: Path, patch: pytest.MonkeyPatch) -> None:
    del patch
    model.write_bytes(proto(scale=3.0).SerializeToString())


def _machine(model: Path, patch: pytest.MonkeyPatch, **facts: object) -> None:
    del model
    plain = kept.machine_named

    def other(name: str) -> CpuMachine:
        from dataclasses import replace

        return replace(plain(name), **facts)

    patch.setattr(kept, "machine_named", other)


CHANGES: dict[str, Callable[[Path, pytest.MonkeyPatch], Any]] = {
    "model": _weights,
    "machine features": lambda model, patch: _machine(model, patch, features="+sse2"),
    "machine cpu": lambda model, patch: _machine(model, patch, cpu="another"),
    "machine triple": lambda model, patch: _machine(model, patch, triple="x86_64-unknown-other"),
    "machine caches": lambda model, patch: _machine(model, patch, caches=()),
    "machine vector_registers": lambda model, patch: _machine(model, patch, vector_registers=8),
    "tilework": lambda _, patch: patch.setattr("tilework.compiler.model_key.__version__", "9"),
    "sources": lambda _, patch: patch.setattr("tilework.compiler.model_key.own_sources", lambda: "others"),
    "llvmlite": lambda _, patch: patch.setattr("llvmlite.__version__", "9"),
    "numpy": lambda _, patch: patch.setattr("numpy.__version__", "9"),
    "onnx": lambda _, patch: patch.setattr(kept, "onnx_version", lambda: "9"),
    "python": lambda _, patch: patch.setattr(sys, "version_info", (3, 99, 0)),
    "layout": lambda _, patch: patch.setattr("tilework.compiler.model_key.LAYOUT", "9"),
}


@pytest.mark.parametrize("part", CHANGES)
def test_another_part_of_the_key_is_another_entry(
    part: str, model: Path, count: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_anew(model)
    keys = _keys()
    with monkeypatch.context() as patch:
        CHANGES[part](model, patch)
        compile_anew(model)
        assert len(count) == 2
    (new,) = set(_keys()) - set(keys)
    (old,) = keys
    assert [name for name, *_ in new.differences(old)] == [part]


@pytest.mark.parametrize(
    ("named", "parts"),
    [
        ({"numerics": "strict"}, ["numerics"]), ({"checked": True}, ["checked"]),
        ({"memory_limit": 1 << 20}, ["memory_limit"]), ({"shapes": {"x": (2, 3)}}, ["shapes"]),
        ({"shapes": {"x": (-1, 3)}}, ["shapes"]),
    ],
)  # fmt: skip
def test_another_option_is_another_entry(
    named: dict[str, Any], parts: list[str], model: Path, count: list[object]
) -> None:
    compile_anew(model)
    (old,) = _keys()
    for _ in range(2):
        compile_anew(model, **named)
    assert len(count) == 2
    (new,) = set(_keys()) - {old}
    assert [name for name, *_ in new.differences(old)] == parts


def test_another_machine_is_another_entry(model: Path, count: list[object]) -> None:
    compile_anew(model)
    for _ in range(2):
        assert compile_anew(model, machine="x86-64-v3").explain().machine == "x86-64-v3"
    assert len(count) == 2


def test_code_that_this_processor_cannot_run_is_refused_though_it_is_kept(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_anew(model, machine="x86-64-v3")

    def never(target: CpuMachine) -> None:
        raise tilework.TileworkError(1764, f"{target.name} not here")

    monkeypatch.setattr("tilework.runtime.kept_models.check_runs_here", never)
    with pytest.raises(TileworkError) as refused:
        compile_anew(model, machine="x86-64-v3")
    assert refused.value.code == 1764


def _keys() -> list[Any]:
    store = Context().objects
    assert store is not None
    found = [store.store.read(one.path).key for one in store.store.entries()]
    return [key for key in found if key.kind == "model"]


# -- data in files of their own ----------------------------------------------------------------------------------------
@pytest.fixture
def outside(tmp_path: Path) -> tuple[Path, Path]:
    """A model whose weights lie in a file of its folder, and the file."""
    folder = tmp_path / "with data"
    folder.mkdir()
    held = proto()
    onnx.save_model(held, folder / "m.onnx", save_as_external_data=True, location="weights", size_threshold=0)  # pyright: ignore[reportUnknownMemberType]
    return folder / "m.onnx", folder / "weights"


def test_data_files_are_part_of_the_key(outside: tuple[Path, Path], count: list[object]) -> None:
    model, weights = outside
    x = rows(4)
    first = compile_anew(model)(x)[0]
    np.testing.assert_array_equal(compile_anew(model)(x)[0], first)
    assert len(count) == 1
    raw = bytearray(weights.read_bytes())
    raw[4:8] = np.float32(70).tobytes()  # what was 1
    weights.write_bytes(raw)
    other = compile_anew(model)(x)[0]
    assert len(count) == 2
    assert not np.array_equal(other, first)
    weights.unlink()
    with pytest.raises(TileworkError) as refused:
        compile_anew(model)
    assert refused.value.code == 1111


def test_data_files_outside_of_the_folder_are_not_looked_at(outside: tuple[Path, Path], tmp_path: Path) -> None:
    model, weights = outside
    compile_anew(model)
    weights.rename(tmp_path / "elsewhere")
    weights.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TileworkError) as refused:
        compile_anew(model)
    assert refused.value.code == 1110


def test_every_data_file_is_found() -> None:
    def lies_in(name: str) -> TensorProto:
        tensor = TensorProto(name=name, data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value=f"file of {name}")
        return tensor

    model = proto()
    inner = helper.make_graph([], "inner", [], [], [lies_in("inner")])
    model.graph.initializer.append(lies_in("initializer"))
    model.graph.sparse_initializer.add(values=lies_in("values"), indices=lies_in("indices"))
    model.graph.node.append(helper.make_node("Constant", [], ["c"], value=lies_in("attribute")))
    model.graph.node.append(helper.make_node("If", ["c"], ["d"], then_branch=inner))
    model.graph.node.append(helper.make_node("Odd", [], ["e"], tensors=[lies_in("list")], graphs=[inner]))
    node = model.graph.node.add(op_type="Constant")
    node.attribute.add(name="sparse_value").sparse_tensor.values.CopyFrom(lies_in("sparse"))
    model.functions.add().node.append(helper.make_node("Constant", [], ["c"], value=lies_in("function")))
    names = ("inner", "initializer", "values", "indices", "attribute", "list", "sparse", "function")
    assert locations_of(model) == tuple(sorted(f"file of {name}" for name in names))


@pytest.mark.parametrize("which", [0, 1])
def test_a_file_that_changes_while_it_is_compiled_is_not_kept(
    which: int, outside: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = compiled.compile_graph

    def meanwhile(*given: Any) -> Any:
        os.utime(outside[which], ns=(1, 1))
        return plain(*given)

    monkeypatch.setattr(compiled, "compile_graph", meanwhile)
    compile_anew(outside[0])
    assert _keys() == []


def test_sources_that_changed_keep_nothing(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "are_as_loaded", own.are_as_loaded)
    with monkeypatch.context() as patch:
        patch.setattr(own, "_BEGAN", 0.0)
        compile_anew(model)
        assert _keys() == []
    monkeypatch.setattr(own, "_BEGAN", 2.0**33)
    compile_anew(model)
    assert len(_keys()) == 1


def test_the_digest_of_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "tilework"
    (package / "inner").mkdir(parents=True)
    (package / "a.py").write_text("a")
    (package / "inner" / "b.py").write_text("b")
    monkeypatch.setattr(own, "_PACKAGE", package)
    found: list[str] = []

    def look() -> None:
        own.own_sources.cache_clear()
        found.append(own.own_sources())

    look()
    os.utime(package / "a.py", (1, 1))
    (package / "notes.txt").write_text("no source")
    look()
    assert found[0] == found[1]
    (package / "inner" / "b.py").write_text("c")
    look()
    (package / "inner" / "b.py").rename(package / "inner" / "c.py")
    look()
    record = tmp_path / f"tilework-{tilework.__version__}.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("all of it")
    look()
    (package / "a.py").write_text("its digest is in the record")
    look()
    own.own_sources.cache_clear()
    assert len(set(found)) == 4
    assert found[-1] == found[-2]


# -- what goes wrong ---------------------------------------------------------------------------------------------------
def _file_of_the_model() -> Path:
    store = Context().objects
    assert store is not None
    return store.store.path(_keys()[0])


def test_a_damaged_entry_is_a_miss_and_set_aside(model: Path, count: list[object], place: Path) -> None:
    x = rows(3)
    first = compile_anew(model)(x)[0]
    path = _file_of_the_model()
    raw = path.read_bytes()
    for at in map(int, rng.choice(len(raw), 12, replace=False)):
        other = bytearray(raw)
        other[at] ^= 16
        path.write_bytes(other)
        np.testing.assert_array_equal(compile_anew(model)(x)[0], first)
    assert len(count) == 13
    assert list((place / "bad").glob("*.why"))


@pytest.mark.parametrize("section", ["head", "plan", "object 0", "model"])
def test_parts_that_do_not_fit_together_are_set_aside(
    section: str, model: Path, count: list[object], place: Path
) -> None:
    from tilework.cache.entry import Entry, decoded

    x = rows(3)
    first = compile_anew(model)(x)[0]
    path = _file_of_the_model()
    entry = decoded(path.read_bytes())
    path.write_bytes(Entry(entry.key, {**entry.sections, section: b"[]"}).encoded())
    np.testing.assert_array_equal(compile_anew(model)(x)[0], first)
    assert len(count) == 2
    assert "do not fit" in next((place / "bad").glob("*.why")).read_text() or section == "object 0"


def test_without_a_cache_with_a_full_disk_and_in_a_folder_that_cannot_be_written(
    model: Path, count: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = rows(3)
    with monkeypatch.context() as patch:
        patch.setenv("TILEWORK_CACHE", "off")
        first = compile_anew(model)(x)[0]
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", _full)
        np.testing.assert_array_equal(compile_anew(model)(x)[0], first)
        assert _keys() == []
    compile_anew(model)
    assert len(count) == 3
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", _no)
        np.testing.assert_array_equal(compile_anew(model)(x)[0], first)
        assert len(count) == 3
        compile_anew(model, numerics="strict")
        compile_anew(model, numerics="strict")
    assert len(count) == 5


def _no(path: Path, mode: int) -> bool:
    del path, mode
    return False


def _full(descriptor: int) -> None:
    del descriptor
    raise OSError(28, "No space left on device")


def test_a_model_that_is_too_large_is_told(model: Path, count: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_CACHE_LIMIT", "8K")
    for _ in range(2):
        found = compile_anew(model).explain()
        assert [notice.identifier for notice in found.notices] == ["cache-too-large"]
        assert "TILEWORK_CACHE_LIMIT" in str(found)
    assert len(count) == 2


def test_weights_of_a_removed_entry_can_still_be_used(model: Path) -> None:
    x = rows(3)
    first = compile_anew(model)(x)[0]
    second = compile_anew(model)
    _file_of_the_model().unlink()
    np.testing.assert_array_equal(second(x)[0], first)


# -- several at once ---------------------------------------------------------------------------------------------------
def test_threads_compile_a_model_once(model: Path, count: list[object]) -> None:
    x = rows(2)
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(compile_anew(model)(x)[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(count) == 1
    for result in results:
        np.testing.assert_array_equal(result, results[0])


def test_processes_compile_a_model_once(model: Path) -> None:
    script = (
        "import numpy as np, tilework\n"
        "from tilework.frontends.onnx import compiled, kept\n"
        "kept.are_as_loaded = lambda: True\n"
        "plain = compiled.compile_model\n"
        "def told(*given, **named):\n"
        "    print('compiled')\n"
        "    return plain(*given, **named)\n"
        "compiled.compile_model = told\n"
        f"print(tilework.compile({str(model)!r})(np.ones((2, 3), np.float32))[0].tolist())\n"
    )
    begun = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=120)[0].splitlines() for process in begun]
    assert all(process.returncode == 0 for process in begun)
    assert sum("compiled" in lines for lines in said) == 1
    assert len({lines[-1] for lines in said}) == 1


def test_the_version_of_onnx_without_importing_it() -> None:
    script = (
        "import sys\nfrom tilework.frontends.onnx.installed import onnx_version\n"
        "print(onnx_version(), 'onnx' in sys.modules)\n"
        "sys.path.clear()\nprint(repr(onnx_version()))\n"
        "sys.modules['onnx'] = None\nprint(repr(onnx_version()))\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert said == [onnx.__version__, "False", "''", "''"]
