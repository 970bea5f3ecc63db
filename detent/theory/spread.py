"""Steps at which a long run is looked at: so many for every factor of ten."""

from __future__ import annotations

from math import ceil, log10

import numpy as np


def spread(last: int, per_decade: int) -> list[int]:
    """Steps from 1 to `last`, both included, evenly on a logarithmic scale.

    >>> spread(100, per_decade=2)
    [1, 3, 10, 32, 100]
    """
    points = np.geomspace(1, last, max(2, ceil(log10(last) * per_decade) + 1))
    return sorted({1, *(round(float(t)) for t in points[1:-1]), last})
