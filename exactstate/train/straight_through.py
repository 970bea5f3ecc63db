"""The recipe `straight_through`: end to end from words and labels, with many more heads than needed; then prune.

    B  words     L  their length     m  width     r  heads     S  the sum of their sizes     n  labels

1. `WidePhase` (`wide.py`) trains a wide layer: the arg max in the forward pass, the gradient of the softmax in the
   backward pass, cross-entropy up to the first error, tables that tend to stay where they are at the start. Where one
   head can hold every label, `Probes` predict the label from each head alone, so that each head carries as much of the
   state as it can; they are thrown away afterwards. With many states, heads that do not follow the state are drawn
   anew.
2. `prune_model` removes heads while fresh words stay right, and indices that no word reaches.
3. `widen_margins` (`margins.py`) trains the network on the machine that was extracted from it, until margins exceed
   rounding.
4. `repair` trains the pruned network further where its certificate is refused: half of the words begin with one of the
   counterexamples, which are found anew after every few steps.
5. `compress` minimizes that machine, factors it and distills it into a network of minimal heads.

No transition is counted, and nothing but the verdict looks at the target. A refusal says on which words the network is
wrong, and these train it further: rows have the number of rounds (`repairs`).
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from exactstate.certify import counterexamples
from exactstate.errors import BudgetExceeded, InvalidInput, NotLearned
from exactstate.extract import Budget, Extracted, extract
from exactstate.nn import Backbone
from exactstate.nn.pruning import PruneStep, prune, prune_indices
from exactstate.records import Row
from exactstate.tasks import Task
from exactstate.tasks.access_words import AccessWords
from exactstate.train.build import build_model
from exactstate.train.config import GradientConfig, TrainConfig
from exactstate.train.distributed import begin_attempt
from exactstate.train.margins import widen_margins
from exactstate.train.phases import Curriculum, labels_of, tokens_of
from exactstate.train.realize import realize_machine
from exactstate.train.run import Compressed
from exactstate.train.trainer import Trainer
from exactstate.train.verify import extract_and_certify
from exactstate.train.wide import (
    Probes,
    WidePhase,
    accuracy,
    block_of,
    encode_symbols,
    label_logits,
    prepare,
    shortest_wrong_word,
)

BUDGET = Budget(configurations=60_000, seconds=120.0)
"""Of an extraction: a network that has learned reaches far fewer configurations once it is pruned."""
REPAIRABLE = Budget(configurations=20_000, seconds=30.0)
"""Of a network that is worth repairing."""
COUNTEREXAMPLES = 256
"""Words on which a network is wrong that are asked for at once."""
LONG = 8
"""A pruned network is checked on words so many times as long as those of other checks."""


def straight_through(config: TrainConfig, task: Task, trainer: Trainer) -> Backbone:
    """Train wide, prune, widen margins; train the wide network further where the pruned one errs on long words."""
    attempt = trainer.checkpointer.attempt
    model, phase = wide_phase(config, task, attempt)
    settings = phase.settings
    begin_attempt(attempt)
    for round in range(settings.rounds):
        phase.start_round(round)
        stage = f"pruned-{round + 1}"
        trainer.run_phase(phase, keep=True)
        if trainer.paused:
            return model
        if not (phase.learned or trainer.has_stage(stage)):
            raise NotLearned(_not_learned(phase, settings, trainer.checkpointer.attempt + 1))

        def change(round: int = round) -> Backbone:
            note_stage(trainer, "learned", model, steps=trainer.checkpointer.total_steps)
            generator = np.random.default_rng([config.seed, round])
            smaller = prune_model(model, task, settings, generator, trainer)
            extracted = extract_pruned(smaller, task)
            if extracted is not None:
                widen_margins(smaller, extracted, settings)
            return smaller

        pruned = trainer.transform(stage, replace(config, temperature=settings.temperature), task, change)
        if phase.learned:  # the history of pruning belongs to the checkpoint from here on
            trainer.checkpointer.maybe_save(phase, now=True)
        check = np.random.default_rng([config.seed, round, 1])
        extracted = extract_pruned(pruned, task)
        if extracted is not None and accuracy(pruned, task, check, 64, LONG * settings.check_length) == 1.0:
            note_stage(trainer, "pruned", pruned, extracted=extracted)
            return pruned
    return pruned


def wide_phase(config: TrainConfig, task: Task, attempt: int) -> tuple[Backbone, WidePhase]:
    """The model of an attempt and its first phase."""
    settings = resolved_settings(config, task, attempt)
    words, weights = np.random.default_rng(config.seed), torch.Generator().manual_seed(config.seed)
    model = build_model(replace(config, temperature=settings.temperature), task, heads=(settings.heads,),
                        generator=weights)  # fmt: skip
    prepare(model, settings)
    probes = Probes(settings.heads, len(task.labels), weights) if settings.probe_weight else None
    phase = WidePhase(model, probes, task, settings, words)
    phase.parallel = True
    return model, phase


def resolved_settings(config: TrainConfig, task: Task, attempt: int) -> GradientConfig:
    """The settings of an attempt, with what depends on the task."""
    states = task.label_kind == "states"
    reaching = isinstance(task.sampler, AccessWords)
    settings = config.gradient.resolved(len(task.labels), config.heads, attempt, states=states, reaching=reaching)
    return settings.reaching(task.sampler)


def repair(config: TrainConfig, task: Task, model: Backbone, trainer: Trainer) -> Backbone:
    """A copy of a pruned network, trained on counterexamples to its certificate until there are none.

    Half of the words begin with one of them, the latest twice as often as those of earlier rounds.
    """
    smaller, settings = deepcopy(model), resolved_settings(config, task, 0)
    generator = np.random.default_rng([config.seed, 2])
    phase = WidePhase(smaller, None, task, settings, generator, lr=settings.prune_lr)
    words: list[tuple[str, ...]] = []
    for round in range(settings.repairs):
        extracted = extract_pruned(smaller, task, REPAIRABLE)
        if extracted is None:
            break
        wrong = counterexamples(extracted, task.machine, labels=task.label_kind, most=COUNTEREXAMPLES)
        if round:
            trainer.note({"phase": "repair", "step": round, "counterexamples": len(wrong)})
        if not wrong:
            widen_margins(smaller, extracted, settings)
            break
        words = [*words, *wrong][-4 * COUNTEREXAMPLES :]
        phase.task = task.with_words([*words, *wrong], share=0.5)
        if phase.task is task:  # its words cannot be chosen
            break
        for group in phase.optimizer.param_groups:  # smaller steps as the rounds go on: what is right stays right
            group["lr"] = settings.prune_lr * max(0.2, 0.5 ** (round / 10))
        length = max(settings.length, max(map(len, wrong)) + 2)
        phase.curriculum = Curriculum(length, length)
        for _ in range(settings.repair_steps):
            phase.step()
    return smaller


def fine_tune(model: Backbone, task: Task, settings: GradientConfig, generator: np.random.Generator) -> None:
    """A few steps on fresh words, until those of a check are right; fewer where most of them stay wrong."""
    phase = WidePhase(model, None, task, replace(settings, check_every=20), generator, lr=settings.prune_lr,
                      steps=settings.prune_steps, patience=20)  # fmt: skip
    while not phase.done:
        phase.step()
        if phase.steps % phase.check_every == 0:
            phase.check()


def prune_model(
    model: Backbone, task: Task, settings: GradientConfig, generator: np.random.Generator, trainer: Trainer
) -> Backbone:
    """A copy with fewer heads, right on fresh words, and without indices that no word reaches."""
    batch = task.sample(settings.batch, 32, generator)
    tokens, labels = tokens_of(batch), labels_of(batch)

    @torch.no_grad()
    def loss(smaller: Backbone) -> float:
        return float(cross_entropy(label_logits(smaller.eval(), tokens).flatten(0, 1), labels.flatten()))

    def accept(smaller: Backbone) -> bool:
        return accuracy(smaller, task, generator, settings.check_words, settings.check_length) == 1.0

    def note(step: PruneStep) -> None:
        trainer.note({"phase": "prune", "heads": step.heads, "accepted": step.accepted, "fine_tuned": step.fine_tuned})

    smaller = prune(
        model, tokens, loss=loss, accept=accept, max_failures=settings.prune_failures, watch=note,
        fine_tune=lambda smaller: fine_tune(smaller, task, settings, generator),
    )  # fmt: skip
    smaller = smaller.eval()
    _, rows = encode_symbols(smaller)
    smaller.layers[0].block = prune_indices(block_of(smaller), rows)
    return smaller


def extract_pruned(model: Backbone, task: Task, budget: Budget = BUDGET) -> Extracted | None:
    """The machine of a pruned network; None where it reaches more configurations than a learned one would."""
    try:
        return extract(
            model.eval(), symbols=task.machine.symbols, labels=task.labels, budget=budget.restarted(), verify=False
        )
    except BudgetExceeded:
        return None


def compress(config: TrainConfig, task: Task, extracted: Extracted, trainer: Trainer) -> Compressed:
    """Minimize and factor the extracted machine, and distill it into a network with its heads.

    The target is not looked at: the machine is the one that the network has learned.
    """
    if task.label_kind == "states":
        machine = extracted.named
        if machine is None:  # certified networks whose labels are states have one
            raise InvalidInput("the labels of this network are not the states of a machine; train on outputs instead.")
        names = machine.states
    else:
        machine = extracted.minimized.to_moore()
        names = tuple(machine.outputs[output] for output in machine.readout)
    label_of = np.array([extracted.label_names.index(name) for name in names])
    model = realize_machine(config.compressed(), task, machine, label_of, trainer)
    result = Compressed(model.eval(), *extract_and_certify(model, task))
    note_stage(trainer, "compressed", model, extracted=result.extracted)
    return result


def note_stage(
    trainer: Trainer, stage: str, model: Backbone, *, extracted: Extracted | None = None, steps: int | None = None
) -> None:
    """A row of the history that says what a stage left: heads, parameters, joint indices and margins.

    A resumed run passes its stages again; a row that is there already stays.
    """
    attempt = trainer.checkpointer.attempt
    if any(row.get("stage") == stage and row["attempt"] == attempt for row in trainer.history):
        return
    row: Row = {
        "phase": "stage", "stage": stage, "heads": list(block_of(model).heads),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "seconds": round(trainer.checkpointer.seconds, 3),
    }  # fmt: skip
    if steps is not None:
        row["steps"] = steps
    if extracted is not None:
        row["configurations"] = len(extracted.reached)
        row["column_margin"] = float(extracted.weakest.margin)
        row["label_margin"] = float(extracted.label_margins.min())
    trainer.note(row)


def _not_learned(phase: WidePhase, settings: GradientConfig, attempt: int) -> str:
    """How far training came, a wrong word, and what to try."""
    task, generator = phase.task, np.random.default_rng(0)
    share = accuracy(phase.model, task, generator, settings.check_words, settings.check_length)
    which = f", attempt {attempt}" if attempt > 1 else ""
    return (
        f"{task.name} was not learned in {phase.total_steps + phase.steps} steps{which}: {share:.1%} of fresh words of "
        f"{settings.check_length} symbols are right, and words are right up to symbol {phase.mean_first_error:.1f} on "
        f"average; {shortest_wrong_word(phase.model, task, generator)}. Try more heads or larger ones (--heads), more "
        "steps, another seed, --recipe induce" + (", or --supervise states." if task.label_kind == "outputs" else ".")
    )
