"""Cascades: how heads are read, which are kept, the machine that they are, and a run of the recipe with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from exactstate._types import MISSING, Ints
from exactstate.errors import InvalidConfig
from exactstate.tasks import task as get_task
from exactstate.train import cascade, configure, train
from exactstate.train.cascade import (
    Cascade,
    CascadePhase,
    FreeHeads,
    KeptHead,
    LayerConfig,
    entropy,
    read_head,
    refined,
)
from exactstate.train.checkpoint import load, save

TSO3 = get_task("TSO3")
FIRST, HOLDERS = TSO3.registers[0], TSO3.registers[1:]


def batches(joint: Ints | None = None) -> list[tuple[Ints, Ints, Ints]]:
    """Words by which heads are read; with `joint` (n), the number below every state, as in a second layer."""
    made = []
    for length in (20, 45, 90):
        drawn = TSO3.sample(200, length, np.random.default_rng(length))
        words, labels = drawn.inputs.astype(np.int64), drawn.states.astype(np.int64)
        if joint is None:
            made.append((words, np.zeros_like(words), labels))
        else:
            before = np.concatenate([drawn.before[:, None], labels[:, :-1]], axis=1)
            made.append((words * (joint.max() + 1) + joint[before], joint[labels], labels))
    return made


def register_tables(of_state: Ints, below: Ints, numbers: int) -> Ints:
    """W d: how a register changes with the symbol and the number below (one of so many), as stories show it."""
    tables = np.tile(np.arange(int(of_state.max()) + 1), (TSO3.machine.n_symbols * numbers, 1))
    for length in (20, 45, 90):
        drawn = TSO3.sample(400, length, np.random.default_rng(length + 1))
        before = np.concatenate([drawn.before[:, None], drawn.states[:, :-1]], axis=1)
        tables[drawn.inputs.astype(np.int64) * numbers + below[before], of_state[before]] = of_state[drawn.states]
    return tables


def first_name() -> Ints:
    """The tables of a head that holds the first name of the sentence."""
    return register_tables(FIRST.of_state, np.zeros_like(FIRST.of_state), 1)


def same_partition(one: Ints, other: Ints) -> bool:
    seen = (one != MISSING) & (other != MISSING)
    pairs = np.unique(np.stack([one[seen], other[seen]]), axis=1)
    return all(len(np.unique(row)) == pairs.shape[1] for row in pairs)


def test_read_head_gives_what_a_head_follows() -> None:
    head = read_head(first_name(), batches(), 1, TSO3.machine.n_states)
    assert head.used == 4
    assert same_partition(head.of_label, FIRST.of_state)


def test_read_head_merges_indices_that_mean_the_same() -> None:
    tables = np.concatenate([first_name(), first_name() + 4], axis=1)  # every index twice
    bob, charlie = (TSO3.machine.symbols.index(name) for name in ("bob", "charlie"))
    tables[bob], tables[charlie] = tables[bob] % 4 + 4, tables[charlie] % 4  # to the copies, and back
    head = read_head(tables, batches(), 1, TSO3.machine.n_states)
    assert head.used == 4
    assert same_partition(head.of_label, FIRST.of_state)
    assert not same_partition(head.of_label, HOLDERS[0].of_state)


def test_read_head_finds_nothing_in_a_head_with_a_wrong_entry_or_of_the_last_symbol() -> None:
    wrong, bob = first_name(), TSO3.machine.symbols.index("bob")
    wrong[bob, 0] = 0
    assert read_head(wrong, batches(), 1, TSO3.machine.n_states).used < 4
    last = np.tile(np.arange(len(first_name()))[:, None], (1, len(first_name())))
    assert read_head(last, batches(), 1, TSO3.machine.n_states).used < len(last) / 2


def test_read_head_of_a_second_layer_depends_on_what_is_below() -> None:
    tables = register_tables(HOLDERS[0].of_state, FIRST.of_state, 4)
    head = read_head(tables, batches(FIRST.of_state), 4, TSO3.machine.n_states)
    assert same_partition(head.of_label, HOLDERS[0].of_state)
    alone = register_tables(HOLDERS[0].of_state, np.zeros_like(FIRST.of_state), 1)
    assert read_head(alone, batches(), 1, TSO3.machine.n_states).used < 4  # the symbol alone does not tell


def test_entropy_and_refined() -> None:
    groups = refined(np.zeros(4, np.int64), np.array([0, 1, 1, 0]))
    assert groups.tolist() == [0, 1, 1, 0]
    assert entropy(groups, np.array([1, 1, 1, 1])) == pytest.approx(np.log(2))
    assert entropy(np.arange(4), np.array([3, 1, 0, 2])) == 0.0


def test_losses_are_those_of_a_hidden_markov_model() -> None:
    heads = FreeHeads(
        3, 4, LayerConfig(heads=2, size=5, remember=1.0, gain=0.1, steps=1), torch.Generator().manual_seed(0)
    )
    generator = torch.Generator().manual_seed(1)
    words, labels = torch.randint(3, (6, 7), generator=generator), torch.randint(4, (6, 7), generator=generator)
    groups = torch.tensor([0, 1, 1, 0])
    with torch.no_grad():
        found = heads.losses(words, 3, labels, groups)
    for h in range(2):
        moves, total = heads.logits[:, h].softmax(-1), 0.0
        for word, wanted in zip(words, labels, strict=True):
            state = torch.eye(5)[0]
            for symbol, label in zip(word, wanted, strict=True):
                state = state @ moves[symbol]
                among = heads.readout[:, h].masked_fill((groups != groups[label])[:, None], -torch.inf)
                total -= float((state * among.softmax(0)[label]).sum().log().detach())
        assert float(found[h]) == pytest.approx(total / words.numel(), rel=1e-4)  # float32 sums of 42 terms


def given() -> Cascade:
    """A cascade whose heads are the registers of the task: the first name, and on it the holders."""
    made = Cascade(TSO3.machine.n_symbols, TSO3.machine.n_states)
    made.layers[0].append(KeptHead(first_name(), np.asarray(FIRST.of_state, np.int64)))
    made.reach([words for words, *_ in batches()])
    for register in HOLDERS:
        tables = register_tables(register.of_state, FIRST.of_state, len(made.joints) + 1)
        made.layers[1].append(KeptHead(tables, np.asarray(register.of_state, np.int64)))
    return made


def test_inputs_of_the_second_layer_name_the_joint_index_of_the_first() -> None:
    made = given()
    assert made.joints.tolist() == [0, 1, 2, 3]
    drawn = TSO3.sample(16, 60, np.random.default_rng(1))
    words = drawn.inputs.astype(np.int64)
    assert np.array_equal(made.joint(words)[:, 1:], FIRST.of_state[drawn.states])
    before = np.concatenate([drawn.before[:, None], drawn.states[:, :-1]], axis=1)
    assert np.array_equal(made.inputs(1, words), words * 5 + FIRST.of_state[before])
    made.joints = made.joints[:2]
    assert made.joint(words).max() == 2  # all others are one


def test_learned_task_has_the_machine_of_the_heads_and_these_as_registers() -> None:
    made = given()
    assert entropy(made.groups, np.ones(made.labels, np.int64)) == 0.0
    learned = cascade.learned_task(TSO3, made)
    stories = [one.sample(256, 90, np.random.default_rng(5)).states for one in (TSO3, learned)]
    assert np.array_equal(*stories)
    assert learned.layers == ((4, 4, 4), (4, 4, 4))
    assert [same_partition(register.of_state, one.of_state) for register, one in
            zip(learned.registers, TSO3.registers, strict=True)] == [True] * 4  # fmt: skip
    made.layers[1][0].tables[:, 1] = 2
    wrong = cascade.learned_task(TSO3, made).sample(256, 90, np.random.default_rng(5)).states
    assert not np.array_equal(stories[0], wrong)


def phase_of(seed: int = 1) -> CascadePhase:
    return CascadePhase(TSO3, np.random.default_rng(seed), torch.Generator().manual_seed(seed))


def test_a_restored_phase_takes_the_same_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cascade, "FIRST_READ", 2)
    monkeypatch.setattr(cascade, "LOWER", replace(cascade.LOWER, steps=4))
    monkeypatch.setattr(cascade, "UPPER", replace(cascade.UPPER, heads=2))
    phase = phase_of()
    with torch.no_grad():  # a head that is kept: the first name
        phase.lower.logits[:, 0, :4, :4] += 50 * torch.nn.functional.one_hot(torch.from_numpy(first_name()), 4)
    for _ in range(6):
        phase.step()
        phase.check()
    assert (phase.layer, phase.begun) == (1, 3)  # kept after two steps, nothing more after three
    assert [head.used for head in phase.cascade.layers[0]] == [4]
    save(tmp_path / "c", phase.module, phase.optimizer, phase.generator, {"state": phase.state()})
    other = phase_of(seed=2)
    other.load_state(load(tmp_path / "c", other.module, other.optimizer, other.generator)["state"])
    for one in (phase, other):
        one.step()
        one.check()
    assert other.state() == phase.state()
    assert torch.equal(other.upper.logits, phase.upper.logits)


def test_stories_are_given_their_registers_unless_gradient_is_named() -> None:
    assert configure("TSO3").recipe == "distill"
    assert configure("TSO3", recipe="gradient").adapt_to_task(TSO3).recipe == "gradient"
    with pytest.raises(InvalidConfig, match="TSO3 takes layers of 4 and 3 heads"):
        train("TSO3", recipe="gradient", heads=(12,) * 16)
