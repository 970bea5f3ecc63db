"""Machines that every emitter is tried on, with words for them."""

from __future__ import annotations

import numpy as np

from exactstate.automata import symmetric, tomita
from exactstate.runtime import Machine
from tests.runtime import examples
from tests.runtime.test_io import ugly

RNG = np.random.default_rng(20261115)
MACHINES = {
    "moore": examples.traffic_light(),
    "letters": Machine.of(tomita(4)),
    "names with blanks": Machine.of(symmetric(4)),
    "mealy": examples.anything(5, 7, RNG, outputs=4),
    "ugly names": ugly(),
    "300 states and symbols": examples.anything(300, 300, RNG, outputs=300),
    "heads": examples.of_heads(examples.counters((3, 5), 3, RNG), RNG),
}


def words(machine: Machine, count: int = 20) -> list[list[int]]:
    rng = np.random.default_rng(1)
    return [rng.integers(0, machine.n_symbols, int(length)).tolist() for length in rng.integers(0, 200, count)]
