"""The machine figure: two machines, the sentence that compares them on all words, and the target's numbering."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exactstate.automata import Mealy, Moore, cyclic, symmetric, tomita
from exactstate.report.figures.machine import compare, paint, renumbered
from tests.report.figures.drawn import svg, words


def shuffled(machine: Moore, seed: int) -> Moore:
    """The same machine with its states in another order and other names."""
    old = np.random.default_rng(seed).permutation(machine.n_states)
    new = np.argsort(old)
    return Moore(
        symbols=machine.symbols, tables=new[machine.tables[:, old]], start=int(new[machine.start]),
        outputs=machine.outputs, readout=machine.readout[old],
    )  # fmt: skip


@pytest.mark.parametrize("kind", [lambda machine: machine, Moore.to_mealy], ids=["moore", "mealy"])
@pytest.mark.parametrize("seed", range(3))
def test_renumbered_machine_has_the_targets_numbers(kind, seed: int) -> None:
    target = symmetric(3)
    assert renumbered(kind(shuffled(target, seed)), target) == target


def test_compare_accepts_a_machine_with_more_outputs() -> None:
    assert compare(cyclic(5).to_mealy(), cyclic(5)) == (True, "They give the same outputs on every word.")


def test_compare_of_a_wrong_entry_gives_a_word() -> None:
    target = cyclic(5)
    tables = target.tables.astype(int).copy()
    tables[1, 3] = 3
    wrong = Moore(
        symbols=target.symbols, tables=tables, states=target.states, outputs=target.outputs, readout=target.readout
    )
    assert compare(wrong, target) == (False, "They differ after: 3 1")
    assert "They differ after: 3 1" in words(paint(wrong, target))


def test_compare_of_incomparable_machines_says_why() -> None:
    alike, sentence = compare(tomita(1), cyclic(3))
    assert not alike
    assert "symbols" in sentence


def test_paint_draws_both_with_their_names(tmp_path: Path) -> None:
    figure = paint(shuffled(symmetric(3), 1), symmetric(3), ("S3-42", "S3"))
    said = words(figure)
    assert "S3-42: 6 states" in said
    assert "S3: 6 states" in said
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()
    assert svg(figure, tmp_path).startswith(b"<?xml")


def test_compare_of_a_mealy_and_a_moore_machine() -> None:
    machine, word = tomita(4), [0, 0, 1, 0, 0, 0, 1]
    made = machine.to_mealy()
    assert isinstance(made, Mealy)
    assert made.output_ids(np.array(word)).tolist() == machine.output_ids(np.array(word)).tolist()
