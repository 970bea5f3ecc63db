"""Synchronizing machines against a search over sets of states."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from exactstate.automata import Semiautomaton, cyclic, flip_flop, from_tables, parallel, symmetric
from exactstate.automata.properties.synchronizing import synchronizing
from tests.cases import in_one_case


def shortest_reset(machine: Semiautomaton) -> int | None:
    """The length of a shortest reset word, by walking through sets of states."""
    level, seen, length = {frozenset(range(machine.n_states))}, set(), 0
    while level:
        if any(len(states) == 1 for states in level):
            return length
        seen |= level
        level = {frozenset(table[list(s)].tolist()) for s in level for table in machine.tables} - seen
        length += 1
    return None


def check(machine: Semiautomaton) -> None:
    answer, shortest = synchronizing(machine), shortest_reset(machine)
    assert answer.answer is (shortest is not None)
    if shortest is not None:
        ends = set(machine.act(list(answer.word)).tolist())
        assert ends == {machine.state_number(answer.state)}
        assert len(answer.word) >= shortest
    else:
        # no word merges the two: walk through all pairs they lead to
        pairs = [tuple(machine.state_number(name) for name in answer.apart)]
        for p, q in pairs:
            assert p != q
            pairs += {(int(t[p]), int(t[q])) for t in machine.tables} - set(pairs)


@in_one_case("seed", range(80))
def test_synchronizing_random_machines_against_sets_of_states(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, A = int(rng.integers(1, 9)), int(rng.integers(1, 3))
    check(Semiautomaton(symbols=tuple("ab"[:A]), tables=rng.integers(0, n, (A, n))))


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7])
def test_synchronizing_cerny_machines(n: int) -> None:
    q = np.arange(n)
    machine = from_tables([(q + 1) % n, np.where(q == n - 1, 0, q)])
    check(machine)
    assert len(synchronizing(machine).word) >= (n - 1) ** 2 == shortest_reset(machine)


def test_synchronizing_by_one_symbol() -> None:
    assert synchronizing(flip_flop()).word == ("reset",)
    assert synchronizing(cyclic(1)).word == ()
    assert (
        synchronizing(flip_flop()).explain()
        == "synchronizing: after 'reset' the state is 'reset', whatever it was before"
    )


def test_synchronizing_is_false_for_groups() -> None:
    assert synchronizing(symmetric(3)).explain() == "not synchronizing: no word merges 'e' and '(0 1)'"
    flip, parity = flip_flop(), from_tables([[0, 1], [0, 1], [1, 0]], symbols=flip_flop().symbols)
    check(parallel(flip, parity))


def test_synchronizing_stops_at_too_many_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["exactstate.automata.properties.synchronizing"], "MAX_STATES", 3)
    machine = from_tables([[1, 2, 3, 0], [1, 1, 2, 3]])
    assert synchronizing(machine).answer is None
    assert synchronizing(machine).explain().startswith("perhaps synchronizing: more than 3 states")
