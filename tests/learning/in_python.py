"""What compiled learning does, in Python: prefix trees, blue-fringe merging, machines of partitions, refinement.

Slow and plain: `in_python` puts all of it into the place of the compiled code, for tests that compare the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from exactstate._types import MISSING, Ints
from exactstate.learning import prefix_tree, refine, state_merging
from exactstate.learning.prefix_tree import TreeArrays
from exactstate.learning.state_merging import MergedStates, _sums

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


class PythonTree:
    """A prefix tree of dictionaries."""

    def __init__(self) -> None:
        self.parent, self.symbol, self.visits = [MISSING], [MISSING], [0]
        self.children: dict[tuple[int, int], int] = {}
        self.seen: dict[tuple[int, int], list[int]] = {}

    def __len__(self) -> int:
        return len(self.parent)

    def _child(self, node: int, symbol: int) -> int:
        child = self.children.setdefault((node, symbol), len(self.parent))
        if child == len(self.parent):
            self.parent.append(node)
            self.symbol.append(symbol)
            self.visits.append(0)
        return child

    def _observe(self, node: int, output: int, count: int, line: int) -> None:
        if output != MISSING:
            entry = self.seen.setdefault((node, output), [0, line])
            entry[0] += count
            entry[1] = min(entry[1], line)

    def add(self, symbols: Ints, outputs: Ints, lengths: Ints, initial: Ints, lines: Ints, most: int) -> int:
        steps = iter(zip(symbols.tolist(), outputs.tolist(), strict=True))
        traces = zip(lengths.tolist(), initial.tolist(), lines.tolist(), strict=True)
        for number, (length, first, line) in enumerate(traces):
            if len(self.parent) + length > most:
                return number
            node = 0
            self.visits[0] += 1
            self._observe(0, first, 1, line)
            for _ in range(length):
                symbol, output = next(steps)
                node = self._child(node, symbol)
                self.visits[node] += 1
                self._observe(node, output, 1, line)
        return len(lengths)

    def merge(self, other: TreeArrays) -> None:
        place = [0] * len(other.parent)
        rows = zip(other.parent.tolist(), other.symbol.tolist(), other.visits.tolist(), strict=True)
        for node, (parent, symbol, visits) in enumerate(rows):
            place[node] = self._child(place[parent], symbol) if node else 0
            self.visits[place[node]] += visits
        seen: Sequence[Any] = [a.tolist() for a in (other.node, other.output, other.count, other.line)]
        for node, output, count, line in zip(*seen, strict=True):
            self._observe(place[node], output, count, line)

    def arrays(self) -> TreeArrays:
        keys = np.array(list(self.seen), np.int32).reshape(-1, 2)
        values = np.array(list(self.seen.values()), np.int64).reshape(-1, 2)
        return TreeArrays(
            np.array(self.parent, np.int32), np.array(self.symbol, np.int32), np.array(self.visits, np.int64),
            keys[:, 0].copy(), keys[:, 1].copy(), values[:, 0].copy(), values[:, 1].copy(),
        )  # fmt: skip


def levels_of(tree: TreeArrays) -> list[Ints]:
    """The nodes by depth, without the root; those with the same parent are neighbors, in the order of symbols."""
    order = np.lexsort((tree.symbol[1:], tree.parent[1:])) + 1
    ends = np.searchsorted(tree.parent[order], np.arange(len(tree.parent) + 1))
    first, count = ends[:-1], np.diff(ends)
    level: Ints = np.array([0])
    levels: list[Ints] = []
    while True:
        sizes = count[level]
        total = int(sizes.sum())
        if not total:
            return levels
        # the places first, first + 1, ... of every node of the level, one after another
        begin = np.repeat(first[level] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
        level = order[begin + np.arange(total)]
        levels.append(level)


def ranks_of(tree: TreeArrays) -> Ints:
    """The place of every node when prefixes are sorted by length, then by their symbols."""
    order = np.concatenate([[0], *levels_of(tree)]).astype(np.int64)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def machine_of(tree: TreeArrays, state_of: Ints, symbols: int, outputs: int, mealy: bool) -> MergedStates:
    """The machine of a partition of the tree's nodes; where outputs differ, the most frequent one counts."""
    n = int(state_of.max()) + 1
    tables = np.full((symbols, n), MISSING)
    before, after, symbol = state_of[tree.parent[1:]], state_of[1:], tree.symbol[1:].astype(np.int64)
    tables[symbol, before] = after
    visits = _sums(symbol * n + before, tree.visits[1:], symbols * n).reshape(symbols, n)
    places = symbols * n if mealy else n
    if mealy:
        inner = tree.node > 0
        node, output, count = tree.node[inner], tree.output[inner], tree.count[inner]
        place = tree.symbol[node].astype(np.int64) * n + state_of[tree.parent[node]]
    else:
        output, count, place = tree.output, tree.count, state_of[tree.node].astype(np.int64)
    table = _sums(place * outputs + output, count, places * outputs).reshape(places, outputs)
    readout = np.where(table.any(axis=1), table.argmax(axis=1), MISSING)
    wrong = int(table.sum() - table.max(axis=1, initial=0).sum())
    return MergedStates(tables, readout.reshape(symbols, n) if mealy else readout, visits, wrong)


def totals(tree: TreeArrays, merged: MergedStates, right: int, wrong: int) -> Ints:
    """A n, n: the sum of the values of the nodes after every transition, for every state."""
    group = tree.symbol[1:].astype(np.int64) * merged.n_states + run(tree, merged.tables)[tree.parent[1:]]
    total = np.zeros((merged.tables.size, merged.n_states), np.int64)
    np.add.at(total, group, values_of(tree, merged, right, wrong)[1:])
    return total


def run(tree: TreeArrays, tables: Ints) -> Ints:
    """The state at every node."""
    states = np.zeros(len(tree.parent), np.int64)
    for level in levels_of(tree):
        states[level] = tables[tree.symbol[level], states[tree.parent[level]]]
    return states


def values_of(tree: TreeArrays, merged: MergedStates, right: int, wrong: int) -> Ints:
    """N n: the log-likelihood of what was seen below a node, given the state there."""
    n, mealy = merged.n_states, merged.readout.ndim == 2
    value, of_edge = np.zeros((2, len(tree.parent), n), np.int64)
    seen = tree.node > 0 if mealy else np.ones(len(tree.node), bool)
    node, output, count = tree.node[seen], tree.output[seen], tree.count[seen]
    expected = merged.readout[tree.symbol[node]] if mealy else merged.readout[None, :]
    weights = count[:, None] * np.where(expected == output[:, None], right, wrong)
    np.add.at(of_edge if mealy else value, node, weights)  # the output at a node is that of its state, or of its edge
    for level in reversed(levels_of(tree)):
        after = merged.tables[tree.symbol[level]]  # of every state
        below = np.take_along_axis(value[level], np.maximum(after, 0), axis=1)
        np.add.at(value, tree.parent[level], of_edge[level] + np.where(after == MISSING, wrong, below))
    return value


def in_python(monkeypatch: Any) -> None:
    """From now on everything here takes the place of the compiled code."""
    monkeypatch.setattr(prefix_tree, "_Tree", PythonTree)
    monkeypatch.setattr(TreeArrays, "ranks", property(ranks_of))
    monkeypatch.setattr(state_merging, "_Merger", PythonMerger)
    for module in (state_merging, refine):
        monkeypatch.setattr(module, "machine_of", machine_of)
    monkeypatch.setattr(refine, "totals", totals)
    monkeypatch.setattr(refine, "_run", run)
