"""Free tables: soft states with logits of their own for every symbol, learned by gradient before the layer is.

    B  words     L  their length     V  symbols     d  indices of the head     n  labels

One head with many more indices than states runs on distributions over its indices (`exactstate.nn.soft`). The
logits of a symbol are free parameters instead of an affine map of its embedding: steps of the optimizer for one
symbol do not disturb those of the others, and a step takes milliseconds. The loss is that of a hidden Markov model:
an index predicts a distribution over labels, and the likelihood of a label is their mixture. A mixture is certain
only where all its indices agree, so that states become exact without a schedule. Where labels are states, the index
after a symbol predicts; where they are outputs, the index before it and the symbol, as in a Mealy machine: fewer
indices than states that also have to remember what they have put out.

Two states that share an index are the local optimum to leave. `split_indices` makes an index that is hardly used a copy
of one whose transitions are pulled in different directions, and gradient descent separates the two. Where labels are
outputs, two states may differ only after several symbols, which random words hardly ever take. So words that lead to
every index go on with the ends of words that were wrong, and `unfold` gives the last indices of such words copies of
their own, which only these words enter at first: gradient descent decides what the copies do and who else enters them.

The arg max of all that is a machine. It is minimized, and `set_tables` gives a layer its tables: as many symbols as
its input is wide are linearly independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from exactstate.automata import Mealy, Moore, Semiautomaton, minimize
from exactstate.automata.minimize import equal_rows, reachable, refine
from exactstate.certify import counterexamples
from exactstate.nn import NFSM
from exactstate.nn.losses import class_weights
from exactstate.nn.soft import soft_states
from exactstate.ops.interface import resolve
from exactstate.records import Row
from exactstate.tasks import Task
from exactstate.tasks.access_words import access_words
from exactstate.train.config import FreeTablesConfig
from exactstate.train.optimizer import Adam
from exactstate.train.phases import Mistakes, Phase, labels_of, tokens_of

TINY = 1e-9
"""Added to likelihoods."""
COVERING_FROM = 0.9
"""Share of right words from which on words lead to every index."""
SPLITTING_BELOW = 0.98
"""Share of right words, labels being states, from which on no index is split: a split disturbs what is right."""
REPLAYED = 512
"""Wrong words that are kept to be trained on again."""
REPEATS = 4
"""How often a wrong word is in a batch, at most."""
ENDS = 5
"""Symbols of the end of a wrong word, up to the wrong label, at most."""
LONGEST = 20
"""To which words become longer so that they hold such ends."""
ASKING_FROM = 0.97
"""Share of right words, labels being outputs, from which on every fourth check asks for the verdict ..."""
FEW = 32
"""... and takes so many counterexamples, the shortest."""
UNFOLDED = 12
"""Indices that become copies for the ends of wrong words, at most, at every second check."""
AHEAD, BEHIND = 2.0, 2.0
"""Logits by which a copy leads where the wrong word enters it, and is behind where others do."""


class FreeTables(nn.Module):
    """Logits of a table for every symbol, and of the label for every index."""

    def __init__(self, symbols: int, size: int, labels: int, *, states: bool, generator: torch.Generator) -> None:
        """`states`: the index after a symbol decides the label; else the symbol and the index before it do."""
        super().__init__()
        self.size, self.labels, self.states = size, labels, states
        self.logits = nn.Parameter(torch.randn(symbols, size, size, generator=generator))
        """V d d: entry [a, k, j] scores the move from index k to index j at symbol a."""
        readouts = 1 if states else symbols
        self.readout = nn.Parameter(0.5 * torch.randn(readouts, size, labels, generator=generator))
        """1 d n or V d n: logits of the label."""
        self.register_buffer("use", torch.full((size,), 1.0 / size))
        """d: the mean share of an index over the last steps, about."""
        self.use: Tensor
        self.backend = resolve("auto")

    def states_of(self, words: Tensor) -> Tensor:
        """B L d: the distribution over indices after every symbol."""
        V, d, _ = self.logits.shape
        start = torch.zeros(len(words), 1, dtype=torch.int64)
        rows, weight, bias = torch.eye(V), self.logits.flatten(1).T, torch.zeros(d * d)
        return soft_states(rows, weight, bias, (d,), start, 1.0, row_index=words, backend=self.backend)

    def likelihoods(self, states: Tensor, words: Tensor, labels: Tensor) -> Tensor:
        """B L: the probability of every label, from the distributions after every symbol."""
        if not self.states:
            start = states.new_zeros(len(states), 1, self.size)
            start[:, :, 0] = 1.0
            states = torch.cat([start, states[:, :-1]], 1)
        chances = self.readout.softmax(-1).transpose(1, 2).flatten(0, 1)  # n d, or (V n) d
        which = labels if self.states else words * self.labels + labels
        return (nn.functional.embedding(which, chances) * states).sum(-1)

    @torch.no_grad()
    def exact(self, words: Tensor) -> Tensor:
        """B L: the labels of the machine whose tables and read-out are the arg max."""
        tables, best = self.logits.argmax(2), self.readout.argmax(2)
        at, found = torch.zeros(len(words), dtype=torch.int64), torch.empty_like(words)
        for t, symbols in enumerate(words.unbind(1)):
            before, at = at, tables[symbols, at]
            found[:, t] = best[0, at] if self.states else best[symbols, before]
        return found

    def machine(self, task: Task) -> Moore:
        """The minimal machine of the arg max tables and read-outs, with its outputs in states."""
        tables, best = self.logits.detach().argmax(2).numpy(), self.readout.detach().argmax(2).numpy()
        common: dict[str, Any] = {"symbols": task.machine.symbols, "tables": tables, "outputs": task.labels}
        if self.states:
            return minimize(Moore(**common, readout=best[0]))
        return minimize(Mealy(**common, readout=best)).to_moore()

    @torch.no_grad()
    def split_indices(self, optimizer: torch.optim.Optimizer, count: int, generator: torch.Generator) -> int:
        """Make up to `count` indices of little use copies of those with the most disputed transitions; how many.

        A transition is disputed where its gradient is large and changes: by the second moments of Adam.
        """
        moments = optimizer.state[self.logits]["exp_avg_sq"].sqrt().sum((0, 2))
        free = [j for j in self.use.argsort().tolist() if j and self.use[j] < 0.3 / self.size][:count]
        busy = [j for j in moments.argsort(descending=True).tolist() if j not in free][: len(free)]
        V, d = self.logits.shape[:2]
        for to, of in zip(free, busy, strict=False):
            self._copy_index(optimizer, of, to)
            self.logits[:, to] += 0.3 * torch.randn(V, d, generator=generator)
            self.logits[:, :, to] = self.logits[:, :, of] + 0.5 * torch.randn(V, d, generator=generator)
        return min(len(free), len(busy))

    def spare_indices(self) -> tuple[list[int], dict[int, int]]:
        """Indices that the arg max does not need, those of little use first, and the twins of some of them.

        No word reaches them, or another index, their twin, gives the same labels after all words.
        """
        tables, best = self.logits.detach().argmax(2).numpy(), self.readout.detach().argmax(2).numpy()
        reached, blocks = set(reachable(tables, 0).tolist()), refine(tables, equal_rows(best.T))
        order = self.use.argsort().tolist()
        kept = {int(blocks[0]): 0}
        for index in reversed(order):
            if index in reached:
                kept.setdefault(int(blocks[index]), index)
        twins = {j: kept[int(blocks[j])] for j in order if j in reached and kept[int(blocks[j])] != j}
        return [j for j in order if j not in reached] + list(twins), twins

    @torch.no_grad()
    def unfold(
        self, optimizer: torch.optim.Optimizer, words: Sequence[tuple[list[int], int]], count: int,
        generator: np.random.Generator,
    ) -> int:  # fmt: skip
        """Give the last indices of wrong words copies of their own, up to `count` in all; how many.

        A word comes with the position of its first wrong label. Copies are of the last one to ENDS indices before it,
        in spare indices, and lead to each other along the word. They are what their originals are, but for the label
        that was wrong, which they forget.
        """
        tables = self.logits.argmax(2)
        spare, twins = self.spare_indices()
        made: set[int] = set()
        ends: set[tuple[int, int]] = set()
        for word, wrong in words:
            path = [0]
            for symbol in word[:wrong]:
                path.append(int(tables[symbol, path[-1]]))
            first = max(1, wrong + 1 - int(generator.integers(1, ENDS + 1)))
            old, free = path[first:], [j for j in spare if j not in path]
            if not wrong or (path[-1], word[wrong]) in ends or made & set(path):
                continue
            if len(old) > min(len(free), count - len(made)):
                continue
            ends.add((path[-1], word[wrong]))
            copies = free[: len(old)]
            spare = [j for j in spare if j not in copies]
            made |= set(copies)
            for to in copies:
                if to in twins:  # who enters it enters its twin
                    twin = twins[to]
                    self.logits[:, :, twin] = torch.logaddexp(self.logits[:, :, twin], self.logits[:, :, to])
            for of, to in zip(old, copies, strict=True):
                self._copy_index(optimizer, of, to)
                self.logits[:, :, to] = self.logits[:, :, of] - BEHIND
            at = path[first - 1]
            for symbol, to in zip(word[first - 1 :], copies, strict=False):
                self.logits[symbol, at, to] = self.logits[symbol, at].max() + AHEAD
                at = to
            self.readout[word[wrong], at] = 0.0
        return len(made)

    def _copy_index(self, optimizer: torch.optim.Optimizer, of: int, to: int) -> None:
        """Let index `to` have the logits and the second moments of index `of`, and no momentum."""
        for parameter in (self.logits, self.readout):
            parameter[:, to] = parameter[:, of]
            first, second = (optimizer.state[parameter][name] for name in ("exp_avg", "exp_avg_sq"))
            first[:, to] = 0.0
            second[:, to] = second[:, of]
        first, second = (optimizer.state[self.logits][name] for name in ("exp_avg", "exp_avg_sq"))
        first[:, :, to] = 0.0
        second[:, :, to] = second[:, :, of]


class FreeTablesPhase(Phase):
    """Words and labels; done when the machine is the target, or at the last step.

    It is compared with the target when all fresh words of two checks in a row are right, from outputs also now and then
    when nearly all are. Where it differs, the words on which it does are trained on.
    """

    STATE = (*Phase.STATE, "accuracy", "learned", "splits", "wrong", "ends", "words", "refused", "length")

    def __init__(
        self, task: Task, config: FreeTablesConfig, size: int, length: int, check: tuple[int, int],
        generator: np.random.Generator, weights: torch.Generator,
    ) -> None:  # fmt: skip
        """`length`: of the words; `check`: fresh words of a check, and their length."""
        states = task.label_kind == "states"
        self.tables = FreeTables(task.machine.n_symbols, size, len(task.labels), states=states, generator=weights)
        optimizer = Adam(self.tables.parameters(), config.lr, fused=True)
        super().__init__("free_tables", self.tables, optimizer, generator, config.check_every)
        self.task, self.config, self.length, self.check_size = task, config, length, check
        self.covering = task
        """Half of its words lead to an index and on, so that every transition of the head is met."""
        self.accuracy, self.learned, self.splits = 0.0, False, 0
        self.words: list[list[str]] = []
        """Words that lead to every index, and on by every symbol, once most words are right."""
        self.refused: list[list[str]] = []
        """Words on which machines differed from the target."""
        self.wrong: list[list[list[int]]] = []
        """[symbols, labels] of words that were wrong at a check, the latest last."""
        self.ends: list[list[int]] = []
        """The last symbols of such words, up to the first wrong label."""
        self.splitting_below = SPLITTING_BELOW if states else COVERING_FROM
        """Share of right words from which on no index is split any more; from outputs, `unfold` follows."""

    @property
    def done(self) -> bool:
        return self.learned or self.steps >= self.config.steps

    def step(self) -> None:
        config = self.config
        batch = self.covering.sample(config.batch, self.length, self.generator)
        words, labels = Mistakes(words=self.wrong).mix(
            tokens_of(batch), labels_of(batch), config.replay, self.generator, REPEATS
        )
        states = self.tables.states_of(words)
        terms = (self.tables.likelihoods(states, words, labels) + TINY).log()
        loss = -(terms * class_weights(labels, self.tables.labels, config.balance)).mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.steps, self.loss = self.steps + 1, float(loss.detach())
        with torch.no_grad():
            self.tables.use.lerp_(states.mean((0, 1)), 0.02)
        if self.steps % config.split_every == 0 and self.accuracy < self.splitting_below and not self.done:
            chooser = torch.Generator().manual_seed(int(self.generator.integers(2**62)))
            self.splits += self.tables.split_indices(self.optimizer, config.splits, chooser)

    def load_state(self, state: dict[str, Any]) -> None:
        super().load_state(state)
        self._cover()

    def _cover(self) -> None:
        self.covering = self.task.with_words([*self.words, *self.refused], share=0.5)

    def check(self) -> Row:
        """On fresh words; the wrong ones, and those that cover transitions, are kept as long as they are wrong."""
        drawn = [self.task, self.covering] if self.words else [self.task]
        batches = [task.sample(REPLAYED, self.length, self.generator) for task in drawn]
        fresh = [torch.stack([tokens_of(batch), labels_of(batch)], 1) for batch in batches]
        pairs = torch.cat([*([torch.tensor(self.wrong)] if self.wrong else []), *fresh])
        known = len(self.wrong)
        same = self.tables.exact(pairs[:, 0]) == pairs[:, 1]
        right = same.all(1)
        self.wrong = pairs[~right][-REPLAYED:].tolist()
        self.accuracy = float(right[known : known + REPLAYED].float().mean())
        if not self.tables.states:
            self._unfold(pairs[~right, 0].tolist(), same[~right].int().cumprod(1).sum(1).tolist(),
                         int((~right[:known]).sum()))  # fmt: skip
        if self.accuracy >= COVERING_FROM:
            self.words = self._covering_words()
            if not self.tables.states:
                self.length = max(self.length, min(LONGEST, max(map(len, self.words)) + 2))
                self.wrong = [pair for pair in self.wrong if len(pair[0]) == self.length]
            self._cover()
        if self.accuracy == 1.0:
            count, length = self.check_size
            batch = self.covering.sample(max(count, 4 * len(self.words)), length, self.generator)
            exact = (self.tables.exact(tokens_of(batch)) == labels_of(batch)).all(1)
            self.accuracy = float(exact.float().mean())
            pairs = torch.stack([tokens_of(batch), labels_of(batch)], 1)[~exact][:, :, : self.length]
            self.wrong = [*self.wrong, *pairs.tolist()][-REPLAYED:] if length >= self.length else self.wrong
        self.streak = self.streak + 1 if self.accuracy == 1.0 else 0
        row = {"loss": self.loss, "accuracy": self.accuracy, "splits": self.splits, "length": self.length}
        nearly = not self.tables.states and self.accuracy >= ASKING_FROM
        if self.streak >= 2 or (nearly and self.steps // self.check_every % 4 == 0):
            row["counterexamples"] = self._ask_verdict()
        return row

    def _unfold(self, words: list[list[int]], first: list[int], known: int) -> None:
        """Keep the ends of wrong words, and unfold some that were wrong before: `known`, the first of them."""
        for word, wrong in zip(words, first, strict=True):
            begin = wrong + 1 - int(self.generator.integers(1, ENDS + 1))
            self.ends.append(word[max(0, begin) : wrong + 1])
        self.ends = self.ends[-REPLAYED:]
        if self.accuracy >= COVERING_FROM and words and self.steps // self.check_every % 2 == 0:
            chosen = list(zip(words, first, strict=True))[: max(1, known)]
            self.generator.shuffle(chosen)
            self.splits += self.tables.unfold(self.optimizer, chosen, UNFOLDED, self.generator)

    def _covering_words(self) -> list[list[str]]:
        """To every index and on by every symbol; from outputs, on by the end of a wrong word as well."""
        symbols = self.task.machine.symbols
        words = transition_words(symbols, self.tables.logits.detach().argmax(2))
        if not self.ends:
            return words
        chosen = self.generator.integers(len(self.ends), size=len(words)).tolist()
        return [[*word, *(symbols[a] for a in self.ends[end])] for word, end in zip(words, chosen, strict=True)]

    def _ask_verdict(self) -> int:
        """Compare the machine with the target; the number of words on which they differ, which are trained on."""
        machine = self.tables.machine(self.task).to_mealy()
        found = counterexamples(machine, self.task.machine, labels=self.task.label_kind)
        self.learned, self.streak = not found, 0
        found = found if self.accuracy == 1.0 else found[:FEW]
        self.refused = [*self.refused, *map(list, found)][-REPLAYED:]
        self.length = max([self.length, *(len(word) + 2 for word in found)])
        self.wrong = [pair for pair in self.wrong if len(pair[0]) == self.length]
        self._cover()
        return len(found)


def transition_words(symbols: Sequence[str], tables: Tensor) -> list[list[str]]:
    """For every index that these tables (V d) reach from index 0, and every symbol: a shortest word to it, and it."""
    machine = Semiautomaton(symbols=tuple(symbols), tables=tables.numpy())
    words = access_words(machine, 0).values()
    return [[*(symbols[a] for a in word), symbol] for word in words for symbol in symbols]


@torch.no_grad()
def set_tables(block: NFSM, rows: Tensor, tables: Tensor, margin: float) -> None:
    """Let the layer of one head have these tables (V d) at these inputs (V m), by this margin.

    Of all weights that do, the smallest; exact as long as the inputs are linearly independent.
    """
    logits = margin * nn.functional.one_hot(tables, block.heads[0]).double()
    block.weight.copy_((torch.linalg.pinv(rows.double()) @ logits.flatten(1)).T)
    block.bias.zero_()
