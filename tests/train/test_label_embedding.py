"""Heads from label embeddings: what is computed, what is refused, and that it ends certified."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from exactstate.errors import InvalidConfig, NotLearned
from exactstate.nn import NFSM
from exactstate.records import Row
from exactstate.tasks import task as get_task
from exactstate.train import configure, search, train
from exactstate.train.build import build_model
from exactstate.train.config import TrainConfig, search_heads
from exactstate.train.label_embedding import (
    COPIES,
    GROUPS,
    EmbeddingPhase,
    HeadPhase,
    LabelEmbedding,
    by_symbol,
    match,
    share_tables,
)
from exactstate.train.phases import labels_of, tokens_of

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six states are many."""
    monkeypatch.setattr(search, "EMBEDDED_FROM", 5)


def embedded(name: str) -> TrainConfig:
    return configure(name, recipe="gradient", seed=42, restarts=0, heads=(6,) * 4)


def test_rows_are_multiplied_by_the_matrix_of_their_symbol() -> None:
    generator = torch.Generator().manual_seed(0)
    rows, matrices = torch.randn(2, 7, 6, generator=generator), torch.randn(2, 4, 3, 3, generator=generator)
    symbols = torch.tensor([1, 0, 2, 2, 1, 0, 2])  # symbol 3 does not occur
    wanted = torch.stack([
        torch.stack([(row.view(2, 3) @ matrices[h, s]).flatten() for row, s in zip(rows[h], symbols, strict=True)])
        for h in range(2)
    ])  # fmt: skip
    torch.testing.assert_close(by_symbol(rows, matrices, symbols), wanted)


def test_loss_is_the_squared_error_of_predicting_a_label() -> None:
    task = get_task("S3")
    batch = task.sample(8, 16, np.random.default_rng(0))
    words, labels = tokens_of(batch), labels_of(batch)
    embedding = LabelEmbedding(6, task.machine.n_symbols, 4, torch.Generator().manual_seed(0))
    predicted, wanted = embedding.predict(words, labels, 2)
    assert predicted.shape == (GROUPS, 8 * 14, COPIES * 4)
    matrices, vectors = embedding.matrices[1], embedding.vectors[labels[3, 5]].view(GROUPS, COPIES, 4)[1]
    by_hand = vectors @ matrices[words[3, 6]] @ matrices[words[3, 7]]
    torch.testing.assert_close(predicted[1, 3 * 14 + 5], by_hand.flatten())
    scores = torch.bmm(predicted, wanted.transpose(1, 2))  # of the labels at all positions
    right = scores.diagonal(dim1=1, dim2=2).mean(1)
    torch.testing.assert_close(
        embedding.losses(words, labels, 2), (scores.square().mean((1, 2)) - 2 * right) / (COPIES * 4)
    )


def test_match_is_the_logarithm_of_indices_for_equal_ones_and_zero_by_chance() -> None:
    same = torch.eye(4).repeat(5, 1)[None]
    assert match(same, same).item() == pytest.approx(math.log(4))
    assert match(same, torch.full_like(same, 0.25)).item() == pytest.approx(0.0, abs=1e-6)


def test_shared_tables_run_from_other_indices() -> None:
    generator = torch.Generator().manual_seed(0)
    layer = NFSM(8, (5,) * 7, generator=generator)
    x = torch.randn(3, 20, 8, generator=generator)
    share_tables(layer, [2, 4])
    starts = torch.zeros(3, 7, dtype=torch.long)
    for h, (source, start) in {0: (2, 1), 1: (4, 1), 3: (2, 2), 5: (4, 2), 6: (2, 3)}.items():
        starts[:, source] = start
        order = torch.arange(5)
        order[[0, start]] = order[[start, 0]]
        with torch.no_grad():
            end, from_start = layer(x)[1], layer(x, starts)[1][:, source]
        assert torch.equal(order[end[:, h].long()], from_start.long())
        starts[:, source] = 0


def test_thousands_of_states_have_label_embeddings() -> None:
    assert search_heads(1_000) != search_heads(1_001) == (12,) * 16
    config = configure("M11", recipe="gradient")
    assert config.search.attempts == 1 + config.restarts


@pytest.mark.usefixtures("few")
def test_heads_of_several_sizes_are_refused() -> None:
    with pytest.raises(InvalidConfig, match="heads of one size"):
        train(replace(embedded("S3"), heads=(12, 8)))


def test_what_is_not_found_is_said() -> None:
    task, weights = get_task("S3"), torch.Generator().manual_seed(0)
    embedding = LabelEmbedding(6, task.machine.n_symbols, 12, weights)
    embed = EmbeddingPhase(embedding, task, np.random.default_rng(0), 1)
    embed.step()
    with pytest.raises(NotLearned, match="S3 was not learned: after 1 steps the best label embedding correlates"):
        embed.check()
    model = build_model(configure("S3"), task, heads=((12,) * 8,), generator=weights)
    phase = HeadPhase(model, embedding, 0, task, np.random.default_rng(0), weights, 1)
    phase.step()
    assert phase.done
    with pytest.raises(NotLearned, match="after 1 steps none of 8 heads follows the state"):
        phase.check()


def test_embedding_settles_after_it_has_found_something() -> None:
    task = get_task("S3")
    embedding = LabelEmbedding(6, task.machine.n_symbols, 12, torch.Generator().manual_seed(0))
    phase = EmbeddingPhase(embedding, task, np.random.default_rng(0))
    while phase.found_at < 0:
        phase.step()
        if phase.steps % phase.check_every == 0:
            phase.check()
    assert not phase.done
    phase.steps = phase.found_at + 100
    phase.step()
    assert phase.optimizer.param_groups[0]["lr"] == pytest.approx(0.055)


@pytest.mark.usefixtures("few")
def test_a_run_with_label_embeddings_is_certified_and_resumes_to_the_same_weights(tmp_path: Path) -> None:
    config = embedded("S3")
    whole = train(config)
    assert whole.certified
    assert whole.tables == "label embeddings"
    phases = [row["phase"] for row in whole.history]
    assert [phase for phase in dict.fromkeys(phases) if phase != "stage"] == ["embed", "heads", "search", "realize"]
    assert phases.count("search") == 1  # the heads are kept as they come
    assert not train(config, out=tmp_path, until=30).finished
    for stop in ("heads", "search", "realize"):

        def die(row: Row, stop: str = stop) -> None:
            if row["phase"] == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            train(config, die, out=tmp_path, save_every=0.0)
    rest = train(config, out=tmp_path)
    assert rest.steps == whole.steps
    states = (run.model.state_dict().values() for run in (whole, rest))
    assert all(map(torch.equal, *states))
