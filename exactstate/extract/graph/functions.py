"""Functions of one number between straight lines: what bounds need of ReLU, SiLU, GELU, tanh and sigmoid.

    l, u  ends of an interval     M  no smaller than |f''| anywhere

A smooth f is sampled at N + 1 points of [l, u]. Between two of them it is within M h^2 / 8 of the chord, h their
distance, and f(x) - s x is no further below its smallest sample than that. So for any slope s there is an intercept
that makes s x + t a lower bound, and of several slopes the one that is highest in the middle is taken. Upper bounds are
lower bounds of -f.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from exactstate._types import Floats
from exactstate.extract.graph.arithmetic import Arithmetic
from exactstate.extract.graph.upper import above

SAMPLES = 16
OURS_ULPS = 2.0**-46
"""Relative error of our own values of a function and of a few operations on them: 64 ulps."""


@dataclass(frozen=True)
class Scalar:
    """A function of one number."""

    value: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    curvature: float
    """No smaller than |f''|; 0 for ReLU, which is treated by itself."""
    steepest: float
    """No smaller than |f'|."""
    error: Callable[[Arithmetic, Floats, Floats], Floats]
    """How far a machine may be from f, of (arithmetic, largest |x|, largest |f|)."""


def _sigmoids(x: Floats) -> tuple[Floats, Floats]:
    """Of x and of -x."""
    e = np.exp(-np.abs(x))
    large = 1.0 / (1.0 + e)
    small, above_zero = e * large, x >= 0
    return np.where(above_zero, large, small), np.where(above_zero, small, large)


def _sigmoid(x: Floats) -> Floats:
    return _sigmoids(x)[0]


def _silu_slope(x: Floats) -> Floats:
    open_, shut = _sigmoids(x)
    return open_ * (1.0 + x * shut)


def _erf(x: Floats) -> Floats:
    return torch.erf(torch.from_numpy(np.ascontiguousarray(x))).numpy()


def _normal(x: Floats) -> Floats:
    return np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)


def _cumulative(x: Floats) -> Floats:
    return 0.5 * (1.0 + _erf(x / np.sqrt(2.0)))


ROOT, CUBE = float(np.sqrt(2.0 / np.pi)), 0.044715


def _gelu_tanh_slope(x: Floats) -> Floats:
    t = np.tanh(ROOT * (x + CUBE * x**3))
    return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * ROOT * (1.0 + 3.0 * CUBE * x * x)


def _relative(ulps: Callable[[Arithmetic], float]) -> Callable[[Arithmetic, Floats, Floats], Floats]:
    return lambda arithmetic, x, f: arithmetic.several(ulps(arithmetic)) * f + 2.0 * (1.0 + x) * arithmetic.inner.tiny


def _gelu_error(arithmetic: Arithmetic, x: Floats, f: Floats) -> Floats:
    """x (1 + erf(x / sqrt 2)) / 2: the sum in brackets is off by the error of erf, of its argument, and of itself."""
    ulps = arithmetic.assumed.exp + 12.0 * arithmetic.assumed.basic + 2.0 * arithmetic.assumed.divide
    return arithmetic.several(ulps) * x + 4.0 * (1.0 + x) * arithmetic.inner.tiny


FUNCTIONS = {
    "relu": Scalar(
        lambda x: np.maximum(x, 0.0), lambda x: (x > 0).astype(np.float64), 0.0, 1.0,
        lambda arithmetic, x, f: np.zeros_like(x),
    ),
    "sigmoid": Scalar(
        _sigmoid, lambda x: np.multiply(*_sigmoids(x)), 0.0963, 0.25,
        _relative(lambda a: a.assumed.exp + a.assumed.divide + 2 * a.assumed.basic),
    ),
    "tanh": Scalar(np.tanh, lambda x: 1.0 / np.cosh(np.clip(x, -300, 300)) ** 2, 0.7699, 1.0,
                   _relative(lambda a: a.assumed.exp)),
    "silu": Scalar(
        lambda x: x * _sigmoid(x), _silu_slope, 0.5, 1.1,
        # an exponential that overflows makes the result 0, and then it was no larger than the second term
        lambda a, x, f: a.silu * f + x / a.inner.largest + 2.0 * (1.0 + x) * a.inner.tiny,
    ),
    "gelu": Scalar(lambda x: x * _cumulative(x), lambda x: _cumulative(x) + x * _normal(x), 0.798, 1.13, _gelu_error),
    "gelu_tanh": Scalar(lambda x: 0.5 * x * (1.0 + np.tanh(ROOT * (x + CUBE * x**3))), _gelu_tanh_slope, 0.81, 1.13,
                        _gelu_error),
}  # fmt: skip
"""By name. Second derivatives: sigmoid 1 / (6 sqrt 3), tanh 4 / (3 sqrt 3), SiLU 1/2 and GELU 2 / sqrt(2 pi) at 0."""


@dataclass(frozen=True, eq=False)
class Lines:
    """low_slope x + low <= f(x) <= high_slope x + high on an interval."""

    low_slope: Floats
    low: Floats
    high_slope: Floats
    high: Floats


def lines(name: str, lower: Floats, upper: Floats) -> Lines:
    """Straight lines around a function on [lower, upper], entry by entry; valid in real numbers."""
    if name == "relu":
        return _relu_lines(lower, upper)
    function = FUNCTIONS[name]
    low_slope, low = _below(function, lower, upper, 1.0)
    high_slope, high = _below(function, lower, upper, -1.0)
    return Lines(low_slope, low, -high_slope, -high)


def _relu_lines(lower: Floats, upper: Floats) -> Lines:
    width = np.maximum(upper - lower, 1e-300)
    chord = np.where(lower >= 0, 1.0, np.where(upper <= 0, 0.0, upper / width))
    # the chord: raised so that it is above 0 at the lower end and above u at the upper end, whatever was rounded
    high = np.where(
        (lower < 0) & (upper > 0), above(np.maximum(np.maximum(-chord * lower, upper - chord * upper), 0.0)), 0.0
    )
    low_slope = np.where(lower >= 0, 1.0, np.where(upper <= 0, 0.0, (upper > -lower).astype(np.float64)))
    return Lines(low_slope, np.zeros_like(lower), chord, high)


def _below(function: Scalar, lower: Floats, upper: Floats, sign: float) -> tuple[Floats, Floats]:
    """(slope, intercept) of a line below sign * f."""
    width = upper - lower
    points = lower[..., None] + width[..., None] * np.linspace(0.0, 1.0, SAMPLES + 1)
    values = sign * function.value(points)
    middle = 0.5 * (lower + upper)
    with np.errstate(divide="ignore", invalid="ignore"):
        chord = np.where(width > 1e-12, (values[..., -1] - values[..., 0]) / np.maximum(width, 1e-300), 0.0)
    at_middle = sign * function.slope(middle)
    chord = np.where(width > 1e-6, chord, at_middle)
    best_slope: Floats | None = None
    best: Floats | None = None
    best_height: Floats | None = None
    for slope in (at_middle, chord, sign * function.slope(lower), sign * function.slope(upper), np.zeros_like(width)):
        slope = np.clip(np.nan_to_num(slope), -function.steepest, function.steepest)
        rest = values - slope[..., None] * points
        scale = np.abs(values).max(-1) + np.abs(slope) * np.maximum(np.abs(lower), np.abs(upper))
        gap = function.curvature * (width / SAMPLES) ** 2 / 8.0
        intercept = rest.min(-1) - above(gap + OURS_ULPS * scale)
        height = intercept + slope * middle
        if best_height is None or best_slope is None or best is None:
            best_slope, best, best_height = slope, intercept, height
        else:
            better = height > best_height
            best_slope, best = np.where(better, slope, best_slope), np.where(better, intercept, best)
            best_height = np.maximum(height, best_height)
    assert best_slope is not None
    assert best is not None
    return best_slope, best
