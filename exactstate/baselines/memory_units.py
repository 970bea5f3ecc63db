"""Memory recurrent units, whose every step is a table: the bistable BMRU and the counting CMRU.

    BMRU   h <- z s alpha + (1 - z) h                       2 levels, -alpha and alpha
    CMRU   h <- h + z s alpha, clipped to +-k alpha         2 k + 1 levels

z = 1 where |push| exceeds |threshold|, else 0, and s = sign(push), with push and threshold affine in the input. No step
of a BMRU swaps its two levels, so a layer of them holds flip-flops but no parity.

A push of p in {-1, 0, 1} is the table k -> k + p, clipped to 0 .. n - 1, so states come from the scan over tables and
are exact. The backward pass is the adjoint of the recurrence above on the values v = h / alpha of the levels: -1 and 1,
or -k .. k.

De Geeter et al. 2026; Brandoit et al. 2026, with h added in full and a barrier at each end, so that there are finitely
many levels and every step is a shift that stops at the barriers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from exactstate.baselines.chunked_scan import diagonal_adjoint
from exactstate.baselines.recurrent import Recurrent, Streams, at_least
from exactstate.errors import InvalidConfig, InvalidInput
from exactstate.nn.init import fan_in_
from exactstate.nn.inputs import Rows, check_call, check_lengths, steps_below
from exactstate.ops import interface as backends
from exactstate.ops.ordered_linear import ordered_linear
from exactstate.ops.tables import cell_dtype, check_states, identity


def values(levels: Tensor, n: int, dtype: torch.dtype) -> Tensor:
    """The values of levels: -1 and 1, or -k .. k."""
    return (2 * levels.to(dtype) - 1) if n == 2 else levels.to(dtype) - n // 2


def levels_of(values: Tensor, n: int) -> Tensor:
    """The inverse of `values`."""
    return ((values.detach() + 1) / 2 if n == 2 else values.detach() + n // 2).round().long()


def push_tables(push: Tensor, n: int) -> Tensor:
    """... d -> ... d n: the tables of pushes in {-1, 0, 1}."""
    each = torch.arange(n, device=push.device) + torch.arange(-1, 2, device=push.device)[:, None]
    return each.clamp(0, n - 1).to(cell_dtype((n,)))[push.long() + 1]


def _memory_scan(
    z: Tensor, s: Tensor, start: Tensor, resets: Tensor | None, n: int, initial_level: int, backend: str
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(values, levels) after every step, B L d each; a step with `resets` (B L) starts at `initial_level`."""
    _check_memory_scan(z, s, start, resets, n, initial_level)
    B, L, d = z.shape
    tables = push_tables(z * s, n)
    if resets is not None:
        tables = torch.where(resets[..., None, None], tables[..., initial_level, None], tables)
    levels = backends.scan(backend).run(tables.view(B, L, d * n), levels_of(start, n), (n,) * d)
    return values(levels, n, z.dtype), levels


def _check_memory_scan(z: Tensor, s: Tensor, start: Tensor, resets: Tensor | None, n: int, initial_level: int) -> None:
    """Refuse what would lead outside the tables."""
    if z.ndim != 3 or s.shape != z.shape or start.shape != (z.shape[0], z.shape[2]):
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in (z, s, start))
        raise InvalidInput(f"memory_scan takes z and s of shape B L d and start of shape B d; got {shapes}.")
    if resets is not None and (resets.dtype != torch.bool or resets.shape != z.shape[:2]):
        raise InvalidInput(f"memory_scan takes resets of shape {tuple(z.shape[:2])}, booleans; got {resets.dtype}.")
    if n < 2 or not 0 <= initial_level < n:
        raise InvalidInput(f"memory_scan takes two or more levels, and one of them; got {n} and {initial_level}.")
    if z.numel() and bool(((z * s).abs() > 1).any()):
        raise InvalidInput("memory_scan takes pushes z * s of -1, 0 or 1.")
    if start.numel() and not bool(((levels := levels_of(start, n)) >= 0).all() and (levels < n).all()):
        raise InvalidInput(f"memory_scan takes start values that are levels of {n}.")


memory_scan = torch.library.custom_op("exactstate::memory_scan", _memory_scan, mutates_args=())


@memory_scan.register_fake
def _(
    z: Tensor, s: Tensor, start: Tensor, resets: Tensor | None, n: int, initial_level: int, backend: str
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return torch.empty_like(z, memory_format=torch.contiguous_format), z.new_empty(z.shape, dtype=cell_dtype((n,)))


def _memory_scan_backward(
    output_grad: Tensor, z: Tensor, s: Tensor, start: Tensor, resets: Tensor | None, levels: Tensor, n: int,
    initial_level: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of z, s and the start."""
    if output_grad.numel() == 0:
        return torch.zeros_like(output_grad), torch.zeros_like(output_grad), torch.zeros_like(start)
    path = values(levels, n, z.dtype)
    before = torch.cat([start[:, None], path[:, :-1]], dim=1)
    if resets is not None:
        before = torch.where(resets[..., None], values(torch.tensor(initial_level), n, z.dtype), before)
    # at a barrier nothing moves, and no gradient passes
    free = torch.ones_like(z) if n == 2 else (path == before + z * s).to(z.dtype)
    through = 1 - z if n == 2 else free
    if resets is not None:
        through = torch.where(resets[..., None], 0, through)
    lam, grad_start = diagonal_adjoint(through, output_grad)
    return lam * ((s - before) if n == 2 else s * free), lam * z * free, grad_start


memory_scan_backward = torch.library.custom_op(
    "exactstate::memory_scan_backward", _memory_scan_backward, mutates_args=()
)


@memory_scan_backward.register_fake
def _(output_grad: Tensor, z: Tensor, s: Tensor, start: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return z.new_empty(z.shape), s.new_empty(s.shape), start.new_empty(start.shape)


def _setup_context(ctx: Any, inputs: Any, output: Any) -> None:
    z, s, start, resets, ctx.n, ctx.initial_level, _ = inputs
    ctx.save_for_backward(z, s, start, resets, output[1])
    ctx.mark_non_differentiable(output[1])


def _backward(ctx: Any, output_grad: Tensor, _levels: Tensor) -> tuple[Any, ...]:
    z, s, start, resets, levels = ctx.saved_tensors
    grad_z, grad_s, grad_start = memory_scan_backward(
        output_grad.contiguous(), z, s, start, resets, levels, ctx.n, ctx.initial_level
    )
    return grad_z, grad_s, grad_start, None, None, None, None


memory_scan.register_autograd(_backward, setup_context=_setup_context)


class MemoryUnits(Recurrent):
    """Units that hold a level until the input pushes them."""

    heads: tuple[int, ...]

    def build(self, levels: int, initial_level: int, backend: str, generator: torch.Generator | None) -> None:
        width, units = self.config.width, self.config.units
        self.backend, self.levels, self.initial_level = backends.resolve(backend), levels, initial_level
        self.heads = (levels,) * units
        self.push_proj, self.threshold_proj = nn.Linear(width, units), nn.Linear(width, units)
        self.log_alpha = nn.Parameter(torch.empty(units))
        self.out_proj = nn.Linear(units, width)
        self.reset_parameters(generator)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """alpha = 1; linear maps as in the NFSM."""
        for linear in (self.push_proj, self.threshold_proj, self.out_proj):
            fan_in_(linear, generator)
        nn.init.zeros_(self.log_alpha)

    def initial_state(self, batch: int) -> Tensor:
        """B d integers: the level of every unit."""
        return torch.full((batch, self.config.units), self.initial_level, device=self.log_alpha.device)

    def forward(
        self, x: Rows, state: Tensor | None = None, *, lengths: Tensor | Sequence[int] | None = None,
        cu_seqlens: Tensor | Sequence[int] | None = None, resets: Tensor | None = None, carry_gradient: bool = False,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """As for the NFSM: the state is B d integers, and continuing is bit for bit one long call.

        With `carry_gradient` the state is returned as the values of the levels (-1 and 1, or -k .. k), which carry the
        gradient to the next call, which takes them as `state`.
        """
        y, level_values = super().forward(x, state, lengths=lengths, cu_seqlens=cu_seqlens, resets=resets)
        return y, level_values if carry_gradient else levels_of(level_values, self.levels)

    def step(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """One step of streaming, B m -> (B m, B d)."""
        y, level_values = super().step(x, state)
        return y, levels_of(level_values, self.levels)

    def streams(self, rows: Tensor) -> Streams:
        """(z, s)."""
        push, threshold = (self._linear(linear, rows) for linear in (self.push_proj, self.threshold_proj))
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
        path, _ = memory_scan(z, s, h, resets, self.levels, self.initial_level, self.backend)
        return path, path[:, -1] if path.shape[1] else h

    def finish(self, streams: Streams, read: Tensor) -> Tensor:
        return self._linear(self.out_proj, self.log_alpha.exp() * read)

    @torch.no_grad()
    def tables(
        self, x: Tensor, *, lengths: Tensor | None = None, resets: Tensor | None = None
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """What each step does, one array per unit (B L n): entry k is where level k goes."""
        rows, _ = check_call(self.config.width, x, lengths, None, resets)
        check_lengths(lengths, rows.shape)
        z, s = self.streams(self._cast(rows))
        made = push_tables(z * s, self.levels).long()
        if resets is not None:
            made = torch.where(resets[..., None, None], made[..., self.initial_level, None], made)
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
        """B d: the values of the start levels."""
        dtype = self.log_alpha.dtype
        if state is None:
            return values(self.initial_state(batch), self.levels, dtype)
        level_values = state.to(dtype) if state.is_floating_point() else values(state, self.levels, dtype)
        if not torch.compiler.is_compiling():
            levels = levels_of(level_values, self.levels)
            check_states(levels, self.heads, batch)
            if not torch.equal(values(levels, self.levels, dtype), level_values):
                raise InvalidInput("a floating-point state holds the values of levels; some entry lies between two.")
        return level_values


def _straight_through(hard: Tensor, soft: Tensor) -> Tensor:
    """The value of `hard`, to the bit, with the gradient of `soft`."""
    return hard + (soft - soft.detach())


class BMRU(MemoryUnits):
    """Bistable units: every step sets a unit low, sets it high, or keeps it.

    >>> layer = BMRU(width=16, units=8)
    >>> y, state = layer(torch.randn(2, 100, 16))
    >>> y.shape, state.shape
    (torch.Size([2, 100, 16]), torch.Size([2, 8]))
    """

    @dataclass(frozen=True, kw_only=True, slots=True)
    class Config:
        width: int
        """m, of the input and the output."""
        units: int
        """d, units that hold one of two levels each."""
        initial_level: int = 0
        """The level before the first step: 0 for -alpha, 1 for alpha."""
        chunk: int = 0
        """Steps computed at a time, and computed again for the gradient (0: all)."""

        def __post_init__(self) -> None:
            at_least(1, width=self.width, units=self.units)
            at_least(0, chunk=self.chunk)
            _check_start(self.initial_level, 2)

    def __init__(
        self, width: int, units: int, *, initial_level: int = 0, chunk: int = 0, backend: str = "auto",
        generator: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.config = BMRU.Config(width=width, units=units, initial_level=initial_level, chunk=chunk)
        self.build(2, initial_level, backend, generator)


class CMRU(MemoryUnits):
    """Counting units: every step moves a unit one level up, one level down, or not at all, up to a barrier.

    >>> layer = CMRU(width=16, units=8, max_count=3)
    >>> layer.heads
    (7, 7, 7, 7, 7, 7, 7, 7)
    """

    @dataclass(frozen=True, kw_only=True, slots=True)
    class Config:
        width: int
        """m, of the input and the output."""
        units: int
        """d, units that hold one of 2 k + 1 levels each."""
        max_count: int = 1
        """k, levels from the middle to a barrier."""
        initial_level: int | None = None
        """The level before the first step, 0 .. 2 k; by default the middle, k."""
        chunk: int = 0
        """Steps computed at a time, and computed again for the gradient (0: all)."""

        def __post_init__(self) -> None:
            at_least(1, width=self.width, units=self.units, max_count=self.max_count)
            at_least(0, chunk=self.chunk)
            if self.max_count > 1023:
                raise InvalidConfig(f"max_count must be at most 1023, which float16 can count; got {self.max_count}.")
            _check_start(self.max_count if self.initial_level is None else self.initial_level, 2 * self.max_count + 1)

    def __init__(
        self, width: int, units: int, max_count: int = 1, *, initial_level: int | None = None, chunk: int = 0,
        backend: str = "auto", generator: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.config = CMRU.Config(
            width=width, units=units, max_count=max_count, initial_level=initial_level, chunk=chunk
        )
        self.build(2 * max_count + 1, max_count if initial_level is None else initial_level, backend, generator)


def _check_start(initial_level: int, levels: int) -> None:
    if not 0 <= initial_level < levels:
        raise InvalidConfig(f"initial_level is a level between 0 and {levels - 1}; got {initial_level}.")
