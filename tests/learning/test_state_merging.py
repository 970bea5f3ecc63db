"""State merging: compiled and Python mergers agree, merges that fail are undone, unseen transitions count as wrong."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.machines import pairing
from exactstate._types import MISSING
from exactstate.errors import InvalidConfig
from exactstate.learning import refine as refining
from exactstate.learning.logs import as_traces
from exactstate.learning.prefix_tree import PrefixTree
from exactstate.learning.state_merging import ORDERS, merge_states
from exactstate.learning.trace_tree import TraceTree
from tests.learning.in_python import in_python
from tests.learning.machines import traces_of


def moore(words, outputs, **options):
    tree = PrefixTree()
    tree.add(np.array(words), np.array(outputs))
    return merge_states(tree, symbols=int(np.max(words)) + 1, outputs=2, kind="moore", **options)


def test_merge_states_undoes_a_merge_that_fails():
    """'a' flips the output: nodes in a row fold into two states, and one that contradicts is a third."""
    merged = moore(np.zeros((1, 6), int), [[1, 0, 1, 0, 1, 0]])
    assert merged is not None
    assert (merged.tables.tolist(), merged.readout.tolist()) == ([[1, 0]], [0, 1])
    assert merged.count_wrong(np.zeros((2, 4), int), np.array([[1, 0, 1, 0], [1, 0, 1, 1]])) == 1
    again = moore(np.zeros((1, 6), int), [[1, 0, 1, 1, 0, 1]])
    assert again is not None
    assert (again.tables.tolist(), again.readout.tolist()) == ([[1, 2, 0]], [1, 1, 0])
    assert moore(np.zeros((1, 6), int), [[1, 0, 1, 1, 0, 1]], max_states=2) is None
    assert moore(np.zeros((1, 6), int), [[1, 0, 1, 1, 0, 1]], max_comparisons=1) is None


def test_count_wrong_counts_what_was_never_seen():
    merged = moore([[0, 1]], [[0, 0]])
    assert merged is not None
    assert (merged.tables == MISSING).sum() == merged.tables.size - 2 or merged.n_states == 1
    assert merged.count_wrong(np.array([[0, 1], [1, 0]]), np.array([[0, 0], [1, 0]])) == 1


def noisy_log(n, seed, noise, kind):
    generator = np.random.default_rng(seed)
    tables, k = generator.integers(0, n, (3, n)), 3
    readout = generator.integers(0, k, (3, n) if kind == "mealy" else n)
    words = generator.integers(0, 3, (150, 12))
    outputs, state = np.zeros_like(words), np.zeros(len(words), int)
    for t, symbol in enumerate(words.T):
        after = tables[symbol, state]
        outputs[:, t] = readout[symbol, state] if kind == "mealy" else readout[after]
        state = after
    flip = generator.random(words.shape) < noise
    return words, np.where(flip, (outputs + 1) % k, outputs), outputs


@pytest.mark.parametrize("kind", ["mealy", "moore"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_merge_states_compiled_equals_python(kind, order, noise, monkeypatch):
    words, outputs, _ = noisy_log(5, 1, noise, kind)
    tree = PrefixTree()
    tree.add(words, outputs)
    options = {"symbols": 3, "outputs": 3, "kind": kind, "order": order, "noise": noise, "max_states": 60}
    compiled = merge_states(tree, **options)
    in_python(monkeypatch)
    python = merge_states(tree, **options)
    assert compiled is not None
    assert python is not None
    for name in ("tables", "readout", "visits", "disagreeing"):
        assert np.array_equal(getattr(compiled, name), getattr(python, name)), name


@pytest.mark.parametrize("order", ["shortlex", "visits"])
def test_merge_states_does_not_depend_on_the_order_in_which_children_are_folded(order, monkeypatch):
    """A log where one of two unseen children is kept, and which one differs between the mergers."""
    log = TraceTree.of(as_traces(traces_of(pairing(), 72, 12, 16)))
    options = {"symbols": len(log.symbols), "outputs": len(log.outputs), "order": order}
    compiled = merge_states(log.tree, **options)
    in_python(monkeypatch)
    assert np.array_equal(compiled.tables, merge_states(log.tree, **options).tables)


@pytest.mark.parametrize("kind", ["mealy", "moore"])
def test_refine_totals_compiled_equal_python(kind, monkeypatch):
    words, outputs, _ = noisy_log(6, 3, 0.05, kind)
    tree = PrefixTree()
    tree.add(words, outputs)
    merged = merge_states(tree, symbols=3, outputs=3, kind=kind, noise=0.05)
    compiled = refining.totals(tree.arrays, merged, -53_783, -3_900_000)
    in_python(monkeypatch)
    python = refining.totals(tree.arrays, merged, -53_783, -3_900_000)
    assert np.array_equal(compiled, python)
    assert (compiled < 0).any()


@pytest.mark.parametrize("kind", ["mealy", "moore"])
def test_merge_states_finds_the_machine_through_noise(kind):
    words, outputs, clean = noisy_log(5, 2, 0.05, kind)
    tree = PrefixTree()
    tree.add(words, outputs)
    merged = merge_states(tree, symbols=3, outputs=3, kind=kind, noise=0.05)
    assert merged is not None
    refined = refining.refine(tree.arrays, merged, symbols=3, outputs=3, noise=0.05)
    assert refined.disagreeing == int((outputs != clean).sum()) > 50
    assert refined.count_wrong(words, clean) == 0


def test_merge_states_refuses_contradictions_and_odd_noise():
    with pytest.raises(InvalidConfig, match="contradictory outputs; give the share"):
        moore([[0, 0], [0, 0]], [[0, 0], [1, 0]])
    with pytest.raises(InvalidConfig, match=r"less than a half; got 0\.5"):
        moore([[0, 0]], [[0, 0]], noise=0.5)
