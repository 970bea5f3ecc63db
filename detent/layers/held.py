"""Memory units on the scan over tables: what the BMRU and the CMRU have in common.

    B  batch     L  length     m  width     d  units     n  levels of a unit

    push = W x + b,  threshold = |W' x + b'|,  z = 1 where |push| > threshold, else 0,  s = sign(push)

A step pushes the units where z = 1, up where s = 1 and down where s = -1. A unit is stored as its level, an integer, so
nothing drifts; what it says is alpha times the value of its level, with alpha > 0 learned, and all units together are
projected back to the width.

Learning is by straight-through gradients: z and s are differentiated as if each were its argument, |push| - threshold
and push, and the rest as the equations of the unit say (`detent.scan.attractors`).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from detent.errors import InvalidInput
from detent.layers.checks import Rows, check_call
from detent.layers.initial import fan_in_
from detent.layers.recurrent import Recurrent, Streams
from detent.layers.sequences import check_lengths, steps_below
from detent.scan import backends
from detent.scan.attractors import hold, levels_of, push_tables, values
from detent.scan.ordered import ordered_linear
from detent.scan.tables import check_states, identity


class Memory(Recurrent):
    """Units that hold a level until the input pushes them."""

    heads: tuple[int, ...]
    home: tuple[int, ...]

    def build(self, levels: int, start: int, backend: str, generator: torch.Generator | None) -> None:
        width, units = self.config.width, self.config.units
        self.backend, self.levels, self.start = backends.resolve(backend), levels, start
        self.heads, self.home = (levels,) * units, (start,) * units
        self.push, self.threshold = nn.Linear(width, units), nn.Linear(width, units)
        self.log_alpha = nn.Parameter(torch.empty(units))
        self.leave = nn.Linear(units, width)
        self.reset_parameters(generator)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """alpha = 1; linear maps as in the NFSM."""
        for linear in (self.push, self.threshold, self.leave):
            fan_in_(linear, generator)
        nn.init.zeros_(self.log_alpha)

    def initial_state(self, batch: int) -> Tensor:
        """B d integers: the level of every unit."""
        return torch.full((batch, self.config.units), self.start, device=self.log_alpha.device)

    def forward(
        self, x: Rows, state: Tensor | None = None, *, lengths: Tensor | None = None,
        cu_seqlens: Tensor | None = None, resets: Tensor | None = None, carry_gradient: bool = False,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """As for the NFSM: the state is B d integers, and continuing is bit for bit one long call.

        With `carry_gradient` the state comes as what the levels are worth (-1 and 1, or -k .. k), which carries the
        gradient to the next call; that takes it as `state`.
        """
        y, worth = super().forward(x, state, lengths=lengths, cu_seqlens=cu_seqlens, resets=resets)
        return y, worth if carry_gradient else levels_of(worth, self.levels)

    def step(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """One step of streaming, B m -> (B m, B d)."""
        y, worth = super().step(x, state)
        return y, levels_of(worth, self.levels)

    def streams(self, rows: Tensor) -> Streams:
        """(z, s)."""
        push, threshold = (self._linear(linear, rows) for linear in (self.push, self.threshold))
        over = push.abs() - threshold.abs()
        if not torch.compiler.is_compiling() and not bool(torch.isfinite(over).all()):
            raise InvalidInput("a push or a threshold is NaN or infinite: look at the input and the weights.")
        return _straight_through((over > 0).to(over.dtype), over), _straight_through(torch.sign(push), push)

    def advance(self, streams: Streams, h: Tensor) -> Tensor:
        z, s = streams
        if self.levels == 2:
            return z * s + (1 - z) * h
        return (h + z * s).clamp(-(self.levels // 2), self.levels // 2)

    def read(self, streams: Streams, h: Tensor) -> Tensor:
        return h

    def scan(
        self, streams: Streams, h: Tensor, taken: Tensor | None, resets: Tensor | None
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        z, s = streams
        if taken is not None:
            z = torch.where(taken[..., None], z, 0)
            resets = None if resets is None else resets & taken
        path, _ = hold(z, s, h, resets, self.levels, self.start, self.backend)
        return path, path[:, -1] if path.shape[1] else h

    def finish(self, streams: Streams, read: Tensor) -> Tensor:
        return self._linear(self.leave, self.log_alpha.exp() * read)

    @torch.no_grad()
    def tables(
        self, x: Tensor, *, lengths: Tensor | None = None, resets: Tensor | None = None
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """What each step does, one array per unit (B L n): entry k is where level k goes."""
        rows, _ = check_call(self.config.width, x, lengths, None, resets)
        check_lengths(lengths, rows.shape)
        z, s = self.streams(self._real(rows))
        made = push_tables(z * s, self.levels).long()
        if resets is not None:
            made = torch.where(resets[..., None, None], made[..., self.start, None], made)
        if lengths is not None:
            own = steps_below(lengths, rows.shape[1])
            made = torch.where(own[..., None, None], made, identity((self.levels,), device=made.device))
        return made.unbind(2)

    def _linear(self, linear: nn.Linear, rows: Tensor) -> Tensor:
        """On `reference` and `cpu`, the same bits for a row whatever stands beside it, so that a step is the scan's."""
        flat = rows.reshape(rows.shape[:-1].numel(), rows.shape[-1])
        made = ordered_linear(flat, linear.weight, linear.bias, self.backend)
        return made.view(*rows.shape[:-1], linear.out_features)

    def _start(self, state: Tensor | None, batch: int) -> Tensor:
        """What the levels are worth, B d."""
        dtype = self.log_alpha.dtype
        if state is None:
            return values(self.initial_state(batch), self.levels, dtype)
        worth = state.to(dtype) if state.is_floating_point() else values(state, self.levels, dtype)
        if not torch.compiler.is_compiling():
            levels = levels_of(worth, self.levels)
            check_states(levels, self.heads, batch)
            if not torch.equal(values(levels, self.levels, dtype), worth):
                raise InvalidInput("a state of floating point holds what levels are worth; some entry is between two.")
        return worth

    def extra_repr(self) -> str:
        return f"levels={self.levels}, backend={self.backend!r}"


def _straight_through(hard: Tensor, soft: Tensor) -> Tensor:
    """The value of `hard`, to the bit, with the gradient of `soft`."""
    return hard + (soft - soft.detach())
