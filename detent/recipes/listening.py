"""Learn from outputs alone: find a machine that says what is heard, teach the network its states, certify behaviour.

The states are found by merging, from words and outputs; the network is taught codes for them and to say the outputs,
and then released on the task's own outputs. What is certified is that it puts out what the target does.
"""

from __future__ import annotations

import numpy as np
import torch

from detent.errors import InvalidConfig
from detent.models import Backbone
from detent.recipes.keeping import Keeper
from detent.recipes.networks import network
from detent.recipes.plan import Plan
from detent.recipes.taking import Watcher, take
from detent.tasks import OutputsOnly
from detent.training import Anchored, Tracking, find_codes, observe
from detent.training.hearing import hear
from detent.training.output_anchor import OutputAnchor


def listen(plan: Plan, speaker: OutputsOnly, note: Watcher, keeper: Keeper) -> Backbone:
    """A trained model."""
    words, weights = np.random.default_rng(plan.seed), torch.Generator().manual_seed(plan.seed)
    found = hear(speaker, words).task
    batch, length = plan.tracking.batch, plan.tracking.length
    codes = find_codes(observe(found, words, batch=batch, length=length), plan.heads, seed=plan.seed)
    if codes is None:
        raise InvalidConfig(
            f"no quotients that tell the {found.machine.n_states} states apart, which were found in the outputs of "
            f"{speaker.name}, fit into heads {plan.heads}; leave the heads out and they are chosen."
        )
    model = network(
        speaker, (codes.heads,), (codes.start,), width=plan.width, dropout=plan.dropout,
        temperature=plan.temperature, generator=weights,
    )  # fmt: skip
    anchor = OutputAnchor(model, codes, plan.anchoring, weights, output_of=found.machine.readout)
    take(Anchored(anchor, found, words, batch, length), note, keeper)
    anchor.release()
    take(Tracking(model, speaker, plan.release, words, name="released"), note, keeper)
    return model
