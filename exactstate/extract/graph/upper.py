"""Upper bounds that stay upper bounds when float64 rounds them.

Radii are made of sums, products, quotients and roots of numbers that are not negative, so rounding changes them by a
small factor; `above` multiplies by a larger one.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import DTypeLike

from exactstate._types import Floats

OPERATIONS = 128
"""More than the operations between two calls of `above`, not counting the terms of sums."""
LEAST = 1e-150
"""More than what underflow can take away between two calls of `above`."""


def above(computed: Floats, terms: int = 0) -> Floats:
    """No smaller than what float64 computed here, of numbers that are not negative, in sums of so many terms.

    Infinite where nothing is known.
    """
    raised = computed * (1.0 + (terms + OPERATIONS) * 2.0**-52) + LEAST
    if np.size(raised) and np.isnan(np.min(raised)):
        return np.where(np.isnan(raised), np.inf, raised)
    return raised


def below(computed: Floats) -> Floats:
    """No larger than what float64 computed here in a few operations without cancellation; at least 0."""
    return np.maximum(computed * (1.0 - OPERATIONS * 2.0**-52) - LEAST, 0.0)


def length(rows: Floats) -> Floats:
    """R m -> R: no smaller than the Euclidean norm of every row."""
    return above(np.sqrt(np.einsum("...i,...i->...", rows, rows)), rows.shape[-1])


def product(a: Floats, b: Floats) -> Floats:
    """a @ b, by torch: NumPy's many small products take ten times as long when other programs keep a core busy."""
    return torch.matmul(torch.from_numpy(a), torch.from_numpy(b)).numpy()


def narrow() -> DTypeLike:
    """float32, where products of it are allowed no less, and else float64."""
    try:
        return np.float32 if torch.get_float32_matmul_precision() == "highest" else np.float64
    except RuntimeError:  # it was set by two interfaces of torch that disagree
        return np.float64


def spectral(matrix: Floats, squarings: int) -> Floats:
    """... n k -> ...: no smaller than the largest singular value.

    |A|^2 = |A A'|, so after q squarings the Frobenius norm, too large by at most a factor sqrt(n), is too large by at
    most n^(2^-q / 2). The products may be computed in float32: their error is added.
    """
    *_, n, k = matrix.shape
    kind = np.finfo(matrix.dtype)
    squares = np.einsum("...ij,...ij->...", matrix, matrix).astype(np.float64)
    size = above(np.sqrt(squares + n * k * float(kind.tiny)) * (1.0 + n * k * float(kind.eps)))
    if squarings == 0:
        return size
    # a power of two that is larger: dividing by it is exact
    scale = np.exp2(np.clip(np.frexp(size)[1], -100, None).astype(np.float64))
    part = matrix / scale[..., None, None].astype(matrix.dtype)
    rounding = k * float(kind.eps) + 8.0 * n * k * float(kind.tiny)
    sharper = above(scale * np.sqrt(spectral(product(part, part.swapaxes(-1, -2)), squarings - 1) + rounding))
    return np.where(size < 2.0**100, np.minimum(sharper, size), size)
