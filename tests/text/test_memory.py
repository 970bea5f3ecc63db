"""Machines in NFSM layers, against a plain run of machines over commands."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from exactstate._types import MISSING
from exactstate.text.memory import Machine, MachineMemory, parser

COMMANDS = [(0, 2), (0, 3), (1, 2), (1, 3, 4)]


def machines(generator: np.random.Generator) -> list[Machine]:
    return [
        Machine((1,), generator.integers(0, n, (len(COMMANDS), n)), generator.integers(0, 5, n), start)
        for n, start in ((5, 2), (3, 0))
    ]


def test_memory_runs_machines_over_commands() -> None:
    held = machines(np.random.default_rng(0))
    torch.manual_seed(0)
    memory = MachineMemory(6, 8, COMMANDS, held).eval()
    order = np.random.default_rng(1).integers(0, len(COMMANDS), (10, 30))
    for text in order:
        tokens = torch.tensor([token for c in text for token in COMMANDS[c]])[None]
        states, ends = [machine.start for machine in held], 0
        indices = memory.indices(tokens)[0]
        for c in text:
            ends += len(COMMANDS[c])
            assert indices[ends - 2, 1:].tolist() == states
            states = [int(machine.tables[c, n]) for machine, n in zip(held, states, strict=True)]
            assert indices[ends - 1, 1:].tolist() == states
        read, (_, final) = memory(tokens)
        assert torch.equal(final[0], indices[-1, 1:])
        torch.testing.assert_close(memory.read(indices), read[0], rtol=1e-4, atol=1e-5)  # float32


def test_memory_is_exact_at_any_length_and_continues() -> None:
    memory = MachineMemory(6, 8, COMMANDS, machines(np.random.default_rng(0))).eval()
    tokens = torch.randint(0, 6, (2, 500))
    whole, final = memory(tokens)
    first, state = memory(tokens[:, :123])
    rest, after = memory(tokens[:, 123:], state)
    assert all(torch.equal(one, other) for one, other in zip(after, final, strict=True))
    torch.testing.assert_close(torch.cat([first, rest], 1), whole, rtol=1e-4, atol=1e-5)  # float32


def test_parser_begins_anew_after_a_command_and_where_none_goes_on() -> None:
    nodes, table, ends = parser(COMMANDS, 6)
    place = {words: n for n, words in enumerate(nodes)}

    def read(*tokens: int) -> tuple[int, ...]:
        at = 0
        for token in tokens:
            at = int(table[token, at])
        return nodes[at]

    assert read(1, 3) == (1, 3)
    assert read(1, 3, 4) == (1, 3, 4)
    assert read(1, 3, 4, 0) == (0,)
    assert read(0, 1) == (1,)
    assert read(1, 5) == ()
    assert [ends[place[words]] for words in COMMANDS] == [0, 1, 2, 3]
    assert ends[place[1, 3]] == MISSING


@pytest.mark.parametrize("given", [[], machines(np.random.default_rng(0))])
def test_tables_are_fixed_and_their_reading_is_trained(given: list[Machine]) -> None:
    memory = MachineMemory(6, 8, COMMANDS, given)
    memory(torch.randint(0, 6, (2, 20)))[0].square().mean().backward()
    trained = {name for name, one in memory.named_parameters() if one.grad is not None}
    assert trained == {name for name, one in memory.named_parameters() if one.requires_grad}
    assert "machines.values" in trained
    assert not any(name.startswith("parser") or name == "machines.weight" for name in trained)
