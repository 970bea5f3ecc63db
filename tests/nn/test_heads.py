"""Heads alone: their likelihoods, what is read from tables, and a layer of a model of one's own that is learned so."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from exactstate._types import MISSING
from exactstate.errors import InvalidInput
from exactstate.nn import NFSM, HeadReadouts, KeptHead
from exactstate.nn.heads import entropy, read_head, refined, run_tables
from exactstate.tasks import task as get_task

pytestmark = pytest.mark.usefixtures("one_thread")

COUNTER = np.array([[1, 2, 0, 3], [0, 1, 2, 3]])
"""Two symbols on four indices: one counts modulo 3, the other stays; index 3 is not reached."""


def words_of_counter(length: int = 20) -> tuple[np.ndarray, np.ndarray]:
    words = np.random.default_rng(0).integers(2, size=(64, length))
    return words, run_tables(COUNTER[:, :3], words)[:, 1:]


def no_layer_below(words: np.ndarray) -> list[np.ndarray]:
    return [np.zeros((len(words), words.shape[1] + 1), np.int64)]


def test_read_head_finds_the_counter_and_drops_the_index_that_is_not_reached() -> None:
    words, labels = words_of_counter()
    head = read_head(COUNTER, [(words, labels)], no_layer_below(words), 4, 0, 0)
    assert head is not None
    assert (head.size, head.start, head.indices) == (3, 0, (0, 1, 2))
    assert head.tables.tolist() == [[1, 2, 0], [0, 1, 2]]
    assert head.of_label.tolist() == [0, 1, 2, MISSING]


def test_read_head_merges_indices_of_one_label_and_those_that_follow_them() -> None:
    double = np.array([[1, 2, 3, 4, 5, 0], [0, 1, 2, 3, 4, 5]])
    words, labels = words_of_counter()
    head = read_head(double, [(words, labels)], no_layer_below(words), 3)
    assert head is not None
    assert head.size == 3
    assert head.tables.tolist() == [[1, 2, 0], [0, 1, 2]]


def test_read_head_of_tables_that_follow_nothing_has_one_class() -> None:
    words, labels = words_of_counter()
    shuffled = np.random.default_rng(1).permutation(labels.ravel()).reshape(labels.shape)
    head = read_head(COUNTER[:, :3], [(words, shuffled)], no_layer_below(words), 3)
    assert head is not None
    assert len(set(head.of_label.tolist())) == 1


def test_outputs_are_read_from_the_index_before_and_the_input() -> None:
    words, labels = (torch.from_numpy(part) for part in words_of_counter(6))
    layer = NFSM(2, (3,))
    heads = HeadReadouts(layer, 2, inputs=2, remember=0.0, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        layer.weight.zero_()
        for a in range(2):
            for k in range(3):
                layer.weight[3 * k + int(COUNTER[a, k]), a] = 30.0
        heads.readout.zero_()
        heads.readout[1, 0, 2] = 30.0  # the symbol that counts, at index 2, and nothing else
        heads.readout[0] += 15.0 * (heads.readout[1] == 0)
    before = torch.cat([torch.zeros(64, 1, dtype=torch.int64), labels[:, :-1]], 1)
    outputs = ((words == 0) & (before == 2)).long()
    assert float(heads((torch.eye(2), words), outputs).detach()) < 1e-3
    assert float(heads((torch.eye(2), words), 1 - outputs).detach()) > 5.0
    weighted = heads((torch.eye(2), words), 1 - outputs, weights=torch.tensor([0.0, 1.0]))
    assert float(weighted.detach()) == pytest.approx(15.0, abs=1.0)  # of the label 1 alone
    with pytest.raises(InvalidInput, match="need distinct inputs"):
        heads(torch.eye(2)[words], outputs)


def test_counted_labels_are_the_read_outs_of_tables_that_are_given() -> None:
    words, labels = words_of_counter()
    layer = NFSM(2, (4, 3))
    heads = HeadReadouts(layer, 3, remember=0.0, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        layer.weight.zero_()
        for a in range(2):
            for k in range(4):
                layer.weight[4 * k + int(COUNTER[a, k]), a] = 30.0
    heads.count_labels(torch.eye(2), [(words, labels)])
    assert heads.readout[:, 0, :3].argmax(0).tolist() == [0, 1, 2]
    batches = (torch.eye(2), torch.from_numpy(words)), torch.from_numpy(labels)
    assert heads(*batches).tolist()[0] < 0.01 < heads(*batches).tolist()[1]


def test_missing_labels_say_nothing() -> None:
    words, labels = words_of_counter()
    layer = NFSM(8, (4, 3))
    heads = HeadReadouts(layer, 3, generator=torch.Generator().manual_seed(0))
    rows, some = torch.randn(2, 8), labels.copy()
    some[:, :10] = MISSING
    x = rows, torch.from_numpy(words)
    both = heads(x, torch.from_numpy(labels))
    late = heads(x, torch.from_numpy(some))
    first = labels.copy()
    first[:, 10:] = MISSING
    assert torch.allclose(both, 0.5 * (late + heads(x, torch.from_numpy(first))), atol=1e-5)
    assert not torch.allclose(both, late)


def test_rows_with_an_index_and_rows_alone_have_the_same_losses() -> None:
    words, labels = (torch.from_numpy(part) for part in words_of_counter())
    heads = HeadReadouts(NFSM(8, (4, 3)), 3)
    rows = torch.randn(2, 8)
    assert torch.allclose(heads((rows, words), labels), heads(rows[words], labels), atol=1e-5)


def test_a_kept_head_survives_json() -> None:
    words, labels = words_of_counter()
    head = read_head(COUNTER, [(words, labels)], no_layer_below(words), 4)
    assert head is not None
    again = KeptHead.from_json(head.to_json())
    assert np.array_equal(again.tables, head.tables)
    assert np.array_equal(again.of_label, head.of_label)
    assert (again.start, again.indices) == (head.start, head.indices)


def test_entropy_of_a_label_given_its_group() -> None:
    counts = np.array([1, 1, 2])
    assert entropy(np.zeros(3, int), counts) == pytest.approx(1.5 * np.log(2))
    assert entropy(np.array([0, 0, 1]), counts) == pytest.approx(0.5 * np.log(2))
    assert entropy(np.arange(3), counts) == 0.0
    assert refined(np.array([0, 0, 1]), np.array([0, 1, 1])).tolist() == [0, 1, 2]


def test_no_layer_before_a_head_is_kept() -> None:
    heads = HeadReadouts(NFSM(8, (4, 3)), 3)
    with pytest.raises(InvalidInput, match="no head is kept yet: call `keep` with words and labels"):
        heads.kept_layer(torch.randn(2, 8))


def test_a_layer_is_learned_head_by_head_and_exact_for_long_words() -> None:
    task, words = get_task("S3"), np.random.default_rng(0)
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    embedding = nn.Embedding(task.machine.n_symbols, 32)
    layer = NFSM(32, (8,) * 8)
    heads = HeadReadouts(layer, task.machine.n_states, start_label=task.machine.start, generator=generator)
    groups = [{"params": layer.parameters(), "lr": 0.02}, {"params": heads.parameters(), "lr": 0.1}]
    optimizer = torch.optim.Adam(groups)
    rows = embedding.weight.detach()
    for step in range(1, 1001):
        batch = task.sample(64, 8 + step // 10, words)
        loss = heads((rows, torch.from_numpy(batch.inputs.astype(int))), torch.from_numpy(batch.states.astype(int)))
        optimizer.zero_grad()
        loss.sum().backward()
        optimizer.step()
        if step % 50 == 0:
            read = [task.sample(256, length, words) for length in (8, 60)]
            heads.keep(rows, [(part.inputs, part.states) for part in read], optimizer)
            if heads.learned:
                break
    assert heads.learned
    smaller = heads.kept_layer(rows)
    assert len(smaller.heads) == len(heads.kept) <= 2
    batch = task.sample(16, 2000, words)
    states = smaller.states((rows, torch.from_numpy(batch.inputs.astype(int)))).numpy()
    joint = np.ravel_multi_index(tuple(np.moveaxis(states, -1, 0)), smaller.heads).ravel()
    pairs = set(zip(joint.tolist(), batch.states.ravel().tolist(), strict=True))
    assert len(pairs) == len({index for index, _ in pairs})
