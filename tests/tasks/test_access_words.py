"""Words that reach every state: every transition is met, whatever the chunks; counterexamples begin a quarter."""

from __future__ import annotations

import numpy as np
import pytest

from exactstate.automata import mathieu11
from exactstate.errors import InvalidConfig
from exactstate.tasks import Task, task
from exactstate.tasks.access_words import WALK, AccessWords, access_words, first_letters
from tests.learning.machines import handshake, sessions


def counts(machine, batch):
    seen = np.zeros((machine.n_symbols, machine.n_states), int)
    before = np.concatenate([batch.before[:, None], batch.states[:, :-1]], axis=1)
    np.add.at(seen, (batch.inputs, before), 1)
    return seen


@pytest.mark.parametrize("machine", [handshake(), sessions()])
def test_access_words_meet_every_transition(machine):
    given = task(machine)
    assert isinstance(given.sampler, AccessWords)
    assert counts(machine, given.sample(400, 12, np.random.default_rng(0))).min() > 0
    if machine.n_states == 6:  # uniform letters do not
        uniform = Task.of(machine, name="m").sample(400, 12, np.random.default_rng(0))
        assert counts(machine, uniform).min() == 0


def test_access_words_are_shortest_and_paths_lead_on():
    machine = sessions()
    words = access_words(machine, machine.start)
    assert sorted(words) == list(range(9))
    assert all(machine.run(np.array(word, int)) == state for state, word in words.items())
    assert max(map(len, words.values())) == 4
    letters = first_letters(machine)
    for state in range(9):
        for goal in range(9):
            steps, at = 0, state
            while at != goal:
                at, steps = int(machine.tables[letters[at, goal], at]), steps + 1
            assert steps <= 4


def test_access_words_do_not_depend_on_chunks():
    given = task(handshake())
    whole = given.sample(5, WALK + 50, np.random.default_rng(3))
    parts = list(given.stream(5, WALK + 50, np.random.default_rng(3), chunk=7))
    assert np.array_equal(whole.inputs, np.concatenate([part.inputs for part in parts], axis=1))


def test_access_words_begin_with_counterexamples():
    given = task(handshake()).with_words([("data", "data", "hello")])
    inputs = given.sample(2000, 3, np.random.default_rng(1)).inputs
    share = (inputs == np.array([4, 4, 0])).all(axis=1).mean()
    assert 0.2 < share < 0.35
    assert "words that were wrong before" in given.sampler.describe(given.machine.symbols)
    with pytest.raises(InvalidConfig, match="symbols below 5"):
        AccessWords(handshake(), 0, ((7,),))


def test_access_words_of_a_large_machine_have_one_path_each():
    sampler = AccessWords(mathieu11())
    assert sampler.paths is None
    (block,) = sampler.blocks(3, sampler.depth + 5, np.random.default_rng(0))
    assert block.shape == (3, sampler.depth + 5)
