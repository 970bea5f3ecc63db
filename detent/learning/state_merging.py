"""A small machine that says what was heard: merge the nodes of a prefix tree that nothing heard tells apart.

    A  symbols     n  states

Blue-fringe state merging (Lang, Pearlmutter and Price 1998, https://doi.org/10.1007/BFb0054059) for machines with
outputs. Some nodes are states; a child of theirs that is none yet is folded into the state with which it agrees in most
outputs, or becomes a state where it contradicts them all. The child that most words go through comes first.
Outputs are taken at their word: a single wrong one forbids merges, and states multiply.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detent._types import MISSING, Ints
from detent.learning.prefix_tree import PrefixTree


@dataclass(frozen=True, eq=False)
class Merged:
    """A machine; state 0 is the start."""

    tables: Ints
    """A n: where each symbol leads, MISSING where that was never heard."""
    output: Ints
    """n: what is said on arrival, MISSING for a start that is never returned to."""

    def wrong(self, inputs: Ints, outputs: Ints) -> int:
        """How many words it says anything else about than was heard, or does not know."""
        n = self.tables.shape[1]
        tables = np.pad(np.where(self.tables == MISSING, n, self.tables), ((0, 0), (0, 1)), constant_values=n)
        output = np.append(self.output, MISSING)
        state, bad = np.zeros(len(inputs), np.int64), np.zeros(len(inputs), bool)
        for symbol, heard in zip(inputs.T, outputs.T, strict=True):
            state = tables[symbol, state]
            bad |= output[state] != heard
        return int(bad.sum())


def merge_states(tree: PrefixTree, *, most: int, effort: int) -> Merged | None:
    """A machine that agrees with all that the tree heard; None beyond so many states or so many outputs compared."""
    return _Merging(tree, most, effort).run()


class _Merging:
    """A tree that turns into a graph; undone steps leave no trace."""

    def __init__(self, tree: PrefixTree, most: int, effort: int) -> None:
        self.A, self.visits, self.most, self.effort = tree.symbols, tree.visits, most, effort
        self.next, self.output = [dict(moves) for moves in tree.next], list(tree.output)
        self.states, self.number = [0], {0: 0}

    def run(self) -> Merged | None:
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
            if len(self.states) > self.most or self.effort < 0:
                return None
        moves = np.full((self.A, len(self.states)), MISSING)
        for q, node in enumerate(self.states):
            for symbol, to in self.next[node].items():
                moves[symbol, q] = self.number[to]
        return Merged(moves, np.array([self.output[node] for node in self.states]))

    def _fringe(self) -> tuple[int, int] | None:
        """The state and the symbol where the most visited child hangs that is no state yet."""
        moves = ((q, symbol, to) for q in self.states for symbol, to in sorted(self.next[q].items()))
        blue = [(self.visits[to], q, symbol) for q, symbol, to in moves if to not in self.number]
        if not blue:
            return None
        _, q, symbol = max(blue, key=lambda child: child[0])
        return q, symbol

    def _try(self, place: tuple[int, int], state: int) -> int:
        """In how many outputs a child agrees with a state, and all that follows; -1 when it contradicts."""
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
        """Lay the tree below a child over what follows a state; what was added is noted."""
        following, output = self.next, self.output
        pairs, agreed = [(state, child)], 0
        while pairs:
            one, other = pairs.pop()
            heard = output[other]
            if output[one] == MISSING:
                output[one] = heard
                undo.outputs.append(one)
            elif output[one] != heard:
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
        self.effort -= max(agreed, 1)
        return agreed


class _Undo:
    """What a fold has added."""

    def __init__(self) -> None:
        self.moves: list[tuple[dict[int, int], int]] = []
        self.outputs: list[int] = []
