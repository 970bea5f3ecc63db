"""The stacks of Tracking Shuffled Objects are the (p, g) automaton: by hand, and in the certificates that are kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from exactstate.automata import minimize
from exactstate.certify.check import check
from exactstate.tasks import task
from tests.extract.stories import stories

KEPT = Path(__file__).parents[2] / "results" / "certificates"
STATES = {3: 44, 4: 202, 5: 1132}


@pytest.mark.parametrize("people", [3, 4, 5])
def test_a_stack_minimises_to_the_task(people: int) -> None:
    told, cascade = stories(people)
    found = cascade.read(symbols=told.machine.symbols, grammar=told.grammar)
    small = minimize(found.named)
    assert small.n_states == STATES[people] + 1  # and one that words off the grammar lead to
    refused = small.outputs.index("refused")
    said = [small.outputs[says] for says in small.readout.tolist()]
    number = {str(n): n for n in range(told.machine.n_states)} | {"start": told.machine.start}
    for symbol, state in np.argwhere(small.readout[small.tables] != refused).tolist():
        after = told.machine.tables[symbol, number[said[state]]]
        assert number[said[int(small.tables[symbol, state])]] == after


@pytest.mark.parametrize("people", [3, 4, 5])
def test_kept_certificates_are_valid(people: int) -> None:
    path = KEPT / f"TSO{people}-42.json"
    assert check(path)
    content = json.loads(path.read_text())
    told = task(f"TSO{people}")
    assert content["counts"]["task_states"] == STATES[people] == told.machine.n_states
    assert content["target"]["tables"] == told.machine.tables.tolist()
    assert "float32" in content["proved"]
    assert [layer["heads"] for layer in content["layers"]] == [list(heads) for heads in told.layers]


def test_a_changed_certificate_is_not(tmp_path: Path) -> None:
    """One answer changed, and the seal with it."""
    from exactstate.certify.certificate import formatted, sealed

    content = json.loads((KEPT / "TSO3-42.json").read_text())
    row = next(i for i, replies in enumerate(content["replies"]) if replies)
    content["replies"][row] = [(content["replies"][row][0] + 1) % 3]
    (tmp_path / "changed.json").write_text(formatted(sealed(content)))
    assert not check(tmp_path / "changed.json")
