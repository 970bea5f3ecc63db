"""Base classes of the baselines: state in and out, padding, packing, resets, chunks, streaming.

    B  batch     L  length     m  width     f  features of a stream     d  channels     n  entries of a channel's state

`Recurrent` gives a layer with a real-valued state the interface of the NFSM. `Gated` adds the block around the
recurrences of Mamba- and the AUSSM: u and z are linear in the input, u followed by a SiLU; Delta = softplus(W u + b).
The read-out of the state becomes (read + skip u) SiLU(z), projected back to the width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import log
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, silu, softplus
from torch.utils.checkpoint import checkpoint

from exactstate.baselines.blocks import recur
from exactstate.errors import BackendUnavailable, InvalidConfig, InvalidInput, unknown
from exactstate.nn.init import fan_in_
from exactstate.nn.inputs import (
    Rows,
    as_integers,
    check_call,
    check_index,
    check_lengths,
    expand_like,
    steps_below,
    unpack_rows,
)
from exactstate.nn.pretrained import Pretrained

Streams = tuple[Tensor, ...]
BACKENDS = ("reference", "tree")
WITHOUT_COMPLEX = (torch.float16, torch.bfloat16)
"""Formats in which torch has no complex numbers, or no arithmetic on them: layers that need these loop over steps."""


def resolve_affine(name: str) -> str:
    """The backend that `name` stands for: `reference` (a loop over time) or `tree` (log depth), which "auto" is."""
    if name == "cpu":
        raise BackendUnavailable("backend 'cpu' composes tables, and this layer has none: pass backend='tree'.")
    if name not in ("auto", *BACKENDS):
        raise unknown("backend", name, ("auto", *BACKENDS))
    return "tree" if name == "auto" else name


def at_least(least: int, **settings: int) -> None:
    """Raise InvalidConfig for a setting below its least value."""
    for name, value in settings.items():
        if value < least:
            raise InvalidConfig(f"{name} must be at least {least}; got {value}.")


class Recurrent(Pretrained, nn.Module, ABC):
    """The block interface of the NFSM, for layers whose state is a tensor of real numbers."""

    config: Any
    backend: str

    @abstractmethod
    def initial_state(self, batch: int) -> Tensor:
        """The state before the first step: zeros, B ..."""

    @abstractmethod
    def streams(self, rows: Tensor) -> Streams:
        """... m -> ... f each: everything that depends on a row of the input alone."""

    @abstractmethod
    def advance(self, streams: Streams, h: Tensor) -> Tensor:
        """One step: B f each, and the state before -> the state after."""

    @abstractmethod
    def read(self, streams: Streams, h: Tensor) -> Tensor:
        """B f each, and a state -> its read-out."""

    def scan(
        self, streams: Streams, h: Tensor, taken: Tensor | None, resets: Tensor | None
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """B L f each -> (the read-out after every step, the last state). `taken` and `resets` are B L booleans.

        Here by the loop over `advance`; a layer that has a scan in log depth overrides this.
        """
        return self._loop(streams, h, taken, resets)

    @abstractmethod
    def finish(self, streams: Streams, read: Tensor) -> Tensor:
        """... f each, and the read-out -> ... m."""

    def forward(
        self, x: Rows, state: Tensor | None = None, *, lengths: Tensor | Sequence[int] | None = None,
        cu_seqlens: Tensor | Sequence[int] | None = None, resets: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """(y, state): the output after every step, and the state after the last.

        - `x`: B L m, or `(rows, index)` with R distinct rows (R m) and which of them stands where (B L).
        - `state`: as `initial_state`, from an earlier call; gradients flow through it.
        - `lengths`: B; steps beyond a sequence's length are the identity and hold its state.
        - `cu_seqlens`: boundaries of sequences packed into x of N m; states have one row per sequence.
        - `resets`: B L booleans; a step at which an episode begins forgets the state before it.
        """
        lengths, cu_seqlens = as_integers("lengths", lengths), as_integers("cu_seqlens", cu_seqlens)
        rows, index = check_call(self.config.width, x, lengths, cu_seqlens, resets)
        if cu_seqlens is not None:
            return self._packed(rows, index, state, cu_seqlens, resets)
        given = rows if index is None else check_index(index, len(rows))
        check_lengths(lengths, given.shape)
        # autocast would put half of a recurrence into half precision; call layer.half() for all of it
        with torch.autocast(rows.device.type, enabled=False):
            state = self._start(state, given.shape[0])
            distinct = None if index is None else self.streams(self._cast(rows))
            taken = None if lengths is None else steps_below(lengths, given.shape[1])
            y, last = self._in_chunks(self._cast(rows) if index is None else given, distinct, state, taken, resets)
        return y.to(rows.dtype), last

    def step(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """One step of streaming, B m -> (B m, state)."""
        if x.ndim != 2 or x.shape[1] != self.config.width or not x.is_floating_point():
            raise InvalidInput(
                f"a step takes one row per sequence, floating point of shape (B, {self.config.width}); "
                f"got {x.dtype} of shape {tuple(x.shape)}."
            )
        with torch.autocast(x.device.type, enabled=False):
            streams = self.streams(self._cast(x))
            h = self.advance(streams, self._start(state, len(x)))
            return self.finish(streams, self.read(streams, h)).to(x.dtype), h

    def _in_chunks(
        self, x: Tensor, distinct: Streams | None, state: Tensor, taken: Tensor | None, resets: Tensor | None
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """`_pass`, `chunk` steps at a time; in training, chunks are recomputed in the backward pass."""
        size = self.config.chunk or max(x.shape[1], 1)
        if x.shape[1] <= size:
            return self._pass(x, distinct, state, taken, resets)
        count = -(-x.shape[1] // size)
        masks = [[None] * count if mask is None else mask.split(size, dim=1) for mask in (taken, resets)]
        outputs = []
        for part, *mask in zip(x.split(size, dim=1), *masks, strict=True):
            if torch.is_grad_enabled():
                y, state = checkpoint(
                    self._pass, part, distinct, state, *mask, use_reentrant=False, preserve_rng_state=False
                )  # fmt: skip
            else:
                y, state = self._pass(part, distinct, state, *mask)
            outputs.append(y)
        return torch.cat(outputs, dim=1), state

    def _pass(
        self, x: Tensor, distinct: Streams | None, state: Tensor, taken: Tensor | None, resets: Tensor | None
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """(y, state) of rows B L m, or of an index B L into streams that are already known."""
        streams = self.streams(x) if distinct is None else tuple(embedding(x, rows) for rows in distinct)
        run = self._loop if self.backend == "reference" else self.scan
        read, last = run(streams, state, taken, resets)
        return self.finish(streams, read), last

    def _loop(
        self, streams: Streams, h: Tensor, taken: Tensor | None, resets: Tensor | None
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """The definition of `scan`."""
        fresh, reads = self._start(None, len(h)), []
        for t, here in enumerate(zip(*(stream.unbind(1) for stream in streams), strict=True)):
            before = h if resets is None else torch.where(expand_like(resets[:, t], h), fresh, h)
            after = self.advance(here, before)
            h = after if taken is None else torch.where(expand_like(taken[:, t], h), after, h)
            reads.append(self.read(here, h))
        if not reads:
            nothing = tuple(stream.new_zeros(len(h), *stream.shape[2:]) for stream in streams)
            return self.read(nothing, h).unsqueeze(1)[:, :0], h
        return torch.stack(reads, dim=1), h

    def _recur(
        self, kernel: str, streams: Sequence[Tensor], shared: Sequence[Tensor], h: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Run a kernel in blocks; states are saved only if there will be a backward pass."""
        keep = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (*streams, *shared, h))
        read, last, _ = recur(kernel, [stream.contiguous() for stream in streams], list(shared), h, keep)
        return read, last

    @staticmethod
    def _reset_stream(taken: Tensor | None, resets: Tensor | None, like: Tensor) -> list[Tensor]:
        """The stream of ones where an episode begins, if there are resets."""
        if resets is None:
            return []
        return [(resets if taken is None else resets & taken)[..., None].to(like.dtype)]

    def _packed(
        self, rows: Tensor, index: Tensor | None, state: Tensor | None, cu_seqlens: Tensor, resets: Tensor | None
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Packed sequences, padded for the pass."""
        where, taken = unpack_rows(cu_seqlens, len(rows if index is None else index), rows.device)
        x = (rows, index[where]) if index is not None else embedding(where, rows)
        resets = None if resets is None else resets[where]
        y, last = Recurrent.forward(self, x, state, lengths=taken.sum(1), resets=resets)
        return y[taken], last

    def _start(self, state: Tensor | None, batch: int) -> Tensor:
        zero = self.initial_state(batch)
        if state is not None and (state.shape != zero.shape or state.dtype != zero.dtype):
            raise InvalidInput(
                f"a state of this layer is {zero.dtype} of shape {tuple(zero.shape)}; "
                f"got {state.dtype} of shape {tuple(state.shape)}."
            )
        return zero if state is None else state

    def extra_repr(self) -> str:
        return ", ".join(
            f"{name}={value!r}" for name, value in {**asdict(self.config), "backend": self.backend}.items()
        )

    def _cast(self, rows: Tensor) -> Tensor:
        """Cast to the type of the weights, which is that of every step."""
        return rows.to(next(self.parameters()).dtype)


DT_MIN, DT_MAX = 1e-3, 1e-1
"""The initial Delta are log-uniform between these, as in Mamba."""


class Gated(Recurrent):
    """Channels with states of their own; subclasses define how a state changes and is read."""

    @dataclass(frozen=True, kw_only=True, slots=True)
    class Config:
        width: int
        """m, of the input and the output."""
        channels: int
        """d, channels that each have a state of their own."""
        states: int = 16
        """n, entries of a channel's state."""
        chunk: int = 0
        """Steps computed at a time, and computed again for the gradient (0: all)."""

        def __post_init__(self) -> None:
            at_least(1, width=self.width, channels=self.channels, states=self.states)
            at_least(0, chunk=self.chunk)

    def __init__(
        self, width: int, channels: int, states: int = 16, *, chunk: int = 0, backend: str = "auto",
        generator: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.config = self.Config(width=width, channels=channels, states=states, chunk=chunk)
        self.backend = resolve_affine(backend)
        self.in_proj = nn.Linear(width, 2 * channels, bias=False)
        self.dt_proj = nn.Linear(channels, channels)
        self.skip = nn.Parameter(torch.empty(channels))
        self.out_proj = nn.Linear(channels, width, bias=False)
        self.build()
        self.reset_parameters(generator)

    def build(self) -> None:
        """Create the parameters of the recurrence itself."""

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        for linear in (self.in_proj, self.dt_proj, self.out_proj):
            fan_in_(linear, generator)
        nn.init.ones_(self.skip)
        with torch.no_grad():
            dt = torch.empty_like(self.dt_proj.bias).uniform_(log(DT_MIN), log(DT_MAX), generator=generator).exp()
            self.dt_proj.bias.copy_(dt.expm1().log())  # inverse of softplus

    def streams(self, rows: Tensor) -> Streams:
        """(Delta, u, z)."""
        u, z = self.in_proj(rows).chunk(2, dim=-1)
        u = silu(u)
        return softplus(self.dt_proj(u)), u, z

    def finish(self, streams: Streams, read: Tensor) -> Tensor:
        _, u, z = streams[:3]
        return self.out_proj((read + self.skip * u) * silu(z))
