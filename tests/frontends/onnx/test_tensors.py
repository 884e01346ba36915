"""Stored tensors: every element type, both ways of storing, and data beside the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, TensorProto, external_data_helper, helper, numpy_helper

from tests.frontends.onnx.models import codes_of, faults_of, model, run
from tilework.frontends.onnx import external
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.importer import import_model
from tilework.frontends.onnx.tensors import ELEMENT_TYPES, to_array
from tilework.layout import ALIGNMENT

KINDS = list(ELEMENT_TYPES.items())


def values(number: int, dtype: Any) -> Any:
    random = np.random.default_rng(number)
    found = random.integers(0 if dtype.kind in ("unsigned", "boolean") else -4, 5, (3, 5))
    return found.astype(dtype.numpy)


@pytest.mark.parametrize(("number", "dtype"), KINDS, ids=[dtype.name for _, dtype in KINDS])
def test_every_type_stored_raw(number: int, dtype: Any) -> None:
    wanted = values(number, dtype)
    found = to_array(numpy_helper.from_array(wanted, "t"), None)
    assert found.dtype == dtype.numpy
    np.testing.assert_array_equal(found.astype(np.complex128), wanted.astype(np.complex128))


@pytest.mark.parametrize(("number", "dtype"), KINDS, ids=[dtype.name for _, dtype in KINDS])
def test_every_type_stored_as_numbers(number: int, dtype: Any) -> None:
    wanted = values(number, dtype)
    numbers = wanted.astype(np.complex64 if dtype.kind == "complex" else np.float64).reshape(-1).tolist()
    tensor = helper.make_tensor("t", number, wanted.shape, numbers)
    assert not tensor.HasField("raw_data")
    found = to_array(tensor, None)
    assert found.dtype == dtype.numpy
    np.testing.assert_array_equal(found.astype(np.complex128), wanted.astype(np.complex128))


def test_nan_and_infinity_of_small_floats_survive() -> None:
    wanted = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-40]).astype(ml_dtypes.bfloat16)
    found = to_array(numpy_helper.from_array(wanted, "t"), None)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    ("field", "content", "code"),
    [
        ("dims", [2, 3, 2], 1109), ("dims", [2, -3], 1109), ("dims", [2**40, 2**40], 1124), ("raw_data", b"abc", 1109),
        ("raw_data", b"", 1109), ("data_type", TensorProto.STRING, 1115), ("data_type", 0, 1115),
        ("data_type", 99, 1115), ("raw_data", None, 1109), ("segment", None, 1109),
    ],
)  # fmt: skip
def test_data_that_do_not_fit(field: str, content: Any, code: int) -> None:
    tensor = numpy_helper.from_array(np.ones((2, 3), np.float32), "t")
    if field == "segment":
        tensor.segment.begin = 1
    elif content is None:
        tensor.ClearField("raw_data")
    elif field == "dims":
        del tensor.dims[:]
        tensor.dims.extend(content)
    else:
        setattr(tensor, field, content)
    with pytest.raises(NodeFault) as caught:
        to_array(tensor, None)
    assert caught.value.code == code


@pytest.fixture
def beside(tmp_path: Path) -> tuple[ModelProto, Path]:
    """A model whose weight lies in the file `w.bin` of its folder."""
    weight = np.arange(12, dtype=np.float32).reshape(3, 4)
    proto = model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (np.float32, ["n", 3])}, ["y"], {"w": weight})
    (tmp_path / "w.bin").write_bytes(b"\0" * 16 + weight.tobytes())
    external_data_helper.set_external_data(proto.graph.initializer[0], "w.bin", 16, weight.nbytes)
    proto.graph.initializer[0].ClearField("raw_data")
    return proto, tmp_path


def saved(proto: ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def test_data_in_the_models_folder(beside: tuple[ModelProto, Path]) -> None:
    proto, folder = beside
    x = np.eye(3, dtype=np.float32)
    (got,) = run(import_model(saved(proto, folder)), {"x": x})
    np.testing.assert_array_equal(got, np.arange(12).reshape(3, 4))


def test_data_without_a_folder_are_refused(beside: tuple[ModelProto, Path]) -> None:
    proto, _ = beside
    assert codes_of(proto) == {1110}
    assert codes_of(proto.SerializeToString()) == {1110}


@pytest.mark.parametrize("location", ["../w.bin", "/etc/hostname", "sub/../../w.bin", "link.bin"])
def test_nothing_outside_the_folder_is_opened(beside: tuple[ModelProto, Path], location: str) -> None:
    proto, folder = beside
    inner = folder / "inner"
    inner.mkdir()
    (inner / "sub").mkdir()
    (inner / "link.bin").symlink_to(folder / "w.bin")
    proto.graph.initializer[0].external_data[0].value = location
    ((code, text),) = faults_of(saved(proto, inner))
    assert code == 1110
    assert "initialiser w" in text


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("location", "gone.bin"), ("location", ""), ("location", "a\0b"), ("offset", "20"), ("offset", "-4"),
        ("offset", "x"), ("length", "4"), ("length", "99999999999999"), ("offset", "9" * 30), ("location", "sub"),
    ],
)  # fmt: skip
def test_damaged_descriptions_of_data(beside: tuple[ModelProto, Path], key: str, text: str) -> None:
    proto, folder = beside
    (folder / "sub").mkdir()
    for entry in proto.graph.initializer[0].external_data:
        if entry.key == key:
            entry.value = text
    assert codes_of(saved(proto, folder)) == {1111}


def test_links_without_an_end(beside: tuple[ModelProto, Path]) -> None:
    proto, folder = beside
    (folder / "loop.bin").symlink_to("loop.bin")
    proto.graph.initializer[0].external_data[0].value = "loop.bin"
    assert codes_of(saved(proto, folder)) == {1111}


def test_a_folder_of_links_as_caches_of_downloads_have_them(beside: tuple[ModelProto, Path]) -> None:
    proto, folder = beside
    store, links = folder / "store", folder / "links" / "snapshot"
    store.mkdir()
    links.mkdir(parents=True)
    saved(proto, folder).rename(store / "1234")
    (folder / "w.bin").rename(store / "5678")
    (links / "model.onnx").symlink_to("../../store/1234")
    (links / "w.bin").symlink_to("../../store/5678")
    x = np.eye(3, dtype=np.float32)
    (got,) = run(import_model(links / "model.onnx"), {"x": x})
    np.testing.assert_array_equal(got, np.arange(12).reshape(3, 4))
    (folder / "elsewhere.bin").write_bytes(bytes(64))
    (links / "w.bin").unlink()
    (links / "w.bin").symlink_to("../../elsewhere.bin")
    assert codes_of(links / "model.onnx") == {1110}


@pytest.mark.parametrize("offset", [0, 16, 4096])
def test_large_data_are_mapped(tmp_path: Path, offset: int) -> None:
    """Where they are aligned; else they are read once, to where code can use them."""
    rows = external.MAPPED_BYTES // 4096
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(offset + rows * 4096)
        file.seek(offset + 4 * 1025)
        file.write(np.float32(7).tobytes())
    tensor = TensorProto(name="w", data_type=1, dims=[rows, 1024], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "w.bin"), ("offset", str(offset))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    found = to_array(tensor, external.DataFolder.of(tmp_path / "model.onnx"))
    assert found.ctypes.data % ALIGNMENT == 0
    assert not found.flags.writeable
    assert found[1, 1] == 7
    assert np.count_nonzero(found) == 1
    held: Any = found
    while not isinstance(held, np.memmap) and isinstance(held, np.ndarray):
        held = cast("Any", held).base
    assert isinstance(held, np.memmap) == (offset % ALIGNMENT == 0)


def test_a_file_longer_than_a_message_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.truncate(2**40)
    assert codes_of(path) == {1102}
