"""Pearson's chi-square, for laws that are known exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import ArrayLike


@pytest.fixture
def fits() -> Callable[[ArrayLike, ArrayLike], bool]:
    """Whether the counts look like independent draws with these probabilities.

    The statistic has mean k and variance about 2k for k degrees of freedom; true laws stay within six deviations.
    """

    def fits(counts: ArrayLike, probabilities: ArrayLike) -> bool:
        counts, probabilities = np.asarray(counts, float).ravel(), np.asarray(probabilities, float).ravel()
        assert np.isclose(probabilities.sum(), 1)
        expected = counts.sum() * probabilities
        assert expected.min() > 5, "too few draws to say"
        k = len(counts) - 1
        return float(((counts - expected) ** 2 / expected).sum()) < k + 6 * np.sqrt(2 * k)

    return fits
