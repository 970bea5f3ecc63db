"""The anchored phase where outputs are said: heads are taught their codes as ever, the read-out the outputs themselves.

    n  labels     m  width

Which output belongs to a joint index may be anything, a colouring of the states, so no reader of single heads can tell
it. The map to the outputs is taught as it stands, over the features of all heads together.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from detent.automata.running import Ints
from detent.models import Backbone
from detent.training.anchor import Anchor, Anchoring
from detent.training.codes import Codes


class OutputAnchor(Anchor):
    """A model that says outputs, the codes of states, and the output of every state."""

    def __init__(
        self, model: Backbone, codes: Codes, settings: Anchoring, generator: torch.Generator, *, output_of: Ints
    ) -> None:
        super().__init__(model, codes, settings, generator)
        self.readers = nn.ParameterList()
        self.output_of = torch.from_numpy(output_of.astype("int64"))

    @torch.no_grad()
    def release(self) -> None:
        """The model says outputs already; what all of them share decides nothing, and is taken away."""
        for shared in (self.model.readout.weight, self.model.readout.bias):
            shared.sub_(shared.mean(dim=0))

    def _said(self, encoded: Tensor, symbols: Ints, labels: Ints) -> list[tuple[Tensor, Tensor]]:
        code = torch.from_numpy(self.codes.of_label[labels])
        features = self._features(encoded, torch.from_numpy(symbols), code)
        return [(self.model.readout(features), self.output_of[torch.from_numpy(labels)])]
