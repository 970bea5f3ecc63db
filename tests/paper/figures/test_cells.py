"""Cells: with restoration the run is the automaton's; without, every perturbed run lies in what is drawn."""

from __future__ import annotations

from math import floor

import numpy as np
import pytest

from detent.automata import cyclic, flip_flop, symmetric, tomita
from detent.errors import InvalidConfig, InvalidMachine
from paper.figures.cells import cell_rows, wandering_word


def of(rows: list[dict], kind: str) -> list[dict]:
    return [row for row in rows if row["kind"] == kind]


@pytest.mark.parametrize("machine", [cyclic(5), symmetric(3), flip_flop(), tomita(4)], ids=["Z5", "S3", "FF", "T4"])
def test_every_perturbed_run_lies_in_the_pieces(machine) -> None:
    """An independent run: a point, moved with its cell and pushed by at most eta, ten steps, many pushes."""
    eta, word = 0.13, wandering_word(machine, 10)
    rows = cell_rows(machine, word, eta)
    random = np.random.default_rng(3)
    for _ in range(300):
        u = float(machine.start)
        for step, symbol in enumerate(word, start=1):
            cell = min(max(floor(u + 0.5), 0), machine.n_states - 1)
            u += int(machine.tables[symbol][cell]) - cell + random.choice([-eta, eta, random.uniform(-eta, eta)])
            pieces = [row for row in of(rows, "accumulated") if row["step"] == step]
            assert any(row["low"] - 1e-9 <= u <= row["high"] + 1e-9 for row in pieces)
            read = next(row for row in of(rows, "read") if row["step"] == step)["states"]
            assert min(max(floor(u + 0.5), 0), machine.n_states - 1) in read


def test_before_the_ball_fills_half_a_cell_the_state_is_known() -> None:
    rows = cell_rows(cyclic(5), [1] * 8, eta=0.11)
    known = [len(row["states"]) for row in of(rows, "read")]
    assert known[:5] == [1] * 5  # 4 * 0.11 < 1/2
    assert known[5] > 1  # 5 * 0.11 > 1/2


def test_the_run_is_the_automatons() -> None:
    machine = symmetric(3)
    word = wandering_word(machine, 7)
    states = [row["state"] for row in of(cell_rows(machine, word), "run")]
    assert states == [machine.start, *machine.trajectory(np.array(word)).tolist()]


def test_a_wandering_word_sees_all_states() -> None:
    machine = symmetric(3)
    assert set(machine.trajectory(np.array(wandering_word(machine, 11))).tolist()) == set(range(6))


def test_large_machines_are_refused() -> None:
    with pytest.raises(InvalidMachine, match="at most 12 states; this machine has 24"):
        cell_rows(symmetric(4), [0])


@pytest.mark.parametrize("eta", [0.0, 0.5, -1.0])
def test_a_ball_is_smaller_than_a_cell(eta: float) -> None:
    with pytest.raises(InvalidConfig, match="between 0 and 1/2"):
        cell_rows(cyclic(3), [1], eta)
