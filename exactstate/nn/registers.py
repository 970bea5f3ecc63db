"""Registers that copy one another: the tables of an NFSM, read the other way round.

    B  batch     L  length     m  width     r  heads     d  registers of a head     S  the sum of the ds
    R  distinct inputs     E  the sum of the d * ds     c  value width

A head has d registers and d value vectors; register j begins with vector j. A step is a table for each head, and
table[j] is the register that j copies: where an index comes from, while a table of the NFSM says where it goes. All
registers copy at once, so two of them can exchange what they hold. The state of a head is which vector each of its
registers holds, d integers, and the composite of all tables so far. Tables compose by gathers, so a scan is exact.

    set a key to a value      the register of the key copies one that never changes
    exchange two keys         their registers copy each other

An NFSM needs an index for every arrangement to do this, d ** d of them in general. In training, rows of a table are
softmaxes or one-hot (see `exactstate.nn.soften`), and a register holds a mean of value vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from math import isqrt
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding, one_hot

from exactstate.errors import InvalidConfig, InvalidInput
from exactstate.nn.init import fan_in_, truncated_
from exactstate.nn.inputs import Rows, as_integers, check_call, check_index, check_lengths, steps_below, whole_numbers
from exactstate.nn.nfsm import note_heads, refuse_other_heads
from exactstate.nn.pretrained import Pretrained
from exactstate.nn.soft import register_values
from exactstate.nn.wrapped import is_plain
from exactstate.ops.eager import is_traced
from exactstate.ops.interface import kernels, resolve
from exactstate.ops.ordered_linear import ordered_linear
from exactstate.ops.segments import LogitSource, batch_segments
from exactstate.ops.tables import entry_offsets, identity, owners

DEFAULT_HEADS = (24,) * 2


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """The arguments of a pass, and the tables of its steps."""

    shape: Sequence[int]
    """B L."""
    rows: Tensor
    """(B L) m, or R m with an index."""
    index: Tensor | None
    """B L: which of the distinct rows stands where."""
    logits: Tensor
    """R E."""
    row_index: Tensor
    """B L: whose logits a step has."""
    tables: Tensor
    """R S: their arg max."""
    lengths: Tensor | None
    resets: Tensor | None

    def states(self, start: Tensor, heads: Sequence[int], *, last: bool = False) -> Tensor:
        """What registers hold after every step, or after the last."""
        return register_states(self.tables, self.row_index, start, heads, self.lengths, self.resets, last=last)


class Registers(Pretrained, nn.Module):
    """Heads of registers; every step copies some registers to others, and reads a weighted sum of what they hold.

    >>> layer = Registers(width=16, heads=(4, 3))
    >>> y, state = layer(torch.randn(2, 100, 16))
    >>> y.shape, state.shape
    (torch.Size([2, 100, 16]), torch.Size([2, 7]))

    The arg max of row j of a head's logits is the register that j copies, the lowest on a tie. The logits are an affine
    map of the input or, with `inputs`, free ones for each of so many inputs, plus common ones. A step reads the sum of
    the vectors in a head's registers, weighted by an affine map of the input; those of all heads are projected to the
    width. Tables are exact in training, too, with the gradient of the softmax. After `soften(layer, T)` a row is its
    softmax at temperature T with probability T in training mode, and exact otherwise.
    """

    @dataclass(frozen=True, kw_only=True, slots=True)
    class Config:
        """The arguments of the constructor, as `save_pretrained` writes them."""

        width: int
        """m, of the input and the output."""
        heads: tuple[int, ...] = DEFAULT_HEADS
        """Number of registers of each head; two heads of 24 by default. Registers of different
        heads cannot exchange what they hold: few large heads learned better than many small ones."""
        value_width: int | None = None
        """Width of a value vector; by default width / heads, rounded up."""
        inputs: int | None = None
        """If given, there are so many inputs, each with free tables, and calls say by `ids` which of them stands where.
        None: the logits are affine in the input."""
        remember: float = 8.0
        """Initial bias of the logits that let a register keep what it holds. Soft registers leak: an untrained
        one of 24 loses half of what it holds in about 56 steps, and in about 8 with a bias of 6."""

        def __post_init__(self) -> None:
            for name in ("width", "value_width", "inputs"):
                value = getattr(self, name)
                if value is None:
                    continue
                if not isinstance(value, Integral) or isinstance(value, bool):
                    raise InvalidConfig(f"{name} is a whole number; got {value!r}.")
                if value < 1:
                    raise InvalidConfig(f"{name} must be at least 1; got {value}.")
            if not self.heads or not 1 <= min(self.heads) <= max(self.heads) <= 32768:
                raise InvalidConfig(f"heads must be one or more sizes from 1 to 32768 registers; got {self.heads}.")
            if not isinstance(self.remember, Real) or not abs(self.remember) < float("inf"):
                raise InvalidConfig(f"remember must be finite; got {self.remember}.")

    def __init__(
        self, width: int, heads: Sequence[int] = DEFAULT_HEADS, *, value_width: int | None = None,
        inputs: int | None = None, remember: float = 8.0, backend: str = "auto",
        generator: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if isinstance(heads, int):
            raise InvalidConfig(
                f"heads is one size per head, and {heads} alone could mean two things: "
                f"pass heads=({heads},) for one head of {heads} registers, or heads=(24,) * {heads} for {heads} heads."
            )
        self.config = Registers.Config(
            width=width, heads=whole_numbers("heads", heads), value_width=value_width, inputs=inputs, remember=remember
        )
        self.backend = resolve(backend)
        self._auto = backend == "auto"
        self.soft_temperature: float | None = None  # set by `exactstate.nn.soften`
        self.heads = self.config.heads
        self.value_width = value_width or -(-width // len(self.heads))
        S, E = sum(self.heads), sum(d * d for d in self.heads)
        # entry j * d + k of a head scores that its register j copies its register k
        self.tables = None if inputs is None else nn.Parameter(torch.empty(inputs, E))
        self.weight = nn.Parameter(torch.empty(E, width)) if inputs is None else None
        self.bias = nn.Parameter(torch.empty(E))
        self.values = nn.Parameter(torch.empty(S, self.value_width))
        self.read_proj, self.out_proj = nn.Linear(width, S), nn.Linear(self.value_width * len(self.heads), width)
        self.reset_parameters(generator)
        self.register_state_dict_post_hook(note_heads)
        self.register_load_state_dict_pre_hook(refuse_other_heads)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Logits of deviation 0.7 or less, a bias of `remember` towards keeping, unit-variance value vectors."""
        if self.tables is not None:
            nn.init.normal_(self.tables, std=0.7, generator=generator)
        if self.weight is not None:
            truncated_(self.weight, generator, 0.7)
        nn.init.zeros_(self.bias)
        with torch.no_grad():
            for d, at in zip(self.heads, entry_offsets(self.heads), strict=True):
                self.bias[at : at + d * d : d + 1] = self.config.remember
        nn.init.normal_(self.values, generator=generator)
        for linear in (self.read_proj, self.out_proj):
            fan_in_(linear, generator)
        truncated_(self.read_proj.weight, generator, 2.0)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Registers:
        """After a move to another device, "auto" is the fastest backend there."""
        before = self.bias.device.type
        super()._apply(fn, recurse)
        if self._auto and self.bias.device.type != before:
            self.backend = resolve("auto", self.bias.device.type)
        return self

    def initial_state(self, batch: int) -> Tensor:
        """B S integers: register j of a head holds its vector j."""
        return identity(self.heads, device=self.bias.device).expand(batch, -1).contiguous()

    def forward(
        self, x: Rows, state: Tensor | None = None, *, ids: Tensor | None = None,
        lengths: Tensor | Sequence[int] | None = None, resets: Tensor | None = None, seed: int | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """(y, state): the read-out after every step, and which vector every register holds after the last.

        - `x`: B L m, or `(rows, index)` with R distinct rows (R m) and which of them stands where (B L).
        - `state`: B S integers, from an earlier call; continuing is bit for bit one long call (on `tree` to rounding).
        - `ids`: B L integers, for a layer with `inputs`: whose free tables a step takes. A batch of few distinct ones
          is fast, as one of few distinct rows is.
        - `lengths`: B; registers keep what they hold in steps beyond a sequence's length.
        - `resets`: B L booleans; a step at which an episode begins starts from the initial state.
        - `seed`: determines which rows are soft in a training pass; torch's default generator does if not given.
        """
        call = self._call(x, ids, lengths, resets)
        start = self._start(state, call.shape[0])
        with torch.autocast(call.rows.device.type, enabled=False):
            queries = self._linear(self.read_proj, call.rows)
            queries = queries.unflatten(0, call.shape) if call.index is None else embedding(call.index, queries)
            soft = self.training and self.soft_temperature is not None
            if soft or (torch.is_grad_enabled() and (queries.requires_grad or call.logits.requires_grad)):
                held = self._soft_pass(call, None if state is None else start, seed)
                final = call.states(start, self.heads, last=True)
            else:
                states = call.states(start, self.heads)
                held, final = self._vectors(states), states[:, -1] if call.shape[1] else start
            y = self._linear(self.out_proj, self._read(held, queries).flatten(0, 1))
        dtype = (x[0] if isinstance(x, tuple) else x).dtype
        return y.view(*call.shape, self.config.width).to(dtype), final

    @torch.no_grad()
    def states(
        self, x: Rows, state: Tensor | None = None, *, ids: Tensor | None = None,
        lengths: Tensor | Sequence[int] | None = None, resets: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """B L S integers: which vector every register holds after every step, in evaluation."""
        call = self._call(x, ids, lengths, resets)
        return call.states(self._start(state, call.shape[0]), self.heads)

    def step(
        self, x: Tensor, state: Tensor | None = None, *, ids: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """One step of streaming, B m -> (B m, B S); `ids` are B integers."""
        if x.ndim != 2 or x.shape[1] != self.config.width or not x.is_floating_point():
            raise InvalidInput(
                f"a step takes one row per sequence, floating point of shape (B, {self.config.width}); "
                f"got {x.dtype} of shape {tuple(x.shape)}."
            )
        if ids is not None and (not isinstance(ids, Tensor) or ids.ndim != 1):
            got = tuple(ids.shape) if isinstance(ids, Tensor) else type(ids).__name__
            raise InvalidInput(f"the ids of a step are a tensor of {len(x)} integers; got {got}.")
        y, state = self(x[:, None], state, ids=None if ids is None else ids[:, None])
        return y[:, 0], state

    def _call(
        self, x: Rows, ids: Tensor | None, lengths: Tensor | Sequence[int] | None, resets: Tensor | None
    ) -> _Call:  # fmt: skip
        """The tables of these inputs."""
        lengths = as_integers("lengths", lengths)
        rows, index = check_call(self.config.width, x, lengths, None, resets)
        shape = rows.shape[:2] if index is None else index.shape
        check_lengths(lengths, shape)
        ids = self._check_ids(ids, shape)
        if lengths is not None and index is None:  # nothing reads what stands beyond a length
            rows = torch.where(steps_below(lengths.to(rows.device), shape[1])[..., None], rows, 0.0)
        index = None if index is None else check_index(index, len(rows))
        with torch.autocast(rows.device.type, enabled=False):  # an arg max of half-precision logits is full of ties
            rows, bias = self._cast(rows).reshape(-1, self.config.width), self._cast(self.bias)
            if self.tables is not None:
                distinct, row_index = torch.unique(ids, return_inverse=True)
                logits = self._cast(embedding(distinct, self.tables)) + bias
            else:
                assert self.weight is not None
                logits = ordered_linear(rows.contiguous(), self._cast(self.weight), bias, self.backend)
                row_index = torch.arange(len(rows), device=rows.device).view(shape) if index is None else index
            return _Call(shape, rows, index, logits, row_index, self._table_of(logits), lengths, resets)

    def _table_of(self, logits: Tensor) -> Tensor:
        """R E -> R S integers: the register that every register copies."""
        if is_traced():
            return torch.cat([part.argmax(-1).flatten(1) for part, *_ in self._by_size(logits)], 1)
        each, logits = torch.arange(len(logits), device=logits.device), logits.detach().contiguous()
        source = LogitSource(logits, logits, logits, each, logits)
        return kernels(self.backend).tables(source, batch_segments(1, len(logits)), self.heads, None).long()

    def _soft_pass(self, call: _Call, start: Tensor | None, seed: int | None) -> list[Tensor]:
        """What registers hold after every step, with the gradient of the softmax; for each run of heads of a size."""
        temperature = (self.soft_temperature if self.training else None) or 0.0
        generator = None if seed is None else torch.Generator(call.rows.device).manual_seed(seed)
        values, held = self._cast(self.values), []
        for logits, r, d, at in self._by_size(call.logits):
            span = slice(at, at + r * d)
            soft = (logits / (temperature or 1.0)).softmax(-1)
            rounding = one_hot(call.tables[:, span].unflatten(1, (r, d)), d) - soft.detach()
            if temperature:
                drawn = torch.rand(soft.shape[:-1], device=soft.device, generator=generator)
                rounding = rounding * (drawn >= temperature)[..., None]
            begin = None if start is None else start[:, span].unflatten(1, (r, d))
            steps = {"start": begin, "lengths": call.lengths, "resets": call.resets}
            vectors = values[span].unflatten(0, (r, d))
            held.append(register_values(soft + rounding, call.row_index, vectors, self.backend, **steps))
        return held

    def _vectors(self, states: Tensor) -> list[Tensor]:
        """B L S -> the vectors that registers hold, B L r d c for each run of heads of a size."""
        held = embedding(states + owners(self.heads, states.device), self._cast(self.values))
        return [held[:, :, at : at + r * d].unflatten(2, (r, d)) for r, d, at, _ in self._runs()]

    def _read(self, held: Sequence[Tensor], queries: Tensor) -> Tensor:
        """B L (r c): for each head, the sum of what its registers hold, weighted by B L S; in one order."""
        parts = []
        for vectors, (r, d, at, _) in zip(held, self._runs(), strict=True):
            weights = queries[..., at : at + r * d].unflatten(-1, (r, d))
            parts.append(_WeightedSum.apply(weights, vectors).flatten(2))
        return torch.cat(parts, 2)

    def _runs(self) -> Iterator[tuple[int, int, int, int]]:
        """(r, d, where they begin among the S, where among the E), for runs of heads of a size."""
        at = entry = 0
        for d, run in groupby(self.heads):
            r = len(list(run))
            yield r, d, at, entry
            at, entry = at + r * d, entry + r * d * d

    def _by_size(self, logits: Tensor) -> Iterator[tuple[Tensor, int, int, int]]:
        """(logits: R r d d, r, d, where they begin among the S), for runs of heads of a size."""
        for r, d, at, entry in self._runs():
            yield logits[:, entry : entry + r * d * d].view(-1, r, d, d), r, d, at

    def _start(self, state: Tensor | None, batch: int) -> Tensor:
        if state is None:
            return self.initial_state(batch)
        if not isinstance(state, Tensor):
            raise InvalidInput(f"a state is a tensor of integers, as an earlier call gave it; got {state!r:.60}.")
        if state.shape != (batch, sum(self.heads)):
            raise InvalidInput(
                f"a state has one vector per sequence and register: expected shape ({batch}, {sum(self.heads)}); "
                f"got {tuple(state.shape)}."
            )
        if state.is_floating_point() or state.dtype == torch.bool:
            raise InvalidInput(f"a state is integers, as an earlier call gave it; got {state.dtype}.")
        sizes = torch.tensor(self.heads, device=state.device)
        limits = sizes.repeat_interleave(sizes)
        wrong = (state < 0) | (state >= limits)
        if not torch.compiler.is_compiling() and bool(wrong.any()):
            b, j = wrong.nonzero()[0].tolist()
            raise InvalidInput(f"state[{b}, {j}] is {int(state[b, j])}, but that head has {int(limits[j])} vectors.")
        return state.long()

    def _check_ids(self, ids: Tensor | None, shape: Sequence[int]) -> Tensor | None:
        """The ids as int64; refused where they do not fit."""
        inputs = self.config.inputs
        if (ids is None) != (inputs is None):
            raise InvalidInput(
                "this layer has free tables for its inputs: pass ids, which of them stands where (B L)."
                if ids is None
                else "ids name free tables, and this layer has none: build it with inputs=N, or leave them out."
            )
        if ids is None or inputs is None:
            return None
        if not isinstance(ids, Tensor) or ids.is_floating_point() or ids.dtype == torch.bool or ids.shape != shape:
            got = f"{ids.dtype} of shape {tuple(ids.shape)}" if isinstance(ids, Tensor) else type(ids).__name__
            raise InvalidInput(f"ids are integers of shape {tuple(shape)}; got {got}.")
        return check_index(ids, inputs, "ids", "inputs")

    def _linear(self, linear: nn.Module, rows: Tensor) -> Tensor:
        """An affine map with its sums in one order, so that a row does not depend on those beside it."""
        if not is_plain(linear):
            return self._cast(linear(rows.to(self.values.dtype)))
        assert isinstance(linear, nn.Linear)
        return ordered_linear(rows.contiguous(), self._cast(linear.weight), self._cast(linear.bias), self.backend)

    def _cast(self, tensor: Tensor) -> Tensor:
        """To the type that logits are computed in: float64 if the weights are, else float32."""
        return tensor.to(torch.float64 if self.bias.dtype == torch.float64 else torch.float32)

    def extra_repr(self) -> str:
        return f"width={self.config.width}, heads={self.heads}, backend={self.backend!r}"


class _WeightedSum(torch.autograd.Function):
    """Weights ... d and vectors ... d c -> ... c, summed in one order; a sum of torch has another for other shapes."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, vectors: Tensor) -> Tensor:
        ctx.save_for_backward(weights, vectors)
        terms = (w[..., None] * v for w, v in zip(weights.unbind(-1), vectors.unbind(-2), strict=True))
        return reduce(torch.add, terms)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        weights, vectors = ctx.saved_tensors
        return (vectors * grad[..., None, :]).sum(-1), weights[..., None] * grad[..., None, :]


def register_states(
    tables: Tensor, row_index: Tensor, start: Tensor, heads: Sequence[int], lengths: Tensor | None = None,
    resets: Tensor | None = None, *, last: bool = False,
) -> Tensor:  # fmt: skip
    """B L S integers: the vector that every register holds after every step; with `last` B S, after the last one.

    Step (b, t) takes row row_index[b, t] of the tables (R S); sequences begin with the vectors `start` (B S). Blocks
    of about sqrt(L) steps are composed side by side and then one after the other: 2 sqrt(L) gathers in a row.
    """
    (B, L), S = row_index.shape, sum(heads)
    own, everyone = owners(heads, tables.device), torch.arange(S, device=tables.device)
    if not L:
        return start if last else start.new_empty(B, 0, S)
    # An entry below S is a register, one from S on a vector: a step after a reset takes vectors, whatever came before.
    steps = embedding(row_index, tables.long() + own)
    if resets is not None:
        steps = torch.where(resets[..., None], steps + S, steps)
    if lengths is not None:
        steps = torch.where(steps_below(lengths.to(steps.device), L)[..., None], steps, everyone)

    def after(held: Tensor, step: Tensor) -> Tensor:
        if resets is not None:
            held = torch.cat([held, (everyone + S).expand_as(held)], -1)
        return held.gather(-1, step)

    size = isqrt(L - 1) + 1
    blocks = -(-L // size)
    padding = everyone.expand(B, blocks * size - L, S)
    steps = torch.cat([steps, padding], 1).view(B, blocks, size, S)
    within = [steps[:, :, 0]]
    for t in range(1, size):
        within.append(after(within[-1], steps[:, :, t]))
    before = [start.long() + own + S]
    for block in within[-1].unbind(1):
        before.append(after(before[-1], block))
    if last:
        return before[-1] - own - S
    shape = (B, blocks, size, S)
    held = after(torch.stack(before[:-1], 1)[:, :, None].expand(shape), torch.stack(within, 2))
    return held.flatten(1, 2)[:, :L] - own - S


def refuse_registers(model: nn.Module) -> None:
    """Raise InvalidInput for a model with registers, from which no machine is extracted."""
    for name, module in model.named_modules():
        if isinstance(module, Registers):
            raise InvalidInput(
                f"extraction reads heads that hold one index, and {name or 'this layer'} is a Registers layer: a head "
                "of d registers can hold d ** d arrangements, which are not listed; use an NFSM layer to extract."
            )
