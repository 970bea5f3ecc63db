"""The wide phase of the recipe `gradient`: a layer with many heads, trained on words and labels.

    B  words     L  their length     m  width     r  heads     S  the sum of their sizes     n  labels

The arg max in the forward pass, the gradient of the softmax in the backward pass, cross-entropy up to the first error.
Symbols are encoded once, and the layer gets the distinct rows and an index.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from exactstate.nn import NFSM, Backbone
from exactstate.nn.losses import first_error, mask
from exactstate.nn.renewal import agreement, renew
from exactstate.ops.tables import entry_offsets
from exactstate.ops.torch_kernels import project_values
from exactstate.records import Row
from exactstate.tasks import Task
from exactstate.train.config import GradientConfig
from exactstate.train.distributed import backward
from exactstate.train.optimizer import AdamW
from exactstate.train.phases import Curriculum, Phase, labels_of, tokens_of

RENEWAL_WORDS, RENEWAL_SYMBOLS = 2_048, 1 << 19
"""Words by which heads are judged, at least, and their symbols together, about."""


def block_of(model: Backbone) -> NFSM:
    """The one NFSM layer of a model."""
    (layer,) = model.layers
    block = layer.block
    assert isinstance(block, NFSM)
    assert layer.conv is None, "the fast path is for symbols that are encoded one by one"
    return block


def prepare(model: Backbone, settings: GradientConfig) -> None:
    """Tables that tend to stay where they are, and a token that contributes little to the read-out by itself."""
    block = block_of(model)
    with torch.no_grad():
        for d, at in zip(block.heads, entry_offsets(block.heads), strict=True):
            block.bias[at : at + d * d : d + 1] = settings.remember
        model.encoder_norm.weight.fill_(settings.token_scale)


class Probes(nn.Module):
    """A linear classifier for each head: the logits of the label, given the index of that head alone."""

    def __init__(self, heads: Sequence[int], labels: int, generator: torch.Generator) -> None:
        super().__init__()
        self.heads = tuple(heads)
        self.weight = nn.Parameter(0.5 * torch.randn(sum(heads), labels, generator=generator))

    def losses(self, states: Tensor, labels: Tensor) -> Tensor:
        """B L: the sum over heads of the cross-entropy of each head's own prediction; states are one-hot, B L S.

        The gradient with respect to a state is taken at the logits of the index that was chosen, as in the model.
        """
        sizes = list(self.heads)
        parts = zip(states.split(sizes, -1), self.weight.split(sizes), strict=True)
        logits = torch.stack([part @ weight for part, weight in parts])
        wanted = labels.expand(len(sizes), -1, -1)
        return cross_entropy(logits.flatten(0, 2), wanted.flatten(), reduction="none").view_as(wanted).sum(0)


class WidePhase(Phase):
    """Words and labels; done when all fresh words of a check are right, or at the last step."""

    STATE = (*Phase.STATE, "mean_first_error", "learned", "renewed", "given_up")

    def __init__(
        self, model: Backbone, probes: Probes | None, task: Task, settings: GradientConfig,
        generator: np.random.Generator, *, name: str = "wide", lr: float | None = None, steps: int | None = None,
        patience: int | None = None,
    ) -> None:  # fmt: skip
        """`patience`: give up after so many steps if a check finds less than a quarter of the words right."""
        module = nn.ModuleDict({"model": model, **({} if probes is None else {"probes": probes})})
        rate = settings.lr if lr is None else lr
        optimizer = AdamW(module.parameters(), rate, weight_decay=settings.weight_decay, fused=True)
        super().__init__(name, module, optimizer, generator, settings.check_every)
        self.model, self.probes, self.task, self.settings, self.patience = model, probes, task, settings, patience
        self.most = settings.steps if steps is None else steps
        self.mean_first_error, self.learned, self.given_up = 0.0, False, False
        self.curriculum = Curriculum(
            settings.length if patience is not None else settings.first_length, settings.length
        )
        self.total_steps, self.least = 0, 0
        self.renewed: list[int] = []
        """How many heads were drawn anew, each time."""
        self.parallel = False
        """Whether all ranks of torchrun compute its gradients; they know the model of `wide_phase` only."""

    def start_round(self, round: int) -> None:
        """Train on: another phase to the trainer, with the same optimizer."""
        if round:
            self.total_steps += self.steps
            self.name, self.steps, self.learned = f"wide-{round + 1}", 0, False
            self.least = self.settings.more_steps

    @property
    def done(self) -> bool:
        return self.steps >= self.most or self.given_up or (self.learned and self.steps >= self.least)

    def prepare_step(self) -> None:
        self.model.train()
        block_of(self.model).eval()  # the arg max in the forward pass, not a sample

    def step(self) -> None:
        settings = self.settings
        self.prepare_step()
        count = settings.batch if self.curriculum.length <= settings.length else max(1, settings.batch // 2)
        batch = self.task.sample(count, self.curriculum.length, self.generator)
        words, labels = self.mistakes.mix(tokens_of(batch), labels_of(batch), settings.replay, self.generator)
        loss, mean_first_error, label_accuracy = backward(self, words, labels)
        nn.utils.clip_grad_norm_(self.module.parameters(), settings.clip)
        self.optimizer.step()
        self.steps, self.loss, self.mean_first_error = self.steps + 1, loss, mean_first_error
        if label_accuracy > settings.grow_at:
            self.curriculum.grow()
        if self.renewing and self.steps % settings.renew_every == 0 and not self.done:
            self.renew_heads()

    @property
    def renewing(self) -> bool:
        """Whether heads are drawn anew: while a wide layer learns for the first time, and labels are states."""
        states = self.task.label_kind == "states"
        return bool(self.settings.renew_every) and states and self.patience is None and not self.total_steps

    def renew_heads(self) -> None:
        """Draw anew the heads that do not follow the state; give the attempt up where none does.

        Their tables have found what short words reward, so that words are short again for the new ones.
        """
        block, labels = block_of(self.model), len(self.task.labels)
        words = max(RENEWAL_WORDS, 3 * labels // 2)
        length = max(self.settings.length, min(4 * self.settings.length, RENEWAL_SYMBOLS // words))
        batch = self.task.sample(words, length, self.generator)
        # after words of different lengths: a head that only counts steps is to agree by more than chance, too
        ends = torch.from_numpy(self.generator.integers(length // 2, length, words))
        with torch.no_grad():
            _, rows = encode_symbols(self.model)
            states = torch.cat([
                block.states((rows, some))[torch.arange(len(some)), end]
                for some, end in zip(tokens_of(batch).split(256), ends.split(256), strict=True)
            ])  # fmt: skip
        kept = agreement(states, labels_of(batch)[torch.arange(words), ends]) >= self.settings.renew_below
        self.renewed = [*self.renewed, len(block.heads) - int(kept.sum())]
        self.given_up = not bool(kept.any())
        chooser = torch.Generator().manual_seed(int(self.generator.integers(2**62)))
        lost = (~kept).nonzero().flatten().tolist()
        renew(block, lost, self.optimizer, chooser, remember=self.settings.remember)
        self.curriculum.restart()

    def compute_loss(self, words: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(loss, first error of every word, share of right labels): cross-entropy up to the first error, of the model
        and of the probes."""
        model, settings, block = self.model, self.settings, block_of(self.model)
        encoded, rows = encode_symbols(model)
        if self.probes is None:
            y, states = block((rows, words))[0], None
        else:
            states = block.one_hot_states((rows, words))
            y = states @ project_values(block.values, block.out_proj.weight, block.heads) + block.out_proj.bias
        features = model.decode(model.layers[0].feed_forward(encoded[words] + y))  # type: ignore[operator]
        weight, bias, wanted = model.readout.weight, model.readout.bias, labels
        if model.labels > settings.sampled_from:
            others = torch.from_numpy(self.generator.integers(0, model.labels, settings.negatives))
            compared = torch.unique(torch.cat([labels.flatten(), others]))
            weight, bias, wanted = weight[compared], bias[compared], torch.searchsorted(compared, labels)  # type: ignore[assignment]
        logits = linear(features, weight, bias)
        first = first_error(logits.detach(), wanted)
        right = (logits.detach().argmax(-1) == wanted).float().mean()
        shares = mask(first, labels.shape[1], settings.mask_rate)
        shares = shares / shares.sum(dim=1, keepdim=True) / len(labels)
        terms = cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none").view_as(shares)
        if self.probes is not None and states is not None:
            terms = terms + settings.probe_weight * self.probes.losses(states, labels)
        return (shares * terms).sum(), first, right

    def check(self) -> Row:
        settings = self.settings
        wrong: list[list[list[int]]] | None = [] if settings.replay else None
        right = accuracy(self.model, self.task, self.generator, settings.check_words, settings.check_length, wrong)
        self.mistakes.add(wrong or [])
        self.learned = right == 1.0
        if right >= 0.9:
            longest = self.curriculum.longest + 8
            self.curriculum.longest = min(max(settings.length, settings.long_length), longest)
        if self.patience is not None:
            self.given_up = self.steps >= self.patience and right < 0.25
        return {
            "loss": self.loss, "first_error": self.mean_first_error, "accuracy": right,
            "length": self.curriculum.length,
            "heads": len(block_of(self.model).heads), **({"renewed": sum(self.renewed)} if self.renewed else {}),
        }  # fmt: skip


def encode_symbols(model: Backbone) -> tuple[Tensor, Tensor]:
    """(the residual stream, the input of the layer) of every symbol: V m each."""
    encoded = model.encode(torch.arange(model.vocabulary))
    return encoded, model.layers[0].block_input(encoded)[0]  # type: ignore[operator]


def label_logits(model: Backbone, words: Tensor) -> Tensor:
    """B L n, with the symbols encoded once; without a gradient, what a (symbol, joint index) gives is computed once."""
    encoded, rows = encode_symbols(model)
    y, _ = block_of(model)((rows, words))
    if torch.is_grad_enabled():
        return model.label_logits(model.layers[0].feed_forward(encoded[words] + y))  # type: ignore[operator]
    symbols, y = words.flatten(), y.flatten(0, 1)
    direction = torch.randn(y.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    _, place = torch.unique(y.double() @ direction + 1e3 * symbols, return_inverse=True)
    some = torch.empty(int(place.max()) + 1 if len(place) else 0, dtype=torch.long)
    some[place] = torch.arange(len(place))
    read = model.label_logits(model.layers[0].feed_forward(encoded[symbols[some]] + y[some]))  # type: ignore[operator]
    return read[place].view(*words.shape, model.labels)


@torch.no_grad()
def accuracy(
    model: Backbone, task: Task, generator: np.random.Generator, words: int, length: int,
    wrong: list[list[list[int]]] | None = None,
) -> float:  # fmt: skip
    """The share of fresh words that are right throughout; of a first few only, where not all of those are.

    `wrong` is filled with [symbols, labels] of those that are not.
    """
    model.eval()
    right = seen = 0
    for count in (min(64, words), words - min(64, words)):
        batch = task.sample(count, length, generator)
        for tokens, labels in zip(tokens_of(batch).split(64), labels_of(batch).split(64), strict=True):
            exact = first_error(label_logits(model, tokens), labels) == length
            right += int(exact.sum())
            if wrong is not None:
                wrong += torch.stack([tokens, labels], 1)[~exact].tolist()
        seen += count
        if right < seen:
            break
    return right / max(seen, 1)


@torch.no_grad()
def shortest_wrong_word(model: Backbone, task: Task, generator: np.random.Generator, words: int = 1024) -> str:
    """The shortest word among so many random ones after which the network is wrong, in a sentence."""
    batch = task.sample(words, 32, generator)
    logits = torch.cat([label_logits(model.eval(), some) for some in tokens_of(batch).split(64)])
    first = first_error(logits, labels_of(batch))
    at = int(first.argmin())
    if int(first[at]) == logits.shape[1]:
        return f"none of {words} random words of {logits.shape[1]} symbols is wrong"
    end = int(first[at])
    word = " ".join(task.machine.symbols[int(symbol)] for symbol in batch.inputs[at, : end + 1])
    output, wanted = task.labels[int(logits[at, end].argmax())], task.labels[int(labels_of(batch)[at, end])]
    return f"after {word!r} the network outputs {output!r}, the target {wanted!r}"
