"""Pi, sines and cosines to as many digits as asked, from the standard library alone."""

from __future__ import annotations

from decimal import Decimal, localcontext

GUARD = 8
"""Digits computed beyond those asked for."""


def circle_point(turns: int, order: int, digits: int = 60) -> tuple[Decimal, Decimal]:
    """Cosine and sine of 2 pi turns / order."""
    with localcontext() as context:
        context.prec = digits + GUARD
        angle = 2 * pi(digits) * (turns % order) / order
        cosine = sine = Decimal(0)
        term, power = Decimal(1), 0
        while abs(term) > Decimal(10) ** -(digits + GUARD) or power < angle:
            sign = -1 if power % 4 > 1 else 1
            cosine, sine = (cosine, sine + sign * term) if power % 2 else (cosine + sign * term, sine)
            power += 1
            term *= angle / power
        last = Decimal(10) ** -digits
        return cosine.quantize(last), sine.quantize(last)


def pi(digits: int = 60) -> Decimal:
    """Machin 1706: pi = 16 arctan(1/5) - 4 arctan(1/239)."""
    with localcontext() as context:
        context.prec = digits + GUARD
        return 16 * _arctan_of_one_over(5, digits) - 4 * _arctan_of_one_over(239, digits)


def _arctan_of_one_over(n: int, digits: int) -> Decimal:
    total, power, k = Decimal(0), Decimal(1) / n, 0
    while power > Decimal(10) ** -(digits + GUARD):
        total += (-power if k % 2 else power) / (2 * k + 1)
        power /= n * n
        k += 1
    return total
