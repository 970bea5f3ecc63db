"""The same network in real numbers: fifty digits and more, by mpmath, entry by entry. The oracle of these tests."""

from __future__ import annotations

import mpmath
import numpy as np

mpmath.mp.dps = 50


def vector(values):
    return [mpmath.mpf(float(value)) for value in values]


class Real:
    def __init__(self, model):
        self.p = {name: value.detach().double().numpy() for name, value in model.named_parameters()}
        self.heads = [layer.block.heads for layer in model.layers]

    def affine(self, name, x):
        weight, bias = self.p[f"{name}.weight"], vector(self.p[f"{name}.bias"])
        return [mpmath.fdot(vector(row), x) + b for row, b in zip(weight, bias, strict=True)]

    def norm(self, name, x):
        m = len(x)
        mean = mpmath.fsum(x) / m
        sigma = mpmath.sqrt(mpmath.fsum((value - mean) ** 2 for value in x) / m + mpmath.mpf(1e-5))
        gain, bias = vector(self.p[f"{name}.weight"]), vector(self.p[f"{name}.bias"])
        return [(value - mean) / sigma * g + b for value, g, b in zip(x, gain, bias, strict=True)]

    def mlp(self, name, x):
        gate, up = self.affine(f"{name}.gate", x), self.affine(f"{name}.up", x)
        hidden = [g / (1 + mpmath.exp(-g)) * u for g, u in zip(gate, up, strict=True)]
        return self.affine(f"{name}.down", hidden)

    def encode(self, token):
        return self.norm("encoder_norm", self.mlp("encoder", vector(self.p["embedding.weight"][token])))

    def normalise(self, layer, h):
        return self.norm(f"layers.{layer}.norm1", h)

    def convolve(self, layer, window):
        weight, bias = self.p[f"layers.{layer}.conv.weight"], self.p[f"layers.{layer}.conv.bias"]
        held = vector(bias)
        for tap, x in enumerate(window):
            held = [y + value * w for y, value, w in zip(held, x, vector(weight[:, tap]), strict=True)]
        return [y / (1 + mpmath.exp(-y)) for y in held]

    def logits(self, layer, u):
        name = f"layers.{layer}.block"
        if f"{name}.mix_proj.weight" in self.p:
            u = self.affine(f"{name}.mix_proj", u)
        return self.affine(name, u)

    def above(self, layer, h, indices):
        name, at = f"layers.{layer}.block", np.cumsum([0, *self.heads[layer]])[:-1]
        words = vector(self.p[f"{name}.values"][np.asarray(indices) + at].reshape(-1))
        h = [a + b for a, b in zip(h, self.affine(f"{name}.out_proj", words), strict=True)]
        mixed = self.mlp(f"layers.{layer}.mlp", self.norm(f"layers.{layer}.norm2", h))
        return [a + b for a, b in zip(h, mixed, strict=True)]

    def label(self, h):
        return self.affine("readout", self.mlp("decoder", self.norm("final_norm", h)))

    def one_layer(self, tokens, rows):
        """(logits of the tokens: A e, logits of the labels: R n), rounded to float64 at the very end."""
        h = [self.encode(token) for token in tokens]
        moves = [self.logits(0, self.normalise(0, x)) for x in h]
        labels = [self.label(self.above(0, h[row[0]], row[1:])) for row in rows]
        return np.array(moves, float), np.array(labels, float)
