"""exp, exp2, expm1 and what follows from them: logistic, tanh, sinh, cosh.

Method (exp): x = n ln 2 + r, |r| <= ln 2 / 2, with ln 2 in two parts; exp(r) = 1 + r + r^2 q(r); scaled by 2^n through the
exponent bits. q is the interpolation of (exp(r) - 1 - r) / r^2 at Chebyshev nodes, computed with 60 digits; its relative
error in exp is 1.8e-10 (float32) and 1.8e-19 (float64), below the rounding of the last steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilework import dtypes
from tilework.loops.expressions import Expression
from tilework.lowering.mathematics.pieces import clamp, fma, nearest_product, polynomial, scaled
from tilework.numerics import Numerics


@dataclass(frozen=True)
class _Exp:
    """Constants of exp in one format: ln 2 in two parts, q's coefficients, and where results are 0 or infinite."""

    high: float
    low: float
    q: tuple[float, ...]
    least: float
    most: float


_EXP32 = _Exp(
    0.693359375,
    -0.00021219444170128554,
    (0.5, 0.1666666716337204, 0.04166646674275398, 0.00833331048488617, 0.0013933649752289057, 0.00019890991097781807),
    -104.5,
    89.0,
)
_EXP64 = _Exp(
    0.6931471803691238,
    1.9082149292705877e-10,
    (
        0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326136, 0.0013888888888883748,
        0.00019841269874820627, 2.4801587325547743e-05, 2.7557255400206422e-06, 2.75572736431103e-07,
        2.5105217004720745e-08, 2.0914686968086876e-09,
    ),
    -745.5,
    710.0,
)  # fmt: skip
_LOG2_E = 1.0 / math.log(2.0)


def _constants(x: Expression) -> _Exp:
    return _EXP32 if x.dtype == dtypes.float32 else _EXP64


def exp(x: Expression, *, numerics: Numerics) -> Expression:
    """e^x within 1 ULP; 0 and infinity where the result is."""
    del numerics
    c = _constants(x)
    x = clamp(x, c.least, c.most)
    n, bits = nearest_product(x, _LOG2_E)
    r = fma(n, -c.low, fma(n, -c.high, x))
    p = fma(r * r, polynomial(r, c.q), r) + 1.0
    return scaled(p, bits)
