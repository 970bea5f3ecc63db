"""Differences of machines: by name, whatever the order; a shortest word, and every changed transition."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from exactstate.automata import Mealy, Moore, tomita
from exactstate.automata.difference import difference
from exactstate.errors import InvalidMachine
from tests.learning.machines import handshake, sessions


def shuffled(machine, seed):
    """The same machine with symbols, states and outputs in another order."""
    generator = np.random.default_rng(seed)
    a, q, o = (generator.permutation(n) for n in (machine.n_symbols, machine.n_states, len(machine.outputs)))
    return Mealy(
        symbols=tuple(machine.symbols[i] for i in a), tables=np.argsort(q)[machine.tables[np.ix_(a, q)]],
        states=tuple(f"r{i}" for i in range(machine.n_states)), start=int(np.argsort(q)[machine.start]),
        outputs=tuple(machine.outputs[i] for i in o), readout=np.argsort(o)[machine.readout[np.ix_(a, q)]],
    )  # fmt: skip


def changed(machine, a, q, *, output=None, target=None):
    tables, readout = machine.tables.astype(int), machine.readout.astype(int)
    if output is not None:
        readout[a, q] = output
    if target is not None:
        tables[a, q] = target
    return Mealy(
        symbols=machine.symbols, tables=tables, states=machine.states, outputs=machine.outputs, readout=readout
    )


@pytest.mark.parametrize("machine", [handshake(), sessions()])
def test_difference_ignores_order_and_numbers(machine):
    found = difference(machine, shuffled(machine, 1))
    assert found
    assert (found.transitions, found.word) == ((), None)
    assert found.explain().startswith("equivalent: the same outputs on every word")


def test_difference_lists_every_changed_transition():
    old = handshake()
    new = shuffled(changed(changed(old, 4, 4, output=1), 2, 1, target=3), 2)
    found = difference(old, new)
    assert not found
    assert found.word == ("hello", "verify", "finish")
    assert found.outputs == (("ack", "closed", "closed"), ("ack", "closed", "ack"))
    assert {(one.state, one.symbol) for one in found.transitions} == {("open", "data"), ("hello", "verify")}
    assert (
        "different: after 'hello verify finish' the first machine outputs 'closed', the second 'ack'" in found.explain()
    )


def test_difference_over_common_symbols():
    old = handshake()
    new = Mealy(symbols=(*old.symbols[:4], "bye"), tables=old.tables, outputs=old.outputs, readout=old.readout)
    found = difference(old, new)
    assert found
    assert (found.only_first, found.only_second) == (("data",), ("bye",))
    assert "only the second machine reads 'bye'" in found.explain()
    with pytest.raises(InvalidMachine, match="no symbol in common"):
        difference(old, tomita(1))


def test_difference_of_moore_and_mealy():
    machine = tomita(4)
    assert difference(machine, machine.to_mealy())
    other = Moore(symbols=machine.symbols, tables=machine.tables, outputs=machine.outputs, readout=1 - machine.readout)
    assert difference(machine, other).word is not None


def test_difference_shows_a_name_on_one_line():
    """A name with the end of a line in it cannot imitate a further line."""
    machine = Mealy(
        symbols=("a\nequivalent: yes",), states=("p\nq", "r"), tables=[[1, 0]], outputs=("x", "y"), readout=[[0, 1]]
    )
    changed = dataclasses.replace(machine, tables=[[1, 1]])
    lines = difference(machine, changed).explain().splitlines()
    assert lines[0].startswith("different: after 'a\\nequivalent: yes a\\nequivalent: yes")
    assert lines[1:] == ["  r on 'a\\nequivalent: yes': 'y' to p\\nq in the first, 'y' to r in the second"]
