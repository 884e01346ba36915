"""erf.

x + x P(x^2) up to 1; 1 - exp(L(x)) beyond, L = log(erfc). P and L interpolate at Chebyshev nodes (60 digits), with
errors below 1.9e-8 (float32) and 3.1e-17 (float64) with rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilework import dtypes
from tilework.loops.expressions import Expression, call
from tilework.lowering.mathematics.exponential import exp
from tilework.lowering.mathematics.pieces import fma, polynomial, select
from tilework.numerics import Numerics


@dataclass(frozen=True)
class _Erf:
    small: tuple[float, ...]
    large: tuple[float, ...]
    """In the variable x - 1."""
    limit: float
    """Beyond it erf is 1."""


_ERF32 = _Erf(
    (
        0.12837916612625122, -0.3761262595653534, 0.11283594369888306, -0.02685421146452427, 0.005189087241888046,
        -0.000801686430349946, 7.875874871388078e-05,
    ),
    (
        -1.8496055603027344, -2.638967752456665, -0.8431047201156616, -0.04157574102282524, 0.010077808052301407,
        -0.002054300857707858, 0.0003202395746484399, -3.2960830139927566e-05, 1.6371513993362896e-06,
    ),
    4.0,
)  # fmt: skip
_ERF64 = _Erf(
    (
        0.12837916709551256, -0.37612638903183543, 0.11283791670945006, -0.02686617064323777, 0.0052239776071164225,
        -0.0008548325975389692, 0.00012055294904839707, -1.492473690741966e-05, 1.6447424703317362e-06,
        -1.6208483801871705e-07, 1.3720064546777686e-08, -7.795898827002142e-10,
    ),
    (
        -1.8496055099332482, -2.638967514234795, -0.8431072563583275, -0.04156109804938037, 0.010033825462634972,
        -0.0019779031986228326, 0.00023732547115646525, 2.6267990577569252e-05, -2.713550927299477e-05,
        9.567176249351182e-06, -2.0042076999507634e-06, 8.646472354339328e-08, 1.4152970860425964e-07,
        -7.846484305037978e-08, 2.7148106745723257e-08, -7.217267174036438e-09, 1.5518802262158816e-09,
        -2.733640797285654e-10, 3.930970685424521e-11, -4.550533230853445e-12, 4.139267766144228e-13,
        -2.847812684810216e-14, 1.3920849232129402e-15, -4.304840113498005e-17, 6.325520588718493e-19,
    ),
    6.0,
)  # fmt: skip


def erf(x: Expression, *, numerics: Numerics) -> Expression:
    """erf within 2 ULP."""
    c = _ERF32 if x.dtype == dtypes.float32 else _ERF64
    size = call("minimum", call("absolute", x), c.limit)
    beyond = call("copy_sign", 1.0 - exp(polynomial(size - 1.0, c.large), numerics=numerics), x)
    below = fma(x, polynomial(x * x, c.small), x)
    return select(call("less", size, 1.0), below, beyond)
