"""Addresses that are long sums of symbols: factored, made once for all threads, and the same numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.lowering.native import Native, assert_same
from tilework.loops.parse import parse_program
from tilework.loops.program import LoopProgram


def joined(parts: int, *, blocked: bool = False) -> LoopProgram:
    """Blocks of free widths beside each other, rows on threads; `blocked`: a loop inside the threads is vectorised."""
    widths = [f"W{n}" for n in range(parts)]
    total = " + ".join(widths)
    symbols = "\n".join(f"  symbol {name} in 0.." for name in ("N", *widths))
    reads = "\n".join(f"  read x{n}: float32[N, {width}]" for n, width in enumerate(widths))
    nests: list[str] = []
    for n, width in enumerate(widths):
        before = " + ".join([*widths[:n], "0"])
        if blocked:
            nests.append(
                f"  parallel i{n} < N\n    serial j{n} < ({width} + 7) // 8\n      vectorized l{n} < 8\n"
                f"        s{n}: out[i{n}, 8*j{n} + l{n} + {before}] = x{n}[i{n}, 8*j{n} + l{n}]"
                f"  where {width} - 1 - 8*j{n} - l{n} >= 0"
            )
        else:
            at = f"j{n} + {before}"
            nests.append(
                f"  parallel i{n} < N\n    serial j{n} < {width}\n      s{n}: out[i{n}, {at}] = x{n}[i{n}, j{n}]"
            )
    body = "\n".join(nests)
    return parse_program(f"program joined\n{symbols}\n{reads}\n  write out: float32[N, {total}]\n\n{body}\n")


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("parts", [3, 9, 20])
def test_values(parts: int, blocked: bool) -> None:
    """Shorter and longer sums, empty blocks among them."""
    rng = np.random.default_rng(parts)
    program = joined(parts, blocked=blocked)
    native = Native(program)
    for rows in (0, 1, 5):
        widths = rng.integers(0, 20, parts)
        arrays = {f"x{n}": rng.integers(-9, 9, (rows, w)).astype(np.float32) for n, w in enumerate(widths)}
        arrays["out"] = np.zeros((rows, int(widths.sum())), np.float32)
        symbols = {"N": rows, **{f"W{n}": int(w) for n, w in enumerate(widths)}}
        found = assert_same(program, arrays, symbols, native=native)
        np.testing.assert_array_equal(found["out"], np.concatenate([arrays[f"x{n}"] for n in range(parts)], 1))


def test_threads_add_nothing_up() -> None:
    """A thread's function is as long for forty blocks as for twenty."""

    def longest(parts: int) -> int:
        functions = re.split(r"(?m)^define ", Native(joined(parts, blocked=True)).text.ir)
        return max(f.count("\n") for f in functions if f.startswith("internal"))

    assert longest(40) == longest(20)
