"""What a kernel needs from its caller; generated kernels and library calls have the same form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tilework.dims import Dim, Symbol
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass

Access = Literal["read", "write", "accumulate", "workspace"]


@dataclass(frozen=True)
class Box:
    """The elements of an array from the index `start` on, `extents` of them along each dimension."""

    start: tuple[Dim, ...]
    extents: tuple[Dim, ...]

    def substitute(self, values: Mapping[str, Dim]) -> Box:
        """The box over other symbols."""
        return Box(
            tuple(entry.substitute(values) for entry in self.start),
            tuple(extent.substitute(values) for extent in self.extents),
        )


@dataclass(frozen=True)
class KernelBuffer:
    """A buffer of a kernel: dense row-major `shape` elements of `dtype`, at a multiple of `alignment` bytes.

    Where there are `boxes`, the kernel reads or writes no element outside them, and writes every element inside.
    """

    name: str
    shape: tuple[Dim, ...]
    dtype: DType
    access: Access
    alignment: int = 1
    boxes: tuple[Box, ...] = ()


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
