"""Register form to LLVM text: structured loops and branches become blocks and phis, one line an instruction."""

from __future__ import annotations

from collections.abc import Callable

from tilework.codegen.cpu.memory_text import MemoryText
from tilework.codegen.cpu.words import suffix
from tilework.lowering.registers import Block, Branch, Function, Instruction, Loop, Region

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


class Printer(MemoryText):
    """Prints the functions of one kernel."""

    def __init__(self, slots: dict[tuple[str, str], int], *, x86: bool) -> None:
        super().__init__(slots, x86=x86)
        self._handlers: dict[str, Callable[[Instruction], None]] = {
            "icmp": self._compare, "fcmp": self._compare, "select": self._select, "fneg": self._negate,
            "fptosi": self._saturate, "fptoui": self._saturate, "any": self._any, "splat": self._splat,
            "insert": self._insert, "extract": self._extract, "shuffle": self._shuffle, "argument": self.argument,
            "zeros": self.zeros, "stack": self.stack, "offset": self.offset, "load": self.load,
            "store": self.store, "masked_load": self.masked_load, "masked_store": self.masked_store,
            "gather": self.gather, "scatter": self.scatter, "prefetch": self.prefetch, "fault": self.fault,
            "fence": self.fence, "error_word": self.error_word,
            "table": self.table, "extract_at": self._extract_at, "insert_at": self._insert_at,
        }  # fmt: skip

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
        full = f"@llvm.{item.name}.sat.{suffix(item.result)}.{suffix(value)}"
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
