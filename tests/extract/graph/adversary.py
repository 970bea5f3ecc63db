"""The worst machine: every operation errs by as much as the assumptions allow, in the direction that hurts most.

Errors are variables of a network in float64; the gradient of one logit says which way each of them pushes it. Sums run
from the largest term to the smallest, so that their partial sums are long.
"""

from __future__ import annotations

import torch
from torch import Tensor


class Adversary:
    """A one-layer backbone whose operations err by `d` times their bound, d in [-1, 1]."""

    def __init__(self, model, *, store: float, inner: float, assumed):
        self.p = {name: value.detach() for name, value in model.named_parameters()}
        self.store_unit, self.inner_unit, self.assumed = store, inner, assumed
        self.heads = model.layers[0].block.heads
        self.signs: list[Tensor] = []
        self.chosen: list[Tensor] | None = None

    def err(self, x, relative):
        """x (1 + d relative)."""
        if relative == 0.0:
            return x
        if self.chosen is None:
            self.signs.append(torch.zeros(x.shape, dtype=torch.float64, requires_grad=True))
            return x * (1 + relative * self.signs[-1])
        return x * (1 + relative * self.chosen.pop(0))

    def basic(self, x):
        return self.err(x, 2 * self.assumed.basic * self.inner_unit)

    def divided(self, x, by):
        return self.err(x / by, 2 * self.assumed.divide * self.inner_unit)

    def stored(self, x):
        return self.err(x, self.store_unit)

    def total(self, terms):
        order = terms.detach().argsort(dim=-1, descending=True)
        terms = terms.gather(-1, order)
        held = terms[..., 0]
        for i in range(1, terms.shape[-1]):
            held = self.basic(held + terms[..., i])
        return held

    def affine(self, name, x, *, stores=2):
        weight, bias = self.p[f"{name}.weight"].double(), self.p[f"{name}.bias"].double()
        held = self.total(self.basic(x[:, None, :] * weight))
        held = self.stored(held) if stores == 2 else held
        held = self.basic(held + bias)
        return self.stored(held) if stores else held

    def norm(self, name, x):
        m = x.shape[-1]
        mean = self.divided(self.total(x), m)[:, None]
        centred = self.basic(x - mean)
        variance = self.divided(self.total(self.basic(centred * centred)), m)
        root = self.err(1 / (self.basic(variance + 1e-5)).sqrt(), 2 * self.assumed.root * self.inner_unit)[:, None]
        f = self.basic(self.basic(x - mean) * root)
        weight, bias = self.p[f"{name}.weight"].double(), self.p[f"{name}.bias"].double()
        return self.stored(self.basic(self.basic(f * weight) + bias))

    def silu(self, x):
        e = self.err(torch.exp(-x), 2 * self.assumed.exp * self.inner_unit)
        return self.stored(self.divided(x, self.basic(1 + e)))

    def mlp(self, name, x):
        product = self.basic(self.silu(self.affine(f"{name}.gate", x)) * self.affine(f"{name}.up", x))
        return self.affine(f"{name}.down", self.stored(product))

    def add(self, x, y):
        return self.stored(self.basic(x + y))

    def logits(self, token):
        return self.affine("layers.0.block", self.norm("layers.0.norm1", self.encode(token)), stores=0)

    def encode(self, token):
        x = self.p["embedding.weight"][token : token + 1].double()
        return self.norm("encoder_norm", self.mlp("encoder", x))

    def labels(self, row):
        at = torch.cumsum(torch.tensor([0, *self.heads]), 0)[:-1]
        words = self.p["layers.0.block.values"][torch.as_tensor(row[1:]) + at].reshape(1, -1).double()
        h = self.add(self.encode(row[0]), self.affine("layers.0.block.out_proj", words, stores=1))
        h = self.add(h, self.mlp("layers.0.mlp", self.norm("layers.0.norm2", h)))
        return self.affine("readout", self.mlp("decoder", self.norm("final_norm", h)))


def worst(adversary, compute, entry):
    """How far one logit of `compute` can be pushed."""
    adversary.signs, adversary.chosen = [], None
    true = compute()[0, entry]
    true.backward()
    adversary.chosen = [sign.grad.sign() for sign in adversary.signs]
    with torch.no_grad():
        pushed = compute()[0, entry]
    return float((pushed - true.detach()).abs())
