"""Scan-compatible affine architectures and the branch each lies on, with a way to check it. No torch.

Adding an architecture is adding one `Entry` to `attaining` or `contracting`, with a function that draws its matrices.
"""

from __future__ import annotations

import numpy as np

from detent.records import Row
from paper.census.attaining import ATTAINING
from paper.census.contracting import CONTRACTING
from paper.census.entry import Drawn as Drawn
from paper.census.entry import Entry as Entry

ENTRIES: tuple[Entry, ...] = (*ATTAINING, *CONTRACTING)


def census_rows(seed: int = 0) -> list[Row]:
    """Every architecture as a row; `rho` holds the smallest and the largest spectral radius of 40 random matrices."""
    return [
        {
            "name": entry.name, "source": entry.source, "recurrence": entry.recurrence, "transition": entry.transition,
            "spectrum": entry.spectrum, "branch": entry.branch, "realizes": entry.realizes, "note": entry.note,
            "rho": list(entry.radii(np.random.default_rng((seed, number)))),
        }
        for number, entry in enumerate(ENTRIES)
    ]  # fmt: skip
