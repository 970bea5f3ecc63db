"""Machines from logs: the right one from enough traces, unseen transitions marked, contradictions named by line."""

from __future__ import annotations

import numpy as np
import pytest

import exactstate
from benchmarks.traces import distinct_strings, random_dfa
from exactstate.automata import Mealy, distinguishing_word, minimize, tomita
from exactstate.errors import InvalidConfig, InvalidInput, NotLearned
from exactstate.learning.learn import estimate_noise, learn
from exactstate.learning.trace_tree import TraceTree, read_tree
from tests.learning.machines import handshake, sessions, traces_of


@pytest.mark.parametrize("machine", [handshake(), sessions()])
def test_learn_finds_protocols(machine):
    learned = learn(traces_of(machine, 2000, 16, 1))
    assert learned.states == minimize(machine).n_states
    assert distinguishing_word(learned.machine, machine) is None
    assert (learned.unseen, learned.disagreeing, learned.kind) == ((), 0, "mealy")
    assert exactstate.learn is learn


def test_learn_finds_random_mealy_machines():
    generator = np.random.default_rng(5)
    machine = Mealy(
        symbols="abcd", tables=generator.integers(0, 20, (4, 20)), outputs="xyz",
        readout=generator.integers(0, 3, (4, 20)),
    )  # fmt: skip
    assert distinguishing_word(learn(traces_of(machine, 500, 20, 2)).machine, minimize(machine)) is None


@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_learn_through_wrong_outputs(noise):
    machine = handshake()
    log = traces_of(machine, 2500, 16, 3, noise=noise)
    with pytest.raises(InvalidInput, match=r"the log contradicts itself: after .* in line \d+ and .* in line \d+"):
        learn(log)
    learned = learn(log, noise="auto")
    assert abs(learned.noise - noise) < 0.02
    assert distinguishing_word(learned.machine, machine) is None
    assert 0 < learned.disagreeing < 2 * noise * learned.observed


def test_learn_of_dfas_and_moore_machines():
    machine = tomita(4)
    words = [word for length in range(8) for word in np.ndindex(*(2,) * length)]
    labels = [bool(machine.readout[machine.run(np.array(word, int))]) for word in words]
    log = [([str(a) for a in word], str(label).lower()) for word, label in zip(words, labels, strict=True)]
    learned = learn(log)
    assert learned.kind == "dfa"
    assert distinguishing_word(learned.machine, machine) is None
    names = [machine.outputs[o] for o in machine.readout.tolist()]
    each = [
        ([str(a) for a in word], [names[q] for q in (machine.start, *machine.trajectory(np.array(word, int)))])
        for word in words
        if word
    ]
    moore = learn(each, kind="moore")
    assert moore.kind == "moore"
    assert distinguishing_word(moore.machine, machine) is None


def test_learn_marks_unseen_transitions():
    log = [(["a", "a"], ["x", "y"]), (["b"], ["x"])]
    learned = learn(log)
    assert learned.unseen
    assert "missing" in learned.machine.outputs
    assert learned.machine.states[-1] == "sink"
    assert "were never seen and lead to a sink" in learned.explain()
    state, symbol = learned.unseen[0]
    looped = learn(log, missing="loop").machine
    number = looped.states.index(state)
    assert looped.tables[looped.symbols.index(symbol), number] == number
    with pytest.raises(InvalidInput, match="transitions were never seen, the first"):
        learn(log, missing="refuse")


def test_trace_tree_merge_of_parts_is_the_whole():
    log = traces_of(sessions(), 60, 8, 4)
    one, other = read_tree(log[:20]), read_tree(reversed(log[20:]))
    one.merge(other)
    assert distinguishing_word(learn(one).machine, learn(TraceTree.of(read_traces(log))).machine) is None
    assert (one.tree.words, one.length) == (60, 480)


def read_traces(log):
    from exactstate.learning.logs import as_traces

    return as_traces(log)


def test_estimate_noise_of_a_clean_log_is_zero():
    assert estimate_noise(read_tree(traces_of(handshake(), 50, 8, 1))) == 0


def test_learn_refuses_what_is_no_log():
    for log, sentence in [
        ([], "there is no trace to learn from"),
        ([([], [])], "nothing to learn"),
        (["ab"], r"trace 1: wanted \(inputs, outputs\)"),
        ([(["a"], ["x", "y", "z"])], "trace 1: 1 inputs go with 3 outputs"),
    ]:
        with pytest.raises(InvalidInput, match=sentence):
            learn(log)
    with pytest.raises(InvalidConfig, match="a DFA has the labels accept and reject"):
        learn([(["a"], "maybe")], kind="dfa")
    with pytest.raises(NotLearned, match="more than 2 states"):
        learn(traces_of(handshake(), 100, 10, 1), max_states=2)


def test_learn_refuses_one_of_the_first_merges_of_a_dfa():
    """A problem of Abbadingo's kind with few strings, which neither order solves by itself."""
    rng = np.random.default_rng(0)
    target, words = random_dfa(32, rng), distinct_strings(700, 13, rng)
    labels = ["reject", "accept"]
    log = [([str(a) for a in word], labels[int(target.readout[target.run(word)])]) for word in words]
    found = learn(log, kind="dfa")
    assert found.states < min(learn(log, kind="dfa", order=order).states for order in ("evidence", "margin"))
    assert distinguishing_word(found.machine, target) is None
