"""Where the bytes of a plan are: devices, memory spaces, arenas, queues, and buffers at places in them."""

from __future__ import annotations

from functools import cached_property
from typing import TypeAlias

from tilework.dims import ZERO, Dim, product
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass


@dataclass(frozen=True)
class MemorySpace:
    """A set of addresses: the host's memory, a device's memory."""

    name: str


@dataclass(frozen=True)
class Device:
    """What runs steps. `kind` names the runtime's device (`cpu`, `cuda`, `cuda_sim`).

    Kernels of its queues reach the spaces named in `spaces`; copies on its queues also reach those of `copy_spaces`.
    """

    name: str
    kind: str
    spaces: tuple[str, ...]
    copy_spaces: tuple[str, ...] = ()


@dataclass(frozen=True)
class Queue:
    """Steps of one queue run one after another, in the order of the plan; queues run beside each other."""

    name: str
    device: str


@dataclass(frozen=True)
class Arena:
    """One allocation per call in which buffers have offsets: `bytes`, at a multiple of `alignment`."""

    name: str
    space: str
    bytes: Dim
    alignment: int = 64


@dataclass(frozen=True)
class InputPlace:
    """In the memory of input number `position` of the call, `offset` bytes from its start."""

    position: int
    offset: Dim = ZERO


@dataclass(frozen=True)
class OutputPlace:
    """In the memory of the fresh output number `position` of the call, `offset` bytes from its start."""

    position: int
    offset: Dim = ZERO


@dataclass(frozen=True)
class ConstantPlace:
    """An array that is known at compile time, by its digest (`graph.Constant.digest`); never written."""

    digest: str


@dataclass(frozen=True)
class ArenaPlace:
    """`offset` bytes from the start of an arena. In a draft that `memory.place` has not seen yet: from the start of
    the buffer's alias set (so 0 for a buffer without one).
    """

    arena: str
    offset: Dim = ZERO


@dataclass(frozen=True)
class MeasuredPlace:
    """Memory of its own, asked from the call's `Allocator` by the step that measures the buffer's size."""


Place: TypeAlias = InputPlace | OutputPlace | ConstantPlace | ArenaPlace | MeasuredPlace


@dataclass(frozen=True)
class PlanBuffer:
    """Dense row-major `shape` elements of `dtype` in a memory space, at an address that is a multiple of `alignment`.

    Buffers with the same `alias_set` (not empty) are windows on one piece of memory: a value seen in several shapes, or
    a value and its parts. Any other two buffers share bytes only where their lives do not meet.
    """

    name: str
    shape: tuple[Dim, ...]
    dtype: DType
    space: str
    place: Place
    alignment: int = 64
    alias_set: str = ""

    @cached_property
    def elements(self) -> Dim:
        """Number of elements."""
        return product(self.shape)

    @cached_property
    def bytes(self) -> Dim:
        """Bytes that the elements take."""
        return self.elements * self.dtype.itemsize

    @property
    def offset(self) -> Dim:
        """Bytes from the start of the memory that it is placed in."""
        return self.place.offset if isinstance(self.place, (InputPlace, OutputPlace, ArenaPlace)) else ZERO

    @property
    def memory(self) -> str:
        """A name of the memory that it is placed in: buffers with different ones never share bytes (except constants,
        which nothing writes).
        """
        match self.place:
            case InputPlace(position=position):
                return f"input {position}"
            case OutputPlace(position=position):
                return f"output {position}"
            case ConstantPlace(digest=digest):
                return f"constant {digest}"
            case ArenaPlace(arena=arena):
                return f"arena {arena}"
            case MeasuredPlace():
                return f"measured {self.alias_set or self.name}"


HOST = MemorySpace("host")
"""The memory of the process."""
CPU = Device("cpu", "cpu", ("host",))
"""The host's processor."""
MAIN_QUEUE = Queue("main", "cpu")
"""The queue of a plan that needs only one."""
