"""Machine instructions as data: the loop nest that each replaces, its operands, and what it needs.

A row is a dot product: every lane of a vector adds to its own sum the products of `group` neighbouring elements of two
operands. One operand is a vector, `group` elements a lane; of the other all lanes read the same group, which is spread.
`dot_products` lists the rows of a processor. Nothing here generates code, and nothing below knows an operator.

Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2 (PMADDWD, VPDPBUSD, VPDPWSSD, VPDPBSSD,
VDPBF16PS); Arm Architecture Reference Manual for A-profile (SDOT, UDOT, USDOT, BFDOT). Intrinsics and their types are
those of LLVM 22.
"""

from __future__ import annotations

from functools import cached_property

from tilework import dtypes
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass
from tilework.loops.parse import parse_program
from tilework.loops.program import LoopProgram


@dataclass(frozen=True)
class DotProduct:
    """One row: `sums[l] += spread[r] * vector[l, r]` for `lanes` lanes l and `group` elements r.

    `features`: sets of LLVM's feature names; one whole set must be available. `memory` are the types of the spread
    operand and of the vector in memory, `register` those that the instruction takes: narrower integers are widened when
    they are loaded. `spread_first`: the instruction takes the spread operand before the vector.
    """

    name: str
    intrinsic: str
    features: tuple[frozenset[str], ...]
    lanes: int
    group: int
    memory: tuple[DType, DType]
    register: tuple[DType, DType]
    result: DType
    spread_first: bool = True
    accumulates: bool = True
    """Whether it adds to the sums itself; else it gives new ones, which are added."""
    exact: bool = True
    """Whether it means its nest to the bit. Dot products of floating numbers add in an order of their own, and may take
    denormals for zero.
    """
    rate: float = 2.0
    """How many may start in one cycle."""

    @cached_property
    def meaning(self) -> LoopProgram:
        """The loop nest that the instruction replaces, its operands being the arguments."""
        spread, vector = self.memory
        return parse_program(
            f"""program dot_product
  read spread: {spread}[{self.group}]
  read vector: {vector}[{self.lanes}, {self.group}]
  accumulate sums: {self.result}[{self.lanes}]

  vectorized l < {self.lanes}
    unrolled r < {self.group}
      s: sums[l] += {_widened("spread[r]", spread, self.result)} * {_widened("vector[l, r]", vector, self.result)}
"""
        )

    @property
    def products(self) -> int:
        """Products of one instruction."""
        return self.lanes * self.group

    @property
    def operations_per_cycle(self) -> float:
        """Multiplications and additions that the processor can start in a cycle with this instruction."""
        return 2 * self.products * self.rate


def _widened(element: str, held: DType, wide: DType) -> str:
    return element if held == wide else f"cast({element}, {wide})"


def _x86() -> tuple[DotProduct, ...]:
    rows: list[DotProduct] = []
    s8, u8, s16, s32 = dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.int32
    bf16, f32 = dtypes.bfloat16, dtypes.float32
    for bits in (512, 256):
        lanes = bits // 32
        wide = bits == 512
        vnni = _any("avx512vnni") if wide else _any("avx512vnni avx512vl", "avxvnni")
        pairs = [(u8, s8), (s8, u8)]
        for spread, vector in pairs:
            rows.append(
                DotProduct(
                    f"vpdpbusd.{bits}.{_short(spread)}{_short(vector)}", f"llvm.x86.avx512.vpdpbusd.{bits}", vnni,
                    lanes, 4, (spread, vector), (spread, vector), s32, spread_first=spread == u8,
                )
            )  # fmt: skip
        if not wide:
            for kind, letters in ((s8, "ss"), (u8, "uu")):
                name = f"vpdpb{letters}d.{bits}"
                rows.append(
                    DotProduct(
                        f"{name}.{_short(kind)}{_short(kind)}", f"llvm.x86.avx2.{name}", _any("avxvnniint8"), lanes, 4,
                        (kind, kind), (kind, kind), s32,
                    )
                )  # fmt: skip
        brain = _any("avx512bf16") if wide else _any("avx512bf16 avx512vl")
        rows.append(
            DotProduct(
                f"vdpbf16ps.{bits}", f"llvm.x86.avx512bf16.dpbf16ps.{bits}", brain, lanes, 2,
                (bf16, bf16), (bf16, bf16), f32, exact=False, rate=1.0,
            )
        )  # fmt: skip
        # Pairs of 16 bits: narrower elements are widened on the way, so these are exact whatever the signs.
        madd = "llvm.x86.avx512.pmaddw.d.512" if wide else "llvm.x86.avx2.pmadd.wd"
        for vector in (s16, s8, u8):
            rows.append(
                DotProduct(
                    f"vpdpwssd.{bits}.s16{_short(vector)}", f"llvm.x86.avx512.vpdpwssd.{bits}", vnni, lanes, 2,
                    (s16, vector), (s16, s16), s32,
                )
            )  # fmt: skip
            rows.append(
                DotProduct(
                    f"vpmaddwd.{bits}.s16{_short(vector)}", madd, _any("avx512bw") if wide else _any("avx2"), lanes, 2,
                    (s16, vector), (s16, s16), s32, accumulates=False,
                )
            )  # fmt: skip
    return tuple(rows)


def _aarch64() -> tuple[DotProduct, ...]:
    s8, u8, s32 = dtypes.int8, dtypes.uint8, dtypes.int32
    rows: list[DotProduct] = []
    for name, spread, vector, feature in (
        ("sdot", s8, s8, "dotprod"), ("udot", u8, u8, "dotprod"), ("usdot", u8, s8, "i8mm"), ("usdot", s8, u8, "i8mm")
    ):  # fmt: skip
        rows.append(
            DotProduct(
                f"{name}.{_short(spread)}{_short(vector)}", f"llvm.aarch64.neon.{name}.v4i32.v16i8", _any(feature),
                4, 4, (spread, vector), (spread, vector), s32, spread_first=spread == u8 or vector == s8,
            )
        )  # fmt: skip
    pair = (dtypes.bfloat16, dtypes.bfloat16)
    rows.append(
        DotProduct(
            "bfdot", "llvm.aarch64.neon.bfdot.v4f32.v8bf16", _any("bf16"), 4, 2, pair, pair, dtypes.float32, exact=False
        )
    )
    return tuple(rows)


def _short(dtype: DType) -> str:
    return f"{'u' if dtype.kind == 'unsigned' else 's'}{dtype.bits}"


def _any(*sets: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(names.split()) for names in sets)


_ROWS = {"x86": _x86(), "aarch64": _aarch64()}


def dot_products(architecture: str, available: frozenset[str]) -> tuple[DotProduct, ...]:
    """The dot products that a processor of an architecture with these features has."""
    return tuple(row for row in _ROWS.get(architecture, ()) if any(needed <= available for needed in row.features))
