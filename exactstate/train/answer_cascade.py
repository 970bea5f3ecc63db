"""A cascade from answers alone: two layers of free tables, learned from the one answer at the end of every word.

    B  words     L  their length     V  symbols     r  heads in training     d  indices of a head
    d1, d2  indices of a head's lower and upper part     q  queries     a  answers

For tasks of two layers with a question at the end, such as stories. No symbol has a label; a query is known by the last
two symbols. As in `cascade.py`, heads run on distributions over their indices, with free logits, a bias towards
staying, and a read-out and a loss of their own: the likelihood of the answer under the mixture over indices.

Nothing says what a first layer should hold, so both layers are learned at once. A head is a pair of indices: the lower
one moves with the symbol, the upper one with the symbol and the lower one before it. Logits of the pair are the sum of
the logits of both, so that the softmax over pairs is the product of two, and one soft head of d1 d2 indices runs it
exactly, with all that the two parts know of each other. A group has a head for every query, and these share their
lower part, so that all answers teach it. Where no group is ahead after some hundred steps, all are drawn anew. When the
arg max of a head answers long words, its lower part is kept.

Then one upper head for each query, or rather a few of which one is kept, reads the symbol and the kept index: that
takes seconds. The kept tables are two layers of heads, which `realize` puts into a network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from exactstate._types import Ints
from exactstate.errors import NotLearned
from exactstate.nn import Backbone
from exactstate.nn.heads import KeptHead, run_tables
from exactstate.nn.soft import soft_states
from exactstate.ops.interface import resolve
from exactstate.records import Row
from exactstate.tasks import AnswerTask, Task
from exactstate.train.build import build_model
from exactstate.train.config import ANSWER_STEPS, TrainConfig
from exactstate.train.kept_layers import KeptLayer, KeptLayers, codes_of_layers
from exactstate.train.optimizer import Adam
from exactstate.train.phases import Phase
from exactstate.train.realize import realize
from exactstate.train.registers import has_words
from exactstate.train.trainer import Trainer

LR, BATCH, TINY = 0.1, 128, 1e-9
GROUPS, LOWER, UPPER = 3, 8, 6
"""Groups of heads, and indices of their parts, while both layers are learned."""
SECOND, SECOND_SIZE = 3, 8
"""Upper heads for each query, and their indices, when the first layer is kept."""
REMEMBER_LOWER, REMEMBER_UPPER = 1.0, 6.0
"""Bias of the logits that keep an index where it is."""
SYMBOLS_MORE = 5
"""Words gain so many symbols at a time: a sentence of a story."""
BEGIN, LONGEST, GROW_LOWER, GROW_UPPER = 2, 6, 500, 100
"""The longest words have so many sentences more than the shortest, at first and at last, and one more after so many
steps of the first and of the second part."""
CHECK_EVERY, CHECK_WORDS, CHECK_SENTENCES = 50, 512, (0, 4, 16, 32)
"""Words of a check, and how many sentences more than the shortest they have."""
STEPS_UPPER = 600
"""The most steps of the second part: then the kept lower part is given up, and the first part begins anew."""
PATIENCE, AHEAD = 1_000, 0.9
"""All groups are drawn anew when after so many steps no head has answered this share of the longest checked words."""
STAGE = "answer-cascade"
"""The kept tables, in the folder of a run."""


class AnswerHeads(nn.Module):
    """Heads with free logits, each with the query that it answers and a read-out; in groups that share a lower part.

    With one lower index (d1 = 1) they are heads of one layer.
    """

    def __init__(
        self, inputs: int, answers: int, queries: Sequence[int], sizes: tuple[int, int], groups: int,
        generator: torch.Generator,
    ) -> None:  # fmt: skip
        super().__init__()
        (d1, d2), r = sizes, len(queries)
        self.sizes, self.groups, self.backend = sizes, groups, resolve("auto")
        self.queries = torch.tensor(queries)
        self.lower = nn.Parameter(torch.empty(inputs, groups, d1, d1))
        """V g d1 d1: entry [a, g, k, j] scores the move of the lower part of a group from k to j at input a."""
        self.upper = nn.Parameter(torch.empty(inputs, r, d1, d2, d2))
        """V r d1 d2 d2: entry [a, h, l, k, j] that of the upper part, where the lower one is at l before."""
        self.readout = nn.Parameter(torch.empty(answers, r, d2))
        self.draw(generator)

    @torch.no_grad()
    def draw(self, generator: torch.Generator) -> None:
        """Draw all logits and read-outs."""
        (d1, d2), pairs = self.sizes, self.upper.shape[1] // self.groups
        for g in range(self.groups):
            heads = slice(g * pairs, (g + 1) * pairs)
            parts = ((self.lower, slice(g, g + 1)), (self.upper, heads), (self.readout, heads))
            biases = (REMEMBER_LOWER * torch.eye(d1), REMEMBER_UPPER * torch.eye(d2), torch.zeros(d2))
            for (parameter, part), bias in zip(parts, biases, strict=True):
                scale = 0.5 if parameter is self.readout else 1.0
                noise = torch.randn(parameter[:, part].shape, generator=generator)
                parameter[:, part] = scale * noise + bias

    def losses(self, inputs: Tensor, queries: Tensor, answers: Tensor) -> Tensor:
        """r: minus the log-likelihood of the answers by every head, of the words that ask its query."""
        (W, r), (d1, d2), d = self.upper.shape[:2], self.sizes, self.sizes[0] * self.sizes[1]
        lower = self.lower.repeat_interleave(r // self.groups, 1)
        logits = lower[:, :, :, None, :, None] + self.upper[:, :, :, :, None, :]  # from l k to l' k'
        start = torch.zeros(len(inputs), r, dtype=torch.int64)
        states = soft_states(torch.eye(W), logits.reshape(W, r * d * d).T, torch.zeros(r * d * d), (d,) * r, start, 1.0,
                             row_index=inputs, backend=self.backend)  # fmt: skip
        held = states[:, -1].view(-1, r, d1, d2).sum(2)
        losses = -((self.readout.softmax(0)[answers] * held).sum(-1) + TINY).log()
        asked = (queries[:, None] == self.queries).float()
        return (losses * asked).sum(0) / asked.sum(0).clamp(min=1.0)

    def tables(self) -> tuple[Ints, Ints, Ints]:
        """The arg max (lower: V g d1; upper: V r d1 d2; answers: r d2)."""
        lower, upper, answers = self.lower.argmax(-1), self.upper.argmax(-1), self.readout.argmax(0)
        return lower.numpy(), upper.numpy(), answers.numpy()


@dataclass(eq=False)
class AnswerCascade:
    """The kept tables of two layers."""

    lower: Ints | None = None
    """V d1: the index of the first layer after every symbol."""
    upper: dict[int, Ints] = field(default_factory=dict)
    """For a query (V d1) d2: the index of its head after every symbol and index of the first layer before it."""
    answers: dict[int, Ints] = field(default_factory=dict)
    """For a query d2: the answer at every index."""

    def inputs(self, words: Ints) -> Ints:
        """B L: what the second layer reads, a symbol and the index of the first layer before it."""
        assert self.lower is not None
        return words * self.lower.shape[1] + run_tables(self.lower, words)[:, :-1]

    def layers(self) -> KeptLayers:
        """As layers of kept heads, one for each query above the lower one."""
        assert self.lower is not None
        V, d1 = self.lower.shape
        above = []
        for query in sorted(self.upper):
            tables = self.upper[query].reshape(V, d1, -1).swapaxes(0, 1).reshape(V * d1, -1)
            above.append(unlabeled_head(tables))
        layers = [KeptLayer(np.arange(V), (unlabeled_head(self.lower),)), KeptLayer(np.arange(V * d1), tuple(above))]
        return KeptLayers(V, layers, open=0.0)

    def to_tensors(self) -> dict[str, Tensor]:
        """As a file holds it; `from_tensors` reads it."""
        content = {} if self.lower is None else {"lower": torch.from_numpy(self.lower)}
        for query, tables in self.upper.items():
            content[f"upper.{query}"] = torch.from_numpy(tables)
            content[f"answers.{query}"] = torch.from_numpy(self.answers[query])
        return content

    def from_tensors(self, content: dict[str, Tensor]) -> None:
        self.lower = content["lower"].numpy() if "lower" in content else None
        queries = sorted(int(name.removeprefix("upper.")) for name in content if name.startswith("upper."))
        self.upper = {query: content[f"upper.{query}"].numpy() for query in queries}
        self.answers = {query: content[f"answers.{query}"].numpy() for query in queries}


def unlabeled_head(tables: Ints) -> KeptHead:
    """A head with these tables, of words without labels."""
    return KeptHead(tables, np.zeros(1, np.int64), 0, tuple(range(tables.shape[1])))


class AnswerCascadePhase(Phase):
    """Both layers at once until a head answers a query, then the second layer for every query; done when all are right.

    A row has the share of right answers of the best head of every query at the longest words of the check.
    """

    STATE = (*Phase.STATE, "begun", "best")

    def __init__(self, task: Task, generator: np.random.Generator, weights: torch.Generator) -> None:
        assert task.question is not None
        symbols, answers = task.machine.n_symbols, task.question.n_answers
        self.task, self.queries = task, answers
        self.first = AnswerHeads(symbols, answers, [*range(answers)] * GROUPS, (LOWER, UPPER), GROUPS, weights)
        asked = [query for query in range(self.queries) for _ in range(SECOND)]
        self.second = AnswerHeads(symbols * LOWER, answers, asked, (1, SECOND_SIZE), 1, weights)
        module = nn.ModuleList([self.first, self.second])
        super().__init__("cascade", module, Adam(module.parameters(), LR, fused=True), generator, CHECK_EVERY)
        self.kept = AnswerCascade()
        self.shortest = next(length for length in range(1, 1_000) if has_words(task, length))
        self.begun = 0
        """The step at which the part began that is trained now."""
        self.best = 0.0
        """The largest share of the longest words that a head of the first part has answered."""

    @property
    def learned(self) -> bool:
        return len(self.kept.upper) == self.queries

    @property
    def done(self) -> bool:
        return self.learned or self.steps >= ANSWER_STEPS

    def sample(self, batch: int, sentences: int) -> tuple[Ints, Ints, Ints]:
        """(symbols: B L, queries: B, answers: B) of words so many sentences longer than the shortest, and a bit."""
        length = self.shortest + SYMBOLS_MORE * sentences
        longer = [more for more in range(SYMBOLS_MORE) if has_words(self.task, length + more)]
        length += int(self.generator.choice(longer))
        drawn = self.task.sample(batch, length, self.generator)
        assert drawn.queries is not None
        assert drawn.answers is not None
        return drawn.inputs.astype(np.int64), drawn.queries.astype(np.int64), drawn.answers.astype(np.int64)

    def step(self) -> None:
        first = self.kept.lower is None
        heads, grow = (self.first, GROW_LOWER) if first else (self.second, GROW_UPPER)
        most = min(LONGEST, BEGIN + (self.steps - self.begun) // grow)
        sentences = int(self.generator.integers(0, most + 1))
        words, queries, answers = self.sample(BATCH, sentences)
        inputs = words if first else self.kept.inputs(words)
        loss = heads.losses(*map(torch.from_numpy, (inputs, queries, answers))).sum()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.steps, self.loss = self.steps + 1, float(loss.detach()) / len(heads.queries)

    def check(self) -> Row:
        """Answer fresh words by the arg max tables; keep a lower part, then heads, that are right on all of them."""
        layer = int(self.kept.lower is not None)
        right = self.check_second() if layer else self.check_first()
        return {"loss": self.loss, "layer": layer, "right": [round(share, 4) for share in right]}

    @torch.no_grad()
    def check_first(self) -> list[float]:
        lower, upper, answers = self.first.tables()
        shares = np.zeros((len(CHECK_SENTENCES), len(answers)))
        for row, sentences in enumerate(CHECK_SENTENCES):
            words, queries, wanted = self.sample(CHECK_WORDS, sentences)
            inputs = [AnswerCascade(lower[:, g]).inputs(words) for g in range(GROUPS)]
            for h, query in enumerate(self.first.queries.tolist()):
                asked = queries == query
                index = run_tables(upper[:, h].reshape(-1, UPPER), inputs[h // self.queries][asked])[:, -1]
                shares[row, h] = (answers[h, index] == wanted[asked]).mean()
        head, self.best = int(shares.min(0).argmax()), max(self.best, float(shares[-1].max()))
        if shares[:, head].min() == 1.0:
            self.kept.lower, self.begun = lower[:, head // self.queries].copy(), self.steps
        elif self.best < AHEAD and self.steps - self.begun >= PATIENCE:
            self.begin_anew()
        return [float(shares[-1, query :: self.queries].max()) for query in range(self.queries)]

    def begin_anew(self) -> None:
        """Draw all heads anew, and begin with the first part."""
        self.kept, self.begun, self.best = AnswerCascade(), self.steps, 0.0
        drawing = torch.Generator().manual_seed(int(self.generator.integers(2**62)))
        for heads in (self.first, self.second):
            heads.draw(drawing)
        self.optimizer.state.clear()  # also the count of steps: moments of zero with a large one make steps too large

    @torch.no_grad()
    def check_second(self) -> list[float]:
        _, upper, answers = self.second.tables()
        drawn = [self.sample(CHECK_WORDS, sentences) for sentences in CHECK_SENTENCES]
        shares = np.zeros((len(drawn), len(answers)))
        for row, (words, queries, wanted) in enumerate(drawn):
            inputs = self.kept.inputs(words)
            for h, query in enumerate(self.second.queries.tolist()):
                asked = queries == query
                index = run_tables(upper[:, h, 0], inputs[asked])[:, -1]
                shares[row, h] = (answers[h, index] == wanted[asked]).mean()
        for query in range(self.queries):
            heads = range(query * SECOND, (query + 1) * SECOND)
            best = max(heads, key=lambda h: shares[:, h].min())
            if query not in self.kept.upper and shares[:, best].min() == 1.0:
                self.kept.upper[query], self.kept.answers[query] = upper[:, best, 0].copy(), answers[best].copy()
        if not self.learned and self.steps - self.begun >= STEPS_UPPER:
            self.begin_anew()
        return [float(shares[-1, query * SECOND : (query + 1) * SECOND].max()) for query in range(self.queries)]

    def state(self) -> dict[str, Any]:
        kept = {name: tensor.tolist() for name, tensor in self.kept.to_tensors().items()}
        return {**super().state(), "kept": kept}

    def load_state(self, state: dict[str, Any]) -> None:
        super().load_state(state)
        self.kept.from_tensors({name: torch.tensor(value) for name, value in state["kept"].items()})


def train_answer_cascade(config: TrainConfig, task: AnswerTask, trainer: Trainer) -> Backbone:
    """Learn tables of two layers from words and the answers at their ends, and realize them in a network."""
    phase = AnswerCascadePhase(
        task, np.random.default_rng([config.seed, 4]), torch.Generator().manual_seed(config.seed)
    )
    trainer.run_phase(phase, keep=True)
    layers = KeptLayers(task.machine.n_symbols)
    path = None if trainer.run_dir is None else trainer.run_dir.stage_path(STAGE)
    if trainer.paused:
        return build_model(config, task)
    if path is not None and trainer.has_stage(STAGE):
        layers.load(path)
    elif not phase.learned:
        raise NotLearned(_not_learned(task, phase, trainer.checkpointer.attempt + 1))
    else:
        layers = phase.kept.layers()
        if path is not None:
            layers.save(path, trainer.checkpointer.attempt)
    codes = codes_of_layers(layers, task, np.random.default_rng([config.seed, 5]))
    torch.manual_seed(config.seed)  # the same whether or not the run was resumed before
    return realize(config, task, codes, trainer)


def _not_learned(task: Task, phase: AnswerCascadePhase, attempt: int) -> str:
    which = f", attempt {attempt}" if attempt > 1 else ""
    found = (
        "no head answers a query" if phase.kept.lower is None
        else f"heads answer {len(phase.kept.upper)} of {phase.queries} queries"
    )  # fmt: skip
    return (
        f"{task.name} was not learned from answers in {phase.steps} steps{which}: {found}. Try another seed, or "
        "--supervise states."
    )
