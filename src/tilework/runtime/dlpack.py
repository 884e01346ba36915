"""Tensors of other libraries as numpy arrays over the same memory, by DLPack.

numpy's `from_dlpack` knows no bfloat16 and no 8-bit floats: capsules with these are read here. The structures are those
of `dlpack.h` of DLPack 1.1 (https://dmlc.github.io/dlpack).
"""

from __future__ import annotations

import contextlib
import ctypes
import math
from typing import Any

import numpy as np

from tilework.errors import CallError
from tilework.plan.protocols import Array

_VERSION = (1, 1)
_READ_ONLY = 1
_DEVICES = {
    1: "cpu", 2: "cuda", 3: "cuda_host", 4: "opencl", 7: "vulkan", 8: "metal", 9: "vpi", 10: "rocm", 11: "rocm_host",
    12: "extension", 13: "cuda_managed", 14: "oneapi", 15: "webgpu", 16: "hexagon", 17: "maia", 18: "trainium",
}  # fmt: skip
_HERE = frozenset({"cpu", "cuda_host", "rocm_host"})
"""Devices whose memory this processor reads as its own."""
_TYPES = {
    (4, 16): "bfloat16", (10, 8): "float8_e4m3fn", (11, 8): "float8_e4m3fnuz", (12, 8): "float8_e5m2",
    (13, 8): "float8_e5m2fnuz", (14, 8): "float8_e8m0fnu",
}  # fmt: skip
"""What numpy does not read: DLPack's code and bits, and the name in ml_dtypes."""


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("owner", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
_Deleter = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)

# a capsule points to its name: these bytes live as long as the process
_NAME, _USED = b"dltensor_versioned", b"used_dltensor_versioned"


class _Owner:
    """Owns what a capsule held for as long as an array shows it; numpy keeps it as the array's base."""

    __slots__ = ("__array_interface__", "_address", "_deleter")

    def __init__(self, address: int, deleter: int | None) -> None:
        self._address, self._deleter = address, deleter

    def memory(self, start: int, size: int, read_only: bool) -> memoryview:
        """Bytes that keep this alive."""
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (start, read_only)}
        return np.asarray(self).data

    def __del__(self, function: Any = _Deleter) -> None:  # at the end of the interpreter the name is gone before
        if self._deleter:
            function(self._deleter)(self._address)


def array_of(name: str, tensor: Any) -> Array | None:
    """An array that shows the memory of `tensor`, an object with `__dlpack__`, for the input `name`; None where the
    object does not give itself away. It is read-only where the tensor is, or may be (as before DLPack 1.0).

    Raises:
        CallError: 1713, the tensor is on a device whose memory is not the processor's.
    """
    with contextlib.suppress(Exception):  # any library says no in its own way, and numpy for its own reasons
        return np.from_dlpack(tensor)
    device = _device_of(tensor)
    if device is not None and device not in _HERE:
        raise CallError(1713, f"input {name}: the argument is on the device {device}", where=name)
    with contextlib.suppress(Exception):
        return _shown(tensor.__dlpack__(max_version=_VERSION))
    return None


def _device_of(tensor: Any) -> str | None:
    with contextlib.suppress(Exception):  # what has none may be had in numpy's protocol
        kind = int(tensor.__dlpack_device__()[0])
        return _DEVICES.get(kind, f"number {kind}")
    return None


def _shown(capsule: object) -> Array | None:
    """An array that shows what a capsule holds; None for a form or an element type that is not known here."""
    if not _is_valid(capsule, _NAME):
        return None
    managed = _Managed.from_address(_pointer(capsule, _NAME) or 0)
    tensor = managed.tensor
    known = _TYPES.get((tensor.code, tensor.bits))
    if managed.major != _VERSION[0] or known is None or tensor.lanes != 1:
        return None
    _rename(capsule, _USED)
    owner = _Owner(ctypes.addressof(managed), managed.deleter)
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, known))
    shape = tuple(tensor.shape[axis] for axis in range(tensor.rank))
    if 0 in shape:
        return np.empty(shape, dtype)
    strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(tensor.rank))
    if tensor.strides:
        strides = tuple(tensor.strides[axis] for axis in range(tensor.rank))
    reach = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    low, high = sum(min(0, far) for far in reach), sum(max(0, far) for far in reach) + 1
    size = dtype.itemsize
    start = tensor.data + tensor.byte_offset + low * size
    memory = owner.memory(start, (high - low) * size, read_only=bool(managed.flags & _READ_ONLY))
    return np.ndarray(shape, dtype, memory, -low * size, tuple(stride * size for stride in strides))
