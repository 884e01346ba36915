"""What code generation and cost models know of a CPU."""

from __future__ import annotations

from functools import cached_property

from tilework.fast_dataclass import dataclass, field
from tilework.loops.program import LoopProgram
from tilework.machine.instructions import DotProduct, dot_products


@dataclass(frozen=True)
class Cache:
    """One level of data (or unified) cache: bytes, ways, bytes a line, and how many logical processors share one."""

    level: int
    bytes: int
    ways: int
    line_bytes: int = 64
    shared_by: int = 1


@dataclass(frozen=True)
class CpuMachine:
    """A processor as data.

    `triple`, `cpu` and `features` are LLVM's words (every available feature listed as `+name`). `vector_bits` is the
    width of the vectors that code should use, `vector_registers` how many of them there are.
    """

    name: str
    triple: str
    cpu: str
    features: str
    vector_bits: int
    vector_registers: int
    caches: tuple[Cache, ...]
    fma_pipes: int = 2
    """Vector multiply-adds that can start in one cycle."""
    fma_latency: int = 4
    """Cycles until the result of a multiply-add can be used."""
    line_bytes: int = 64
    page_bytes: int = 4096
    """The smallest page: hardware prefetchers follow a run of addresses no further than to its end."""
    available: frozenset[str] = field(init=False, compare=False, repr=False)
    """The features that the machine has, by LLVM's names."""

    def __post_init__(self) -> None:
        have = frozenset(f[1:] for f in self.features.split(",") if f.startswith("+"))
        object.__setattr__(self, "available", have)

    @property
    def architecture(self) -> str:
        """`x86` or `aarch64`."""
        first = self.triple.partition("-")[0]
        return "x86" if first in ("x86_64", "amd64") else "aarch64" if first in ("aarch64", "arm64") else first

    def has(self, *features: str) -> bool:
        """Whether every feature is available."""
        return self.available.issuperset(features)

    @cached_property
    def dot_products(self) -> tuple[DotProduct, ...]:
        """Its dot-product instructions (see `machine.instructions`)."""
        return dot_products(self.architecture, self.available)

    def instruction(self, name: str) -> DotProduct | None:
        """The instruction of this name, as schedules name it; None where the machine has none such."""
        return next((row for row in self.dot_products if row.name == name), None)

    def intrinsic(self, name: str) -> LoopProgram | None:
        """The loop nest that an instruction replaces; None where the machine has none such."""
        row = self.instruction(name)
        return None if row is None else row.meaning

    def exact(self, name: str) -> bool:
        """Whether an instruction means its nest to the bit."""
        row = self.instruction(name)
        return row is None or row.exact

    def lanes(self, bits: int) -> int:
        """How many elements of so many bits one vector holds."""
        return max(1, self.vector_bits // bits)

    def cache(self, level: int) -> Cache | None:
        """The data cache of a level, or None."""
        return next((c for c in self.caches if c.level == level), None)

    @property
    def lookup_lanes(self) -> int:
        """Elements of 32 bits that one instruction picks out of a register of as many; 0 where no instruction does."""
        if self.architecture != "x86":
            return 0
        return 16 if self.vector_bits >= 512 and self.has("avx512f") else 8 if self.has("avx2") else 0

    @property
    def last_level_bytes(self) -> int:
        """Bytes of the largest cache."""
        return max((c.bytes for c in self.caches), default=1 << 25)
