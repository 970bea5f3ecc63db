"""Counterexamples: all words to wrong answers of a product walk, and none for an equivalent machine."""

from __future__ import annotations

import numpy as np
import pytest

from exactstate.automata import Moore, cyclic
from exactstate.certify import certify, counterexamples
from exactstate.extract import Extracted
from exactstate.train import train
from exactstate.train.recipes import configure

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def extracted() -> Extracted:
    return train(configure("Z3", recipe="distill")).extracted


def other(machine: Moore) -> Moore:
    """The same with the last symbol as a loop."""
    tables = machine.tables.copy()
    tables[-1] = np.arange(machine.n_states)
    return Moore(symbols=machine.symbols, tables=tables, states=machine.states, outputs=machine.outputs,
                 readout=machine.readout)  # fmt: skip


def test_no_counterexample_to_the_machine_that_was_learned(extracted: Extracted) -> None:
    assert certify(extracted, cyclic(3))
    assert counterexamples(extracted, cyclic(3)) == []


def test_counterexamples_are_words_with_wrong_answers_and_the_first_is_a_shortest(extracted: Extracted) -> None:
    target = other(cyclic(3))
    failure = certify(extracted, target).failure
    words = counterexamples(extracted, target)
    assert failure is not None
    assert len(words[0]) == len(failure.word)
    assert [len(word) for word in words] == sorted(len(word) for word in words)
    assert len(set(words)) == len(words)
    for word in words:
        numbers = [extracted.symbols.index(symbol) for symbol in word]
        state = 0
        for symbol in numbers[:-1]:
            state = int(extracted.tables[symbol, state])
        answer = extracted.label_names[int(extracted.readout[numbers[-1], state])]
        assert answer != target.states[target.run(word)]


def test_counterexamples_are_bounded_and_spread(extracted: Extracted) -> None:
    target = other(cyclic(3))
    every = counterexamples(extracted, target)
    some = counterexamples(extracted, target, most=4)
    assert len(every) > 4
    assert some == [every[0], every[1], every[2], every[-1]]
