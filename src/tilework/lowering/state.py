"""What the parts of the lowering share: the program, what is known of names, and where emission stands."""

from __future__ import annotations

from tilework import dtypes
from tilework.dims import Dim
from tilework.dtypes import DType
from tilework.errors import CodegenError
from tilework.fast_dataclass import dataclass, field
from tilework.loops.program import Buffer, LoopProgram
from tilework.lowering.builder import Builder, Scope
from tilework.lowering.prover import Prover
from tilework.lowering.registers import FaultPlace, Value
from tilework.numerics import Numerics

MAX_LANES = 64
"""A vectorised loop may have this many iterations; the target splits what is wider than its registers."""
MAX_UNROLLED = 512
"""An unrolled loop of more iterations is lowered as a serial one."""


def register_kind(dtype: DType) -> str:
    """The kind of register that holds a value of this type; raises `CodegenError` 1603 where there is none."""
    if dtype.kind == "boolean":
        return "i1"
    if dtype.is_integer:
        return f"i{max(dtype.bits, 8)}"
    if dtype.is_small_float:
        return "f32"
    if dtype in (dtypes.float32, dtypes.float64):
        return f"f{dtype.bits}"
    raise CodegenError(1603, f"no code can be generated for elements of type {dtype}")


def memory_kind(dtype: DType) -> str:
    """The kind in which an element is loaded and stored."""
    if dtype.kind == "boolean":
        return "i8"
    if dtype == dtypes.float16:
        return "f16"
    if dtype == dtypes.bfloat16:
        return "i16"
    return "i8" if dtype.is_small_float else register_kind(dtype)


def moved_as(dtype: DType) -> DType | None:
    """The integer type as which elements are moved that change on their way through a register; None for others."""
    if dtype in (dtypes.float16, dtypes.bfloat16):
        return dtypes.uint16
    return dtypes.uint8 if dtype == dtypes.boolean or dtype.is_small_float or dtype.is_small_integer else None


@dataclass
class Lane:
    """The vectorised loop that encloses the current statement."""

    variable: str
    width: int


@dataclass
class FunctionState:
    """One function under construction: the entry of the kernel or the body of a parallel region."""

    builder: Builder
    outer: FunctionState | None = None
    variables: dict[str, Value] = field(default_factory=dict[str, Value])
    """Serial and parallel loop variables (i64)."""
    bases: dict[str, Value] = field(default_factory=dict[str, Value])
    """Addresses of buffers."""
    cells: dict[tuple[str, tuple[int, ...]], Value] = field(default_factory=dict[tuple[str, tuple[int, ...]], Value])
    """Elements of buffers that are kept in registers."""
    epochs: dict[str, int] = field(default_factory=dict[str, int])
    """How often each buffer has been stored to: loads of one epoch are one."""
    captured: list[tuple[Value, Value]] = field(default_factory=list[tuple[Value, Value]])
    chunk: Value | None = None
    chunks: Value | None = None
    region: tuple[str, ...] = ()
    """Variables of the parallel loop that this function is the body of."""
    stack_bytes: int = 0
    polls: bool = False
    """Whether a loop in it looks for signals."""


class State:
    """The lowering of one program."""

    def __init__(self, program: LoopProgram, numerics: Numerics, *, checked: bool, streaming: frozenset[str]) -> None:
        self.program = program
        self.numerics = numerics
        self.checked = checked
        self.streaming = streaming
        self.lookup_lanes = 0
        """Elements of 32 bits that one instruction of the machine looks up in a register."""
        self.masked_loads: frozenset[int] = frozenset()
        """Widths in bits of the elements that the machine loads by a mask."""
        self.streams = False
        """Whether the version being emitted streams past the caches."""
        self.buffers: dict[str, Buffer] = dict(program.buffers)
        self.arguments = [argument.buffer.name for argument in program.arguments]
        self.workspaces: dict[str, Buffer] = {}
        self.symbols = [symbol.name for symbol in program.symbols]
        self.prover = Prover(program)
        self.environment: dict[str, int] = {}
        """Variables of unrolled loops."""
        self.lane: Lane | None = None
        self.function = FunctionState(Builder())
        self.statement = ""
        self.faults: dict[FaultPlace, int] = {}
        """What may go wrong, with the number that says so in the error word."""

    @property
    def builder(self) -> Builder:
        return self.function.builder

    def fault_detail(self, buffer: str, positions: tuple[str, ...]) -> int:
        """The number of a fault of the current statement; one of its program (no `positions`) is not told apart."""
        place = FaultPlace(self.statement, buffer if positions else "", positions)
        return self.faults.setdefault(place, len(self.faults))

    # -- names ---------------------------------------------------------------------------------------------------------
    def variable(self, name: str) -> Value:
        """The value of a loop variable or symbol in the current function."""
        return self._variable(self.function, name)

    def _variable(self, function: FunctionState, name: str) -> Value:
        found = function.variables.get(name)
        if found is not None:
            return found
        if name in self.symbols:
            return function.builder.pure("argument", "i64", 0, (), ("symbol", name))
        if function.outer is None:
            raise CodegenError(
                1605, f"{name} is neither a symbol nor a loop around the statement", where=self.statement
            )
        found = function.variables[name] = self.capture(function, self._variable(function.outer, name))
        return found

    def base(self, name: str) -> Value:
        """The address of a buffer in the current function."""
        return self._base(self.function, name)

    def _base(self, function: FunctionState, name: str) -> Value:
        found = function.bases.get(name)
        if found is not None:
            return found
        if name in self.arguments or name in self.workspaces:
            found = function.builder.pure("argument", "ptr", 0, (), ("buffer", name))
        elif function.outer is not None:
            found = self.capture(function, self._base(function.outer, name))
        else:
            raise CodegenError(1605, f"buffer {name} is used outside its storage", where=self.statement)
        function.bases[name] = found
        return found

    def capture(self, function: FunctionState, value: Value) -> Value:
        """A value of the function around as one of a region's."""
        if value.constant is not None:
            return value
        for here, there in function.captured:
            if here is value:
                return there
        there = function.builder.fresh(value.kind, 0, 0)
        function.captured.append((value, there))
        return there

    # -- knowledge -----------------------------------------------------------------------------------------------------
    def nonnegative(self, value: Dim) -> bool:
        """Whether a dim is >= 0 for all values that its names take inside their loops (False: not proved)."""
        return self.prover.nonnegative(value)

    def certain(self, extent: Dim) -> bool:
        """Whether a loop of this extent is known to run at least once."""
        return self.nonnegative(extent.substitute(dict(self.environment)) - 1)

    # -- scopes --------------------------------------------------------------------------------------------------------
    def load_depth(self, buffer: str, depth: int, *, safe: bool) -> int:
        """The outermost scope in which a load may stand whose operands exist at `depth`.

        It stays inside scopes that store to its buffer, inside branches, and, unless it is `safe` wherever its operands
        exist, inside loops that may run no time.
        """
        scopes = self.builder.scopes
        stand = len(scopes) - 1
        while stand > depth:
            scope: Scope = scopes[stand]
            if scope.branch or buffer in scope.written or not (safe or scope.certain):
                break
            stand -= 1
        return stand
