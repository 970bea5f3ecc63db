"""Heads that say nothing beyond others: left out with a proof, kept without one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import exactstate
from exactstate.certify import Certificate
from exactstate.certify.check import check
from exactstate.errors import BudgetExceeded
from exactstate.extract import Budget, rounding_errors
from exactstate.extract.graph.arithmetic import EXACT
from exactstate.extract.graph.branch import branch
from exactstate.extract.graph.network import TracedNetwork
from exactstate.extract.graph.redundancy import DeterminedNetwork, guessed
from exactstate.extract.graph.steps import Steps


class Wide(nn.Module):
    """The default layer, sixteen heads of twelve, and a read-out without a norm."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.embedding, self.norm, self.memory = nn.Embedding(2, width), nn.LayerNorm(width), exactstate.NFSM(width)
        self.readout = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 6))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.readout(self.memory(self.norm(self.embedding(tokens)))[0])


@pytest.fixture(scope="module")
def trained() -> Wide:
    """S3, learned by gradient from words and states."""
    torch.manual_seed(0)
    task, rng, model = exactstate.task("S3"), np.random.default_rng(0), Wide()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.0)
    for step in range(80):
        batch = task.sample(64, min(32, 8 + step), rng)
        words, labels = (torch.from_numpy(part.astype(np.int64)) for part in (batch.inputs, batch.states))
        loss = nn.functional.cross_entropy(model(words).flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


def test_a_trained_wide_network_is_extracted_and_certified(trained: Wide) -> None:
    task = exactstate.task("S3").machine
    machine = exactstate.extract(trained, symbols=task.symbols, labels=task.states)
    assert len(machine.heads[0]) <= 4
    assert len(machine.configurations) < 100
    assert "of 16 heads are left out" in machine.dropped[0]
    assert machine.dropped[0] in machine.describe()
    verdict = exactstate.certify(machine, task)
    assert verdict
    certificate = Certificate.of(machine, verdict, rounding={"float32": rounding_errors(trained, machine, "float32")})
    assert certificate.proved == ("float32",)
    assert check(certificate.content)


def test_heads_left_out_stay_where_they_are_said_to_be(trained: Wide) -> None:
    network = TracedNetwork(trained, 2, "float64")
    kept = guessed(network)
    determined = DeterminedNetwork(network, kept)
    assert determined.prove().blamed < 0
    words = torch.from_numpy(np.random.default_rng(1).integers(0, 2, (20, 50)))
    with torch.no_grad():
        model = network.model
        states = model.memory.states(model.norm(model.embedding(words))).flatten(0, 1).numpy()
        labels = model(words).argmax(-1).flatten().numpy()
    rows = np.concatenate([words.reshape(-1, 1).numpy(), states[:, list(kept)]], axis=1)
    possible = determined.possible(EXACT, rows)
    assert possible is not None
    assert possible[np.arange(len(rows))[:, None], 12 * np.arange(16) + states].all()
    assert not possible.all()
    ((proved, _),) = determined.read_out(rows)
    assert np.array_equal(proved.best, labels)


def test_a_head_that_decides_labels_is_not_left_out(trained: Wide) -> None:
    """One head that holds too little: the labels are not the same for all indices of the others."""
    network = TracedNetwork(trained, 2, "float64")
    kept = guessed(network)
    assert len(kept) > 1
    for head in kept:
        assert DeterminedNetwork(network, (head,)).prove().blamed >= 0


def test_after_a_failure_nearly_determined_heads_are_kept_or_the_one_to_blame(
    trained: Wide, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = TracedNetwork(trained, 2, "float64")
    determined = DeterminedNetwork(network, guessed(network)[:1])
    blamed = determined.prove().blamed
    assert determined.explored is not None
    possible = determined.possible(EXACT, determined.explored.readout_inputs)
    assert possible is not None
    counts = possible.reshape(-1, 16, 12).sum(-1).mean(0)
    nearly = {head for head in determined.dropped[0] if 1 < counts[head] <= 2.5}
    assert set(determined.more(blamed)) == {*determined.kept[0], *(nearly or {blamed})}
    monkeypatch.setattr("exactstate.extract.graph.redundancy.NEARLY", 1.0)
    assert set(determined.more(blamed)) == {*determined.kept[0], blamed}


def test_what_cannot_be_proved_is_refused_with_the_way_out() -> None:
    torch.manual_seed(0)
    with pytest.raises(
        BudgetExceeded, match=r"None of its 16 heads could be proved redundant; .*exactstate\.nn\.prune"
    ):
        exactstate.extract(Wide().eval(), symbols=["a", "b"], budget=Budget(configurations=2000))


@pytest.mark.parametrize(("offset", "proved"), [(1.5, True), (0.5, False)])
def test_branch_and_bound_decides_what_one_bound_does_not(offset: float, proved: bool) -> None:
    """The lead is offset - |x - y| for x, y in {0, 1}, bounded by intervals: offset - 2 until the heads are parted."""
    values = np.array([[0.0], [1.0]])

    def bounded(steps: Steps, _: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert steps.possible is not None
        sets = [[values[k, 0] for k in np.flatnonzero(row)] for row in steps.possible.reshape(-1, 2)]
        pairs = list(zip(sets[::2], sets[1::2], strict=True))
        far = [max(abs(max(x) - min(y)), abs(max(y) - min(x))) for x, y in pairs]
        loose = [0.0 if len(x) == len(y) == 1 else 1.0 for x, y in pairs]
        return offset - np.array(far) - np.array(loose), np.ones((len(pairs), 2))

    steps = Steps(np.zeros((1, 1), int), (np.zeros((1, 1, 2), int),), np.ones((1, 4), bool))
    found = branch(bounded, steps, np.zeros(1, int), np.zeros(1), heads=(2, 2), dropped=(0, 1),
                   contributions=lambda _: values, most=100)  # fmt: skip
    assert (found.blamed < 0) == proved
    assert (found.leads[0] > 0) == proved
    if proved:
        assert found.leads[0] == 0.5
        assert found.parts == 7
