"""The one-hot model of the paper, written with matrices and differentiated by autograd: the layer's oracle.

h_t = P_t h_{t-1}, with P_t the column one-hot matrix of the sampled table, hard forward and soft backward. It shares
no code with the layer but the noise.
"""

from __future__ import annotations

import torch

from exactstate.ops.gumbel import gumbel


def run_one_hot(layer, x, start, seed, *, resets=None, lengths=None, noisy=True, sequence=None):
    """(y: B L m, last h: B S), differentiable; `start` is one-hot rows, B S."""
    B, L, _ = x.shape
    source = layer.mix_proj(x) if layer.mix_proj is not None else x
    theta = source @ layer.weight.T + layer.bias
    u = theta / layer.config.temperature
    if noisy:
        b = torch.arange(B) if sequence is None else sequence
        noise = gumbel(torch.tensor(seed), b.repeat_interleave(L), torch.arange(L).repeat(B), theta.shape[-1])
        u = u + noise.view(B, L, -1).to(u.dtype)
    ys, finals = [], []
    for b in range(B):
        rows, h = [], start[b]
        for t in range(L):
            if lengths is not None and t >= lengths[b]:
                rows.append(_read(layer, h))
                continue
            if resets is not None and resets[b, t]:
                h = _home(layer, h)
            h = _step(layer, u[b, t], h)
            rows.append(_read(layer, h))
        ys.append(torch.stack(rows) if rows else x.new_empty(0, x.shape[-1]))
        finals.append(h)
    return torch.stack(ys), torch.stack(finals)


def _home(layer, h):
    parts = [torch.eye(d, dtype=h.dtype)[k] for d, k in zip(layer.heads, layer.config.initial_state, strict=True)]
    return torch.cat(parts)


def _step(layer, u, h):
    parts, index, entry = [], 0, 0
    for d in layer.heads:
        columns = u[entry : entry + d * d].view(d, d)  # [k, j]
        soft = columns.softmax(-1).T  # column k is the distribution of where k goes
        hard = torch.nn.functional.one_hot(columns.argmax(-1), d).to(u.dtype).T
        P = hard + (soft - soft.detach())
        parts.append(P @ h[index : index + d])
        index, entry = index + d, entry + d * d
    return torch.cat(parts)


def _read(layer, h):
    parts, index = [], 0
    for d in layer.heads:
        parts.append(h[index : index + d] @ layer.values[index : index + d])
        index += d
    return layer.out_proj(torch.cat(parts))
