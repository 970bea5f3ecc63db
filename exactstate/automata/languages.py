"""Well-known small machines: Tomita's seven languages, and any machine from its tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exactstate._types import Ints
from exactstate.automata.machine import Moore
from exactstate.errors import InvalidMachine

# language: (where 0 sends each state, where 1 sends it, the rejecting states), from Tomita, "Dynamic construction of
# finite-state automata from examples using hill-climbing", 1982
_TOMITA: dict[int, tuple[list[int], list[int], set[int]]] = {
    1: ([1, 1], [0, 1], {1}),
    2: ([1, 1, 0], [2, 1, 1], {1, 2}),
    3: ([0, 2, 3, 2, 4], [1, 0, 4, 1, 4], {2, 4}),
    4: ([1, 2, 3, 3], [0, 0, 0, 3], {3}),
    5: ([1, 0, 3, 2], [2, 3, 0, 1], {1, 2, 3}),
    6: ([1, 2, 0], [2, 0, 1], {1, 2}),
    7: ([0, 2, 2, 4, 4], [1, 1, 3, 3, 4], {4}),
}


def tomita(number: int) -> Moore:
    """Tomita's language 1 to 7 over 0 and 1, as the minimal DFA; the outputs are 'reject' and 'accept'.

    1: only ones. 2: (10)*. 3: no odd run of ones followed directly by an odd run of zeros. 4: no 000.
    5: an even number of zeros and of ones. 6: as many zeros as ones, modulo 3. 7: 0*1*0*1*.
    """
    if number not in _TOMITA:
        raise InvalidMachine(f"Tomita's languages are numbered 1 to 7; got {number}.")
    zero, one, rejecting = _TOMITA[number]
    readout = [int(q not in rejecting) for q in range(len(zero))]
    return Moore(symbols=("0", "1"), tables=[zero, one], outputs=("reject", "accept"), readout=readout)  # type: ignore[arg-type]


def from_tables(
    tables: Sequence[Sequence[int]] | Ints,
    *,
    symbols: Sequence[str] | None = None,
    states: Sequence[str] = (),
    start: int = 0,
    outputs: Sequence[str] | None = None,
    readout: Sequence[int] | Ints | None = None,
) -> Moore:
    """The Moore machine with these tables (A n); its output is its state unless outputs and a read-out are given.

    >>> from_tables([[0, 1], [1, 0]]).run("1101")
    1
    """
    if (outputs is None) != (readout is None):
        raise InvalidMachine("outputs and readout are given together; got one without the other.")
    rows = np.asarray(tables) if isinstance(tables, np.ndarray) else [list(row) for row in tables]
    named = tuple(states) or tuple(map(str, range(len(rows[0]) if len(rows) else 0)))
    return Moore(
        symbols=tuple(symbols) if symbols is not None else tuple(map(str, range(len(rows)))),
        tables=rows, states=named, start=start,  # type: ignore[arg-type]
        outputs=named if outputs is None else tuple(outputs),
        readout=np.arange(len(named)) if readout is None else np.asarray(readout),
    )  # fmt: skip
