"""GRU and LSTM as blocks: what most people would use instead, behind the interface of the other layers.

    B  batch     L  length     m  width     h  hidden size

The recurrence is PyTorch's own (`torch.nn.GRU`, `torch.nn.LSTM`), followed by a projection back to the width. A step
depends on the whole state, nonlinearly, so there is no scan: time is a loop, fused where PyTorch fuses it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from exactstate.baselines.recurrent import Recurrent, Streams, at_least, resolve_affine
from exactstate.nn.init import fan_in_


class _TorchRNN(Recurrent):
    """A recurrent network of PyTorch with its state as one tensor: B h, or B 2 h with a cell state."""

    @dataclass(frozen=True, kw_only=True, slots=True)
    class Config:
        width: int
        """m, of the input and the output."""
        hidden: int | None = None
        """h, the size of the hidden state; the width by default."""
        chunk: int = 0
        """Steps computed at a time, and computed again for the gradient (0: all)."""

        def __post_init__(self) -> None:
            at_least(1, width=self.width, hidden=self.width if self.hidden is None else self.hidden)
            at_least(0, chunk=self.chunk)

    kind: type[nn.GRU] | type[nn.LSTM]

    def __init__(
        self, width: int, hidden: int | None = None, *, chunk: int = 0, backend: str = "auto",
        generator: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.config = self.Config(width=width, hidden=hidden, chunk=chunk)
        self.backend = resolve_affine(backend)
        self.hidden = width if hidden is None else hidden
        self.rnn = self.kind(width, self.hidden, batch_first=True)
        self.out_proj = nn.Linear(self.hidden, width)
        self.reset_parameters(generator)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """The recurrence as in PyTorch, uniform within 1 / sqrt(hidden); the projection as in the NFSM."""
        bound = self.hidden**-0.5
        for parameter in self.rnn.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=generator)
        fan_in_(self.out_proj, generator)

    def streams(self, rows: Tensor) -> Streams:
        """The rows themselves: PyTorch's kernels project them."""
        return (rows,)

    def scan(
        self, streams: Streams, h: Tensor, taken: Tensor | None, resets: Tensor | None
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """PyTorch's fused loop; with padding or resets, the loop over single steps."""
        plain = taken is None and resets is None and streams[0].shape[1] > 0
        return self._fused(streams[0], h) if plain else self._loop(streams, h, taken, resets)

    @abstractmethod
    def _fused(self, rows: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """PyTorch's own pass: (the hidden state after every step, the last state)."""

    def finish(self, streams: Streams, read: Tensor) -> Tensor:
        return self.out_proj(read)

    @property
    def _weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        rnn = self.rnn
        return rnn.weight_ih_l0, rnn.weight_hh_l0, rnn.bias_ih_l0, rnn.bias_hh_l0  # type: ignore[return-value]


class GRU(_TorchRNN):
    """A gated recurrent unit.

    >>> layer = GRU(width=16)
    >>> y, state = layer(torch.randn(2, 100, 16))
    >>> y.shape, state.shape
    (torch.Size([2, 100, 16]), torch.Size([2, 16]))
    """

    kind = nn.GRU

    def initial_state(self, batch: int) -> Tensor:
        """B h, zeros."""
        return self.out_proj.weight.new_zeros(batch, self.hidden)

    def advance(self, streams: Streams, h: Tensor) -> Tensor:
        return torch.gru_cell(streams[0], h, *self._weights)

    def read(self, streams: Streams, h: Tensor) -> Tensor:
        return h

    def _fused(self, rows: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        read, last = self.rnn(rows, h[None])
        return read, last[0]


class LSTM(_TorchRNN):
    """Long short-term memory; the state holds the hidden state and the cell state.

    >>> layer = LSTM(width=16)
    >>> y, state = layer(torch.randn(2, 100, 16))
    >>> y.shape, state.shape
    (torch.Size([2, 100, 16]), torch.Size([2, 2, 16]))
    """

    kind = nn.LSTM

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """As for the GRU, with a forget-gate bias of one: an untrained cell remembers."""
        super().reset_parameters(generator)
        forget = slice(self.hidden, 2 * self.hidden)
        _, _, bias_ih, bias_hh = self._weights
        with torch.no_grad():
            bias_ih[forget] = 1.0
            bias_hh[forget] = 0.0

    def initial_state(self, batch: int) -> Tensor:
        """B 2 h, zeros: the hidden state, then the cell state."""
        return self.out_proj.weight.new_zeros(batch, 2, self.hidden)

    def advance(self, streams: Streams, h: Tensor) -> Tensor:
        return torch.stack(torch.lstm_cell(streams[0], (h[:, 0], h[:, 1]), *self._weights), dim=1)

    def read(self, streams: Streams, h: Tensor) -> Tensor:
        return h[:, 0]

    def _fused(self, rows: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        read, (hidden, cell) = self.rnn(rows, (h[None, :, 0].contiguous(), h[None, :, 1].contiguous()))
        return read, torch.stack((hidden[0], cell[0]), dim=1)
