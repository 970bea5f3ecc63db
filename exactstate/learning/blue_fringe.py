"""Blue-fringe state merging in Python: what exactstate/csrc/state_merging.cpp does, where it is not compiled.

Some nodes of a prefix tree are states (red); a child of a state that is not one itself is blue. A blue node is folded
into a state, or becomes one. See `state_merging` for the scores.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from exactstate._types import MISSING, Ints
from exactstate.learning.prefix_tree import TreeArrays

VISITS, EVIDENCE, MARGIN, SHORTLEX = range(4)
"""The orders of merging, see `state_merging.ORDERS`."""
Histogram = dict[int, int]
"""How often each output was seen."""


class PythonMerger:
    """A tree that turns into a graph by merges; a trial is undone."""

    def __init__(
        self, tree: TreeArrays, *, mealy: bool, noisy: bool, order: int, rank: Ints, prior: Ints, right: int,
        wrong: int, refused: int,
    ) -> None:  # fmt: skip
        n = len(tree.parent)
        self.mealy, self.noisy, self.order, self.rank = mealy, noisy, order, rank.tolist()
        self.right, self.wrong = right, wrong
        self.prior = prior.tolist()
        self.children: list[dict[int, list[int]]] = [{} for _ in range(n)]
        """children[q][a]: [the node after symbol a, the histogram of that edge]."""
        for node, (parent, symbol) in enumerate(zip(tree.parent.tolist(), tree.symbol.tolist(), strict=True)):
            if node:
                self.children[parent][symbol] = [node, node]
        self.histograms: list[Histogram] = [{} for _ in range(n)]
        for node, output, count in zip(tree.node.tolist(), tree.output.tolist(), tree.count.tolist(), strict=True):
            self.histograms[node][output] = count
        self.visits, self.into = tree.visits.tolist(), [MISSING] * n
        self.states, self.entered = [0], {0: 0}
        """States, and how many transitions lead to each of them."""
        self.merges, self.refused = 0, refused
        self.contradictions: set[tuple[int, int]] = set()
        """(child, state) of the merge that was refused."""
        self.undo: list[Callable[[], object]] = []
        self.work = 0

    def run(self, most_states: int, work: int) -> int:
        """Until nothing is left (1), `most_states` are exceeded (2), or `work` node pairs have been folded (0)."""
        stop = self.work + work
        while self.work < stop:
            if not self._step():
                return 1
            if len(self.states) > most_states:
                return 2
        return 0

    def state_of(self) -> Ints:
        """The state number of every node of the tree."""
        number = {node: s for s, node in enumerate(self.states)}
        of = []
        for node in range(len(self.into)):
            while node not in number:
                node = self.into[node]
            of.append(number[node])
        return np.array(of, np.int32)

    def _step(self) -> bool:
        edges = ((q, a) for q in self.states for a in self.children[q])
        blue = [(q, a) for q, a in edges if self._target(q, a) not in self.entered]
        if not blue:
            return False
        by_rank = self.order == SHORTLEX
        blue.sort(
            key=lambda edge: (0 if by_rank else -self.visits[self._target(*edge)], self.rank[self._target(*edge)])
        )
        best: tuple[int, int, tuple[int, int]] | None = None
        for edge in blue if self.order in (EVIDENCE, MARGIN) else blue[:1]:
            found = self._best_state(edge)
            if found is None or (self.noisy and found[0] < 0):
                child = self._target(*edge)
                self.states.append(child)
                self.entered[child] = 1
                return True
            score, state, second = found
            key = score - second if self.order == MARGIN else score
            if best is None or key > best[0]:
                best = (key, state, edge)
        assert best is not None
        _, state, (q, a) = best
        child = self._target(q, a)
        if self.order in (EVIDENCE, MARGIN) and not self.noisy:
            self.merges += 1
            if self.merges - 1 == self.refused:
                self.contradictions.add((child, state))
                return True
        self.children[q][a][0] = state
        self.entered[state] += 1
        self._fold(state, child, commit=True)
        self.undo.clear()
        return True

    def _target(self, state: int, symbol: int) -> int:
        return self.children[state][symbol][0]

    def _best_state(self, edge: tuple[int, int]) -> tuple[int, int, int] | None:
        """(score, state, next best score) for a blue edge; None where all states contradict it.

        On a tie it is the state that most transitions lead to, the first of them.
        """
        place = self.children[edge[0]][edge[1]]
        child, scores = place[0], []
        for state in self.states:
            if (child, state) in self.contradictions:
                continue
            place[0] = state
            score = self._fold(state, child, commit=False)
            while self.undo:
                self.undo.pop()()
            place[0] = child
            if score is not None:
                scores.append((score, state))
        if not scores:
            return None
        best = max(range(len(scores)), key=lambda i: (scores[i][0], self.entered[scores[i][1]]))
        others = [score for i, (score, _) in enumerate(scores) if i != best]
        return (*scores[best], max(others, default=0))

    def _fold(self, one: int, other: int, *, commit: bool) -> int | None:
        """Merge the subtree of `other` into the graph of `one`; the score, None for a contradiction."""
        pairs, score = [(one, other)], 0
        for left, right in pairs:  # grows; breadth-first, since short words contradict most often
            self.work += 1
            gain = 0 if self.mealy else self._combine(left, right, 0)
            if gain is None:
                return None
            score += gain
            for symbol, (target, histogram) in list(self.children[right].items()):
                same = self.children[left].get(symbol)
                if same is None:
                    self.children[left][symbol] = [target, histogram]
                    self.undo.append(lambda left=left, symbol=symbol: self.children[left].pop(symbol))  # type: ignore[misc]
                    continue
                gain = self._combine(same[1], histogram, symbol) if self.mealy else 0
                if gain is None:
                    return None
                score += gain
                pairs.append((same[0], target))
            if commit:
                self.into[right] = left
                self.visits[left] += self.visits[right]
                self.rank[left] = min(
                    self.rank[left], self.rank[right]
                )  # which of the two is kept depends on the traversal
        return score

    def _combine(self, to: int, source: int, symbol: int) -> int | None:
        target, added = self.histograms[to], self.histograms[source]
        if not added:
            return 0
        if not self.noisy:
            if target:
                (output,) = added
                return -self.prior[symbol if self.mealy else 0][output] if output in target else None
            target.update(added)
            self.undo.append(target.clear)
            return 0
        before, kept = self._weight(target, symbol) + self._weight(added, symbol), dict(target)
        for output, count in list(added.items()):
            target[output] = target.get(output, 0) + count

        def restore() -> None:
            target.clear()
            target.update(kept)

        self.undo.append(restore)
        return self._weight(target, symbol) - before

    def _weight(self, histogram: Histogram, symbol: int) -> int:
        if not histogram:
            return 0
        prior = self.prior[symbol if self.mealy else 0]
        total = sum(histogram.values())
        seen = (prior[o] + self.right * count + self.wrong * (total - count) for o, count in histogram.items())
        return max(max(prior) + self.wrong * total, *seen)
