"""State merging: merges that fail are undone, and transitions that were never seen count as wrong."""

from __future__ import annotations

import numpy as np

from detent._types import MISSING
from detent.learning.prefix_tree import PrefixTree
from detent.learning.state_merging import merge_states


def test_merge_states_undoes_a_merge_that_fails():
    """'a' flips the output: three nodes in a row fold into two states, and a fourth that contradicts is a third."""
    tree = PrefixTree(1)
    tree.add(np.zeros((1, 6), int), np.array([[1, 0, 1, 0, 1, 0]]))
    merged = merge_states(tree, max_states=10, max_comparisons=1000)
    assert merged is not None
    assert (merged.tables.tolist(), merged.output.tolist()) == ([[1, 0]], [0, 1])
    assert merged.count_wrong(np.zeros((2, 4), int), np.array([[1, 0, 1, 0], [1, 0, 1, 1]])) == 1
    tree = PrefixTree(1)
    tree.add(np.zeros((1, 6), int), np.array([[1, 0, 1, 1, 0, 1]]))
    again = merge_states(tree, max_states=10, max_comparisons=1000)
    assert again is not None
    assert (again.tables.tolist(), again.output.tolist()) == ([[1, 2, 0]], [1, 1, 0])
    assert merge_states(tree, max_states=2, max_comparisons=1000) is None
    assert merge_states(tree, max_states=10, max_comparisons=1) is None


def test_count_wrong_counts_what_was_never_seen():
    tree = PrefixTree(2)
    tree.add(np.zeros((1, 4), int), np.zeros((1, 4), int))
    merged = merge_states(tree, max_states=4, max_comparisons=1000)
    assert merged is not None
    assert merged.tables[1].tolist() == [MISSING]
    assert merged.count_wrong(np.array([[0, 1], [0, 0]]), np.zeros((2, 2), int)) == 1
