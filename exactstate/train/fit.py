"""Run a configuration: attempts with seeds of their own, each a sequence of phases, until the machine is right.

`PROCEDURES` says which function trains a model for which recipe; for a cell without tables it is always `end_to_end`.
A procedure takes (config, task, trainer), builds a model, runs phases and returns the model. A new recipe adds its
configuration to `recipes.py` and its procedure here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from exactstate.automata import factor
from exactstate.errors import BudgetExceeded, NotLearned, unknown
from exactstate.nn import Backbone
from exactstate.records import Row
from exactstate.tasks import Task
from exactstate.train.build import build_model
from exactstate.train.config import TrainConfig
from exactstate.train.end_to_end import EndToEndPhase
from exactstate.train.realize import distill, induce
from exactstate.train.run import Run
from exactstate.train.search import gradient, searches
from exactstate.train.straight_through import compress, repair, straight_through
from exactstate.train.trainer import Trainer, one_thread
from exactstate.train.verify import extract_and_certify, margins_exceed_rounding

Procedure = Callable[[TrainConfig, Task, Trainer], Backbone]


def fit(config: TrainConfig, task: Task, trainer: Trainer) -> Run:
    """Train a model, starting anew with another seed while restarts are left and its machine is wrong.

    The run ends when the extracted machine is the target and its margins exceed the rounding of float32. A cell without
    tables has one attempt.
    """
    checkpointer, procedure = trainer.checkpointer, procedure_for(config)
    while True:
        attempt, last = config.with_attempt_seed(checkpointer.attempt), checkpointer.attempt >= config.restarts
        # words that earlier attempts got wrong begin some of the words of this one
        wrong = [row["word"] for row in trainer.history if row.get("phase") == "counterexample"]
        try:
            with one_thread(), torch.random.fork_rng(devices=[]):
                torch.manual_seed(attempt.seed)
                model = procedure(attempt, task.with_words(wrong), trainer)
            result = None
            if config.cell == "nfsm" and not trainer.paused:
                result = extract_and_certify(model, task)
                if not result[1] and _straight_through(config, task, checkpointer.attempt):
                    with one_thread(), torch.random.fork_rng(devices=[]):
                        torch.manual_seed(attempt.seed)  # the same whether or not the run was resumed before
                        model = repair(attempt, task, model, trainer)
                        result = extract_and_certify(model, task)
        except (NotLearned, BudgetExceeded):
            if last:
                raise
            checkpointer.next_attempt()
            continue
        right = result is None or (bool(result[1]) and margins_exceed_rounding(model, result[0]))
        if right or last:
            break
        if result is not None and result[1].failure is not None:
            trainer.note({"phase": "counterexample", "step": 0, "word": list(result[1].failure.word)})
        checkpointer.next_attempt()
    run = Run(
        config=config, task=task, model=model.eval(), steps=trainer.steps, restarts=checkpointer.attempt,
        seconds=checkpointer.seconds, history=trainer.history, finished=not trainer.paused,
        resumed_at=checkpointer.resumed_at, last_state=trainer.last_state, result=result,
    )  # fmt: skip
    if run.certified and config.gradient.compress and _straight_through(config, task, run.restarts):
        with one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(attempt.seed)
            run.compressed = compress(attempt, task, run.extracted, trainer)
    return run


def _straight_through(config: TrainConfig, task: Task, attempt: int) -> bool:
    """Whether an attempt trains a wide network straight through, which is repaired and compressed."""
    by_gradient = config.recipe in ("gradient", "straight_through") and task.layers is None
    return by_gradient and not searches(config, attempt)


def end_to_end(config: TrainConfig, task: Task, trainer: Trainer) -> Backbone:
    """One phase on words and labels; an NFSM stops when it is certified, others keep the weights of the best check."""
    words, weights = np.random.default_rng(config.seed), torch.Generator().manual_seed(config.seed)
    nfsm = config.cell == "nfsm"
    heads = None
    if nfsm:
        heads = task.layers or (config.heads or factor(task.machine, seed=config.seed).sizes,)
    model = build_model(config, task, heads=heads, generator=weights)

    def certified(row: Row) -> bool:
        if config.stop != "certified" or row["accuracy"] < 1.0:
            return False
        try:
            extracted, verdict = extract_and_certify(model, task)
        except BudgetExceeded:  # a network that is right on the check may still reach configurations without end
            return False
        return bool(verdict) and margins_exceed_rounding(model, extracted)

    phase = EndToEndPhase(model, task, config.end_to_end, words)
    best = trainer.best_weights(model, by=("accuracy", "first_error") if nfsm else ("accuracy",))
    trainer.run_phase(phase, stop=certified if nfsm else None, best=best)
    return model


PROCEDURES: dict[str, Procedure] = {
    "gradient": gradient, "straight_through": straight_through, "induce": induce, "distill": distill,
    "paper": end_to_end,
}  # fmt: skip
"""Of the NFSM, by recipe."""


def procedure_for(config: TrainConfig) -> Procedure:
    """The function that trains a model by this configuration."""
    if config.cell != "nfsm":
        return end_to_end
    if config.recipe not in PROCEDURES:
        raise unknown("recipe", config.recipe, PROCEDURES)
    return PROCEDURES[config.recipe]
