"""Prefix trees: compiled and Python trees are equal, merged parts are the whole, contradictions are found by line."""

from __future__ import annotations

import numpy as np
import pytest

from exactstate import native
from exactstate._types import MISSING
from exactstate.errors import BackendUnavailable, BudgetExceeded, InvalidInput
from exactstate.learning.prefix_tree import PrefixTree, _Tree
from tests.learning.in_python import PythonTree

FIELDS = ("parent", "symbol", "visits", "node", "output", "count", "line")


def random_traces(seed, count=40):
    generator = np.random.default_rng(seed)
    lengths = generator.integers(0, 9, count)
    symbols = generator.integers(0, 3, lengths.sum())
    outputs = generator.integers(-1, 2, lengths.sum())
    return symbols, outputs, lengths, generator.integers(-1, 2, count), np.arange(1, count + 1)


def equal(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in FIELDS)


def tree_of(kind, traces):
    tree = PrefixTree()
    tree._tree = kind()
    tree.add_traces(*traces)
    return tree


def test_prefix_tree_holds_words_and_outputs():
    tree = PrefixTree()
    tree.add(np.array([[0, 1], [0, 0]]), np.array([[1, 0], [1, 1]]))
    arrays = tree.arrays
    assert (len(tree), tree.words, arrays.visits.tolist()) == (4, 2, [2, 2, 1, 1])
    assert (arrays.parent.tolist(), arrays.symbol.tolist()) == ([MISSING, 0, 1, 1], [MISSING, 0, 1, 0])
    assert list(zip(arrays.node.tolist(), arrays.output.tolist(), arrays.count.tolist(), strict=True)) == [
        (1, 1, 2), (2, 0, 1), (3, 1, 1),
    ]  # fmt: skip
    assert arrays.prefix(3) == [0, 0]


@pytest.mark.parametrize("seed", range(5))
def test_prefix_tree_compiled_equals_python(seed):
    traces = random_traces(seed)
    assert equal(tree_of(_Tree, traces).arrays, tree_of(PythonTree, traces).arrays)


@pytest.mark.parametrize("kind", [PythonTree, _Tree])
def test_prefix_tree_merge_of_parts_is_the_whole(kind):
    symbols, outputs, lengths, initial, lines = random_traces(7)
    cut = int(lengths[:20].sum())
    one = tree_of(kind, (symbols[:cut], outputs[:cut], lengths[:20], initial[:20], lines[:20]))
    other = tree_of(kind, (symbols[cut:], outputs[cut:], lengths[20:], initial[20:], lines[20:]))
    one.merge(other)
    whole = tree_of(kind, (symbols, outputs, lengths, initial, lines))
    assert one.words == 40
    assert equal(one.arrays, whole.arrays)


def test_prefix_tree_contradictions_in_the_order_of_lines():
    tree = PrefixTree()
    tree.add_traces(
        np.array([0, 1, 1, 0, 1, 0]), np.array([0, 0, 1, 1, 1, 1]), np.array([2, 1, 3]), lines=np.array([5, 7, 9])
    )
    assert tree.arrays.contradictions.tolist() == [1, 2]  # after 0 and after 0 1: line 5 and line 9 differ
    tree = PrefixTree()
    tree.add(np.array([[0, 1], [0, 1]]), np.array([[0, 0], [0, 1]]))
    assert [tree.arrays.prefix(int(node)) for node in tree.arrays.contradictions] == [[0, 1]]


def test_prefix_tree_without_compiled_code_says_what_to_do(monkeypatch):
    monkeypatch.setattr(native, "_load", lambda: "the compiled kernels were not built; install a compiler")
    with pytest.raises(BackendUnavailable, match="were not built; install a compiler"):
        PrefixTree()


def test_prefix_tree_refuses_what_does_not_fit():
    with pytest.raises(InvalidInput, match="2 traces with 3 symbols in all were wanted; got 2 symbols"):
        PrefixTree().add_traces(np.array([0, 1]), np.array([0, 1]), np.array([1, 2]))
    with pytest.raises(InvalidInput, match="symbols are numbered from 0; got -1"):
        PrefixTree().add_traces(np.array([-1]), np.array([0]), np.array([1]))
    with pytest.raises(BudgetExceeded, match="more than 4 nodes; after 1 traces it has 4"):
        PrefixTree(max_nodes=4).add(np.array([[0, 1, 0], [1, 1, 0]]), np.zeros((2, 3), int))
