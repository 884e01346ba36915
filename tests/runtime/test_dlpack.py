"""Tensors of other libraries as arguments, and outputs for them, over the same memory."""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import pytest

from tests.executable.building import F32, N
from tilework import dtypes
from tilework.compiler.compile import compile_graph
from tilework.dtypes import DType
from tilework.errors import CallError
from tilework.graph.graph import GraphSignature, InputPolicy, OutputPolicy
from tilework.ops.builder import GraphBuilder
from tilework.runtime.dlpack import array_of
from tilework.runtime.executable import Executable
from tilework.runtime.memory import RECYCLE_FROM

Array = np.ndarray[Any, np.dtype[Any]]


def adding(dtype: DType = F32) -> Executable:
    builder = GraphBuilder("g", [N])
    x = builder.input("x", dtype, "N", 4)
    return compile_graph(builder.build([builder.apply_one("add", x, x, names="y")]))


@pytest.fixture(scope="module")
def f() -> Executable:
    return adding()


class Tensor:
    """A tensor of another library: it has DLPack's methods and nothing else of numpy's."""

    def __init__(self, array: Array, device: int = 1, versioned: bool = True) -> None:
        self.array, self.device, self.versioned = array, device, versioned
        self.dtype, self.shape = "its own", array.shape

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **options: Any) -> Any:
        if self.device != 1:
            raise BufferError("numpy has asked, and it is not here")
        if not self.versioned:
            if "max_version" in options:
                raise TypeError("no such option")
            return self.array.__dlpack__()
        return self.array.__dlpack__(max_version=(1, 1))


# -- a capsule as another library makes it, of types that numpy does not export ----------------------------------------
class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("owner", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_NAME = b"dltensor_versioned"


class Exporter:
    """Gives 2-byte elements away as bfloat16, or as what `code` says, and counts what was given back."""

    alive: ClassVar[list[Exporter]] = []  # whoever holds a capsule calls it back, whatever was collected before

    def __init__(
        self, array: Array, *, code: int = 4, bits: int = 16, lanes: int = 1, flags: int = 0, major: int = 1,
        strides: bool = True, offset: int = 0,
    ) -> None:  # fmt: skip
        self.array, self.dtype, self.shape = array, "bfloat16", array.shape
        self.returned = 0
        self.alive.append(self)
        rank, item = array.ndim, array.itemsize
        self._shape = (ctypes.c_int64 * rank)(*array.shape)
        self._strides = (ctypes.c_int64 * rank)(*(stride // item for stride in array.strides))
        self._deleter = _Deleter(self._back)
        self._managed = _Versioned(
            major, 1, None, ctypes.cast(self._deleter, ctypes.c_void_p), flags, array.ctypes.data - offset, 1, 0, rank,
            code, bits, lanes, ctypes.addressof(self._shape), ctypes.addressof(self._strides) if strides else None,
            offset,
        )  # fmt: skip

    def _back(self, address: int | None) -> None:
        assert address == ctypes.addressof(self._managed)
        self.returned += 1

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **options: Any) -> Any:
        del options
        return _capsule(ctypes.addressof(self._managed), _NAME, None)


def bf16(rows: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-40, 40, (rows, 4)).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("rows", [0, 1, 17, 1000])
def test_tensors_are_taken_over_their_own_memory(f: Executable, rows: int, versioned: bool) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)
    before = dict(f.copies)
    tensor = Tensor(x, versioned=versioned)
    for (found,) in (f(tensor), f(x=tensor), f.run_async(tensor).result(60)):
        np.testing.assert_array_equal(found, x + x)
    assert f.copies == before  # neither converted nor copied
    shown = array_of("x", Tensor(x, versioned=versioned))
    assert shown is not None
    assert rows == 0 or shown.ctypes.data == x.ctypes.data


def test_read_only_tensors(f: Executable) -> None:
    x = np.ones((3, 4), np.float32)
    x.flags.writeable = False
    np.testing.assert_array_equal(f(Tensor(x))[0], x + x)


def test_strided_tensors_are_copied_and_counted() -> None:
    f = adding()
    wide = np.arange(80, dtype=np.float32).reshape(10, 8)
    for x in (wide[:, ::2], wide[::2, :4], wide[::-1, 3::-1]):
        np.testing.assert_array_equal(f(Tensor(x))[0], x + x)
    assert f.copies == {("x", "copied: not contiguous"): 3}
    np.testing.assert_array_equal(f(Tensor(wide[:1, :4]))[0], wide[:1, :4] * 2)  # strides of one row say nothing
    assert f.copies == {("x", "copied: not contiguous"): 3}


@pytest.mark.parametrize(
    ("device", "name"),
    [(2, "cuda"), (8, "metal"), (10, "rocm"), (14, "oneapi"), (13, "cuda_managed"), (99, "number 99")],
)
def test_other_devices_are_refused(f: Executable, device: int, name: str) -> None:
    with pytest.raises(CallError, match=f"on the device {name}") as caught:
        f(Tensor(np.ones((1, 4), np.float32), device))
    assert caught.value.code == 1713
    assert caught.value.where == "x"


def test_other_types_are_refused_as_of_arrays(f: Executable) -> None:
    for dtype in (np.float64, np.float16, np.int32, np.bool_, np.complex64):
        with pytest.raises(CallError) as caught:
            f(Tensor(np.ones((1, 4), dtype)))
        assert caught.value.code == 1702
    with pytest.raises(CallError) as caught:
        f(Exporter(bf16(2)))
    assert caught.value.code == 1702
    assert "bfloat16" in caught.value.message
    with pytest.raises(CallError) as caught:
        f(Tensor(np.ones(4, np.float32)))
    assert caught.value.code == 1704


def test_what_does_not_give_itself_away_is_asked_as_any_object(f: Executable) -> None:
    class Closed:
        dtype = "none"

        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("it needs gradients")

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise TypeError("it needs gradients: detach it")

    with pytest.raises(CallError, match="it needs gradients: detach it") as caught:
        f(Closed())
    assert caught.value.code == 1709
    # an own type that DLPack has no name for goes numpy's way
    assert array_of("x", Exporter(bf16(1), code=3)) is None
    assert array_of("x", Exporter(bf16(1), code=4, lanes=2)) is None
    assert array_of("x", Exporter(bf16(1), major=2)) is None


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("options", [{}, {"strides": False}, {"offset": 64}])
def test_bfloat16_tensors(rows: int, options: dict[str, Any]) -> None:
    f = adding(dtypes.bfloat16)
    x = bf16(rows, rows)
    tensor = Exporter(x, **options)
    (found,) = f(tensor)
    assert found.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(found, x + x)
    assert f.copies == {}
    gc.collect()
    assert tensor.returned == 1


@pytest.mark.parametrize(
    ("code", "name"), [(10, "float8_e4m3fn"), (11, "float8_e4m3fnuz"), (12, "float8_e5m2"), (13, "float8_e5m2fnuz")]
)
def test_small_floats(code: int, name: str) -> None:
    x = np.arange(12, dtype=np.uint8).reshape(3, 4)
    shown = array_of("x", Exporter(x, code=code, bits=8))
    assert shown is not None
    assert shown.dtype == np.dtype(getattr(ml_dtypes, name))
    np.testing.assert_array_equal(shown.view(np.uint8), x)


def test_bfloat16_tensors_with_strides_and_read_only() -> None:
    f = adding(dtypes.bfloat16)
    wide: Any = np.arange(80).astype(ml_dtypes.bfloat16).reshape(10, 8)
    for x in (wide[:, ::2], wide[::-1, 3::-1], wide[::3, 2:6]):
        np.testing.assert_array_equal(f(Exporter(x))[0], x + x)
    shown = array_of("x", Exporter(wide, flags=1))
    assert shown is not None
    assert not shown.flags.writeable
    shown = array_of("x", Exporter(wide))
    assert shown is not None
    shown[0, 0] = 7
    assert wide[0, 0] == 7


def test_memory_is_given_back_when_nothing_shows_it() -> None:
    tensor = Exporter(bf16(3))
    shown = array_of("x", tensor)
    assert shown is not None
    part = shown[1:]
    del shown
    gc.collect()
    assert tensor.returned == 0
    np.testing.assert_array_equal(part, tensor.array[1:])
    del part
    gc.collect()
    assert tensor.returned == 1


def changing() -> Executable:
    builder = GraphBuilder("g", [N])
    x = builder.input("x", F32, "N", 4)
    signature = GraphSignature((InputPolicy("mutated", 0),), (OutputPolicy("alias", 0),))
    return compile_graph(builder.build([builder.apply_one("add", x, x, names="y")], signature))


def test_tensors_are_changed_in_place() -> None:
    f = changing()
    x = np.ones((3, 4), np.float32)
    (found,) = f(Tensor(x))
    np.testing.assert_array_equal(x, 2)
    assert found.ctypes.data == x.ctypes.data
    x.flags.writeable = False
    with pytest.raises(CallError) as caught:
        f(Tensor(x))
    assert caught.value.code == 1708
    np.testing.assert_array_equal(x, 2)


# -- outputs -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("rows", [1, 7, RECYCLE_FROM // 16 + 3])
def test_outputs_are_given_away_without_a_copy(f: Executable, rows: int) -> None:
    x = np.full((rows, 4), 2, np.float32)
    (found,) = f(x)
    address = found.ctypes.data
    other: Any = np.from_dlpack(Tensor(found))
    seen = weakref.ref(found)
    del found
    assert other.ctypes.data == address
    assert other.flags.writeable
    f(np.zeros_like(x))  # takes no memory that is still shown
    np.testing.assert_array_equal(other, 4)
    assert seen() is not None  # as the other's owner


def test_torch(f: Executable) -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed: `make peers` installs it")
    before = dict(f.copies)
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    (found,) = f(x)
    back = torch.from_dlpack(found)
    assert torch.equal(back, x + x)
    assert back.data_ptr() == found.ctypes.data
    back += 1
    np.testing.assert_array_equal(found, x.numpy() * 2 + 1)
    assert torch.equal(torch.from_numpy(f(x)[0]), x + x)
    assert f.copies == before
    assert torch.equal(torch.from_dlpack(f(x.t().reshape(3, 4))[0]), 2 * x.t().reshape(3, 4))
    assert torch.equal(
        torch.from_dlpack(f(torch.arange(8.0).reshape(2, 4)[:, [3, 2, 1, 0]])[0])[0], torch.tensor([6.0, 4, 2, 0])
    )
    strided = torch.arange(24.0).reshape(3, 8)[:, ::2]
    assert torch.equal(torch.from_dlpack(f(strided)[0]), strided + strided)
    with pytest.raises(CallError, match="requires grad") as caught:
        f(x.clone().requires_grad_())
    assert caught.value.code == 1709
    with pytest.raises(CallError) as caught:
        f(torch.empty(3, 4, device="meta"))
    assert caught.value.code in (1709, 1713)
    half = adding(dtypes.bfloat16)
    wide = torch.arange(12).reshape(3, 4).to(torch.bfloat16)
    (found,) = half(wide)
    assert half.copies == {}
    assert torch.equal(torch.from_numpy(found.view(np.int16)).view(torch.bfloat16), wide + wide)  # as documented
    changed = torch.ones(3, 4)
    changing()(changed)
    assert torch.equal(changed, torch.full((3, 4), 2.0))
