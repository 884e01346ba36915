"""Register form to LLVM text: structured loops and branches become blocks and phis, one line an instruction."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from tilework.lowering.registers import BITS, Block, Branch, Function, Instruction, Loop, Region, Value

_TYPES = {"f16": "half", "f32": "float", "f64": "double"}
_INFIX = frozenset(
    ["add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "sdiv", "udiv", "srem", "urem", "fadd", "fsub",
    "fmul", "fdiv", "frem"]
)  # fmt: skip
_CASTS = {
    "sext": "sext", "zext": "zext", "itrunc": "trunc", "sitofp": "sitofp", "uitofp": "uitofp", "fpext": "fpext",
    "fptrunc": "fptrunc", "bitcast": "bitcast", "ptrtoint": "ptrtoint",
}  # fmt: skip
_FUNCTIONS = frozenset(
    [
        "fma",
        "fabs",
        "sqrt",
        "floor",
        "ceil",
        "trunc",
        "roundeven",
        "copysign",
        "maximum",
        "minimum",
        "ctpop",
        "smax",
        "smin",
        "umax",
        "umin",
    ]
)


def type_of(kind: str, lanes: int = 0) -> str:
    """LLVM's name of a register's type."""
    name = _TYPES.get(kind, kind)
    return f"<{lanes} x {name}>" if lanes else name


class Printer:
    """Prints the functions of one kernel. `slots` gives the argument block's slot of each ('symbol' or 'buffer',
    name).
    """

    def __init__(self, slots: dict[tuple[str, str], int], *, x86: bool) -> None:
        self.slots = slots
        self.x86 = x86
        self.declared: dict[str, None] = {}
        self.lines: list[str] = []
        self.block = "entry"
        self.labels = 0
        self.zeros = False
        self.streams = False
        self.tables: dict[tuple[int, ...], str] = {}
        self._texts: dict[int, str] = {}
        self._types: dict[tuple[str, int], str] = {}
        self._handlers: dict[str, Callable[[Instruction], None]] = {
            "icmp": self._compare, "fcmp": self._compare, "select": self._select, "fneg": self._negate,
            "fptosi": self._saturate, "fptoui": self._saturate, "any": self._any, "splat": self._splat,
            "insert": self._insert, "extract": self._extract, "shuffle": self._shuffle, "argument": self._argument,
            "zeros": self._zeros, "stack": self._stack, "offset": self._offset, "load": self._load,
            "store": self._store, "masked_load": self._masked_load, "masked_store": self._masked_store,
            "gather": self._gather, "scatter": self._scatter, "prefetch": self._prefetch, "fault": self._fault,
            "fence": self._fence, "error_word": self._error_word,
            "table": self._table, "extract_at": self._extract_at, "insert_at": self._insert_at,
        }  # fmt: skip

    # -- words ---------------------------------------------------------------------------------------------------------
    def type(self, value: Value) -> str:
        key = (value.kind, value.lanes)
        found = self._types.get(key)
        if found is None:
            found = self._types[key] = type_of(*key)
        return found

    def name(self, value: Value) -> str:
        """How an operand is written: a register or a literal."""
        if value.constant is None:
            return f"%v{value.number}"
        found = self._texts.get(id(value))
        if found is None:
            found = self._texts[id(value)] = _literal_text(value)
        return found

    def typed(self, value: Value) -> str:
        return f"{self.type(value)} {self.name(value)}"

    def label(self, stem: str) -> str:
        self.labels += 1
        return f"{stem}{self.labels}"

    def temporary(self, text: str) -> str:
        self.labels += 1
        name = f"%x{self.labels}"
        self.lines.append(f"  {name} = {text}")
        return name

    def declare(self, text: str) -> None:
        self.declared[text] = None

    def start_block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    # -- functions -----------------------------------------------------------------------------------------------------
    def body(self, function: Function) -> list[str]:
        """The lines of a function's body, without its return."""
        self.lines, self.block = [], "entry"
        self.print_block(function.body)
        return self.lines

    def print_block(self, block: Block) -> None:
        for item in block.items:
            if isinstance(item, Instruction):
                self.instruction(item)
            elif isinstance(item, Loop):
                self.loop(item)
            elif isinstance(item, Branch):
                self.branch(item)
            else:
                self.region(item)

    def loop(self, loop: Loop) -> None:
        head, end = self.label("loop"), self.label("end")
        before = self.block
        start, stop = self.name(loop.start), self.name(loop.stop)
        if loop.certain:
            self.lines.append(f"  br label %{head}")
        else:
            some = self.temporary(f"icmp slt i64 {start}, {stop}")
            self.lines.append(f"  br i1 {some}, label %{head}, label %{end}")
        self.start_block(head)
        mark = len(self.lines)
        following = self.label("%next")
        self.print_block(loop.body)
        tail = self.block
        variable = self.name(loop.variable)
        phis = [f"  {variable} = phi i64 [ {start}, %{before} ], [ {following}, %{tail} ]"]
        phis += [
            f"  {self.name(c.inside)} = phi {self.type(c.inside)} [ {self.name(c.start)}, %{before} ], "
            f"[ {self.name(c.next)}, %{tail} ]"
            for c in loop.carried
        ]
        self.lines[mark:mark] = phis
        self.lines.append(f"  {following} = add nsw i64 {variable}, 1")
        more = self.temporary(f"icmp slt i64 {following}, {stop}")
        self.lines.append(f"  br i1 {more}, label %{head}, label %{end}")
        self.start_block(end)
        for c in loop.carried:
            entries = "" if loop.certain else f"[ {self.name(c.start)}, %{before} ], "
            self.lines.append(
                f"  {self.name(c.after)} = phi {self.type(c.after)} {entries}[ {self.name(c.next)}, %{tail} ]"
            )

    def branch(self, branch: Branch) -> None:
        then, end = self.label("then"), self.label("end")
        otherwise = self.label("else") if branch.otherwise.items else end
        before = self.block
        self.lines.append(f"  br i1 {self.name(branch.condition)}, label %{then}, label %{otherwise}")
        self.start_block(then)
        self.print_block(branch.then)
        then_tail = self.block
        self.lines.append(f"  br label %{end}")
        other_tail = before
        if otherwise != end:
            self.start_block(otherwise)
            self.print_block(branch.otherwise)
            other_tail = self.block
            self.lines.append(f"  br label %{end}")
        self.start_block(end)
        for result, a, b in branch.merged:
            self.lines.append(
                f"  {self.name(result)} = phi {self.type(result)} [ {self.name(a)}, %{then_tail} ], "
                f"[ {self.name(b)}, %{other_tail} ]"
            )

    def region(self, region: Region) -> None:
        self.declare("declare void @tilework_pool_run(ptr, ptr, ptr, i32)")
        context = "%args"
        if region.captured:
            context = self.temporary(f"alloca [{len(region.captured) + 1} x i64], align 8")
            # An alloca inside a loop would grow the stack: it belongs to the entry block.
            self.entry_allocations.append(self.lines.pop())
            self.lines.append(f"  store ptr %args, ptr {context}, align 8")
            for position, (here, _) in enumerate(region.captured, 1):
                slot = self.temporary(f"getelementptr i64, ptr {context}, i64 {position}")
                self.lines.append(f"  store {self.typed(here)}, ptr {slot}, align 8")
        self.lines.append(
            f"  call void @tilework_pool_run(ptr %pool, ptr @{region.function.name}, ptr {context}, "
            f"i32 {self.name(region.chunks)})"
        )

    def captures(self, function: Function) -> list[str]:
        """The lines with which a region's function finds the argument block and what it captured."""
        if not function.captured:
            return ["  %args = getelementptr i8, ptr %context, i64 0"]
        lines = ["  %args = load ptr, ptr %context, align 8"]
        for position, (_, there) in enumerate(function.captured, 1):
            lines.append(f"  %c{position} = getelementptr i64, ptr %context, i64 {position}")
            lines.append(f"  {self.name(there)} = load {self.type(there)}, ptr %c{position}, align 8")
        return lines

    entry_allocations: list[str]

    def function(self, function: Function, head: str, last: list[str]) -> str:
        """A whole function as text. `head` is its signature and attributes; `last` the lines that return."""
        self.entry_allocations = []
        region = function.chunk is not None
        body = self.body(function)
        first = self.captures(function) if region else []
        return "\n".join([head + " {", "entry:", *self.entry_allocations, *first, *body, *last, "}"])

    # -- instructions --------------------------------------------------------------------------------------------------
    def instruction(self, item: Instruction) -> None:
        name = item.name
        if name in _INFIX:
            a, b = item.operands
            self.define(item, f"{name} {self.typed(a)}, {self.name(b)}")
        elif name in _FUNCTIONS:
            flags = "nsz " if item.extra == "nsz" else ""
            self.define(item, self.intrinsic(name, item.result or item.operands[0], item.operands, flags))
        elif name in _CASTS:
            assert item.result is not None
            self.define(item, f"{_CASTS[name]} {self.typed(item.operands[0])} to {self.type(item.result)}")
        else:
            self._handlers[name](item)

    def define(self, item: Instruction, text: str) -> None:
        assert item.result is not None
        self.lines.append(f"  %v{item.result.number} = {text}")

    def intrinsic(self, name: str, result: Value, operands: tuple[Value, ...], flags: str = "") -> str:
        kind = self.type(result)
        full = f"@llvm.{name}.{_suffix(result)}"
        self.declare(f"declare {kind} {full}({', '.join(self.type(o) for o in operands)})")
        return f"call {flags}{kind} {full}({', '.join(self.typed(o) for o in operands)})"

    def _compare(self, item: Instruction) -> None:
        a, b = item.operands
        self.define(item, f"{item.name} {item.extra} {self.typed(a)}, {self.name(b)}")

    def _select(self, item: Instruction) -> None:
        self.define(item, "select " + ", ".join(self.typed(o) for o in item.operands))

    def _negate(self, item: Instruction) -> None:
        self.define(item, f"fneg {self.typed(item.operands[0])}")

    def _saturate(self, item: Instruction) -> None:
        assert item.result is not None
        (value,) = item.operands
        full = f"@llvm.{item.name}.sat.{_suffix(item.result)}.{_suffix(value)}"
        self.declare(f"declare {self.type(item.result)} {full}({self.type(value)})")
        self.define(item, f"call {self.type(item.result)} {full}({self.typed(value)})")

    def _any(self, item: Instruction) -> None:
        (mask,) = item.operands
        bits = self.temporary(f"bitcast {self.typed(mask)} to i{mask.lanes}")
        self.define(item, f"icmp ne i{mask.lanes} {bits}, 0")

    def _splat(self, item: Instruction) -> None:
        assert item.result is not None
        (value,) = item.operands
        kind, lanes = self.type(item.result), item.result.lanes
        first = self.temporary(f"insertelement {kind} poison, {self.typed(value)}, i32 0")
        self.define(item, f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer")

    def _insert(self, item: Instruction) -> None:
        vector, value = item.operands
        self.define(item, f"insertelement {self.typed(vector)}, {self.typed(value)}, i32 {item.extra}")

    def _extract(self, item: Instruction) -> None:
        self.define(item, f"extractelement {self.typed(item.operands[0])}, i32 {item.extra}")

    def _extract_at(self, item: Instruction) -> None:
        vector, lane = item.operands
        self.define(item, f"extractelement {self.typed(vector)}, {self.typed(lane)}")

    def _insert_at(self, item: Instruction) -> None:
        vector, value, lane = item.operands
        self.define(item, f"insertelement {self.typed(vector)}, {self.typed(value)}, {self.typed(lane)}")

    def _shuffle(self, item: Instruction) -> None:
        a, b = item.operands
        order = ", ".join(f"i32 {lane}" for lane in item.extra)
        self.define(item, f"shufflevector {self.typed(a)}, {self.typed(b)}, <{len(item.extra)} x i32> <{order}>")

    # -- the argument block --------------------------------------------------------------------------------------------
    def _argument(self, item: Instruction) -> None:
        assert item.result is not None
        address = self.temporary(f"getelementptr i64, ptr %args, i64 {self.slots[item.extra]}")
        self.define(item, f"load {self.type(item.result)}, ptr {address}, align 8")

    def _error_word(self, item: Instruction) -> None:
        self.define(item, "load ptr, ptr %args, align 8")

    def _zeros(self, item: Instruction) -> None:
        self.zeros = True
        self.define(item, "getelementptr i8, ptr @zeros, i64 0")

    def _stack(self, item: Instruction) -> None:
        assert item.result is not None
        self.entry_allocations.append(f"  %v{item.result.number} = alloca [{item.extra[0]} x i8], align 64")

    def _table(self, item: Instruction) -> None:
        """A gather from a constant array."""
        assert item.result is not None
        (index,) = item.operands
        name = self.tables.setdefault(item.extra, f"@table{len(self.tables)}")
        if not index.lanes:
            address = self.temporary(f"getelementptr i64, ptr {name}, {self.typed(index)}")
            self.define(item, f"load i64, ptr {address}, align 8")
            return
        kind, lanes = self.type(item.result), index.lanes
        addresses = self.temporary(f"getelementptr i64, ptr {name}, {self.typed(index)}")
        full = f"@llvm.masked.gather.v{lanes}i64.v{lanes}p0"
        self.declare(f"declare {kind} {full}(<{lanes} x ptr>, i32, <{lanes} x i1>, {kind})")
        self.define(
            item,
            f"call {kind} {full}(<{lanes} x ptr> {addresses}, i32 8, <{lanes} x i1> splat (i1 true), "
            f"{kind} zeroinitializer)",
        )

    def globals(self) -> list[str]:
        """The constants that the functions use."""
        lines = ["@zeros = private constant [512 x i8] zeroinitializer, align 64"] if self.zeros else []
        for elements, name in self.tables.items():
            content = ", ".join(f"i64 {e}" for e in elements)
            lines.append(f"{name} = private constant [{len(elements)} x i64] [{content}], align 8")
        return lines

    # -- memory --------------------------------------------------------------------------------------------------------
    def _offset(self, item: Instruction) -> None:
        base, index = item.operands
        self.define(item, f"getelementptr i{8 * item.extra}, {self.typed(base)}, {self.typed(index)}")

    def _load(self, item: Instruction) -> None:
        assert item.result is not None
        self.define(item, f"load {self.type(item.result)}, {self.typed(item.operands[0])}, align {item.extra[0]}")

    def _store(self, item: Instruction) -> None:
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

    def _masked_load(self, item: Instruction) -> None:
        assert item.result is not None
        address, mask = item.operands
        kind, element = self.type(item.result), type_of(item.result.kind)
        only = self._only_lane(mask, element, address)
        if only is not None:
            value = self.temporary(f"load {element}, ptr {only[1]}, align {item.extra[0]}")
            self.define(item, f"insertelement {kind} zeroinitializer, {element} {value}, i32 {only[0]}")
            return
        full = f"@llvm.masked.load.{_suffix(item.result)}.p0"
        self.declare(f"declare {kind} {full}(ptr, i32, {self.type(mask)}, {kind})")
        self.define(
            item,
            f"call {kind} {full}({self.typed(address)}, i32 {item.extra[0]}, {self.typed(mask)}, "
            f"{kind} zeroinitializer)",
        )

    def _masked_store(self, item: Instruction) -> None:
        value, address, mask = item.operands
        element = type_of(value.kind)
        only = self._only_lane(mask, element, address)
        if only is not None:
            one = self.temporary(f"extractelement {self.typed(value)}, i32 {only[0]}")
            self.lines.append(f"  store {element} {one}, ptr {only[1]}, align {item.extra[0]}")
            return
        full = f"@llvm.masked.store.{_suffix(value)}.p0"
        self.declare(f"declare void {full}({self.type(value)}, ptr, i32, {self.type(mask)})")
        self.lines.append(
            f"  call void {full}({self.typed(value)}, {self.typed(address)}, i32 {item.extra[0]}, {self.typed(mask)})"
        )

    def _pointers(self, base: Value, indices: Value, size: int) -> tuple[str, str]:
        kind = f"<{indices.lanes} x ptr>"
        return kind, self.temporary(f"getelementptr i{8 * size}, {self.typed(base)}, {self.typed(indices)}")

    def _gather(self, item: Instruction) -> None:
        assert item.result is not None
        base, indices, mask = item.operands
        pointers, addresses = self._pointers(base, indices, item.extra[0])
        kind = self.type(item.result)
        full = f"@llvm.masked.gather.{_suffix(item.result)}.v{indices.lanes}p0"
        self.declare(f"declare {kind} {full}({pointers}, i32, {self.type(mask)}, {kind})")
        self.define(
            item,
            f"call {kind} {full}({pointers} {addresses}, i32 {item.extra[0]}, {self.typed(mask)}, "
            f"{kind} zeroinitializer)",
        )

    def _scatter(self, item: Instruction) -> None:
        value, base, indices, mask = item.operands
        pointers, addresses = self._pointers(base, indices, item.extra[0])
        full = f"@llvm.masked.scatter.{_suffix(value)}.v{indices.lanes}p0"
        self.declare(f"declare void {full}({self.type(value)}, {pointers}, i32, {self.type(mask)})")
        self.lines.append(
            f"  call void {full}({self.typed(value)}, {pointers} {addresses}, i32 {item.extra[0]}, {self.typed(mask)})"
        )

    def _prefetch(self, item: Instruction) -> None:
        self.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.lines.append(
            f"  call void @llvm.prefetch.p0({self.typed(item.operands[0])}, i32 {int(item.extra)}, i32 3, i32 1)"
        )

    def _fault(self, item: Instruction) -> None:
        condition, word = item.operands
        bad, fine = self.label("fault"), self.label("fine")
        self.lines.append(f"  br i1 {self.name(condition)}, label %{bad}, label %{fine}, !prof !1")
        self.start_block(bad)
        self.temporary(f"cmpxchg ptr {self.name(word)}, i64 0, i64 {item.extra} monotonic monotonic")
        self.lines.append(f"  br label %{fine}")
        self.start_block(fine)

    def _fence(self, item: Instruction) -> None:
        del item
        if not self.streams:
            return
        if self.x86:
            self.declare("declare void @llvm.x86.sse.sfence()")
            self.lines.append("  call void @llvm.x86.sse.sfence()")
        else:
            self.lines.append("  fence release")


def _suffix(value: Value) -> str:
    """A type in the name of an intrinsic."""
    kind = value.kind
    return f"v{value.lanes}{kind}" if value.lanes else kind


def _literal_text(value: Value) -> str:
    constant = value.constant
    if not value.lanes:
        return _number(value.kind, constant)
    element = type_of(value.kind)
    if isinstance(constant, tuple):
        return "<" + ", ".join(f"{element} {_number(value.kind, c)}" for c in constant) + ">"
    text = _number(value.kind, constant)
    return "zeroinitializer" if text in ("0", "false", "0x0000000000000000") else f"splat ({element} {text})"


def _number(kind: str, value: object) -> str:
    if kind == "i1":
        return "true" if value else "false"
    if kind in ("f32", "f64"):
        assert isinstance(value, (int, float))
        number = float(value)
        if kind == "f32" and math.isfinite(number):
            number = _single(number)
        if number != number:  # noqa: PLR0124 - NaN
            return "0x7FF8000000000000"
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    assert isinstance(value, int)
    bits = BITS[kind]
    value &= (1 << bits) - 1
    return str(value - (1 << bits) if value >> (bits - 1) else value)


def _single(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)
