"""The register form: what a loop program becomes before it is printed for a target.

A function is a block of instructions, loops and branches. Every value is assigned once; loops carry values, branches
merge them, so a printer for a language with variables and one for a language with phis read the same form.

Kinds of values: `i1`, `i8` .. `i64` (signedness is the instruction's), `f16`, `bf16`, `f32`, `f64`, `ptr`. A value with
lanes is a vector; `lanes == 0` is a scalar. Smaller floats have no arithmetic: they are widened to `f32` where they are
loaded; `bf16` is only an operand of machine instructions.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from tilework.fast_dataclass import dataclass, field

Literal: TypeAlias = "int | float | bool | tuple[int | float | bool, ...]"

BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "ptr": 64}
"""Width of a kind in bits."""


class Value:
    """A value: its kind, its lanes (0: scalar), and how many scopes enclose its definition.

    `constant` holds a literal's value (for a vector: one value for all lanes, or a tuple), else None.
    """

    __slots__ = ("constant", "depth", "kind", "lanes", "number")

    def __init__(self, kind: str, lanes: int, depth: int, number: int, constant: Literal | None = None) -> None:
        self.kind = kind
        self.lanes = lanes
        self.depth = depth
        self.number = number
        self.constant = constant

    def __repr__(self) -> str:
        if self.constant is not None:
            return f"{self.kind}:{self.constant}"
        return f"%{self.number}:{self.kind}" + (f"x{self.lanes}" if self.lanes else "")


class Instruction:
    """One instruction. `result` is None for a store and the like; `extra` depends on the operation (see
    `OPERATIONS`).
    """

    __slots__ = ("extra", "name", "operands", "result")

    def __init__(self, name: str, operands: tuple[Value, ...], result: Value | None, extra: Any = None) -> None:
        self.name = name
        self.operands = operands
        self.result = result
        self.extra = extra

    def __repr__(self) -> str:
        head = f"{self.result} = " if self.result is not None else ""
        tail = f" [{self.extra}]" if self.extra is not None else ""
        return f"{head}{self.name} {', '.join(map(repr, self.operands))}{tail}"


OPERATIONS: dict[str, str] = {
    "add sub mul and or xor shl lshr ashr sdiv udiv srem urem": "integers; nothing traps: operands are made safe first",
    "fadd fsub fmul fdiv frem fneg": "floating point, correctly rounded",
    "fma fabs sqrt floor ceil trunc roundeven copysign": "floating point functions, exact or correctly rounded",
    "maximum minimum": "propagate NaN; extra 'nsz': zeros of either sign are equal",
    "ctpop smax smin umax umin": "integer functions",
    "icmp fcmp": "comparison; extra is the predicate in LLVM's words",
    "select": "condition, then, else",
    "sext zext itrunc sitofp uitofp fpext fptrunc bitcast ptrtoint": "conversions; a bitcast may change the lanes",
    "machine": "an instruction of the machine; extra: the target's name of it, operands in its order",
    "fptosi fptoui": "to integers, truncating, saturating, NaN to 0; extra 'inside': the number is within the type",
    "splat insert extract shuffle": "scalar to all lanes; vector, scalar (extra: lane); vector (extra: lane); two "
    "vectors (extra: lanes taken)",
    "tie": "the same value; its parts of extra bits each are complete here before anything that follows needs one",
    "argument": "a symbol's int64 or a buffer's address from the argument block; extra: ('symbol' or 'buffer', name)",
    "extract_at insert_at": "vector, i64 lane; vector, scalar, i64 lane",
    "table": "an element of a constant table of i64 (extra: its elements) for each index, which must be inside it",
    "lookup": "the element of a table of 8 i32 (extra: its elements, lanes of a machine's lookup) that the low 3 "
    "bits of each i32 name",
    "any": "whether a lane of a mask is on",
    "zeros": "the address of 512 readable zero bytes",
    "stack": "the address of extra bytes that live while the function runs, aligned to 64",
    "offset": "address plus index times extra bytes",
    "row": "the same address, where a row starts: how it came about does not matter to what is added to it",
    "load store": "extra: (alignment, buffer, streaming); store: value, address",
    "masked_load masked_store": "address, mask and value, address, mask; lanes off are neither read nor written",
    "gather scatter": "base, indices, mask; value, base, indices, mask; extra: (element bytes, buffer)",
    "prefetch": "address; extra: whether for writing, whether used only once",
    "fault": "condition, error word's address; extra: the word to set where the condition holds and none is set yet",
    "fence": "streaming stores are visible to other threads before what follows",
    "error_word": "the address of the call's error word",
}
"""Every operation, and what its operands and extra are."""


class Block:
    """Items one after another."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[Item] = []


@dataclass
class Carried:
    """A value that goes round a loop: `inside` its body, `start` before it, `next` at its end, `after` it."""

    inside: Value
    start: Value
    next: Value
    after: Value


@dataclass
class Loop:
    """`body` for `variable` (i64) from `start` to `stop` - 1; `certain`: runs at least once.

    A loop with a `piece` (i64, at least 1) looks for signals after so many iterations, and ends early where the call is
    to stop: what it leaves behind is then never looked at.
    """

    variable: Value
    start: Value
    stop: Value
    certain: bool
    body: Block
    carried: list[Carried] = field(default_factory=list[Carried])
    piece: Value | None = None


@dataclass
class Branch:
    """`then` where the condition holds, else `otherwise`; `merged` are (result, value of then, value of otherwise)."""

    condition: Value
    then: Block
    otherwise: Block
    merged: list[tuple[Value, Value, Value]] = field(default_factory=list[tuple[Value, Value, Value]])


@dataclass
class Region:
    """Run the function `function` once for each chunk 0 .. `chunks` - 1 (i32), in any order, at the same time.

    `captured` are values of this function that the region needs beside the argument block: (here, there).
    """

    function: Function
    chunks: Value
    captured: list[tuple[Value, Value]]


Item: TypeAlias = "Instruction | Loop | Branch | Region"


@dataclass
class Function:
    """A function over the argument block. A region's function also has its chunk's number and the number of chunks.

    One that `polls` does nothing where the call is to stop, nor for chunk -1 (it then only looks for signals).
    """

    name: str
    body: Block
    chunk: Value | None = None
    chunks: Value | None = None
    captured: list[tuple[Value, Value]] = field(default_factory=list[tuple[Value, Value]])
    polls: bool = False


@dataclass(frozen=True)
class FaultPlace:
    """The statement at fault; where data are to blame, the buffer it accesses and those that the index is read from."""

    statement: str
    buffer: str = ""
    positions: tuple[str, ...] = ()


@dataclass
class Module:
    """A lowered kernel: its entry, the functions of its parallel regions, and the faults that it may report."""

    entry: Function
    regions: list[Function]
    faults: tuple[FaultPlace, ...]
    """By the number that a fault's word holds."""
