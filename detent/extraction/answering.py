"""A model that answers as a machine that answers: silent but where something is asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from detent.automata import Mealy, minimize
from detent.errors import InvalidInput
from detent.extraction.extracted import Extracted

SILENT = ""
NOT_UNDERSTOOD = "(not understood)"


def answering(found: Extracted, at: Sequence[str]) -> Mealy:
    """The smallest machine that gives the model's answers at these symbols and says nothing at others.

    Where the grammar lets a symbol not follow it says so, once, and falls silent for good.
    """
    if found.answers is None:
        raise InvalidInput("this model gives no answers: it has no second read-out.")
    n, outputs = found.tables.shape[1], (SILENT, *found.replies, NOT_UNDERSTOOD)
    asked = np.isin(np.array(found.symbols), list(at))[:, None]
    refused = found.tables < 0
    said = np.where(asked, 1 + found.answers[found.finals], 0)
    lost = ((0, 0), (0, 1))
    machine = Mealy(
        symbols=found.symbols, outputs=outputs,
        tables=np.pad(np.where(refused, n, found.tables), lost, constant_values=n),
        readout=np.pad(np.where(refused, len(outputs) - 1, said), lost, constant_values=0),
    )  # fmt: skip
    return minimize(machine)
