"""What a sweep evaluates of a run: the tables read out of it, or the network itself, stretch by stretch.

    B  words     L  length of a stretch     A  symbols     n  configurations

Both say the same on every word as long as the margins of the tables exceed the rounding of the network; the tables say
it thousands of times faster.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from detent._types import Ints
from detent.errors import InvalidConfig, unknown
from detent.extract import Extracted
from detent.nn import Backbone
from detent.nn.backbone import State

# -- What a sweep evaluates: anything that reads a stretch of words and goes on where it stopped.

Held = list[NDArray[Any]]
"""What a reader keeps between two stretches: arrays, so that a sweep can be put down and taken up again."""


class Reader(Protocol):
    """A network, a machine, a formula."""

    def __call__(self, inputs: Ints, held: Held | None) -> tuple[Ints, Held]:
        """(what is said after every symbol: B L, what to keep), from the symbols (B L) and what was kept before.

        `held` is None at the beginning of the words. In a sweep of questions what is said is the answer, and only the
        last one of a word counts.
        """


FORMATS = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
LOGITS = 1 << 22
"""Numbers that the network computes at a time, at most."""


class TableReader:
    """The machine that was read out: states by its tables, labels or answers by its read-out."""

    def __init__(self, found: Extracted, *, answers: bool = False) -> None:
        if answers and found.answers is None:
            raise InvalidConfig("this machine gives no answers; sweep its words.")
        self.machine = found.machine
        said = found.readout if not answers else np.where(found.finals >= 0, found.answers[found.finals], -1)  # type: ignore[index]
        # one more configuration, in which the words that the grammar refuses end
        self.said = np.pad(said, ((0, 0), (0, self.machine.n_states - said.shape[1])), constant_values=-1)

    def __call__(self, inputs: Ints, held: Held | None) -> tuple[Ints, Held]:
        start = np.full(len(inputs), self.machine.start) if held is None else held[0]
        after = self.machine.trajectory(inputs, start)
        before = np.concatenate([start[:, None].astype(after.dtype), after[:, :-1]], axis=1)
        at = inputs.astype(np.intp) * self.said.shape[1] + before
        return self.said.ravel().take(at), [after[:, -1]]


class NetworkReader:
    """The plain network in evaluation mode, in one of FORMATS, a piece at a time with its state carried on."""

    def __init__(self, model: Backbone, format: str = "float32", *, answers: bool = False) -> None:
        if format not in FORMATS:
            raise unknown("format", format, FORMATS)
        if answers and not model.answers:
            raise InvalidConfig("this network gives no answers; sweep its words.")
        self.format, self.answers = FORMATS[format], answers
        self.model = deepcopy(model).to(self.format).eval()

    @torch.inference_mode()
    def __call__(self, inputs: Ints, held: Held | None) -> tuple[Ints, Held]:
        tokens = torch.from_numpy(inputs.astype(np.int64))
        state, said = None if held is None else self._state(held), []
        for piece in tokens.split(self._piece(len(tokens)), dim=1):
            h, state = self.model.hidden(piece, state)
            said.append((self.model.answer(h) if self.answers else self.model.label(h)).argmax(-1))
        assert state is not None
        return torch.cat(said, dim=1).numpy(), self._held(state)

    def _piece(self, batch: int) -> int:
        numbers = max(self.model.labels, 8 * self.model.width)
        return int(np.clip(LOGITS // max(batch * numbers, 1), 16, 4096))

    def _held(self, state: State) -> Held:
        kept = [part for layer in state for part in layer if part is not None]
        return [(part.view(torch.int16) if part.dtype == torch.bfloat16 else part).numpy() for part in kept]

    def _state(self, held: Held) -> State:
        parts = iter([self._tensor(torch.from_numpy(part)) for part in held])
        convolved = self.model.reach > 1
        return [(next(parts) if convolved else None, next(parts)) for _ in self.model.layers]

    def _tensor(self, part: Tensor) -> Tensor:
        # NumPy has no bfloat16: it was kept as the integers of the same bits
        return part.view(torch.bfloat16) if self.format == torch.bfloat16 and part.dtype == torch.int16 else part
