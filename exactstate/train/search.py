"""The recipe `gradient`: every head alone, inside the network, from words and labels; see `exactstate/nn/heads.py`.

    B  words     L  their length     V  symbols     n  labels

`HeadSearch` trains the heads of a wide layer on soft states, each with a read-out and a likelihood of its own; what
the layer reads is as it was drawn. After every so many steps they are read: those that follow a part of the state
exactly are kept; the others are drawn anew, predict the label given what is kept, and words are short again. When the
kept heads tell all labels apart, they are the layer of the network: its margins are widened and its read-out is
trained as in `induce` and `distill` (`realize`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from exactstate._types import Ints
from exactstate.errors import InvalidInput, NotLearned
from exactstate.nn import Backbone
from exactstate.nn.heads import HeadReadouts
from exactstate.records import Row
from exactstate.tasks import AnswerTask, Task
from exactstate.tasks.access_words import AccessWords
from exactstate.train.answer_cascade import train_answer_cascade
from exactstate.train.build import build_model
from exactstate.train.cascade import train_cascade
from exactstate.train.codes import codes_of_tables
from exactstate.train.config import SearchConfig, TrainConfig, search_heads
from exactstate.train.optimizer import Adam
from exactstate.train.phases import Phase, labels_of, tokens_of
from exactstate.train.realize import realize
from exactstate.train.straight_through import note_stage, straight_through
from exactstate.train.trainer import Trainer
from exactstate.train.wide import block_of, encode_symbols

READ_LR = 0.1
"""Learning rate of the heads' own read-outs."""
FIRST_LENGTH, GROW_EVERY = 8, 10
"""Length of the first words, or what reaches every state; they are a symbol longer after so many steps."""
PATIENCE, MORE_PATIENCE = 400, 200
"""Steps without a head that is kept after which all others are drawn anew; so many more each time in vain."""
VALUE_WIDTH = 32
"""Of the value vectors: few heads are left in the end, and each has to be read."""
STAGE = "kept"
"""The network of the kept heads, in the folder of a run."""
READ_WORDS, READ_LENGTHS = 512, (60, 120)
"""Words by which heads are read: so many of the first length, and of each of these."""


class HeadSearch(Phase):
    """Words and labels that are states; done when the kept heads tell all labels apart, or at the last step."""

    STATE = (*Phase.STATE, "begun", "draws")

    def __init__(
        self, model: Backbone, task: Task, config: SearchConfig, generator: np.random.Generator,
        weights: torch.Generator,
    ) -> None:  # fmt: skip
        self.heads = HeadReadouts(
            block_of(model), len(task.labels), start_label=task.machine.start,
            generator=weights,
        )  # fmt: skip
        for encoder in (model.embedding, model.encoder, model.encoder_norm, model.layers[0].norm1):
            encoder.requires_grad_(False)  # what fits the heads of now would lead those drawn later to the same factors
        module = torch.nn.ModuleDict({"model": model, "heads": self.heads})
        groups: list[Row] = [
            {"params": list(model.parameters()), "lr": config.lr},
            {"params": list(self.heads.parameters()), "lr": READ_LR},
        ]
        super().__init__("search", module, Adam(groups, config.lr, fused=True), generator, config.check_every)
        self.model, self.task, self.config = model, task, config
        with torch.no_grad():
            self.rows = encode_symbols(model.eval())[1]
        """V m: what the layer reads at every symbol."""
        depth = task.sampler.depth if isinstance(task.sampler, AccessWords) else 0
        self.first_length = max(FIRST_LENGTH, depth + 4)
        self.begun, self.draws = 0, 0
        """The step at which heads were last drawn anew, from which on words are short again; how often in vain."""

    @property
    def learned(self) -> bool:
        """Whether the kept heads tell all labels apart."""
        return self.heads.learned

    @property
    def done(self) -> bool:
        return self.learned or not self.heads.training_heads or self.steps >= self.config.steps

    @property
    def length(self) -> int:
        """Of the words of the next step."""
        grown = self.first_length + (self.steps - self.begun) // GROW_EVERY
        return min(grown, max(self.config.length, self.first_length))

    def step(self) -> None:
        batch = self.task.sample(self.config.batch, self.length, self.generator)
        losses = self.heads((self.rows, tokens_of(batch)), labels_of(batch))
        self.optimizer.zero_grad(set_to_none=True)
        losses.sum().backward()
        self.optimizer.step()
        self.steps, self.loss = self.steps + 1, float(losses.detach().min())

    def check(self) -> Row:
        """Read the heads and keep those that tell labels apart."""
        drawing = torch.Generator().manual_seed(int(self.generator.integers(2**62)))
        self.heads.generator = drawing
        batches: list[tuple[Ints, Ints]] = []
        for length in (self.length, self.first_length, *READ_LENGTHS):
            batch = self.task.sample(READ_WORDS, length, self.generator)
            batches.append((batch.inputs.astype(np.int64), batch.states.astype(np.int64)))
        if self.heads.keep(self.rows, batches, self.optimizer):
            self.begun, self.draws = self.steps, 0
        elif self.steps - self.begun >= PATIENCE + MORE_PATIENCE * self.draws:
            self.heads.draw(self.heads.training_heads, self.optimizer)
            self.begun, self.draws = self.steps, self.draws + 1
        kept = [head.size for head in self.heads.kept.values()]
        return {"loss": self.loss, "kept": kept, "open": round(self.heads.open, 6), "length": self.length}

    def network(self) -> Backbone:
        """The model with the kept heads alone; raises NotLearned where they cannot be its layer."""
        try:
            self.model.layers[0].block = self.heads.kept_layer(self.rows)
        except InvalidInput as error:
            raise NotLearned(f"{self.task.name} was not learned: {error}") from None
        return self.model.requires_grad_(True)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "heads": self.heads.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        super().load_state(state)
        self.heads.load_state(state["heads"])


def gradient(config: TrainConfig, task: Task, trainer: Trainer) -> Backbone:
    """Heads alone; stories as a cascade of free tables; what neither covers straight through."""
    if isinstance(task, AnswerTask):
        return train_answer_cascade(config, task, trainer)
    if task.layers is not None:
        return train_cascade(config, task, trainer)
    if searches(config, trainer.checkpointer.attempt) and task.label_kind == "states":
        return search(config, task, trainer)
    return straight_through(config, task, trainer)


def searches(config: TrainConfig, attempt: int) -> bool:
    """Whether this attempt learns every head alone."""
    return config.search is not None and config.supervise == "states" and attempt < config.search.attempts


def search(config: TrainConfig, task: Task, trainer: Trainer) -> Backbone:
    """Learn heads alone, keep them as the layer of the network, widen margins and train the read-out."""
    settings = config.search or SearchConfig()
    config = replace(config, temperature=1.0)
    weights, labels = torch.Generator().manual_seed(config.seed), len(task.labels)
    sizes = config.heads or search_heads(labels)
    model = build_model(config, task, heads=(sizes,), value_widths=(VALUE_WIDTH,), generator=weights)
    phase = HeadSearch(model, task, settings, np.random.default_rng([config.seed, 3]), weights)
    trainer.run_phase(phase, keep=True)
    if trainer.paused:
        return model
    if not (phase.learned or trainer.has_stage(STAGE)):
        raise NotLearned(_not_learned(phase, trainer.checkpointer.attempt + 1))
    note_stage(trainer, "learned", model, steps=trainer.checkpointer.total_steps)
    model = trainer.transform(STAGE, config, task, phase.network)
    with torch.no_grad():
        block = block_of(model.eval())
        tables = [part[0].numpy().astype(np.int64) for part in block.tables(encode_symbols(model)[1][None])]
    words = np.random.default_rng([config.seed, 4])
    codes = codes_of_tables(tables, block.config.initial_state, task, words)
    model = realize(config, task, codes, trainer, model)
    if not trainer.paused:
        note_stage(trainer, "kept", model)
    return model


def _not_learned(phase: HeadSearch, attempt: int) -> str:
    """What is kept, what is open, a shortest word after which it is, and what to try."""
    task, heads, which = phase.task, phase.heads, f", attempt {attempt}" if attempt > 1 else ""
    sizes = " ".join(str(head.size) for head in heads.kept.values())
    kept = f"heads of {sizes} indices are kept, which leave" if sizes else "no head is kept, which leaves"
    return (
        f"{task.name} was not learned in {phase.steps} steps{which}: {kept} {heads.open:.2f} nats of the state open"
        f"{_open_word(phase)}. Try --recipe induce, which counts transitions, another seed, or larger heads (--heads)."
    )


def _open_word(phase: HeadSearch) -> str:
    """The shortest of some fresh words after which the kept heads leave the label open, in a clause."""
    task, groups = phase.task, phase.heads.groups
    shared = np.bincount(groups)[groups] > 1
    batch = task.sample(READ_WORDS, FIRST_LENGTH, np.random.default_rng(0))
    states = batch.states.astype(np.int64)
    found = np.argwhere(shared[states])
    if not len(found):
        return ""
    word, end = found[found[:, 1].argmin()]
    text = " ".join(task.machine.symbols[int(symbol)] for symbol in batch.inputs[word, : end + 1])
    right = int(states[word, end])
    other = next(int(label) for label in np.flatnonzero(groups == groups[right]) if label != right)
    return f": after {text!r} they do not tell {task.labels[right]!r} from {task.labels[other]!r}"
