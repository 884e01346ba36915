"""Numbers as a page writes them: three digits, and a unit."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

_COUNTS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BYTES = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_ROUNDS_UP = 0.9995
"""What is this much of a unit is written as one."""


def digits(value: float) -> str:
    """Three digits, never an exponent: 9.80, 74.2, 631."""
    if not math.isfinite(value):
        return "–"
    places = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
    return f"{value:.{places}f}"


def _scaled(value: float, units: Sequence[tuple[float, str]], otherwise: tuple[float, str]) -> str:
    scale, unit = next((pair for pair in units if abs(value) >= pair[0] * _ROUNDS_UP), otherwise)
    return f"{digits(value / scale)} {unit}"


def seconds(value: float) -> str:
    """A time: 9.80 ms."""
    return _scaled(value, _SECONDS, (1e-9, "ns"))


def flops(value: float) -> str:
    """Operations: 1.45 Gflop."""
    return _scaled(value, _COUNTS, (1.0, "")) + "flop"


def flops_a_second(value: float) -> str:
    """A rate of operations: 22.8 Gflop/s."""
    return flops(value) + "/s"


def bytes_of(value: float) -> str:
    """Bytes: 13.4 MiB; whole ones without a point."""
    return f"{value:.0f} B" if abs(value) < 1000 else _scaled(value, _BYTES, (1.0, "B"))


def bytes_a_second(value: float) -> str:
    """A rate of bytes: 40.3 GB/s (powers of 1000, as machines are compared)."""
    return _scaled(value, _COUNTS, (1.0, "")) + "B/s"


def count(value: float) -> str:
    """A count: 631, 2.40 k; small whole numbers as they are."""
    whole = abs(value) < 1000 and value == int(value)
    return f"{value:.0f}" if whole else _scaled(value, _COUNTS, (1.0, "")).strip()


def part(value: float) -> str:
    """A share: 18.8 %."""
    return f"{value * 100:.1f} %"


def rounded_part(value: float) -> str:
    """A share without digits after the point."""
    return f"{value * 100:.0f} %"


def counted(names: Iterable[str]) -> str:
    """Names in the order in which they come first, each with how often it comes: `add ×2, maximum`."""
    return ", ".join(name if times == 1 else f"{name} ×{times}" for name, times in Counter(names).items())
