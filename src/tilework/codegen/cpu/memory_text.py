"""Instructions that touch memory and the argument block, as LLVM text."""

from __future__ import annotations

from tilework.codegen.cpu.partial_vectors import MaskedWidths, PartialVector, pieces
from tilework.codegen.cpu.words import Words, suffix, type_of
from tilework.lowering.registers import BITS, Instruction, Value


class MemoryText(Words):
    """`slots` gives the argument block's slot of each ('symbol' or 'buffer', name). `masked_widths`: what the
    machine has masked instructions for. Functions that are added have names with `kernel`.
    """

    def __init__(
        self, slots: dict[tuple[str, str], int], *, kernel: str, x86: bool, masked_widths: MaskedWidths
    ) -> None:
        super().__init__()
        self.slots = slots
        self.kernel = kernel
        self.x86 = x86
        self.masked_widths = masked_widths
        self.partial: dict[str, PartialVector] = {}
        self.uses_zeros = False
        self.streams = False
        self.tables: dict[tuple[int, ...], str] = {}
        self.entry_allocations: list[str] = []

    # -- the argument block --------------------------------------------------------------------------------------------
    def argument(self, item: Instruction) -> None:
        assert item.result is not None
        address = self.temporary(f"getelementptr i64, ptr %args, i64 {self.slots[item.extra]}")
        self.define(item, f"load {self.type(item.result)}, ptr {address}, align 8")

    def error_word(self, item: Instruction) -> None:
        self.define(item, "load ptr, ptr %args, align 8")

    def zeros(self, item: Instruction) -> None:
        self.uses_zeros = True
        self.define(item, "getelementptr i8, ptr @zeros, i64 0")

    def stack(self, item: Instruction) -> None:
        assert item.result is not None
        self.entry_allocations.append(f"  %v{item.result.number} = alloca [{item.extra[0]} x i8], align 64")

    def table(self, item: Instruction) -> None:
        """A gather from a constant array."""
        assert item.result is not None
        (index,) = item.operands
        if not index.lanes:
            self.define(item, f"bitcast i64 {self.element(item.extra, self.name(index))} to i64")
            return
        name = self.table_name(item.extra)
        kind, lanes = self.type(item.result), index.lanes
        addresses = self.temporary(f"getelementptr i64, ptr {name}, {self.typed(index)}")
        full = f"@llvm.masked.gather.v{lanes}i64.v{lanes}p0"
        self.declare(f"declare {kind} {full}(<{lanes} x ptr>, i32, <{lanes} x i1>, {kind})")
        self.define(
            item,
            f"call {kind} {full}(<{lanes} x ptr> {addresses}, i32 8, <{lanes} x i1> splat (i1 true), "
            f"{kind} zeroinitializer)",
        )

    def table_name(self, elements: tuple[int, ...]) -> str:
        """The constant array of these elements."""
        return self.tables.setdefault(elements, f"@table{len(self.tables)}")

    def element(self, elements: tuple[int, ...], index: str) -> str:
        """An element of a constant table, as i64; `index` is an i64."""
        address = self.temporary(f"getelementptr i64, ptr {self.table_name(elements)}, i64 {index}")
        return self.temporary(f"load i64, ptr {address}, align 8")

    def globals(self) -> list[str]:
        """The constants that the functions use."""
        lines = ["@zeros = private constant [512 x i8] zeroinitializer, align 64"] if self.uses_zeros else []
        for elements, name in self.tables.items():
            content = ", ".join(f"i64 {e}" for e in elements)
            lines.append(f"{name} = private constant [{len(elements)} x i64] [{content}], align 8")
        return lines

    # -- memory --------------------------------------------------------------------------------------------------------
    def offset(self, item: Instruction) -> None:
        base, index = item.operands
        self.define(item, f"getelementptr i{8 * item.extra}, {self.typed(base)}, {self.typed(index)}")

    def row(self, item: Instruction) -> None:
        """LLVM looks no further than a `freeze` for what an address is made of. Else it does so for every address of
        every loop, at a cost that grows with their number and with how deep loops are: half the time of a compilation.
        """
        self.define(item, f"freeze {self.typed(item.operands[0])}")

    def load(self, item: Instruction) -> None:
        assert item.result is not None
        self.define(item, f"load {self.type(item.result)}, {self.typed(item.operands[0])}, align {item.extra[0]}")

    def store(self, item: Instruction) -> None:
        value, address = item.operands
        tail = ""
        if item.extra[2]:
            self.streams = True
            tail = ", !nontemporal !0"
        self.lines.append(f"  store {self.typed(value)}, {self.typed(address)}, align {item.extra[0]}{tail}")

    def _only_lane(self, mask: Value, kind: str, address: Value) -> tuple[int, str] | None:
        """The lane of a literal mask that is the only one on, and its element's address.

        LLVM (22) turns a masked store of one 16-bit or 8-bit lane into a store of 32 bits, so these are written out.
        """
        if not isinstance(mask.constant, tuple) or sum(mask.constant) != 1:
            return None
        lane = mask.constant.index(True)
        return lane, self.temporary(f"getelementptr {kind}, {self.typed(address)}, i64 {lane}")

    def _partial(self, vector: Value, intrinsic: str, *, stores: bool) -> str | None:
        """The function that moves some lanes of such a vector, or None where the machine has an instruction."""
        if BITS[vector.kind] in (self.masked_widths.stores if stores else self.masked_widths.loads):
            return None
        name, lanes = f"{self.kernel}_{'store' if stores else 'load'}_{suffix(vector)}", vector.lanes
        size = BITS[vector.kind] // 8
        self.partial[name] = PartialVector(name, stores, type_of(vector.kind), size, lanes, intrinsic)
        self.declare(f"declare i{lanes} @llvm.ctpop.i{lanes}(i{lanes})")
        return name

    def masked_load(self, item: Instruction) -> None:
        assert item.result is not None
        address, mask = item.operands
        kind, element = self.type(item.result), type_of(item.result.kind)
        only = self._only_lane(mask, element, address)
        if only is not None:
            value = self.temporary(f"load {element}, ptr {only[1]}, align {item.extra[0]}")
            self.define(item, f"insertelement {kind} zeroinitializer, {element} {value}, i32 {only[0]}")
            return
        full = f"@llvm.masked.load.{suffix(item.result)}.p0"
        self.declare(f"declare {kind} {full}(ptr, i32, {self.type(mask)}, {kind})")
        partial = self._partial(item.result, full, stores=False)
        if partial is not None:
            self.define(item, f"call {kind} @{partial}({self.typed(address)}, {self.typed(mask)})")
            return
        self.define(
            item,
            f"call {kind} {full}({self.typed(address)}, i32 {item.extra[0]}, {self.typed(mask)}, "
            f"{kind} zeroinitializer)",
        )

    def masked_store(self, item: Instruction) -> None:
        value, address, mask = item.operands
        element = type_of(value.kind)
        only = self._only_lane(mask, element, address)
        if only is not None:
            one = self.temporary(f"extractelement {self.typed(value)}, i32 {only[0]}")
            self.lines.append(f"  store {element} {one}, ptr {only[1]}, align {item.extra[0]}")
            return
        first = _first_lanes(mask)
        if first is not None and BITS[value.kind] not in self.masked_widths.stores:
            self._store_first(value, address, first, item.extra[0])
            return
        full = f"@llvm.masked.store.{suffix(value)}.p0"
        self.declare(f"declare void {full}({self.type(value)}, ptr, i32, {self.type(mask)})")
        partial = self._partial(value, full, stores=True)
        if partial is not None:
            self.lines.append(f"  call void @{partial}({self.typed(value)}, {self.typed(address)}, {self.typed(mask)})")
            return
        self.lines.append(
            f"  call void {full}({self.typed(value)}, {self.typed(address)}, i32 {item.extra[0]}, {self.typed(mask)})"
        )

    def _store_first(self, value: Value, address: Value, count: int, alignment: int) -> None:
        """Store the first lanes, 2^k of them at a time."""
        element = type_of(value.kind)
        for start, size in pieces(count):
            order = ", ".join(f"i32 {lane}" for lane in range(start, start + size))
            part = self.temporary(
                f"shufflevector {self.typed(value)}, {self.type(value)} poison, <{size} x i32> <{order}>"
            )
            at = self.temporary(f"getelementptr {element}, {self.typed(address)}, i64 {start}")
            self.lines.append(f"  store <{size} x {element}> {part}, ptr {at}, align {alignment}")

    def _pointers(self, base: Value, indices: Value, size: int) -> tuple[str, str]:
        kind = f"<{indices.lanes} x ptr>"
        return kind, self.temporary(f"getelementptr i{8 * size}, {self.typed(base)}, {self.typed(indices)}")

    def gather(self, item: Instruction) -> None:
        assert item.result is not None
        base, indices, mask = item.operands
        pointers, addresses = self._pointers(base, indices, item.extra[0])
        kind = self.type(item.result)
        full = f"@llvm.masked.gather.{suffix(item.result)}.v{indices.lanes}p0"
        self.declare(f"declare {kind} {full}({pointers}, i32, {self.type(mask)}, {kind})")
        self.define(
            item,
            f"call {kind} {full}({pointers} {addresses}, i32 {item.extra[0]}, {self.typed(mask)}, "
            f"{kind} zeroinitializer)",
        )

    def scatter(self, item: Instruction) -> None:
        value, base, indices, mask = item.operands
        pointers, addresses = self._pointers(base, indices, item.extra[0])
        full = f"@llvm.masked.scatter.{suffix(value)}.v{indices.lanes}p0"
        self.declare(f"declare void {full}({self.type(value)}, {pointers}, i32, {self.type(mask)})")
        self.lines.append(
            f"  call void {full}({self.typed(value)}, {pointers} {addresses}, i32 {item.extra[0]}, {self.typed(mask)})"
        )

    def prefetch(self, item: Instruction) -> None:
        self.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        write, once = item.extra
        address, locality = self.typed(item.operands[0]), 0 if once else 3
        self.lines.append(f"  call void @llvm.prefetch.p0({address}, i32 {int(write)}, i32 {locality}, i32 1)")

    def fault(self, item: Instruction) -> None:
        condition, word = item.operands
        bad, fine = self.label("fault"), self.label("fine")
        self.lines.append(f"  br i1 {self.name(condition)}, label %{bad}, label %{fine}, !prof !1")
        self.start_block(bad)
        self.temporary(f"cmpxchg ptr {self.name(word)}, i64 0, i64 {item.extra} monotonic monotonic")
        self.lines.append(f"  br label %{fine}")
        self.start_block(fine)

    def fence(self, item: Instruction) -> None:
        del item
        if not self.streams:
            return
        if self.x86:
            self.declare("declare void @llvm.x86.sse.sfence()")
            self.lines.append("  call void @llvm.x86.sse.sfence()")
        else:
            self.lines.append("  fence release")


def _first_lanes(mask: Value) -> int | None:
    """How many lanes a literal mask has on, where they are the first ones."""
    if not isinstance(mask.constant, tuple):
        return None
    count = sum(mask.constant)
    return int(count) if all(mask.constant[: int(count)]) else None
