"""The prefix tree holds words and their outputs, and refuses outputs that contradict each other."""

from __future__ import annotations

import numpy as np
import pytest

from detent._types import MISSING
from detent.errors import InvalidInput
from detent.learning.prefix_tree import PrefixTree


def test_prefix_tree_holds_words_and_outputs():
    tree = PrefixTree(2)
    tree.add(np.array([[0, 1], [0, 0]]), np.array([[1, 0], [1, 1]]))
    assert (len(tree), tree.words, tree.output, tree.visits) == (4, 2, [MISSING, 1, 0, 1], [2, 2, 1, 1])
    assert tree.next == [{0: 1}, {1: 2, 0: 3}, {}, {}]
    with pytest.raises(InvalidInput, match="the same word has output 0 and output 1"):
        tree.add(np.array([[0, 1]]), np.array([[1, 1]]))
