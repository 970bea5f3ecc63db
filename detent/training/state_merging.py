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

from detent.automata.running import Ints
from detent.training.prefix_tree import NOTHING, PrefixTree


@dataclass(frozen=True, eq=False)
class Merged:
    """A machine; state 0 is the start."""

    tables: Ints
    """A n: where each symbol leads, NOTHING where that was never heard."""
    output: Ints
    """n: what is said on arrival, NOTHING for a start that is never returned to."""

    def wrong(self, inputs: Ints, outputs: Ints) -> int:
        """How many words it says anything else about than was heard, or does not know."""
        n = self.tables.shape[1]
        tables = np.pad(np.where(self.tables == NOTHING, n, self.tables), ((0, 0), (0, 1)), constant_values=n)
        output = np.append(self.output, NOTHING)
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
        self.next, self.output = list(tree.next), list(tree.output)
        self.states, self.number = [0], {0: 0}

    def run(self) -> Merged | None:
        while (place := self._fringe()) is not None:
            child = self.next[place]
            scores = [self._try(place, child, state) for state in self.states]
            best = max(range(len(scores)), key=scores.__getitem__)
            if scores[best] >= 0:
                self.next[place] = self.states[best]
                self._fold(self.states[best], child, [])
            else:
                self.number[child] = len(self.states)
                self.states.append(child)
            if len(self.states) > self.most or self.effort < 0:
                return None
        moves = [[self.number.get(to, NOTHING) for to in self.next[q * self.A : (q + 1) * self.A]] for q in self.states]
        return Merged(np.array(moves).T, np.array([self.output[q] for q in self.states]))

    def _fringe(self) -> int | None:
        """Where the most visited child hangs that is no state yet."""
        places = (q * self.A + a for q in self.states for a in range(self.A))
        blue = [place for place in places if self.next[place] != NOTHING and self.next[place] not in self.number]
        return max(blue, key=lambda place: self.visits[self.next[place]], default=None)

    def _try(self, place: int, child: int, state: int) -> int:
        """In how many outputs a child agrees with a state, and all that follows; -1 when it contradicts."""
        undo: list[tuple[list[int], int]] = []
        self.next[place] = state
        score = self._fold(state, child, undo)
        for held, at in undo:
            held[at] = NOTHING
        self.next[place] = child
        return score

    def _fold(self, state: int, child: int, undo: list[tuple[list[int], int]]) -> int:
        """Lay the tree below a child over what follows a state; what was added is noted."""
        following, output, A = self.next, self.output, self.A
        pairs, agreed = [(state, child)], 0
        while pairs:
            one, other = pairs.pop()
            heard = output[other]
            if output[one] == NOTHING:
                output[one] = heard
                undo.append((output, one))
            elif heard != NOTHING:
                if output[one] != heard:
                    agreed = -1
                    break
                agreed += 1
            for at, to in enumerate(following[other * A : (other + 1) * A], one * A):
                if to == NOTHING:
                    continue
                if following[at] == NOTHING:
                    following[at] = to
                    undo.append((following, at))
                else:
                    pairs.append((following[at], to))
        self.effort -= max(agreed, 1)
        return agreed
