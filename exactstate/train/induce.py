"""The recipes that pretrain: `induce` infers the transitions from data, `distill` takes them from the target machine.

Both factor the transitions into heads (state codes), pretrain the network on the tables of the heads, fold what the
pretraining needed into the read-out, and fine-tune on the task's own loss. From outputs alone, `induce` first infers a
machine by state merging, and what is certified is that the network's outputs are the target's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from exactstate._types import MISSING, Ints
from exactstate.automata import Mealy, Moore, factor
from exactstate.automata.factor.factor import factor_into
from exactstate.errors import InvalidConfig
from exactstate.learning.passive_learning import infer_machine
from exactstate.nn import Backbone
from exactstate.tasks import OutputTask, Task
from exactstate.train.build import build_model
from exactstate.train.config import TrainConfig
from exactstate.train.phases import EndToEndPhase, PretrainPhase
from exactstate.train.pretraining import OutputPretrainer, TransitionPretrainer
from exactstate.train.stack_pretraining import train_stack
from exactstate.train.state_codes import StateCodes, count_transitions, find_codes
from exactstate.train.trainer import Trainer


def induce(config: TrainConfig, task: Task, trainer: Trainer) -> Backbone:
    """Count labelled transitions, factor them, pretrain on them, fine-tune."""
    if task.layers is not None:
        return train_stack(config, task, trainer)
    words = np.random.default_rng(config.seed)
    if isinstance(task, OutputTask):
        return _from_outputs(config, task, words, trainer)
    return pretrain(config, task, task, count_codes(config, task, words), words, trainer, TransitionPretrainer)


def distill(config: TrainConfig, task: Task, trainer: Trainer) -> Backbone:
    """Factor the target machine, pretrain on it, fine-tune."""
    if task.layers is not None:
        return train_stack(config, task, trainer)
    codes = codes_of_machine(config, task.machine)
    return pretrain(config, task, task, codes, np.random.default_rng(config.seed), trainer, TransitionPretrainer)


def _from_outputs(config: TrainConfig, task: OutputTask, words: np.random.Generator, trainer: Trainer) -> Backbone:
    """Infer a machine from words and outputs, pretrain on its states, fine-tune on the task's outputs."""
    inferred = infer_machine(task, words).task

    def pretrainer(model: Backbone, codes: StateCodes, *args: object) -> TransitionPretrainer:
        return OutputPretrainer(model, codes, *args, output_of=inferred.machine.readout)  # type: ignore[arg-type]

    codes = count_codes(config, inferred, words, inferred_from=task.name)
    return pretrain(config, task, inferred, codes, words, trainer, pretrainer)


def pretrain(
    config: TrainConfig, task: Task, states: Task, codes: StateCodes, words: np.random.Generator, trainer: Trainer,
    pretrainer_of: Callable[..., TransitionPretrainer],
) -> Backbone:  # fmt: skip
    """Pretrain on the codes of the states of one task, fine-tune on another, which may be the same."""
    weights = torch.Generator().manual_seed(config.seed)
    model = build_model(config, task, heads=(codes.heads,), initial_states=(codes.start,), generator=weights)
    return realize(config, task, states, model, codes, words, trainer, pretrainer_of, weights=weights)


def realize(
    config: TrainConfig, task: Task, states: Task, model: Backbone, codes: StateCodes, words: np.random.Generator,
    trainer: Trainer, pretrainer_of: Callable[..., TransitionPretrainer], *, weights: torch.Generator | None = None,
    fine_tune: bool = True,
) -> Backbone:  # fmt: skip
    """Train a network until its tables are those of the codes by a margin and its read-out tells them apart."""
    weights = weights or torch.Generator().manual_seed(config.seed)
    pretrainer = pretrainer_of(model, codes, config.pretrain, weights)
    batch, length = config.end_to_end.batch, config.end_to_end.length
    trainer.run_phase(PretrainPhase(pretrainer, states, words, batch, length))
    pretrainer.fold_readers()
    if fine_tune:
        trainer.run_phase(EndToEndPhase(model, task, config.finetune, words, name="finetune"))
    return model


def count_codes(
    config: TrainConfig, task: Task, words: np.random.Generator, inferred_from: str | None = None
) -> StateCodes:
    """Codes of the states, factored from the transitions that sampled words show."""
    transitions = count_transitions(task, words, batch=config.end_to_end.batch, length=config.end_to_end.length)
    codes = find_codes(transitions, config.heads, seed=config.seed)
    if codes is None:
        states = f"states of {task.name}" if inferred_from is None else (
            f"{task.machine.n_states} states that were inferred from the outputs of {inferred_from}"
        )  # fmt: skip
        raise InvalidConfig(
            f"no quotients that distinguish the {states} fit into heads {config.heads}; "
            "leave the heads out, and they are chosen."
        )
    return codes


def codes_of_machine(config: TrainConfig, machine: Moore | Mealy) -> StateCodes:
    """Codes of the states of a machine that is given."""
    heads = config.heads
    factors = factor(machine, seed=config.seed) if heads is None else factor_into(machine, heads, seed=config.seed)
    if factors is None:
        raise InvalidConfig(f"no quotients that distinguish all states fit into heads {heads}.")
    heads = heads or factors.sizes
    of_label: Ints = np.stack(factors.partitions, axis=1).astype(np.int64)
    tables = []
    for d, table in zip(heads, factors.tables, strict=True):
        tables.append(np.pad(table.astype(np.int64), ((0, 0), (0, d - table.shape[1])), constant_values=MISSING))
    return StateCodes(tuple(heads), of_label, tuple(tables), tuple(int(k) for k in of_label[machine.start]))
