"""One large head alone: labels that are outputs, and small machine files.

    B  words     L  their length     V  symbols     d  indices of the head     n  labels

The head is that of a layer which reads one-hot symbols, so that its logits are free: steps for one symbol do not
disturb those of others. Its likelihood is that of every head alone (`exactstate.nn.heads`): the index after a symbol
decides a label that is a state; the index before it and the symbol an output, as in a Mealy machine.

Two states that share an index are the local optimum to leave. `split_indices` makes an index that is hardly used a copy
of one whose transitions are pulled in different directions, and gradient descent separates the two. By their outputs,
two states may differ only after several symbols, which random words hardly ever take. So words that lead to every index
go on with the ends of words that were wrong, and `unfold` gives the last indices of such words copies of their own,
which only these words enter at first: gradient descent decides what the copies do and who else enters them.

The arg max of all that is a machine. It is minimized and realized in a network (`realize.py`): from states in the heads
that it needs, from outputs in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor

from exactstate._types import MISSING, Ints
from exactstate.automata import Mealy, Semiautomaton, minimize
from exactstate.automata.minimize import equal_rows, reachable, refine
from exactstate.certify import counterexamples
from exactstate.errors import NotLearned
from exactstate.nn import NFSM, Backbone
from exactstate.nn.heads import HeadReadouts, entropy, run_tables
from exactstate.records import Row, write_atomically
from exactstate.tasks import Task
from exactstate.tasks.access_words import AccessWords, access_words
from exactstate.train.build import build_model
from exactstate.train.config import SearchConfig, TrainConfig
from exactstate.train.optimizer import Adam
from exactstate.train.phases import Mistakes, Phase, labels_of, tokens_of
from exactstate.train.realize import realize_machine
from exactstate.train.straight_through import note_stage
from exactstate.train.trainer import Trainer

SIZE, LEAST_SIZE = 96, 24
"""Indices of the head in the first attempt: for outputs; for states, at least, and twice as many as there are. Half as
many more in every other."""
STAGE = "large-head"
"""The head that was learned, in the folder of a run until it is finished."""
SMALL_FILE, LARGE_FILE, EVEN = 52, 96, 0.9
"""States of a machine file from which on several heads are learned; up to the second number only where its states are
met about equally often: where the entropy of the label is more than this share of the largest."""
LR, BATCH, BALANCE = 0.06, 128, 0.5
"""Learning rate of the logits; words of a step; labels are weighted by their share to minus this power."""
CHECK_EVERY, SPLIT_EVERY, SPLITS = 50, 100, 8
"""Steps between two checks; between two splits, of so many indices."""
USE_RATE = 0.02
"""How fast the use of indices follows the words of a step; slowly, so that what rare words need is not split."""
COVERING_FROM, SPLITTING_BELOW = 0.9, 0.98
"""Share of right words from which on words lead to every index, and indices are unfolded instead of split; where labels
are states, they are split up to the second one and not unfolded."""
REPLAY, REPLAYED, REPEATS = 0.25, 512, 4
"""Share of a batch that are words which were wrong; so many are kept; each is in a batch as often at most."""
ENDS, LONGEST = 5, 20
"""Symbols of the end of a wrong word, at most; length to which words grow so that they hold such ends."""
ASKING_FROM, FEW = 0.97, 32
"""Share of right words from which on every fourth check asks for the verdict; counterexamples that it takes then."""
UNFOLDED, AHEAD, BEHIND = 12, 2.0, 2.0
"""Indices that become copies at every second check; logits by which a copy leads where the wrong word enters it, and is
behind where others do."""
CHECKED, MOST_CHECKED = 64, 2048
"""Length of the words of the last check, and how many there are at most."""


class LargeHead(HeadReadouts):
    """One head with free logits, and the label for every index and symbol, or, of states, for every index after it."""

    def __init__(self, symbols: int, size: int, labels: int, *, states: bool, generator: torch.Generator) -> None:
        layer, inputs = NFSM(symbols, (size,), value_width=1, generator=generator), None if states else symbols
        super().__init__(layer, labels, inputs=inputs, remember=0.0, generator=generator)
        self.size, self.symbols, self.rows, self.balance = size, symbols, torch.eye(symbols), BALANCE
        with torch.no_grad():
            layer.weight.mul_(symbols**0.5)
        layer.bias.requires_grad_(False)
        self.register_buffer("use", torch.full((size,), 1.0 / size))
        """d: the mean share of every index in the last steps."""
        self.use: Tensor

    @property
    def weight(self) -> Tensor:
        """(d d) V: row k d + j scores the move from index k to index j."""
        weight: Tensor = self.layer.weight
        return weight

    @property
    def logits(self) -> Tensor:
        """d d V: entry [k, j, a] scores the move from index k to index j at symbol a."""
        return self.weight.detach().view(self.size, self.size, self.symbols)

    @property
    def moves(self) -> Ints:
        """V d: the arg max of the logits."""
        return self.tables(self.rows)[0]

    @property
    def outputs(self) -> Ints:
        """V d: the likeliest label of every symbol at every index."""
        best: Ints = self.readout.detach().argmax(0).numpy()
        return best[0][self.moves] if self.inputs is None else best

    def likelihood(self, words: Tensor, labels: Tensor) -> Tensor:
        """Minus the log-likelihood of labels (B L, MISSING where there is none); notes which indices are used."""
        counts, states = torch.bincount(labels[labels != MISSING], minlength=self.labels), self.soft((self.rows, words))
        self.use.lerp_(states.detach().mean((0, 1)), USE_RATE)
        weights = counts.clamp(min=1).float() ** -self.balance
        return self((self.rows, words), labels, weights=weights, states=states).squeeze(0)

    def exact(self, words: Ints) -> Ints:
        """B L: the outputs of the machine whose tables and read-out are the arg max."""
        found: Ints = self.outputs[words, run_tables(self.moves, words)[:, :-1]]
        return found

    def machine(self, symbols: Sequence[str], outputs: Sequence[str]) -> Mealy:
        """The minimal machine of the arg max."""
        return minimize(Mealy(symbols=tuple(symbols), tables=self.moves, outputs=tuple(outputs), readout=self.outputs))

    @torch.no_grad()
    def split_indices(self, optimizer: torch.optim.Optimizer, count: int, generator: torch.Generator) -> int:
        """Make up to `count` indices of little use copies of those with the most disputed transitions; how many.

        A transition is disputed where its gradient is large and changes: by the second moments of Adam.
        """
        moments = optimizer.state[self.weight]["exp_avg_sq"].sqrt().view(self.size, -1).sum(1)
        free = [j for j in self.use.argsort().tolist() if j and self.use[j] < 0.3 / self.size][:count]
        busy = [j for j in moments.argsort(descending=True).tolist() if j not in free][: len(free)]
        for to, of in zip(free, busy, strict=False):
            self._copy_index(optimizer, of, to)
            logits = self.logits
            logits[to] += 0.3 * torch.randn(logits[to].shape, generator=generator)
            logits[:, to] = logits[:, of] + 0.5 * torch.randn(logits[:, of].shape, generator=generator)
        return min(len(free), len(busy))

    def spare_indices(self) -> tuple[list[int], dict[int, int]]:
        """Indices that the arg max does not need, those of little use first, and the twins of some of them.

        No word reaches them, or another index, their twin, gives the same outputs after all words.
        """
        tables = self.moves
        reached, blocks = set(reachable(tables, 0).tolist()), refine(tables, equal_rows(self.outputs.T))
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

        A word comes with the position of its first wrong output. Copies are of the last one to ENDS indices before it,
        in spare indices, and lead to each other along the word. They are what their originals are, but for the output
        that was wrong, which they forget.
        """
        tables, logits = self.moves, self.logits
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
                    logits[:, twins[to]] = torch.logaddexp(logits[:, twins[to]], logits[:, to])
            for of, to in zip(old, copies, strict=True):
                self._copy_index(optimizer, of, to)
                logits[:, to] = logits[:, of] - BEHIND
            at = path[first - 1]
            for symbol, to in zip(word[first - 1 :], copies, strict=False):
                logits[at, to, symbol] = logits[at, :, symbol].max() + AHEAD
                at = to
            self.readout[:, word[wrong], at] = 0.0
        return len(made)

    def _copy_index(self, optimizer: torch.optim.Optimizer, of: int, to: int) -> None:
        """Let index `to` have the logits and the second moments of index `of`, and no momentum."""
        self.logits[to] = self.logits[of]
        self.readout[..., to] = self.readout[..., of]
        for name in ("exp_avg", "exp_avg_sq"):
            moves = optimizer.state[self.weight][name].view_as(self.logits)
            moves[to] = moves[of] if name == "exp_avg_sq" else 0.0
            moves[:, to] = moves[:, of] if name == "exp_avg_sq" else 0.0
            reads = optimizer.state[self.readout][name]
            reads[..., to] = reads[..., of] if name == "exp_avg_sq" else 0.0


class LargeHeadSearch(Phase):
    """Words and outputs; done when the machine is the target, or at the last step.

    It is compared with the target when all fresh words of two checks in a row are right, and now and then when nearly
    all are. Where it differs, the words on which it does are trained on.
    """

    STATE = (*Phase.STATE, "accuracy", "learned", "splits", "ends", "words", "refused", "length")

    def __init__(
        self, task: Task, config: SearchConfig, size: int, generator: np.random.Generator, weights: torch.Generator
    ) -> None:  # fmt: skip
        states = task.label_kind == "states"
        self.head = LargeHead(task.machine.n_symbols, size, len(task.labels), states=states, generator=weights)
        module = torch.nn.ModuleDict({"layer": self.head.layer, "head": self.head})
        optimizer = Adam([self.head.weight, self.head.readout], LR, fused=True)
        super().__init__("large_head", module, optimizer, generator, CHECK_EVERY)
        self.task, self.config, self.mistakes = task, config, Mistakes(REPLAYED)
        self.covering = task
        """Half of its words lead to an index and on, so that every transition of the head is met."""
        depth = task.sampler.depth if isinstance(task.sampler, AccessWords) else 0
        self.length, self.checked = max(12, depth + 8), max(CHECKED, depth + 16)
        self.accuracy, self.learned, self.splits = 0.0, False, 0
        self.words: list[list[str]] = []
        """Words that lead to every index, and on by every symbol, once most words are right."""
        self.refused: list[list[str]] = []
        """Words on which machines differed from the target."""
        self.ends: list[list[int]] = []
        """The last symbols of words that were wrong at a check, up to the first wrong output."""

    @property
    def done(self) -> bool:
        return self.learned or self.steps >= self.config.steps

    def machine(self) -> Mealy:
        """The minimal machine of the arg max."""
        return self.head.machine(self.task.machine.symbols, self.task.labels)

    def step(self) -> None:
        batch = self.covering.sample(BATCH, self.length, self.generator)
        words, labels = self.mistakes.mix(tokens_of(batch), labels_of(batch), REPLAY, self.generator, REPEATS)
        self.train_on(words, labels)

    def train_on(self, words: Tensor, labels: Tensor) -> None:
        """A step of the optimizer on these words (B L) and outputs; now and then, indices are split."""
        loss = self.head.likelihood(words, labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.steps, self.loss = self.steps + 1, float(loss.detach())
        below = SPLITTING_BELOW if self.head.inputs is None else COVERING_FROM
        if self.steps % SPLIT_EVERY == 0 and self.accuracy < below and not self.done:
            chooser = torch.Generator().manual_seed(int(self.generator.integers(2**62)))
            self.splits += self.head.split_indices(self.optimizer, SPLITS, chooser)

    def load_state(self, state: dict[str, Any]) -> None:
        super().load_state(state)
        self._cover()

    def _cover(self) -> None:
        self.covering = self.task.with_words([*self.words, *self.refused], share=0.5)

    def check(self) -> Row:
        """On fresh words; the wrong ones, and those that cover transitions, are kept as long as they are wrong."""
        drawn = [self.task, self.covering] if self.words else [self.task]
        batches = [task.sample(REPLAYED, self.length, self.generator) for task in drawn]
        fresh = [np.stack([batch.inputs, batch.states], 1).astype(np.int64) for batch in batches]
        known = len(self.mistakes.words)
        pairs = np.concatenate([*([np.array(self.mistakes.words)] if known else []), *fresh])
        same = self.head.exact(pairs[:, 0]) == pairs[:, 1]
        right = same.all(1)
        self.mistakes.words = pairs[~right][-REPLAYED:].tolist()
        self.accuracy = float(right[known : known + REPLAYED].mean())
        if self.head.inputs is not None:
            self._unfold(pairs[~right, 0].tolist(), same[~right].argmin(1).tolist(), int((~right[:known]).sum()))
        if self.accuracy >= COVERING_FROM:
            self.words = self._covering_words()
            self._lengthen(min(LONGEST, max(map(len, self.words)) + 2))
            self._cover()
        if self.accuracy == 1.0:
            transitions = self.task.machine.n_states * self.task.machine.n_symbols
            count = max(256, min(2 * transitions, MOST_CHECKED), 4 * len(self.words))
            batch = self.covering.sample(count, self.checked, self.generator)
            exact = (self.head.exact(batch.inputs.astype(np.int64)) == batch.states).all(1)
            self.accuracy = float(exact.mean())
            wrong = np.stack([batch.inputs, batch.states], 1).astype(np.int64)[~exact][:, :, : self.length]
            self.mistakes.add(wrong.tolist() if self.checked >= self.length else [])
        self.streak = self.streak + 1 if self.accuracy == 1.0 else 0
        row = {"loss": self.loss, "accuracy": self.accuracy, "splits": self.splits, "length": self.length}
        if self.streak >= 2 or (self.accuracy >= ASKING_FROM and self.steps // self.check_every % 4 == 0):
            row["counterexamples"] = self._ask_verdict()
        return row

    def _lengthen(self, length: int) -> None:
        """Words are at least this long from now on; wrong ones that are shorter are forgotten."""
        self.length = max(self.length, length)
        self.mistakes.words = [pair for pair in self.mistakes.words if len(pair[0]) == self.length]

    def _unfold(self, words: list[list[int]], first: list[int], known: int) -> None:
        """Keep the ends of wrong words, and unfold some that were wrong before: `known`, the first of them."""
        for word, wrong in zip(words, first, strict=True):
            begin = wrong + 1 - int(self.generator.integers(1, ENDS + 1))
            self.ends.append(word[max(0, begin) : wrong + 1])
        self.ends = self.ends[-REPLAYED:]
        if self.accuracy >= COVERING_FROM and words and self.steps // self.check_every % 2 == 0:
            chosen = list(zip(words, first, strict=True))[: max(1, known)]
            self.generator.shuffle(chosen)
            self.splits += self.head.unfold(self.optimizer, chosen, UNFOLDED, self.generator)

    def _covering_words(self) -> list[list[str]]:
        """To every index, on by every symbol, and on by the end of a wrong word."""
        symbols = self.task.machine.symbols
        words = transition_words(symbols, self.head.moves)
        if not self.ends:
            return words
        chosen = self.generator.integers(len(self.ends), size=len(words)).tolist()
        return [[*word, *(symbols[a] for a in self.ends[end])] for word, end in zip(words, chosen, strict=True)]

    def _ask_verdict(self) -> int:
        """Compare the machine with the target; the number of words on which they differ, which are trained on."""
        found = counterexamples(self.machine(), self.task.machine, labels=self.task.label_kind)
        self.learned, self.streak = not found, 0
        found = found if self.accuracy == 1.0 else found[:FEW]
        self.refused = [*self.refused, *map(list, found)][-REPLAYED:]
        self._lengthen(max((len(word) + 2 for word in found), default=0))
        self._cover()
        return len(found)


def transition_words(symbols: Sequence[str], tables: Ints) -> list[list[str]]:
    """For every index that these tables (V d) reach from index 0, and every symbol: a shortest word to it, and it."""
    words = access_words(Semiautomaton(symbols=tuple(symbols), tables=tables), 0).values()
    return [[*(symbols[a] for a in word), symbol] for word in words for symbol in symbols]


def takes_large_head(task: Task) -> bool:
    """Whether one large head is learned instead of several."""
    n, sampler = task.machine.n_states, task.sampler
    if task.label_kind == "outputs" or not isinstance(sampler, AccessWords) or n >= LARGE_FILE:
        return task.label_kind == "outputs"
    if n < SMALL_FILE:
        return True
    labels = task.sample(256, sampler.depth + 8, np.random.default_rng(0)).states.ravel()
    return entropy(np.zeros(n, np.int64), np.bincount(labels, minlength=n)) < EVEN * float(np.log(n))


def search_large_head(config: TrainConfig, task: Task, trainer: Trainer) -> Backbone:
    """Learn one large head alone, and realize its machine in a network."""
    attempt, states = trainer.checkpointer.attempt, task.label_kind == "states"
    size = max(LEAST_SIZE, 2 * len(task.labels)) if states else SIZE
    phase = LargeHeadSearch(
        task, config.search or SearchConfig(), size * (2 + attempt) // 2, np.random.default_rng([config.seed, 3]),
        torch.Generator().manual_seed(config.seed),
    )  # fmt: skip
    trainer.run_phase(phase, keep=True)
    if trainer.paused:
        return build_model(config, task, heads=((1,),))  # of which nothing is kept
    if not (phase.learned or trainer.has_stage(STAGE)):
        raise NotLearned(_not_learned(phase, attempt + 1))
    if trainer.run_dir is not None:
        path = trainer.run_dir.stage_path(STAGE)
        if not trainer.has_stage(STAGE):
            write_atomically(path, to_bytes(phase.module.state_dict(), {"attempt": str(attempt)}))
        phase.module.load_state_dict(load_file(path))
    machine = phase.machine().to_moore()
    heads = config.heads or (None if states else (machine.n_states,))  # read-outs of outputs know no factors
    network = replace(config.compressed(), heads=heads)
    model = realize_machine(network, task, machine, machine.readout.astype(np.int64), trainer)
    if not trainer.paused:
        note_stage(trainer, "kept", model)
    return model


def _not_learned(phase: LargeHeadSearch, attempt: int) -> str:
    """How far it came, a wrong word, and what to try."""
    task, which, wrong = phase.task, f", attempt {attempt}" if attempt > 1 else "", ""
    if phase.mistakes.words:
        pairs = np.array(phase.mistakes.words)
        first = (phase.head.exact(pairs[:, 0]) == pairs[:, 1]).cumprod(1).sum(1)
        at = int(first.argmin())
        word = " ".join(task.machine.symbols[int(symbol)] for symbol in pairs[at, 0, : int(first[at]) + 1])
        wrong = f"; a short wrong word is {word!r}"
    return (
        f"{task.name} was not learned in {phase.steps} steps{which}: {phase.accuracy:.1%} of fresh words are right"
        f"{wrong}. Try --recipe induce, {'another seed' if task.label_kind == 'states' else '--supervise states'}, or "
        "more steps."
    )
