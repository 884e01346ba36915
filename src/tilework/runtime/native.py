"""The call gate's native functions as Python builtins, where this interpreter's objects look as the gate expects.

Before any generated code reads an array, the layout of arrays and tuples is compared word by word with what numpy
itself says about known arrays. Where that does not hold (a free-threaded or tracing build) there is no native `bind`
and the gate reads arrays in plain Python, with the same answers.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.codegen.cpu.gate import GATE_EXPORTS, POLL_BYTES, POLL_INTERVAL_NS, POLL_INTERVAL_OFFSET, gate_text
from tilework.codegen.cpu.jit import Jit, LoadedCode

_METH_FASTCALL = 0x80  # CPython, methodobject.h; part of the stable ABI since 3.10


class _MethodDefinition(ctypes.Structure):
    """`PyMethodDef` of CPython's methodobject.h."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


class NativeGate:
    """The native functions that calls go through; see `tilework.codegen.cpu.gate` for what each does.

    `bind`, `run` and `call` are builtins; those that read arrays are None where their layout is not the expected one.
    They are for this package only: they believe their arguments, and live only as long as this object.
    """

    def __init__(self, jit: Jit, *, arrays: bool | None = None) -> None:
        """Load the gate. `arrays=False` leaves `bind` out, as on an interpreter with other object layouts."""
        self.code: LoadedCode = jit.load(jit.compile_object(gate_text(jit.target.triple)), GATE_EXPORTS)
        """The gate's functions, for linking drivers with (`uses=[native.code]`)."""
        self._definitions: list[_MethodDefinition] = []
        trusted = expected_layout() if arrays is None else arrays
        self.bind: Callable[[int, int, tuple[object, ...]], int] | None = (
            self._builtin("tilework_gate_bind") if trusted else None
        )
        self.call: Callable[[int, int, tuple[object, ...], tuple[object, ...]], int] | None = (
            self._builtin("tilework_gate_call") if trusted else None
        )
        self.call_holding: Callable[[int, int, tuple[object, ...], tuple[object, ...]], int] | None = (
            self._builtin("tilework_gate_call_holding") if trusted else None
        )
        self.run: Callable[[int, int], int] = self._builtin("tilework_gate_run")
        self.run_holding: Callable[[int, int], int] = self._builtin("tilework_gate_run_holding")

    def _builtin(self, name: str) -> Callable[..., Any]:
        definition = _MethodDefinition(name.encode(), self.code[name], _METH_FASTCALL, None)
        self._definitions.append(definition)
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        make.restype = ctypes.py_object
        return make(ctypes.addressof(definition), None, None)


class PollState:
    """Where one call keeps track of signals; its address goes to frame slot 2."""

    def __init__(self, interval_ns: int = POLL_INTERVAL_NS) -> None:
        self._words = (ctypes.c_int64 * (POLL_BYTES // 8))()
        self._words[POLL_INTERVAL_OFFSET // 8] = interval_ns
        self.address = ctypes.addressof(self._words)


def expected_layout() -> bool:
    """Whether tuples and numpy arrays of this process lie in memory as the gate expects."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if object.__basicsize__ != 16 or tuple.__basicsize__ != 24 or tuple.__itemsize__ != 8 or sys.byteorder != "little":
        return False
    if np.ndarray.__basicsize__ < 72 or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    owner = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    readonly = np.arange(7, dtype=np.int64)
    readonly.flags.writeable = False
    samples = (
        owner,
        owner[1:, ::2],
        owner.T,
        readonly,
        np.zeros(()),
        np.zeros((0, 3), np.uint8),
        np.asfortranarray(owner),
    )
    if not all(_as_expected(sample) for sample in samples):
        return False
    words = (ctypes.c_int64 * (3 + len(samples))).from_address(id(samples))
    return words[2] == len(samples) and [*words[3:]] == [id(sample) for sample in samples]


def _as_expected(array: np.ndarray[Any, Any]) -> bool:
    words = (ctypes.c_int64 * 9).from_address(id(array))
    rank = ctypes.c_int32.from_address(id(array) + 24).value
    flags = ctypes.c_int32.from_address(id(array) + 64).value
    if words[1] != id(type(array)) or words[2] != array.ctypes.data or rank != array.ndim:
        return False
    if words[7] != id(array.dtype) or flags != array.flags.num:
        return False
    if words[6] != (0 if array.base is None else id(array.base)):
        return False
    if not rank:
        return True
    extents = (ctypes.c_int64 * rank).from_address(words[4])
    strides = (ctypes.c_int64 * rank).from_address(words[5])
    return tuple(extents) == array.shape and tuple(strides) == array.strides
