"""The recurrent blocks by name, and the backbones they are put into: `detent train TASK --cell NAME`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from detent.errors import InvalidConfig, unknown
from detent.layers import AUSSM, BMRU, PDSSM, MambaMinus
from detent.models import Backbone
from detent.tasks import Task

CELLS = {
    "nfsm": "the neural finite-state machine",
    "mamba": "Mamba-, eigenvalues in (-1, 1)",
    "aussm": "AUSSM, eigenvalues of modulus one",
    "pdssm": "PD-SSM, one-hot columns times a diagonal with moduli below one",
    "bmru": "bistable memory recurrent units",
}
BASELINES = tuple(name for name in CELLS if name != "nfsm")


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """How large a baseline is."""

    layers: int
    width: int
    """m, of the backbone."""
    channels: int
    """Channels of Mamba- and the AUSSM, entries of a PD-SSM, units of a BMRU."""
    states: int
    """Entries of a channel's state, or matrices in the dictionary of a PD-SSM; a BMRU has no use for it."""
    dropout: float = 0.1

    def __post_init__(self) -> None:
        for name in ("layers", "width", "channels", "states"):
            if getattr(self, name) < 1:
                raise InvalidConfig(f"{name} must be at least 1; got {getattr(self, name)}.")


def block(cell: str, size: Size, generator: torch.Generator | None = None) -> nn.Module:
    """One recurrent block of a baseline."""
    m, d, n = size.width, size.channels, size.states
    made: dict[str, Callable[..., nn.Module]] = {
        "mamba": partial(MambaMinus, m, d, n),
        "aussm": partial(AUSSM, m, d, n),
        "pdssm": partial(PDSSM, m, d, n),
        "bmru": partial(BMRU, m, d),
    }
    if cell not in made:
        raise unknown("baseline", cell, BASELINES)
    return made[cell](generator=generator)


def network(cell: str, size: Size, speaker: Task, generator: torch.Generator | None = None) -> Backbone:
    """The backbone with this block in every layer; a task with questions gets a convolution and answers."""
    question = speaker.question
    return Backbone(
        speaker.machine.n_symbols, speaker.machine.n_states, [block(cell, size, generator) for _ in range(size.layers)],
        width=size.width, dropout=size.dropout, reach=1 if question is None else 2,
        answers=0 if question is None else question.n_answers, generator=generator,
    )  # fmt: skip
