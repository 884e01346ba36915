"""Element types and stored tensors: `TensorProto` to numpy, sizes checked before a byte is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tilework import dtypes
from tilework.dtypes import DType
from tilework.frontends.onnx.external import DataFolder, external_data
from tilework.frontends.onnx.faults import NodeFault
from tilework.graph.limits import MOST_DIMENSIONS

if TYPE_CHECKING:
    from onnx import TensorProto

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

ELEMENT_TYPES: Mapping[int, DType] = {
    1: dtypes.float32, 2: dtypes.uint8, 3: dtypes.int8, 4: dtypes.uint16, 5: dtypes.int16, 6: dtypes.int32,
    7: dtypes.int64, 9: dtypes.boolean, 10: dtypes.float16, 11: dtypes.float64, 12: dtypes.uint32, 13: dtypes.uint64,
    14: dtypes.complex64, 15: dtypes.complex128, 16: dtypes.bfloat16, 17: dtypes.float8_e4m3fn,
    18: dtypes.float8_e4m3fnuz, 19: dtypes.float8_e5m2, 20: dtypes.float8_e5m2fnuz, 21: dtypes.uint4, 22: dtypes.int4,
    23: dtypes.float4_e2m1fn, 24: dtypes.float8_e8m0fnu, 25: dtypes.uint2, 26: dtypes.int2,
}  # fmt: skip
"""ONNX's numbers of element types (`TensorProto.DataType`)."""

STRING_ELEMENTS = 8
"""ONNX's number of strings, which are no elements of tensors here."""

_OTHER_NAMES = {0: "undefined", 8: "string"}

ONNX_NAMES: Mapping[DType, str] = {
    dtypes.float32: "float", dtypes.float64: "double", dtypes.boolean: "bool",
    dtypes.float8_e4m3fn: "float8e4m3fn", dtypes.float8_e4m3fnuz: "float8e4m3fnuz", dtypes.float8_e5m2: "float8e5m2",
    dtypes.float8_e5m2fnuz: "float8e5m2fnuz", dtypes.float4_e2m1fn: "float4e2m1", dtypes.float8_e8m0fnu: "float8e8m0",
}  # fmt: skip
"""How ONNX's type strings (`tensor(float)`) call an element type, where they call it otherwise."""

MOST_ELEMENTS = 2**48
"""Elements beyond which a stored or declared tensor is taken for damage."""


def element_type(number: int) -> DType:
    """The element type with ONNX's number; raises `NodeFault` 1115."""
    found = ELEMENT_TYPES.get(number)
    if found is None:
        raise NodeFault(1115, f"elements of type {element_type_called(number)} are not supported")
    return found


def element_type_called(number: int) -> str:
    """How messages name the element type with ONNX's number, also one that is not supported."""
    found = ELEMENT_TYPES.get(number)
    return found.name if found is not None else _OTHER_NAMES.get(number, f"number {number}")


def to_array(tensor: TensorProto, folder: DataFolder | None) -> Array:
    """The values of a stored tensor, in native byte order (raw and external data are not copied, and then read-only).

    Raises `NodeFault` 1109 (data that do not fit), 1110 and 1111 (external data), 1115 (type), 1124 (too large).
    """
    from onnx import TensorProto

    dtype = element_type(tensor.data_type)
    shape = tuple(tensor.dims)
    if any(extent < 0 for extent in shape):
        raise NodeFault(1109, f"its shape {list(shape)} has a negative extent")
    if len(shape) > MOST_DIMENSIONS:
        raise NodeFault(1124, f"it has {len(shape)} dimensions, at most {MOST_DIMENSIONS} are possible")
    count = math.prod(shape)
    if count > MOST_ELEMENTS:
        raise NodeFault(1124, f"its shape {list(shape)} has {count} elements")
    if tensor.HasField("segment"):
        raise NodeFault(1109, "it is stored in segments")
    expected = _packed_bytes(dtype, count) if dtype.bits < 8 else count * dtype.itemsize
    if tensor.data_location == TensorProto.EXTERNAL:
        return _from_bytes(external_data(tensor, folder, expected), dtype, shape, count)
    if tensor.HasField("raw_data"):
        if len(tensor.raw_data) != expected:
            raise NodeFault(1109, f"{dtype}{list(shape)} needs {expected} bytes, there are {len(tensor.raw_data)}")
        return _from_bytes(tensor.raw_data, dtype, shape, count)
    return _from_fields(tensor, dtype, shape, count)


def _from_bytes(content: bytes | Array, dtype: DType, shape: tuple[int, ...], count: int) -> Array:
    if dtype.bits < 8:
        return _unpack(np.frombuffer(content, np.uint8), dtype, count).reshape(shape)
    if dtype.kind == "boolean":
        return (np.frombuffer(content, np.uint8) != 0).reshape(shape)
    found = np.frombuffer(content, dtype.numpy.newbyteorder("<")).reshape(shape)
    return found.astype(dtype.numpy, copy=False)


def _packed_bytes(dtype: DType, count: int) -> int:
    """Bytes that elements of less than 8 bits take together."""
    return -(-count * dtype.bits // 8)


def _unpack(packed: Array, dtype: DType, count: int) -> Array:
    """Elements of 2 or 4 bits from bytes that hold several, the first in the lowest bits."""
    mask = (1 << dtype.bits) - 1
    parts = [(packed >> start) & mask for start in range(0, 8, dtype.bits)]
    found = np.stack(parts, -1).reshape(-1)[:count].astype(np.uint8)
    if dtype.is_floating:
        return found.view(dtype.numpy)
    whole = found.astype(np.int8)
    if dtype.kind == "signed":
        whole = np.where(whole > mask >> 1, whole - (mask + 1), whole)
    return whole.astype(dtype.numpy)


def _from_fields(tensor: TensorProto, dtype: DType, shape: tuple[int, ...], count: int) -> Array:
    """A tensor stored as a list of numbers: narrow types lie in 32-bit integers, 16- and 8-bit floats as their bits."""
    pairs = 2 if dtype.kind == "complex" else 1
    needed = _packed_bytes(dtype, count) if dtype.bits < 8 else count * pairs
    values: Any
    if dtype in (dtypes.float32, dtypes.complex64):
        values, held = tensor.float_data, np.float32
    elif dtype in (dtypes.float64, dtypes.complex128):
        values, held = tensor.double_data, np.float64
    elif dtype == dtypes.int64:
        values, held = tensor.int64_data, np.int64
    elif dtype in (dtypes.uint32, dtypes.uint64):
        values, held = tensor.uint64_data, np.uint64
    else:
        values, held = tensor.int32_data, np.int32
    if len(values) != needed:
        raise NodeFault(1109, f"{dtype}{list(shape)} needs {needed} stored numbers, there are {len(values)}")
    found = np.array(values, held)
    if dtype.kind == "complex":
        return found.view(dtype.numpy).reshape(shape)
    if dtype.bits < 8:
        return _unpack(found.astype(np.uint8), dtype, count).reshape(shape)
    if held is np.int32 and dtype.is_floating:
        bits = np.uint16 if dtype.bits == 16 else np.uint8
        return found.astype(bits).view(dtype.numpy).reshape(shape)
    if dtype.kind == "boolean":
        return (found != 0).reshape(shape)
    return found.astype(dtype.numpy).reshape(shape)
