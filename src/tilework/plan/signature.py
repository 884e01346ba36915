"""What a kernel needs from its caller; generated kernels and library calls have the same form."""

from __future__ import annotations

from typing import Literal

from tilework.dims import Dim, Symbol
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass

Access = Literal["read", "write", "accumulate", "workspace"]


@dataclass(frozen=True)
class KernelBuffer:
    """A buffer of a kernel: dense row-major `shape` elements of `dtype`, at a multiple of `alignment` bytes."""

    name: str
    shape: tuple[Dim, ...]
    dtype: DType
    access: Access
    alignment: int = 1


@dataclass(frozen=True)
class KernelSignature:
    """A kernel's calling convention: buffers, symbols, and what it promises.

    The native arguments are int64 slots: the address of the error word, the buffers' addresses in order, the symbols in
    order. `workspace` buffers are listed among the buffers; their bytes are the caller's to provide for the call.
    `may_alias` names pairs of buffers that may be the same memory (element i is read before element i is written).
    """

    name: str
    buffers: tuple[KernelBuffer, ...]
    symbols: tuple[Symbol, ...] = ()
    may_alias: tuple[tuple[str, str], ...] = ()
    faults: tuple[str, ...] = ()
    """What statement each fault detail number stands for (index: detail)."""
    launch: tuple[Dim, ...] = ()
    """Grid and block extents of a device kernel; empty on the CPU."""
    random_counter: bool = False
