"""The neural finite-state machine: a recurrent layer whose every step is an exact transition table.

    B  batch     L  length     m  width     r  heads     d  indices of a head     S  the sum of the ds

Each head holds one of d indices. An affine map of the input gives d x d logits; the arg max of column k says where
index k goes. Tables compose by gathers, so a scan over them is exact. Each index owns a value vector; those of all
heads are concatenated and projected back to the width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from numbers import Integral
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from exactstate.errors import InvalidConfig, InvalidInput
from exactstate.nn.init import fan_in_, truncated_
from exactstate.nn.inputs import Rows, as_integers, check_call, steps_below, whole_numbers
from exactstate.nn.pretrained import Pretrained
from exactstate.nn.soft import soft_states
from exactstate.nn.wrapped import is_plain, looked_up
from exactstate.ops.eager import is_counted, is_exported, is_traced, is_transformed, without_autocast
from exactstate.ops.flops import count_flops
from exactstate.ops.interface import kernels, resolve
from exactstate.ops.nfsm_op import NfsmCall, forward_eval, forward_sampled
from exactstate.ops.ordered_linear import ordered_linear
from exactstate.ops.segments import LogitSource, batch_segments
from exactstate.ops.sequence_parallel import group_name
from exactstate.ops.tables import entry_offsets, identity, indices_of, offsets, one_hot
from exactstate.ops.torch_kernels import project_values

if TYPE_CHECKING:
    from exactstate.nn.diagnose import Diagnosis

DEFAULT_HEADS = (12,) * 16
_SINGLE, _DOUBLE = (torch.float32,) * 6, (torch.float64,) * 6


class NFSM(Pretrained, nn.Module):
    """A block of heads that read the same input and move independently.

    >>> layer = NFSM(width=16, heads=(4, 3))
    >>> y, state = layer(torch.randn(2, 100, 16))
    >>> y.shape, state.shape
    (torch.Size([2, 100, 16]), torch.Size([2, 2]))

    Tables are the arg max of the logits, the lowest index on a tie; the gradient is that of the softmax at
    `temperature`. With `noise=True` tables are sampled in training mode (Gumbel noise), as in the paper. After
    `exactstate.nn.soften(layer, temperature)` training mode runs on distributions over indices instead.

    With `process_group` (or a one-dimensional DeviceMesh) every rank holds a stretch of each sequence; the states are
    bit for bit those of one process. See `exactstate.ops.sequence_parallel` for what is exchanged and who gets which
    gradient. `lengths` and `cu_seqlens` are then those of the whole sequences, `x` and `resets` the rank's rows.
    """

    @dataclass(frozen=True, kw_only=True, slots=True)
    class Config:
        """The arguments of the constructor, as `save_pretrained` writes them."""

        width: int
        """m, of the input and the output."""
        heads: tuple[int, ...] = DEFAULT_HEADS
        """Number of indices of each head; sixteen heads of twelve by default."""
        value_width: int | None = None
        """Width of an index's value vector; by default width / heads, rounded up."""
        temperature: float = 1.0
        """Logits are divided by this in the softmax of the backward pass, and before noise is added."""
        noise: bool = False
        """Whether tables are sampled in training mode. Without noise they are the arg max there too. The paper samples,
        at a temperature of 0.5."""
        remember: float = 1.0
        """Initial bias of the logits that keep an index where it is, like the forget-gate bias of an LSTM: larger
        values hold states for longer; the paper has none."""
        dictionary: int | None = None
        """If given, the logits are mixtures of this many learned logit matrices, with weights affine in the input. As
        many distinct inputs can have any logits. None: the logits are affine in the input itself."""
        gate: bool = False
        """Whether the concatenated value vectors are multiplied by SiLU of an affine map of the input before they are
        projected, so that a step reads some heads and not others. Helps in language models. States stay exact; the
        output of a call in pieces equals that of one call to rounding. Extraction refuses it."""
        initial_state: tuple[int, ...] = ()
        """Index of each head before the first step and after a reset; zeros by default."""
        chunk: int = 0
        """In training, steps of a sequence whose tables are held at a time (0: all, and no recomputation)."""

        def __post_init__(self) -> None:
            for name in ("width", "value_width", "dictionary", "chunk"):
                value = getattr(self, name)
                if value is not None and (not isinstance(value, Integral) or isinstance(value, bool)):
                    raise InvalidConfig(f"{name} is a whole number; got {value!r}.")
            if not self.heads or not 1 <= min(self.heads) <= max(self.heads) <= 32768:
                raise InvalidConfig(f"heads must be one or more sizes from 1 to 32768 indices; got {self.heads}.")
            for name in ("width", "value_width", "dictionary"):
                value = getattr(self, name)
                if value is not None and value < 1:
                    raise InvalidConfig(f"{name} must be at least 1; got {value}.")
            if not 0 < self.temperature < float("inf"):
                raise InvalidConfig(f"temperature must be positive and finite; got {self.temperature}.")
            if not abs(self.remember) < float("inf"):
                raise InvalidConfig(f"remember must be finite; got {self.remember}.")
            if self.chunk < 0:
                raise InvalidConfig(f"chunk must be 0 (no chunks) or a number of steps; got {self.chunk}.")
            start = self.initial_state or (0,) * len(self.heads)
            if len(start) != len(self.heads) or any(not 0 <= k < d for k, d in zip(start, self.heads, strict=True)):
                raise InvalidConfig(f"initial_state has one index per head of {self.heads}; got {start}.")
            object.__setattr__(self, "initial_state", start)

    def __init__(
        self, width: int, heads: Sequence[int] = DEFAULT_HEADS, *, value_width: int | None = None,
        temperature: float = 1.0, noise: bool = False, remember: float = 1.0, dictionary: int | None = None,
        gate: bool = False, initial_state: Sequence[int] | None = None, chunk: int = 0, backend: str = "auto",
        generator: torch.Generator | None = None, process_group: Any = None, batch_first: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if not batch_first:
            raise InvalidConfig("the batch comes first, B L m: pass x.transpose(0, 1), and transpose y back.")
        if isinstance(heads, int):
            raise InvalidConfig(
                f"heads is one size per head, and {heads} alone could mean two things: "
                f"pass heads=({heads},) for one head of {heads} indices, or heads=(12,) * {heads} for {heads} heads."
            )
        self.config = NFSM.Config(
            width=width, heads=whole_numbers("heads", heads), value_width=value_width, temperature=temperature,
            noise=noise, remember=remember, dictionary=dictionary, gate=gate, chunk=chunk,
            initial_state=whole_numbers("initial_state", () if initial_state is None else initial_state),
        )  # fmt: skip
        self.backend = resolve(backend)
        self._auto = backend == "auto"
        self._group = group_name(process_group)
        self.soft_temperature: float | None = None  # set by `exactstate.nn.soften`
        self.heads = self.config.heads
        entries = sum(d * d for d in self.heads)
        self.value_width = value_width or -(-width // len(self.heads))
        self.mix_proj = nn.Linear(width, dictionary) if dictionary else None
        # row k * d + j of a head scores its move from index k to index j
        self.weight = nn.Parameter(torch.empty(entries, dictionary or width))
        self.bias = nn.Parameter(torch.empty(entries))
        self.values = nn.Parameter(torch.empty(sum(self.heads), self.value_width))
        self.out_proj = nn.Linear(self.value_width * len(self.heads), width)
        self.gate_proj = nn.Linear(width, self.value_width * len(self.heads)) if gate else None
        self.reset_parameters(generator)
        self.register_state_dict_post_hook(note_heads)
        self.register_load_state_dict_pre_hook(_refuse_other_layers)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Truncated normal weights of variance 1 / fan-in, unit-variance value vectors, and zero biases except
        `remember` for the logits that keep an index where it is.

        The weights of a mixture are larger by width / dictionary, and the matrices smaller: the logits have the same
        variance, and a step of Adam moves them about as far as those of a layer without a dictionary.
        """
        linears = [linear for linear in (self.out_proj, self.mix_proj, self.gate_proj) if linear is not None]
        truncated_(self.weight, generator, self.logit_gain)
        nn.init.zeros_(self.bias)
        with torch.no_grad():
            for d, at in zip(self.heads, entry_offsets(self.heads), strict=True):
                self.bias[at : at + d * d : d + 1] = self.config.remember
        for linear in linears:
            fan_in_(linear, generator)
        if self.mix_proj is not None:
            with torch.no_grad():
                self.mix_proj.weight /= self.logit_gain
        nn.init.normal_(self.values, generator=generator)

    @property
    def logit_gain(self) -> float:
        """What the initial deviation of `weight` is multiplied by; that of the mixture is divided by it."""
        return min(1.0, (self.config.dictionary or self.config.width) / self.config.width)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> NFSM:
        """After a move to another device, "auto" is the fastest backend there."""
        before = self.weight.device.type
        super()._apply(fn, recurse)
        if self._auto and self.weight.device.type != before:
            self.backend = resolve("auto", self.weight.device.type)
        return self

    def initial_state(self, batch: int) -> Tensor:
        """B r integers: the state before the first step."""
        return torch.tensor(self.config.initial_state, device=self.weight.device).expand(batch, -1).contiguous()

    def forward(
        self, x: Rows | PackedSequence, state: Tensor | None = None, *,
        lengths: Tensor | Sequence[int] | None = None, cu_seqlens: Tensor | Sequence[int] | None = None,
        resets: Tensor | None = None, seed: int | Tensor | None = None, carry_gradient: bool = False,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """(y, state): the read-out after every step, and the index of every head after the last.

        - `x`: B L m, or `(rows, index)` with R distinct rows (R m) and which of them stands where (B L). A
          PackedSequence gives one back.
        - `state`: B r integers, from an earlier call; continuing is bit for bit one long call (on `tree`, except
          where two logits of a column differ by less than their rounding).
        - `lengths`: B; steps beyond a sequence's length are identity tables and hold its state. Or B L booleans, True
          for the steps of a sequence, as the `attention_mask` of a tokenizer: padding may be before or behind them, and
          the results are those of every sequence alone, bit for bit.
        - `cu_seqlens`: boundaries of sequences packed into x of N m; states have one row per sequence.
        - `resets`: B L booleans; a step at which an episode begins starts from the initial state.
        - `seed`: determines the noise of a training pass; drawn from torch's default generator if not given. The noise
          of a step is a function of the seed, the sequence's number and the step's number within this call: give every
          call and every layer a seed of its own.
        - `carry_gradient`: return the state as one-hot rows (B S) that carry the gradient to the next call,
          which takes them as `state`.
        """
        if isinstance(x, PackedSequence):
            if lengths is not None or cu_seqlens is not None or resets is not None:
                raise InvalidInput("a PackedSequence has its lengths inside: pass no lengths, cu_seqlens or resets.")
            rows, lengths = pad_packed_sequence(x, batch_first=True)
            y, final = self(rows, state, lengths=lengths, seed=seed, carry_gradient=carry_gradient)
            in_order = x.sorted_indices is None
            return pack_padded_sequence(y, lengths, batch_first=True, enforce_sorted=in_order), final  # type: ignore
        plain = is_plain(self.out_proj) and self.gate_proj is None
        params = self._readout_params if plain else self._concatenated_params
        call = self._call(x, state, lengths, cu_seqlens, resets, seed, params)
        if self.training and self.soft_temperature is not None:
            y, final = self._soft_pass(call, carry_gradient)
        elif call.seed is not None or (
            call.requires_grad and (self.training if is_exported() else torch.is_grad_enabled())
        ):
            y, finals = forward_sampled(call)
            final = finals if carry_gradient else indices_of(finals, self.heads)
        else:
            y, final = forward_eval(call)
            final = one_hot(final, self.heads, y.dtype) if carry_gradient else final
        if self.gate_proj is not None:
            y = self._gated(y, x)
        elif not plain:
            y = self.out_proj(y.to(self.values.dtype))
        return y.to((x[0] if isinstance(x, tuple) else x).dtype), final

    def one_hot_states(
        self, x: Rows, state: Tensor | None = None, *, lengths: Tensor | None = None,
        cu_seqlens: Tensor | None = None, resets: Tensor | None = None, seed: int | Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """... S: the index of every head after every step as one-hot rows, with the gradient of the tables.

        For losses on the heads themselves, such as a probe that predicts the label from one head. Arguments as in
        `forward`; `one_hot_states(x) @ vectors + out_proj.bias` is its output, for the projected value vectors.
        """
        return forward_sampled(self._call(x, state, lengths, cu_seqlens, resets, seed, self._one_hot_params))[0]

    @torch.no_grad()
    def states(
        self, x: Rows, state: Tensor | None = None, *, lengths: Tensor | None = None,
        cu_seqlens: Tensor | None = None, resets: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """... r integers: the index of every head after every step, in evaluation."""
        mode = self.training
        try:
            one_hot_rows = self.eval().one_hot_states(
                x, state, lengths=lengths, cu_seqlens=cu_seqlens, resets=resets
            )  # fmt: skip
        finally:
            self.train(mode)
        flat = one_hot_rows.flatten(0, -2)
        return indices_of(flat, self.heads).view(*one_hot_rows.shape[:-1], len(self.heads))

    def step(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """One step of streaming, B m -> (B m, B r): only the columns the states are in are computed."""
        if x.ndim != 2 or x.shape[1] != self.config.width or not x.is_floating_point():
            raise InvalidInput(
                f"a step takes one row per sequence, floating point of shape (B, {self.config.width}); "
                f"got {x.dtype} of shape {tuple(x.shape)}."
            )
        if self._group:
            raise InvalidInput("a step cannot be split over ranks: stream with a layer without process_group.")
        watched = torch.is_grad_enabled() or is_traced(x) or is_transformed()
        out_proj, gate = self._modules["out_proj"], self.gate_proj  # an attribute takes longer to find
        assert out_proj is not None
        if self.training or watched or not is_plain(out_proj):
            y, state = self(x[:, None], state)
            return y[:, 0], state
        start, _ = self._start(state, x.shape[0])
        rows = x.contiguous() if self.mix_proj is None else self.logit_input(x).contiguous()
        weight, bias, values = looked_up(self, "weight", "bias", "values")
        out_weight, out_bias = looked_up(out_proj, "weight", "bias")
        if gate is not None:
            values, out_weight, out_bias = self._concatenated_params()
        kinds = rows.dtype, weight.dtype, bias.dtype, values.dtype, out_weight.dtype, out_bias.dtype
        if kinds not in (_SINGLE, _DOUBLE):
            given = rows, weight, bias, values, out_weight, out_bias
            rows, weight, bias, values, out_weight, out_bias = map(self._cast, given)
        step = kernels(self.backend).step
        y, final = step(rows, weight, bias, values, out_weight, out_bias, start, self.heads)
        y = y if gate is None else self._gated(y, x)
        return y if y.dtype is x.dtype else y.to(x.dtype), final

    def logits(self, x: Tensor) -> tuple[Tensor, ...]:
        """One array per head, ... d d: entry [j, k] scores the move from index k to index j; differentiable."""
        source = self._logit_source(x.reshape(prod(x.shape[:-1]), x.shape[-1]))
        flat = ordered_linear(source.input, source.weight, source.bias, self.backend)
        return tuple(
            flat[:, at : at + d * d].view(*x.shape[:-1], d, d).transpose(-1, -2)
            for d, at in zip(self.heads, entry_offsets(self.heads), strict=True)
        )

    @torch.no_grad()
    def tables(
        self, x: Tensor, *, lengths: Tensor | None = None, resets: Tensor | None = None
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """The table of each step in evaluation, one array per head (B L d): entry k is where index k goes."""
        if is_traced(x):
            raise InvalidInput("tables are read from a layer with numbers, outside of tracers; record its call.")
        rows, _ = check_call(self.config.width, x, lengths, None, resets, masks=True)
        B, L = rows.shape[:2]
        source = self._logit_source(rows.reshape(B * L, self.config.width))
        flat = kernels(self.backend).tables(source, batch_segments(B, L), self.heads, None)
        tables = flat.long().view(B, L, sum(self.heads))
        parts = []
        for d, at, initial in zip(self.heads, offsets(self.heads), self.config.initial_state, strict=True):
            table = tables[..., at : at + d]
            if resets is not None:
                table = torch.where(resets[..., None], table[..., initial, None].expand_as(table), table)
            if lengths is not None:
                own = lengths if lengths.dtype == torch.bool else steps_below(lengths, L)
                table = torch.where(own[..., None], table, identity((d,), device=x.device))
            parts.append(table)
        return tuple(parts)

    def diagnose(self, x: Tensor, state: Tensor | None = None) -> Diagnosis:
        """What every head does on these inputs (B L m): indices in use, heads that carry nothing, frozen columns.

        Print it, or read its fields; see `exactstate/nn/diagnose.py`.
        """
        from exactstate.nn.diagnose import diagnose

        return diagnose(self, x, state)

    def logit_input(self, rows: Tensor) -> Tensor:
        """What the logits are an affine map of: the input, or the mixture weights of the dictionary."""
        rows = self._cast(rows)
        if self.mix_proj is None:
            return rows
        if not is_plain(self.mix_proj):
            return self._cast(self.mix_proj(rows.to(self.bias.dtype)))
        weight, bias = self._cast(self.mix_proj.weight), self._cast(self.mix_proj.bias)
        flat = rows.reshape(prod(rows.shape[:-1]), rows.shape[-1])
        return ordered_linear(flat, weight, bias, self.backend).view(*rows.shape[:-1], len(bias))

    def _call(
        self, x: Rows, state: Tensor | None, lengths: Tensor | Sequence[int] | None,
        cu_seqlens: Tensor | Sequence[int] | None, resets: Tensor | None, seed: int | Tensor | None,
        readout_params: Callable[[], tuple[Tensor, Tensor, Tensor]],
    ) -> NfsmCall:  # fmt: skip
        """The arguments of a pass over these inputs."""
        if is_counted():
            count_flops()
        lengths, cu_seqlens = as_integers("lengths", lengths), as_integers("cu_seqlens", cu_seqlens)
        rows, index = check_call(self.config.width, x, lengths, cu_seqlens, resets, masks=not self._group)
        batch = len(cu_seqlens) - 1 if cu_seqlens is not None else (rows if index is None else index).shape[0]
        with without_autocast(rows.device):  # an arg max of half-precision logits is full of ties
            start, carry = self._start(state, batch)
            return NfsmCall(
                self.logit_input(rows), self._cast(self.weight), self._cast(self.bias), *readout_params(), carry,
                row_index=index, start=start, lengths=lengths, cu_seqlens=cu_seqlens, resets=resets,
                seed=self._seed(seed) if self.training and self.config.noise else None, heads=self.heads,
                initial_state=self.config.initial_state, temperature=self.config.temperature,
                chunk=self.config.chunk, backend=self.backend, group=self._group,
            )  # fmt: skip

    def _soft_pass(self, call: NfsmCall, carry_gradient: bool) -> tuple[Tensor, Tensor]:
        """(read-out of soft states, the likeliest last index of every head); see `exactstate.nn.soft`."""
        assert self.soft_temperature is not None
        refused = {
            "noise=True": call.seed is not None, "cu_seqlens": call.cu_seqlens is not None,
            "process_group": bool(self._group), "carry_gradient=True": carry_gradient,
            "torch.jit.trace": torch.jit.is_tracing(),
        }  # fmt: skip
        for name, given in refused.items():
            if given:
                raise InvalidInput(f"soft states do not work with {name}: leave it out, or soften(model, None).")
        lengths = mask = call.lengths
        if mask is not None and mask.dtype == torch.bool:
            lengths = mask.sum(1)
            if not is_traced(call.input) and not torch.equal(mask, steps_below(lengths, mask.shape[1])):
                raise InvalidInput("soft states take padding behind the steps only: pad on the right in training.")
        s = soft_states(
            call.input, call.weight, call.bias, self.heads, call.start, self.soft_temperature,
            row_index=call.row_index, lengths=lengths, resets=call.resets,
            initial_state=self.config.initial_state, backend=self.backend,
        )  # fmt: skip
        final = indices_of(s[:, -1], self.heads) if s.shape[1] else call.start
        return s @ project_values(call.values, call.out_weight, self.heads) + call.out_bias, final

    def _logit_source(self, rows: Tensor) -> LogitSource:
        return LogitSource(self.logit_input(rows).contiguous(), self._cast(self.weight), self._cast(self.bias))

    def _readout_params(self) -> tuple[Tensor, Tensor, Tensor]:
        """The value vectors, and the weight and bias of the output projection."""
        return self._cast(self.values), self._cast(self.out_proj.weight), self._cast(self.out_proj.bias)

    def _concatenated_params(self) -> tuple[Tensor, Tensor, Tensor]:
        """A read-out whose output is what the projection reads: the value vectors of all heads, side by side."""
        width = self.value_width * len(self.heads)
        identity = torch.eye(width).to(self.bias)
        return self._cast(self.values), self._cast(identity), self._cast(identity.new_zeros(width))

    def _gated(self, values: Tensor, x: Rows) -> Tensor:
        """The output, from the concatenated value vectors of every step and the inputs; sums in one order."""
        assert self.gate_proj is not None
        rows, index = x if isinstance(x, tuple) else (x, None)
        flat = self._cast(rows).reshape(-1, self.config.width)
        projections = [(self._cast(one.weight), self._cast(one.bias)) for one in (self.gate_proj, self.out_proj)]
        gate = nn.functional.silu(ordered_linear(flat, *projections[0], self.backend))
        gate = (gate if index is None else gate[index]).view_as(values)
        y = ordered_linear((values * gate).reshape(-1, values.shape[-1]), *projections[1], self.backend)
        return y.view(*values.shape[:-1], self.config.width)

    def _one_hot_params(self) -> tuple[Tensor, Tensor, Tensor]:
        """A read-out whose output is the one-hot index of every head."""
        blocks = [torch.eye(d, max(self.heads)).to(self.bias) for d in self.heads]
        offset = self.bias.new_zeros(sum(self.heads))
        return self._cast(torch.cat(blocks)), self._cast(torch.block_diag(*blocks)), self._cast(offset)

    def _start(self, state: Tensor | None, batch: int) -> tuple[Tensor, Tensor | None]:
        """(start indices: B r, one-hot rows that carry a gradient: B S, or None)."""
        if state is None:
            return self.initial_state(batch), None
        r, S = len(self.heads), sum(self.heads)
        if not isinstance(state, Tensor):
            raise InvalidInput(f"a state is a tensor of integers, as an earlier call gave it; got {state!r:.60}.")
        if not state.is_floating_point():
            if state.shape != (batch, r):
                raise InvalidInput(
                    f"a state has one index per sequence and head: expected shape ({batch}, {r}); "
                    f"got {tuple(state.shape)}."
                )
            return state, None
        if state.shape != (batch, S):
            raise InvalidInput(
                f"a state is integers of shape ({batch}, {r}), or one-hot rows of shape ({batch}, {S}); "
                f"got {state.dtype} of shape {tuple(state.shape)}."
            )
        start = indices_of(state, self.heads)
        exact = one_hot(start, self.heads, state.dtype)
        if not torch.compiler.is_compiling() and not torch.equal(exact, state.detach()):
            raise InvalidInput("a floating-point state has one-hot rows: for every head a single 1, and zeros.")
        return start, self._cast(state)

    def _cast(self, tensor: Tensor) -> Tensor:
        """To the type that logits are computed in: float64 if the weights are, else float32."""
        dtype = torch.float64 if self.weight.dtype == torch.float64 else torch.float32
        return tensor if tensor.dtype == dtype else tensor.to(dtype)

    def _seed(self, seed: int | Tensor | None) -> Tensor:
        if seed is None:
            return torch.randint(-(2**63), 2**63 - 1, ())
        if isinstance(seed, Tensor) and seed.dtype == torch.int64:
            return seed
        if isinstance(seed, bool) or not isinstance(seed, Integral):
            raise InvalidInput(f"a seed is a whole number; got {seed!r:.60}.")
        return torch.as_tensor(int(seed), dtype=torch.int64)

    def extra_repr(self) -> str:
        return f"width={self.config.width}, heads={self.heads}, backend={self.backend!r}"


def note_heads(layer: Any, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
    """Heads of (4, 3) and (3, 4) have weights of the same shapes: the sizes go with the state dict's metadata.

    A copy of the tensors alone, such as a safetensors file without metadata, has lost them, and no tensor tells these
    heads apart; a buffer that did would change the names, and so the digests, of all weights. The files of a run have
    the heads beside them.
    """
    local_metadata["heads"] = layer.heads


def refuse_other_heads(
    layer: Any, state_dict: Any, prefix: str, local_metadata: dict[str, Any], strict: bool, missing: list[str],
    unexpected: list[str], errors: list[str],
) -> None:  # fmt: skip
    heads = local_metadata.get("heads")
    if heads is not None and tuple(heads) != layer.heads:
        errors.append(f"{prefix}heads: the state dict is of heads {tuple(heads)}, and this layer has {layer.heads}.")


def _refuse_other_layers(
    layer: NFSM, state_dict: Any, prefix: str, local_metadata: dict[str, Any], strict: bool, missing: list[str],
    unexpected: list[str], errors: list[str],
) -> None:  # fmt: skip
    refuse_other_heads(layer, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)
    mixed = [name for name in state_dict if name.startswith(f"{prefix}mix_proj.")]
    weight = f"{prefix}mix_proj.weight"
    if f"{prefix}weight" in state_dict and (not mixed or weight in mixed):  # a wrapped projection has other names
        there = len(state_dict[weight]) if mixed else None
        if there != layer.config.dictionary:
            errors.append(
                f"{prefix}mix_proj: the state dict is of a layer with dictionary={there}, and this one has "
                f"dictionary={layer.config.dictionary}; build it with dictionary={there}."
            )
