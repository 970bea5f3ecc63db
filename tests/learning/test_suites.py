"""Conformance suites: every single mutant is killed, and with extra states every machine that is larger by one."""

from __future__ import annotations

import numpy as np
import pytest

from exactstate.automata import Mealy, distinguishing_word, minimize
from exactstate.errors import BudgetExceeded
from exactstate.learning.suites import conformance_suite, separating_words
from tests.learning.machines import handshake, sessions


def expected(suite):
    return list(zip(suite.words, [outputs for _, outputs in suite.named()], strict=True))


def passes(machine, words):
    mealy = machine.to_mealy()
    tables, readout, names = mealy.tables.tolist(), mealy.readout.tolist(), mealy.outputs
    for word, outputs in words:
        state = mealy.start
        for symbol, output in zip(word, outputs, strict=True):
            if names[readout[symbol][state]] != output:
                return False
            state = tables[symbol][state]
    return True


def mutants(machine):
    """Machines with one transition redirected, or one output changed."""
    for a in range(machine.n_symbols):
        for q in range(machine.n_states):
            for name, count in (("tables", machine.n_states), ("readout", len(machine.outputs))):
                table = getattr(machine, name).astype(int)
                for value in range(count):
                    if value != table[a, q]:
                        changed = table.copy()
                        changed[a, q] = value
                        fields = {"tables": machine.tables, "readout": machine.readout, name: changed}
                        yield Mealy(symbols=machine.symbols, outputs=machine.outputs, **fields)


@pytest.mark.parametrize("method", ["w", "wp", "hsi"])
@pytest.mark.parametrize("machine", [handshake(), sessions()])
def test_conformance_suite_kills_all_single_mutants(method, machine):
    suite = conformance_suite(machine, method=method)
    small = minimize(machine)
    words = expected(suite)
    assert passes(machine, words)
    killed = 0
    for mutant in mutants(small):
        if distinguishing_word(mutant, small) is not None:
            assert not passes(mutant, words)
            killed += 1
    assert killed > 100
    assert suite.coverage() == (small.n_states, small.n_states * small.n_symbols)


@pytest.mark.parametrize("method", ["w", "wp", "hsi"])
def test_conformance_suite_finds_an_extra_state(method):
    """A machine that is wrong only after the fourth 'a': one state more than the machine with one state."""
    machine = Mealy(symbols="ab", tables=[[0], [0]], outputs="xy", readout=[[0], [0]])
    larger = Mealy(symbols="ab", tables=[[1, 1], [0, 0]], outputs="xy", readout=[[0, 1], [0, 0]])
    assert passes(larger, expected(conformance_suite(machine, method=method)))
    assert not passes(larger, expected(conformance_suite(machine, method=method, extra_states=1)))


def test_separating_words_are_shortest():
    machine = minimize(sessions())
    words = separating_words(machine)
    assert len(words) == machine.n_states * (machine.n_states - 1)
    for (p, q), word in words.items():
        fields = {"symbols": machine.symbols, "tables": machine.tables, "outputs": machine.outputs}
        one, other = (Mealy(**fields, readout=machine.readout, start=state) for state in (p, q))
        wanted = distinguishing_word(one, other)
        assert wanted is not None
        assert len(wanted) == len(word)
        assert one.output_ids(np.array(word))[-1] != other.output_ids(np.array(word))[-1]


def test_conformance_suite_is_bounded():
    with pytest.raises(BudgetExceeded, match="Allow fewer extra states"):
        conformance_suite(sessions(), extra_states=9)
