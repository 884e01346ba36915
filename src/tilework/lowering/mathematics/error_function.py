"""erf.

x + x P(x^2) near 0; beyond 1 - 2^L(|x|), L = log2(erfc). Where L counts, erfc is at most a fifth, and 2^L may be off by
as many more units. float32: least worst error in erf, found by Lawson's iteration, 2^-25.4 each; float64:
P and L interpolate at Chebyshev nodes (60 digits), 3.1e-17 with rounding.
"""

from __future__ import annotations

from tilework import dtypes
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Expression, call
from tilework.lowering.mathematics.pieces import fma, nearest_power, polynomial, select
from tilework.numerics import Numerics


@dataclass(frozen=True)
class _Erf:
    small: tuple[float, ...]
    large: tuple[float, ...]
    """In the variable x - near."""
    power: tuple[float, ...]
    """2^r for |r| <= 1/2."""
    near: float
    """Up to here erf is x + x P(x^2)."""
    limit: float
    """Beyond it erf is 1."""


_ERF32 = _Erf(
    (
        0.12837915122509003, -0.37612468004226685, 0.11281551566720009, -0.02675703540444374, 0.004979131743311882,
        -0.0005919418763369322,
    ),
    (
        -2.43520188331604, -3.655884265899658, -1.2049510478973389, -0.06284883618354797, 0.01383962482213974,
        -0.0017501515103504062,
    ),
    (
        1.0000001192092896, 0.6931469440460205, 0.24022120237350464, 0.05550713092088699, 0.009675541892647743,
        0.0013276472454890609,
    ),
    0.9375,
    4.0,
)  # fmt: skip
_ERF64 = _Erf(
    (
        0.12837916709551256, -0.37612638903183543, 0.11283791670945006, -0.02686617064323777, 0.0052239776071164225,
        -0.0008548325975389692, 0.00012055294904839707, -1.492473690741966e-05, 1.6447424703317362e-06,
        -1.6208483801871705e-07, 1.3720064546777686e-08, -7.795898827002142e-10,
    ),
    (
        -2.6684166967815997, -3.8072253458536136, -1.216346657685659, -0.059959990049741035, 0.014475750236088882,
        -0.002853511136011579, 0.00034238828031406916, 3.789669974037718e-05, -3.914826466014604e-05,
        1.3802517730249623e-05, -2.891460509630442e-06, 1.2474222786788867e-07, 2.0418420874182543e-07,
        -1.1320083995291375e-07, 3.916643897157916e-08, -1.0412315560753071e-08, 2.238889906415295e-09,
        -3.943810021815765e-10, 5.6711919137418455e-11, -6.565031725552697e-12, 5.971701079127815e-13,
        -4.108525237756384e-14, 2.008354015215602e-15, -6.210571483563454e-17, 9.125797184385206e-19,
    ),
    (
        1.0, 0.6931471805599453, 0.24022650695910072, 0.055504108664821625, 0.00961812910762848, 0.0013333558146406436,
        0.00015403530393370715, 1.5252733841601815e-05, 1.3215486808727859e-06, 1.0178057064573359e-07,
        7.054897292691627e-09, 4.455822025014915e-10, 2.5729344553786755e-11,
    ),
    1.0,
    6.0,
)  # fmt: skip


def erf(x: Expression, *, numerics: Numerics) -> Expression:
    """erf within 2 ULP."""
    del numerics
    c = _ERF32 if x.dtype == dtypes.float32 else _ERF64
    size = call("minimum", call("absolute", x), c.limit)
    logarithm = polynomial(size - c.near, c.large)
    n, power = nearest_power(logarithm, 1.0, 0)
    rest = call("negate", polynomial(logarithm - n, c.power))
    beyond = call("copy_sign", fma(rest, power, 1.0), x)
    below = fma(x, polynomial(x * x, c.small), x)
    return select(call("less", size, c.near), below, beyond)
