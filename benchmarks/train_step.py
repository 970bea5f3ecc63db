"""One training step of the paper's recipe, 256 words of 64 symbols: the fast gradient against dense PyTorch.

"Start" is an initialized network. "End" is one that the default recipe trained to an exact machine, with the logits of
its tables scaled by ten, so that samples agree with the arg max and all 64 positions are right, as at the end of a long
training. The optimizer has learning rate 0, so that every round has the same network.

At the end, the time depends on the number of distinct positions. S3, Z16 and A5 have a few hundred pairs of symbol and
state. M11 has 31,680, so that nearly every position is distinct, with 7,920 labels to distinguish.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks._dense_step import dense_loss
from benchmarks._layers import PAPER
from benchmarks._memory import peak_bytes
from benchmarks.harness import Method, Report, Target, Unequal
from exactstate.nn import NFSM, Backbone
from exactstate.nn.losses import mask_length
from exactstate.ops.gumbel import gumbel
from exactstate.tasks import Task
from exactstate.tasks import task as get_task
from exactstate.train import EndToEndConfig, TrainConfig, fast_gradient, train
from exactstate.train.end_to_end import CLIP

CASES = {"S3": (3, 2), "S4": (4, 3, 2), "Z16": (16,), "A5": (5, 12), "M11": (11, 11, 11, 11)}
SEED, RATIO, SCALE = 7, 10.0, 10.0
CLOSE = 1e-6
"""Largest difference of gradients in float64, relative to the largest entry: the dense step keeps mask weights below
2^-24, which the library drops; they are invisible in float32."""
NOTHING = 1e-6
"""Smaller gradients are compared with this absolute tolerance: those of a saturated network are only rounding."""
GIGABYTE = 1e9

Words = tuple[Tensor, Tensor]


def run(quick: bool) -> Report:
    report = Report(title="One step of training, the fast gradient against dense PyTorch")
    for name, heads in CASES.items():
        task = get_task(name)
        moments: dict[str, Callable[[], Backbone]] = {"start": lambda s=task, h=heads: fresh(s, h)}  # type: ignore[misc]
        if not (quick and name == "M11"):
            moments["end"] = lambda n=name, h=heads: trained(n, h)  # type: ignore[misc]
        for moment, model_of in moments.items():
            measure(report, f"{name} {heads}, {moment}", task, model_of(), rounds=2 if quick else 3)
    return report


def fresh(task: Task, heads: tuple[int, ...]) -> Backbone:
    generator = torch.Generator().manual_seed(SEED)
    block = NFSM(128, heads, **PAPER, generator=generator)
    return Backbone(task.machine.n_symbols, task.machine.n_states, [block], generator=generator)


def trained(name: str, heads: tuple[int, ...]) -> Backbone:
    """An exact network, its tables sharp."""
    model = train(TrainConfig(task=name, heads=heads)).model
    block = model.layers[0].block
    assert isinstance(block, NFSM)
    with torch.no_grad():
        block.weight.mul_(SCALE)
        block.bias.mul_(SCALE)
    return model


def measure(report: Report, case: str, task: Task, model: Backbone, *, rounds: int) -> None:
    """Compare the gradients of a few words in float64, then time the step on a whole batch in float32."""
    error = departure(task, model)
    if not error < CLOSE:
        raise Unequal(f"{case}: gradients differ by {error:.2g} of their largest entry; nothing was timed.")
    report.checks.append(f"{case}: gradients of 16 words in float64, to {error:.1g} of their largest entry")
    words, settings = spoken(task, 256), EndToEndConfig()
    fast, dense = Stepper(model, words, settings), Stepper(model, words, settings)
    methods = [
        Method("dense PyTorch", dense.dense, items=words[0].numel()),
        Method("fast gradient", fast.fast, items=words[0].numel()),
    ]
    report.measure(case, methods, unit="positions", rounds=rounds)
    report.target(case, "fast gradient", at_least=RATIO)
    peaks = {name: peak_bytes(call) / GIGABYTE for name, call in (("fast", fast.fast), ("dense", dense.dense))}
    first = float(fast.first.float().mean())
    report.notes.append(
        f"{case}: first error at {first:.1f} of 64 on average, {fast.rows} rows for {words[0].numel()} positions; "
        f"memory of a step {peaks['fast']:.2f} GB, dense {peaks['dense']:.2f} GB"
    )
    if case.startswith("M11"):
        what = f"{case}: peak memory of a step with the fast gradient, in gigabytes"
        report.targets.append(Target(what=what, wanted=1.0, measured=peaks["fast"], at_most=True))


class Stepper:
    """A network, an optimiser and a batch, and the two ways of taking a step with them."""

    def __init__(self, model: Backbone, words: Words, settings: EndToEndConfig) -> None:
        self.model, self.words, self.settings = deepcopy(model).train(), words, settings
        self.optimizer: torch.optim.Optimizer | None = None
        self.generator = np.random.default_rng(SEED)
        self.rows = 0

    def dense(self) -> None:
        self._begin(fused=False)
        loss, self.first = dense_loss(self.model, *self.words, self.settings)
        loss.backward()
        self._end()

    def fast(self) -> None:
        self._begin(fused=True)
        masks = torch.from_numpy(self.generator.integers(self.settings.masks, size=self.words[0].shape))
        step = fast_gradient.FastStep(self.model, *self.words, self.settings, masks, self.settings.masks)
        rollout = step.rollout(SEED, mask_length(self.settings.mask_rate))
        step.backward(rollout, self.settings.exploration)
        self.first, self.rows = rollout.first, len(step.rows.read)
        self._end()

    def _begin(self, *, fused: bool) -> None:
        if self.optimizer is None:
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.0, weight_decay=1e-4, fused=fused)
        self.optimizer.zero_grad(set_to_none=True)

    def _end(self) -> None:
        assert self.optimizer is not None
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()


def spoken(task: Task, words: int) -> Words:
    batch = task.sample(words, 64, np.random.default_rng(SEED))
    return torch.from_numpy(batch.inputs.astype(np.int64)), torch.from_numpy(batch.states.astype(np.int64))


def departure(task: Task, model: Backbone) -> float:
    """How far the gradients of the two are apart, in float64, without dropout and with the same noise."""
    model, settings = deepcopy(model).double().train(), replace(EndToEndConfig(), masks=1)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    words = spoken(task, 16)

    def noise(batch: int, length: int, entries: int) -> Tensor:
        word, step = torch.arange(batch).repeat_interleave(length), torch.arange(length).repeat(batch)
        return gumbel(torch.tensor(SEED), word, step, entries).view(batch, length, entries)

    dense_loss(model, *words, settings, noise)[0].backward()
    wanted = [parameter.grad.clone() for parameter in model.parameters()]  # type: ignore[union-attr]
    model.zero_grad(set_to_none=True)
    no_mask = torch.zeros_like(words[0])
    fast_gradient.fast_gradient(model, *words, settings, masks=no_mask, seed=SEED, exploration=settings.exploration)
    apart = [
        float((parameter.grad - one).abs().max())  # type: ignore[operator]
        for parameter, one in zip(model.parameters(), wanted, strict=True)
    ]
    return max(apart) / max(NOTHING, *(float(one.abs().max()) for one in wanted))
