"""The recipe `gradient`: every head alone, inside the network, from words and labels; see `exactstate/nn/heads.py`.

    B  words     L  their length     V  symbols     n  labels

`HeadSearch` trains the heads of a wide layer on soft states, each with a read-out and a likelihood of its own; what
the layer reads is as it was drawn. After every so many steps they are read: those that follow a part of the state
exactly are kept; the others are drawn anew, predict the label given what is kept, and words are short again. When the
kept heads tell all labels apart, they are the layer of the network: its margins are widened and its read-out is
trained as in `induce` and `distill` (`realize`).

Where labels stay open and nothing more is kept, the search goes on in a layer above, which reads the symbol and the
joint index of the kept heads before it. Its logits are free, and so are those of all layers of stories; what is kept
is then realized in a network of so many layers.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from exactstate._types import Ints
from exactstate.errors import InvalidConfig, InvalidInput, NotLearned
from exactstate.nn import NFSM, Backbone
from exactstate.nn.heads import CERTAIN, HeadReadouts
from exactstate.records import Row
from exactstate.tasks import AnswerTask, Task
from exactstate.tasks.access_words import AccessWords
from exactstate.train.answer_cascade import train_answer_cascade
from exactstate.train.build import build_model
from exactstate.train.codes import codes_of_tables
from exactstate.train.config import EMBEDDED_FROM, SearchConfig, TrainConfig, search_heads
from exactstate.train.kept_layers import KeptLayer, KeptLayers, codes_of_layers
from exactstate.train.label_embedding import embed_heads
from exactstate.train.large_head import search_large_head, takes_large_head
from exactstate.train.optimizer import Adam
from exactstate.train.phases import Phase
from exactstate.train.realize import realize
from exactstate.train.registers import has_words
from exactstate.train.straight_through import note_stage, straight_through
from exactstate.train.trainer import Trainer
from exactstate.train.wide import block_of, encode_symbols

READ_LR = 0.1
"""Learning rate of the heads' own read-outs."""
FIRST_LENGTH, GROW_EVERY = 8, 10
"""Length of the first words, or what reaches every state; they are a symbol longer after so many steps."""
PATIENCE, MORE_PATIENCE = 400, 200
"""Steps without a head that is kept after which all others are drawn anew, twice as many above other layers; so many
more each time in vain."""
VALUE_WIDTH = 32
"""Of the value vectors: few heads are left in the end, and each has to be read."""
STAGE, LAYERS = "kept", "kept-layers"
"""The network of the kept heads of one layer, in the folder of a run; the heads of several."""
DRAWS = 1
"""So often all other heads are drawn anew in vain, and once more in every attempt; then the next layer begins."""
MOST_LAYERS = 4
"""Layers that are tried."""
UPPER, FREE_LR = (12,) * 12 + (40,) * 4, 0.1
"""Heads of a layer above another, and the learning rate of their logits, which are free."""
STORY_HEADS = (32,) * 8, (8,) * 16
"""Heads of the first layer and of those above it where words end in a question; all their logits are free."""
SENTENCE = 5
"""Symbols by which words differ in length, and become longer at a time, there."""
FIRST_READ = 300
"""Steps of a layer before its heads are read for the first time, there: easy parts would be kept too soon."""
REMEMBER = 6.0
"""Their bias towards staying."""
LONGEST = 120
"""Symbols of the words by which heads are read, at most."""
READ_WORDS, READ_LENGTHS = 512, (60, 120)
"""Words by which heads are read: so many of the first length, and of each of these."""


class HeadSearch(Phase):
    """Words and labels that are states; done when the kept heads tell all labels apart, or at the last step.

    The heads are those of the layer of a model, which reads symbols; or, above kept layers, of a layer with free logits
    for every symbol and joint index below.
    """

    STATE = (*Phase.STATE, "begun", "draws", "reads_first")

    def __init__(
        self, model: Backbone, task: Task, config: SearchConfig, generator: np.random.Generator,
        weights: torch.Generator, below: KeptLayers | None = None,
    ) -> None:  # fmt: skip
        self.model, self.task, self.config = model, task, config
        self.below = below or KeptLayers(task.machine.n_symbols)
        self.generator, number, labels = generator, len(self.below.layers), len(task.labels)
        self.lengths = [length for length in range(1, LONGEST + 1) if has_words(task, length)]
        depth = task.sampler.depth if isinstance(task.sampler, AccessWords) else 0
        self.first_length = max(FIRST_LENGTH, depth + 4, self.lengths[0])
        words = [self.sample(READ_WORDS, length)[0] for length in 2 * self.read_lengths] if number else []
        self.inputs = self.below.reached(words)
        """The inputs of the layer that words reach; see `KeptLayer.inputs`."""
        asks = task.question is not None
        self.rows: torch.Tensor
        """W m: what the layer reads at every input."""
        if number or asks:
            W, sizes = len(self.inputs) + 1, STORY_HEADS[min(number, 1)] if asks else UPPER
            layer = NFSM(W, sizes, dictionary=None, generator=weights)
            self.rows, lr, trained = W**0.5 * torch.eye(W), FREE_LR / W**0.5, torch.nn.ModuleList([layer])
        else:
            for encoder in (model.embedding, model.encoder, model.encoder_norm, model.layers[0].norm1):
                encoder.requires_grad_(False)  # what fits the heads of now would lead later ones to the same factors
            with torch.no_grad():
                self.rows = encode_symbols(model.eval())[1]
            layer, lr, trained = block_of(model), config.lr, torch.nn.ModuleList([model])
        self.heads = HeadReadouts(layer, labels, start_label=task.machine.start, remember=REMEMBER if number else None,
                                  generator=weights)  # fmt: skip
        self.heads.given = self.below.groups(labels)
        module = torch.nn.ModuleDict({"model": trained, "heads": self.heads})
        groups: list[Row] = [
            {"params": list(trained.parameters()), "lr": lr},
            {"params": list(self.heads.parameters()), "lr": READ_LR},
        ]
        name = f"search-{number + 1}" if number else "search"
        super().__init__(name, module, Adam(groups, lr, fused=True), generator, config.check_every)
        self.number = number
        """Of the layer; 0 is the lowest."""
        self.reads_first = False
        self.begun, self.draws = 0, 0
        """The step at which heads were last drawn anew, from which on words are short again; how often in vain."""

    @property
    def learned(self) -> bool:
        """Whether the kept heads tell all labels apart."""
        return self.heads.learned

    @property
    def done(self) -> bool:
        upward = bool(self.heads.kept) and self.draws >= DRAWS
        return self.learned or not self.heads.training_heads or upward or self.steps >= self.config.steps

    @property
    def length(self) -> int:
        """Of the words of the next step, about."""
        pace = 1 if self.task.question is None else SENTENCE
        grown = self.first_length + pace * ((self.steps - self.begun) // GROW_EVERY)
        return min(grown, max(self.config.length, self.first_length))

    @property
    def read_lengths(self) -> list[int]:
        """Of the words by which heads are read."""
        return [self.first_length, *READ_LENGTHS]

    def sample(self, batch: int, length: int) -> tuple[Ints, Ints]:
        """(symbols, labels), B L each, of words about as long, of a length that the task has."""
        if self.task.question is not None:
            length -= int(self.generator.integers(SENTENCE))
        length = self.lengths[max(0, bisect_right(self.lengths, length) - 1)]
        drawn = self.task.sample(batch, length, self.generator)
        return drawn.inputs.astype(np.int64), drawn.states.astype(np.int64)

    def read(self, words: Ints) -> tuple[Ints, Ints]:
        """(the inputs of the layer: B L, the joint index of the layers below: B (L + 1))."""
        joint = self.below.run(words)[1]
        return self.below.reads(words, joint, self.inputs), joint

    def begin_with_tables(self) -> None:
        """Read the tables that the layer has before they are trained."""
        self.reads_first, self.check_every = True, 1

    def step(self) -> None:
        if self.reads_first:
            self.heads.count_labels(self.rows, [self.sample(READ_WORDS, length) for length in self.read_lengths])
        words, labels = self.sample(self.config.batch, self.length)
        inputs = torch.from_numpy(self.read(words)[0])
        losses = self.heads((self.rows, inputs), torch.from_numpy(labels))
        self.steps, self.loss = self.steps + 1, float(losses.detach().min())
        if not self.reads_first:
            self.optimizer.zero_grad(set_to_none=True)
            losses.sum().backward()
            self.optimizer.step()

    def check(self) -> Row:
        """Read the heads and keep those that tell labels apart."""
        if self.task.question is not None and self.steps < FIRST_READ:
            return {"loss": self.loss, "kept": [], "open": None, "length": self.length, "layer": self.number}
        self.reads_first, self.check_every = False, self.config.check_every
        drawing = torch.Generator().manual_seed(int(self.generator.integers(2**62)))
        self.heads.generator = drawing
        batches, joints = list[tuple[Ints, Ints]](), list[Ints]()
        for length in (self.length, *self.read_lengths):
            words, labels = self.sample(READ_WORDS, length)
            inputs, joint = self.read(words)
            batches.append((inputs, labels))
            joints.append(joint)
        numbers = np.unique(np.concatenate([joint.ravel() for joint in joints]))
        joints = [np.searchsorted(numbers, joint) for joint in joints]
        if self.heads.keep(self.rows, batches, self.optimizer, below=joints):
            self.begun, self.draws = self.steps, 0
        elif self.steps - self.begun >= PATIENCE * (1 + bool(self.number)) + MORE_PATIENCE * self.draws:
            self.heads.draw(self.heads.training_heads, self.optimizer)
            self.begun, self.draws = self.steps, self.draws + 1
        kept = [head.size for head in self.heads.kept.values()]
        row = {"loss": self.loss, "kept": kept, "open": round(self.heads.open, 6), "length": self.length}
        return {**row, "layer": self.number} if self.number else row

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
    """Heads alone, in one layer or several, or one large one; answers as free tables; the rest straight through."""
    if isinstance(task, AnswerTask):
        return train_answer_cascade(config, task, trainer)
    if searches(config, trainer.checkpointer.attempt):
        return (search_large_head if takes_large_head(task) else search)(config, task, trainer)
    if task.layers is not None:
        raise InvalidConfig(f"{task.name} takes two layers: its heads are learned alone; leave `search` as it is.")
    return straight_through(config, task, trainer)


def searches(config: TrainConfig, attempt: int) -> bool:
    """Whether this attempt learns heads alone."""
    return config.search is not None and attempt < config.search.attempts


def search(config: TrainConfig, task: Task, trainer: Trainer) -> Backbone:
    """Learn heads alone, layer by layer; put what is kept into a network, widen margins and train the read-out.

    Where one layer is enough, it is that of the network in which its heads were learned.
    """
    settings = config.search or SearchConfig()
    config = replace(config, temperature=1.0)
    weights, labels = torch.Generator().manual_seed(config.seed), len(task.labels)
    sizes = config.heads or search_heads(labels)
    symbols_only = replace(task, question=None, layers=None)
    model = build_model(config, symbols_only, heads=(sizes,), value_widths=(VALUE_WIDTH,), generator=weights)
    below, attempt = KeptLayers(task.machine.n_symbols), trainer.checkpointer.attempt
    if trainer.run_dir is not None and trainer.has_stage(LAYERS):
        below.load(trainer.run_dir.stage_path(LAYERS))
    while below.open >= CERTAIN:
        number = len(below.layers)
        words = np.random.default_rng([config.seed, 3 + number])
        drawing = torch.Generator().manual_seed(config.seed + number) if number else weights
        phase = HeadSearch(model, task, settings, words, drawing, below)
        if number == 0 and labels > EMBEDDED_FROM and task.question is None:
            embed_heads(model, task, trainer, config.seed)
            phase.begin_with_tables()
        trainer.run_phase(phase, keep=True)
        if trainer.paused:
            return model
        if number == 0 and task.question is None and (phase.learned or trainer.has_stage(STAGE)):
            return _realize_layer(config, task, phase, trainer)
        if not phase.heads.kept or (number + 1 == MOST_LAYERS and not phase.learned):
            raise NotLearned(_not_learned(phase, attempt + 1))
        below.layers.append(KeptLayer(phase.inputs, tuple(phase.heads.kept.values())))
        below.open = phase.heads.open
        if trainer.run_dir is not None:
            below.save(trainer.run_dir.stage_path(LAYERS), attempt)
    codes = codes_of_layers(below, task, np.random.default_rng([config.seed, 4]))
    torch.manual_seed(config.seed)  # the same whether or not the run was resumed before
    return realize(config, task, codes, trainer)


def _realize_layer(config: TrainConfig, task: Task, phase: HeadSearch, trainer: Trainer) -> Backbone:
    """The network in which one layer was learned, with its kept heads alone."""
    note_stage(trainer, "learned", phase.model, steps=trainer.checkpointer.total_steps)
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
    sizes = " ".join(str(head.size) for head in (*phase.below.heads, *heads.kept.values()))
    kept = f"heads of {sizes} indices are kept, which leave" if sizes else "no head is kept, which leaves"
    return (
        f"{task.name} was not learned in {phase.steps} steps{which}: {kept} {heads.open:.2f} nats of the state open"
        f"{_open_word(phase)}. Try --recipe induce, which counts transitions, another seed, or larger heads (--heads)."
    )


def _open_word(phase: HeadSearch) -> str:
    """The shortest of some fresh words after which the kept heads leave the label open, in a clause."""
    task, groups = phase.task, phase.heads.groups
    shared = np.bincount(groups)[groups] > 1
    batch = task.sample(READ_WORDS, phase.first_length, np.random.default_rng(0))
    states = batch.states.astype(np.int64)
    found = np.argwhere(shared[states])
    if not len(found):
        return ""
    word, end = found[found[:, 1].argmin()]
    text = " ".join(task.machine.symbols[int(symbol)] for symbol in batch.inputs[word, : end + 1])
    right = int(states[word, end])
    other = next(int(label) for label in np.flatnonzero(groups == groups[right]) if label != right)
    return f": after {text!r} they do not tell {task.labels[right]!r} from {task.labels[other]!r}"
