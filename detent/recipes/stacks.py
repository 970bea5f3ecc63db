"""Teach a stack of two layers: the registers of the task as teachers, then the task's own loss alone.

Given are the registers that a state is made of, and the sizes of the layers. Found in the stories are which register
goes into which layer, what the end of a story asks about, and every table. An arm that is told so much is called
`anchored`, whatever it was asked for by.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import torch

from detent.automata.running import Ints
from detent.errors import InvalidConfig
from detent.models import Backbone
from detent.recipes.keeping import Keeper
from detent.recipes.networks import network
from detent.recipes.plan import Plan
from detent.recipes.taking import Watcher, take
from detent.tasks import Task
from detent.tasks.grammar import wander
from detent.tasks.telling import telling
from detent.training import Settings, Tracking
from detent.training.lessons import learn_from, stories
from detent.training.stack_anchor import AnchoredStack, StackAnchor
from detent.training.staging import stage

WATCHED = 8
"""Batches of stories from which it is told what registers depend on."""


def fitted(plan: Plan, speaker: Task) -> Plan:
    """The plan as a task that takes a stack needs it: named for what it is given, with the paper's long stories."""
    if speaker.layers is None:
        return plan
    if plan.heads is not None:
        raise InvalidConfig(
            f"{speaker.name} takes layers of {' and '.join(str(len(heads)) for heads in speaker.layers)} heads, "
            f"and their sizes are given; got heads {plan.heads}. Leave them out."
        )
    tracking = replace(plan.tracking, batch=64, length=256) if plan.tracking == Settings() else plan.tracking
    return replace(plan, arm="paper" if plan.arm == "paper" else "anchored", tracking=tracking)


def teach(plan: Plan, speaker: Task, note: Watcher, keeper: Keeper) -> Backbone:
    """A trained stack."""
    words, weights = np.random.default_rng(plan.seed), torch.Generator().manual_seed(plan.seed)
    told = stories(speaker, words)
    stages = stage(speaker, list(islice(told, WATCHED)))
    lessons = learn_from(told, stages, _tellings(speaker, words))
    model = network(
        speaker, stages.heads, stages.starts, width=plan.width, dropout=plan.dropout, temperature=plan.temperature,
        generator=weights,
    )  # fmt: skip
    anchor = StackAnchor(model, stages, lessons, plan.anchoring, weights)
    take(AnchoredStack(anchor, words), note, keeper)
    anchor.release()
    longer = replace(plan.release, batch=32, length=max(plan.release.length, 64))
    take(Tracking(model, speaker, longer, words, name="released"), note, keeper)
    return model


def _tellings(speaker: Task, words: np.random.Generator) -> Iterator[Ints]:
    """Text without labels: stories in any order, with questions on the way."""
    assert speaker.question is not None
    grammar = telling(speaker.question.n_answers)
    while True:
        yield wander(grammar, 128, 100, words)
