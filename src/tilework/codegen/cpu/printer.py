"""Register form to LLVM text: structured loops and branches become blocks and phis, one line an instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tilework.codegen.cpu.gate import POLL_FUNCTION_OFFSET
from tilework.codegen.cpu.memory_text import MemoryText
from tilework.codegen.cpu.modules import SHARED
from tilework.codegen.cpu.partial_vectors import MaskedWidths
from tilework.codegen.cpu.words import suffix, type_of
from tilework.lowering.registers import BITS, Block, Branch, Function, Instruction, Loop, Region

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
_LOOKUPS = {8: "llvm.x86.avx2.permd", 16: "llvm.x86.avx512.permvar.si.512"}
"""Instructions that pick elements of 32 bits out of a register, by how many it holds."""


class Printer(MemoryText):
    """Prints the functions of one kernel."""

    def __init__(
        self, slots: dict[tuple[str, str], int], *, kernel: str, x86: bool, masked_widths: MaskedWidths
    ) -> None:
        super().__init__(slots, kernel=kernel, x86=x86, masked_widths=masked_widths)
        self.polls = False

    # -- functions -----------------------------------------------------------------------------------------------------
    def body(self, function: Function) -> list[str]:
        """The lines of a function's body, without its return."""
        self.lines = []
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
        """A loop, or one loop in another where it looks for signals between pieces of it."""
        end, before = self.label("end"), self.block
        start, stop = self.name(loop.start), self.name(loop.stop)
        piece = loop.piece
        outer = self.label("piece") if piece is not None and piece.constant != 1 else ""
        head = self.label("loop")
        if loop.certain:
            self.lines.append(f"  br label %{outer or head}")
        else:
            some = self.temporary(f"icmp slt i64 {start}, {stop}")
            self.lines.append(f"  br i1 {some}, label %{outer or head}, label %{end}")
        look = self.label("look") if piece is not None else ""
        following = self.label("%next")
        nexts = [self.name(c.next) for c in loop.carried]
        types = [self.type(c.inside) for c in loop.carried]
        come, first, starts, limit = before, start, [self.name(c.start) for c in loop.carried], stop
        if piece is not None and outer:
            self.start_block(outer)
            first, again = self.label("%first"), [self.label("%again") for _ in loop.carried]
            self._phi(first, "i64", [(start, before), (following, look)])
            for name, kind, one, following_one in zip(again, types, starts, nexts, strict=True):
                self._phi(name, kind, [(one, before), (following_one, look)])
            reach = self.temporary(f"add nsw i64 {first}, {self.name(piece)}")
            self.declare("declare i64 @llvm.smin.i64(i64, i64)")
            limit = self.temporary(f"call i64 @llvm.smin.i64(i64 {reach}, i64 {stop})")
            self.lines.append(f"  br label %{head}")
            come, starts = outer, again
        self.start_block(head)
        mark = len(self.lines)
        self.print_block(loop.body)
        tail, body = self.block, self.lines[mark:]
        del self.lines[mark:]
        back = look if piece is not None and not outer else tail
        self._phi(self.name(loop.variable), "i64", [(first, come), (following, back)])
        for c, kind, one, following_one in zip(loop.carried, types, starts, nexts, strict=True):
            self._phi(self.name(c.inside), kind, [(one, come), (following_one, back)])
        self.lines += body
        self.lines.append(f"  {following} = add nsw i64 {self.name(loop.variable)}, 1")
        more = self.temporary(f"icmp slt i64 {following}, {limit}")
        leaves = [tail]
        if piece is None:
            self.lines.append(f"  br i1 {more}, label %{head}, label %{end}")
        else:
            if outer:
                pause = self.label("pause")
                self.lines.append(f"  br i1 {more}, label %{head}, label %{pause}")
                self.start_block(pause)
                more, leaves = self.temporary(f"icmp slt i64 {following}, {stop}"), [pause]
            self.lines.append(f"  br i1 {more}, label %{look}, label %{end}" + (", !prof !1" if outer else ""))
            self.start_block(look)
            self.lines.append(f"  br i1 {self._asked()}, label %{end}, label %{outer or head}, !prof !1")
            leaves.append(look)
        self.start_block(end)
        for c, following_one in zip(loop.carried, nexts, strict=True):
            entries = [] if loop.certain else [(self.name(c.start), before)]
            self._phi(self.name(c.after), self.type(c.after), [*entries, *((following_one, place) for place in leaves)])

    def _phi(self, name: str, kind: str, entries: list[tuple[str, str]]) -> None:
        self.lines.append(f"  {name} = phi {kind} " + ", ".join(f"[ {value}, %{block} ]" for value, block in entries))

    def _asked(self) -> str:
        """Whether the call is to stop, as an i1."""
        self.polls = True
        return self.temporary(f"call preserve_mostcc i1 @{SHARED}(ptr %args)")

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
        run = "tilework_pool_run_watched" if region.function.polls else "tilework_pool_run"
        self.declare(f"declare void @{run}(ptr, ptr, ptr, i32)")
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
            f"  call void @{run}(ptr %pool, ptr @{region.function.name}, ptr {context}, i32 {self.name(region.chunks)})"
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

    def function(self, function: Function, head: str, last: list[str]) -> str:
        """A whole function as text. `head` is its signature and attributes; `last` the lines that return."""
        self.entry_allocations = []
        first = self.captures(function) if function.chunk is not None else []
        self.block = "entry"
        if function.chunk is not None and function.polls:
            first += self._looking(self.name(function.chunk))
        body = self.body(function)
        return "\n".join([head + " {", "entry:", *self.entry_allocations, *first, *body, *last, "}"])

    def _looking(self, chunk: str) -> list[str]:
        """The lines with which a chunk but the first looks whether the call is to stop; chunk -1 does nothing else."""
        self.lines, self.block = [], "start"
        self.lines += [f"  %later = icmp ne i32 {chunk}, 0", "  br i1 %later, label %look, label %start", "look:"]
        asked = self._asked()
        self.lines += [
            f"  %only = icmp slt i32 {chunk}, 0",
            f"  %leaves = or i1 %only, {asked}",
            "  br i1 %leaves, label %leave, label %start",
            "leave:",
            "  ret void",
            "start:",
        ]
        return self.lines

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
            self._HANDLERS[name](self, item)

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
        if item.extra == "inside":
            self.define(item, f"{item.name} {self.typed(value)} to {self.type(item.result)}")
            return
        full = f"@llvm.{item.name}.sat.{suffix(item.result)}.{suffix(value)}"
        self.declare(f"declare {self.type(item.result)} {full}({self.type(value)})")
        self.define(item, f"call {self.type(item.result)} {full}({self.typed(value)})")

    def _machine(self, item: Instruction) -> None:
        assert item.result is not None
        kind = self.type(item.result)
        self.declare(f"declare {kind} @{item.extra}({', '.join(self.type(o) for o in item.operands)})")
        self.define(item, f"call {kind} @{item.extra}({', '.join(self.typed(o) for o in item.operands)})")

    def _lookup(self, item: Instruction) -> None:
        """Elements of a table that lies in a register, a register of indices at a time. One index reads memory."""
        (index,) = item.operands
        table, lanes = item.extra
        if not index.lanes:
            low = self.temporary(f"and {self.typed(index)}, {len(table) - 1}")
            element = self.element(table, self.temporary(f"zext i32 {low} to i64"))
            self.define(item, f"trunc i64 {element} to i32")
            return
        full, kind = type_of("i32", lanes), self.type(index)
        instruction = _LOOKUPS[lanes]
        self.declare(f"declare {full} @{instruction}({full}, {full})")
        entries = ", ".join(f"i32 {table[lane % len(table)]}" for lane in range(lanes))
        parts: list[str] = []
        for first in range(0, index.lanes, lanes):
            order = ", ".join(f"i32 {min(first + lane, index.lanes - 1)}" for lane in range(lanes))
            part = self.temporary(f"shufflevector {self.typed(index)}, {kind} poison, <{lanes} x i32> <{order}>")
            parts.append(self.temporary(f"call {full} @{instruction}({full} <{entries}>, {full} {part})"))
        self.join(item, parts, lanes)

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

    def _tie(self, item: Instruction) -> None:
        """The parts of a vector, each as wide as a register, go through an empty piece of assembly, which LLVM keeps in
        order.
        """
        assert item.result is not None
        (value,) = item.operands
        lanes = item.extra // BITS[value.kind]
        count, part = value.lanes // lanes, type_of(value.kind, lanes)
        whole = self.typed(value)
        parts = [
            self.temporary(f"shufflevector {whole}, {self.type(value)} poison, {_order(p * lanes, lanes)}")
            for p in range(count)
        ]
        # the text is empty, so LLVM needs no assembler (see `objects.check_text`)
        place = "=v,0" if self.x86 else "=w,0"
        parts = [self.temporary(f'call {part} asm sideeffect "", "{place}"({part} {p})') for p in parts]
        self.join(item, parts, lanes)

    def join(self, item: Instruction, parts: list[str], lanes: int) -> None:
        """The result from parts of so many lanes each; lanes beyond the result's are dropped."""
        assert item.result is not None
        kind = item.result.kind
        while len(parts) > 1:
            part = type_of(kind, lanes)
            lanes *= 2
            parts = [
                self.temporary(f"shufflevector {part} {a}, {part} {b}, {_order(0, lanes)}")
                for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
        part = type_of(kind, lanes)
        self.define(item, f"shufflevector {part} {parts[0]}, {part} poison, {_order(0, item.result.lanes)}")

    def _shuffle(self, item: Instruction) -> None:
        a, b = item.operands
        order = ", ".join(f"i32 {lane}" for lane in item.extra)
        self.define(item, f"shufflevector {self.typed(a)}, {self.typed(b)}, <{len(item.extra)} x i32> <{order}>")

    _HANDLERS: ClassVar[Mapping[str, Callable[[Any, Instruction], None]]] = {
        "icmp": _compare, "fcmp": _compare, "select": _select, "fneg": _negate, "fptosi": _saturate,
        "fptoui": _saturate, "any": _any, "splat": _splat, "insert": _insert, "extract": _extract,
        "shuffle": _shuffle, "argument": MemoryText.argument, "zeros": MemoryText.zeros, "stack": MemoryText.stack,
        "offset": MemoryText.offset, "row": MemoryText.row, "load": MemoryText.load, "store": MemoryText.store,
        "masked_load": MemoryText.masked_load, "masked_store": MemoryText.masked_store, "gather": MemoryText.gather,
        "scatter": MemoryText.scatter, "prefetch": MemoryText.prefetch, "fault": MemoryText.fault,
        "fence": MemoryText.fence, "error_word": MemoryText.error_word, "machine": _machine,
        "table": MemoryText.table, "lookup": _lookup, "tie": _tie, "extract_at": _extract_at, "insert_at": _insert_at,
    }  # fmt: skip


def _order(first: int, count: int) -> str:
    """Neighbouring lanes, as the order of a shuffle."""
    return f"<{count} x i32> <" + ", ".join(f"i32 {first + lane}" for lane in range(count)) + ">"


def stop_function() -> str:
    """LLVM text of `i1 tilework.stop(ptr args)`: whether the call is to stop.

    The error word of a call is followed by the pool's address and that of the poll state, which holds the function to
    ask at byte 48 (see `gate.POLL_BYTES`). Without a state, or a function in it, nothing stops the call. It keeps the
    integer registers, so that callers keep theirs across a look.
    """
    return f"""define internal preserve_mostcc i1 @{SHARED}(ptr %args) nounwind cold {{
entry:
  %word = load ptr, ptr %args, align 8
  %state_at = getelementptr i64, ptr %word, i64 2
  %state = load ptr, ptr %state_at, align 8
  %unwatched = icmp eq ptr %state, null
  br i1 %unwatched, label %go_on, label %watched
watched:
  %poll_at = getelementptr i8, ptr %state, i64 {POLL_FUNCTION_OFFSET}
  %poll = load ptr, ptr %poll_at, align 8
  %deaf = icmp eq ptr %poll, null
  br i1 %deaf, label %go_on, label %ask
ask:
  %answer = call i32 %poll(ptr %state)
  %stops = icmp ne i32 %answer, 0
  ret i1 %stops
go_on:
  ret i1 false
}}"""
