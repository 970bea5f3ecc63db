"""What a length sweep evaluates: the tables extracted from a network, or the network itself, chunk by chunk.

    B  sequences     L  length of a chunk     A  symbols     n  configurations

Both predict the same as long as the margins of the tables exceed the rounding error of the network. The tables are
thousands of times faster.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from exactstate._types import MISSING, Ints
from exactstate.errors import InvalidConfig, unknown
from exactstate.extract import Extracted
from exactstate.nn import Backbone
from exactstate.nn.backbone import State
from exactstate.number_formats import NETWORK_FORMATS

PredictorState: TypeAlias = list[NDArray[Any]]
"""What a predictor carries from chunk to chunk: arrays, so that a sweep can be saved and resumed."""
MAX_LOGITS = 1 << 22
"""Numbers that the network computes at a time, at most."""


class SequencePredictor(Protocol):
    """Anything that reads a chunk of sequences and can continue with the next: a network, a machine, a formula."""

    def __call__(self, inputs: Ints, state: PredictorState | None) -> tuple[Ints, PredictorState]:
        """(predictions after every symbol: B L, state after the chunk), from symbols (B L) and the state before.

        `state` is None at the start of the sequences. In a sweep of questions the predictions are answers, and only
        the last one of a sequence is scored.
        """


class TablePredictor:
    """The extracted machine: states by its tables, labels or answers by its read-out."""

    def __init__(self, extracted: Extracted, *, answers: bool = False) -> None:
        if answers and extracted.answer_ids is None:
            raise InvalidConfig("this machine gives no answers; sweep its words.")
        self.machine = extracted.machine
        outputs = extracted.readout
        if answers:
            outputs = extracted.answers
        # the machine has one more state than there are configurations: the sink of words that the grammar forbids
        self.outputs = np.pad(outputs, ((0, 0), (0, self.machine.n_states - outputs.shape[1])), constant_values=MISSING)

    def __call__(self, inputs: Ints, state: PredictorState | None) -> tuple[Ints, PredictorState]:
        start = np.full(len(inputs), self.machine.start) if state is None else state[0]
        after = self.machine.trajectory(inputs, start)
        before = np.concatenate([start[:, None].astype(after.dtype), after[:, :-1]], axis=1)
        at = inputs.astype(np.intp) * self.outputs.shape[1] + before
        return self.outputs.ravel().take(at), [after[:, -1]]


class NetworkPredictor:
    """The network in evaluation mode, in one of NETWORK_FORMATS, piece by piece with its state carried over."""

    def __init__(self, model: Backbone, format: str = "float32", *, answers: bool = False) -> None:
        if format not in NETWORK_FORMATS:
            raise unknown("format", format, NETWORK_FORMATS)
        if answers and not model.answers:
            raise InvalidConfig("this network gives no answers; sweep its words.")
        self.format: torch.dtype = getattr(torch, format)
        self.answers = answers
        self.model = deepcopy(model).to(self.format).eval()

    @torch.inference_mode()
    def __call__(self, inputs: Ints, state: PredictorState | None) -> tuple[Ints, PredictorState]:
        tokens = torch.from_numpy(inputs.astype(np.int64))
        hidden, predictions = None if state is None else self._to_tensors(state), []
        for piece in tokens.split(self._piece_length(len(tokens)), dim=1):
            h, hidden = self.model.hidden(piece, hidden)
            predictions.append((self.model.answer_logits(h) if self.answers else self.model.label_logits(h)).argmax(-1))
        assert hidden is not None
        return torch.cat(predictions, dim=1).numpy(), self._to_arrays(hidden)

    def _piece_length(self, batch: int) -> int:
        numbers = max(self.model.labels, 8 * self.model.width)
        return int(np.clip(MAX_LOGITS // max(batch * numbers, 1), 16, 4096))

    def _to_arrays(self, state: State) -> PredictorState:
        parts = [part for layer in state for part in layer if part is not None]
        return [(part.view(torch.int16) if part.dtype == torch.bfloat16 else part).numpy() for part in parts]

    def _to_tensors(self, state: PredictorState) -> State:
        parts = iter([self._to_tensor(torch.from_numpy(part)) for part in state])
        convolved = self.model.kernel_size > 1
        return [(next(parts) if convolved else None, next(parts)) for _ in self.model.layers]

    def _to_tensor(self, part: Tensor) -> Tensor:
        # NumPy has no bfloat16: it was stored as integers of the same bits
        return part.view(torch.bfloat16) if self.format == torch.bfloat16 and part.dtype == torch.int16 else part
