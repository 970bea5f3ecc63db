"""State merging: a small machine that agrees with a prefix tree, by merging nodes that no output distinguishes.

    A  symbols     n  states

Blue-fringe state merging (Lang, Pearlmutter and Price 1998, https://doi.org/10.1007/BFb0054059) for machines with
outputs. Some nodes are states; a child of a state that is not one itself is merged into the state with which it agrees
in most outputs, or becomes a state where it contradicts them all. The child that most words visit comes first. Outputs
are taken to be exact: a single wrong one forbids merges, and states multiply.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detent._types import MISSING, Ints
from detent.learning.prefix_tree import PrefixTree


@dataclass(frozen=True, eq=False)
class MergedStates:
    """A machine that may be partial; state 0 is the start."""

    tables: Ints
    """A n: the state after each symbol at each state, MISSING where that was never seen."""
    output: Ints
    """n: the output on arrival, MISSING for a start that is never returned to."""

    def count_wrong(self, inputs: Ints, outputs: Ints) -> int:
        """The number of words with an output that is wrong or not known."""
        n = self.tables.shape[1]
        tables = np.pad(np.where(self.tables == MISSING, n, self.tables), ((0, 0), (0, 1)), constant_values=n)
        output = np.append(self.output, MISSING)
        state, bad = np.zeros(len(inputs), np.int64), np.zeros(len(inputs), bool)
        for symbol, wanted in zip(inputs.T, outputs.T, strict=True):
            state = tables[symbol, state]
            bad |= output[state] != wanted
        return int(bad.sum())


def merge_states(tree: PrefixTree, *, max_states: int, max_comparisons: int) -> MergedStates | None:
    """A machine that agrees with the whole tree; None where it takes more states or comparisons of outputs."""
    return _Merger(tree, max_states, max_comparisons).run()


class _Merger:
    """A tree that turns into a graph by merges; a merge can be undone."""

    def __init__(self, tree: PrefixTree, max_states: int, max_comparisons: int) -> None:
        self.A, self.visits, self.max_states, self.comparisons_left = (
            tree.symbols,
            tree.visits,
            max_states,
            max_comparisons,
        )
        self.next, self.output = [dict(moves) for moves in tree.next], list(tree.output)
        self.states, self.number = [0], {0: 0}

    def run(self) -> MergedStates | None:
        while (place := self._fringe()) is not None:
            scores = [self._try(place, state) for state in self.states]
            best = max(range(len(scores)), key=scores.__getitem__)
            child = self.next[place[0]][place[1]]
            if scores[best] >= 0:
                self.next[place[0]][place[1]] = self.states[best]
                self._fold(self.states[best], child, _Undo())
            else:
                self.number[child] = len(self.states)
                self.states.append(child)
            if len(self.states) > self.max_states or self.comparisons_left < 0:
                return None
        moves = np.full((self.A, len(self.states)), MISSING)
        for q, node in enumerate(self.states):
            for symbol, to in self.next[node].items():
                moves[symbol, q] = self.number[to]
        return MergedStates(moves, np.array([self.output[node] for node in self.states]))

    def _fringe(self) -> tuple[int, int] | None:
        """The state and the symbol of the most visited child that is not a state yet."""
        moves = ((q, symbol, to) for q in self.states for symbol, to in sorted(self.next[q].items()))
        blue = [(self.visits[to], q, symbol) for q, symbol, to in moves if to not in self.number]
        if not blue:
            return None
        _, q, symbol = max(blue, key=lambda child: child[0])
        return q, symbol

    def _try(self, place: tuple[int, int], state: int) -> int:
        """The number of outputs in which the subtrees of a child and of a state agree; -1 where they contradict."""
        parent, symbol = place
        child, undo = self.next[parent][symbol], _Undo()
        self.next[parent][symbol] = state
        score = self._fold(state, child, undo)
        for moves, added in undo.moves:
            del moves[added]
        for node in undo.outputs:
            self.output[node] = MISSING
        self.next[parent][symbol] = child
        return score

    def _fold(self, state: int, child: int, undo: _Undo) -> int:
        """Merge the subtree of a child into that of a state; what was added is noted in `undo`."""
        following, output = self.next, self.output
        pairs, agreed = [(state, child)], 0
        while pairs:
            one, other = pairs.pop()
            wanted = output[other]
            if output[one] == MISSING:
                output[one] = wanted
                undo.outputs.append(one)
            elif output[one] != wanted:
                agreed = -1
                break
            else:
                agreed += 1
            moves = following[one]
            for symbol, to in following[other].items():
                if symbol in moves:
                    pairs.append((moves[symbol], to))
                else:
                    moves[symbol] = to
                    undo.moves.append((moves, symbol))
        self.comparisons_left -= max(agreed, 1)
        return agreed


class _Undo:
    """What a merge has added."""

    def __init__(self) -> None:
        self.moves: list[tuple[dict[int, int], int]] = []
        self.outputs: list[int] = []
