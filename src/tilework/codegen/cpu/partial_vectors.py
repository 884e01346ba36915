"""Loads and stores of some lanes, where a machine has no masked instruction for them or a slow one.

LLVM would write out a test and a branch for every lane, at every place. Here each kind of vector has one function, and
where the lanes on are the first ones, which is what tails need, it moves 2^k elements at a time. Lanes that are off are
neither read nor written.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilework.fast_dataclass import dataclass
from tilework.machine.cpu import CpuMachine


@dataclass(frozen=True)
class MaskedWidths:
    """The element widths, in bits, for which the machine has masked loads, and masked stores that are worth using."""

    loads: frozenset[int]
    stores: frozenset[int]


def masked_widths(machine: CpuMachine) -> MaskedWidths:
    """What the machine has. `vmaskmovps` to memory is microcode on AMD's cores, so AVX2 stores are none."""
    none = frozenset[int]()
    if machine.architecture != "x86" or not machine.has("avx"):
        return MaskedWidths(none, none)
    if machine.has("avx512bw", "avx512vl"):
        return MaskedWidths(frozenset((8, 16, 32, 64)), frozenset((8, 16, 32, 64)))
    wide = frozenset((32, 64))
    return MaskedWidths(wide, wide if machine.has("avx512f", "avx512vl") else none)


def pieces(count: int) -> list[tuple[int, int]]:
    """The first `count` elements as (start, 2^k), the largest first."""
    found: list[tuple[int, int]] = []
    done = 0
    while done < count:
        size = 1 << ((count - done).bit_length() - 1)
        found.append((done, size))
        done += size
    return found


@dataclass(frozen=True)
class PartialVector:
    """A function that loads or stores some lanes: of which vectors, and the intrinsic that does it for any mask."""

    name: str
    stores: bool
    element: str
    element_bytes: int
    lanes: int
    intrinsic: str

    def text(self, attributes: str) -> str:
        """LLVM text of `vector name(ptr, mask)`, where lanes that are off are 0, or `void name(vector, ptr, mask)`."""
        return "\n".join(self._store(attributes) if self.stores else self._load(attributes))

    @property
    def vector(self) -> str:
        return f"<{self.lanes} x {self.element}>"

    @property
    def mask(self) -> str:
        return f"<{self.lanes} x i1>"

    def _load(self, attributes: str) -> list[str]:
        vector = self.vector
        given = f"ptr %memory, i32 {self.element_bytes}, {self.mask} %mask, {vector} zeroinitializer"
        return [
            f"define internal {vector} @{self.name}(ptr %memory, {self.mask} %mask) {attributes} {{",
            *self._start(),
            f"  store {vector} zeroinitializer, ptr %held, align 16",
            *self._pieces("%memory", "%held"),
            f"  %found = load {vector}, ptr %held, align 16",
            f"  ret {vector} %found",
            "any:",
            f"  %gathered = call {vector} {self.intrinsic}({given})",
            f"  ret {vector} %gathered",
            "}",
        ]

    def _store(self, attributes: str) -> list[str]:
        vector = self.vector
        given = f"{vector} %value, ptr %memory, i32 {self.element_bytes}, {self.mask} %mask"
        return [
            f"define internal void @{self.name}({vector} %value, ptr %memory, {self.mask} %mask) {attributes} {{",
            *self._start(),
            f"  store {vector} %value, ptr %held, align 16",
            *self._pieces("%held", "%memory"),
            "  ret void",
            "any:",
            f"  call void {self.intrinsic}({given})",
            "  ret void",
            "}",
        ]

    def _start(self) -> list[str]:
        """To block `first` where the lanes on are the first `%count` ones, else to block `any`."""
        number = f"i{self.lanes}"
        widen = f"zext {number} %ones to i64" if self.lanes < 64 else f"add {number} %ones, 0"
        return [
            "entry:",
            f"  %held = alloca {self.vector}, align 16",
            f"  %bits = bitcast {self.mask} %mask to {number}",
            f"  %above = add {number} %bits, 1",
            f"  %mixed = and {number} %bits, %above",
            f"  %prefix = icmp eq {number} %mixed, 0",
            "  br i1 %prefix, label %first, label %any",
            "first:",
            f"  %ones = call {number} @llvm.ctpop.{number}({number} %bits)",
            f"  %count = {widen}",
        ]

    def _pieces(self, source: str, target: str) -> Iterator[str]:
        """Copy the first `%count` elements: 2^k of them for each bit k of the count, the highest bit first."""
        piece = 1 << (self.lanes.bit_length() - 1)
        while piece:
            size = piece * self.element_bytes
            kind = f"i{8 * size}" if size <= 8 else f"<{size // 8} x i64>"
            yield f"  %bit{piece} = and i64 %count, {piece}"
            yield f"  %some{piece} = icmp ne i64 %bit{piece}, 0"
            yield f"  br i1 %some{piece}, label %copy{piece}, label %next{piece}"
            yield f"copy{piece}:"
            yield f"  %done{piece} = and i64 %count, {-2 * piece}"
            for end, base in (("from", source), ("to", target)):
                yield f"  %{end}{piece} = getelementptr i{8 * self.element_bytes}, ptr {base}, i64 %done{piece}"
            yield f"  %part{piece} = load {kind}, ptr %from{piece}, align 1"
            yield f"  store {kind} %part{piece}, ptr %to{piece}, align 1"
            yield f"  br label %next{piece}"
            yield f"next{piece}:"
            piece //= 2
