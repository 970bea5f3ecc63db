"""Machines that keep to the assumptions and are as different as they may be: formats, orders of summation, ways to
normalise, functions that err by their ulps. Nothing here comes from the package.

    R  rows     n  inputs     e  outputs
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

ORDERS = ("forwards", "backwards", "random", "tree", "large first", "small first", "signs apart", "fused")
MOMENTS = ("two passes", "one pass", "running")


def to_bfloat16(x):
    return torch.from_numpy(np.ascontiguousarray(x, np.float32)).to(torch.bfloat16).to(torch.float32).numpy()


def to_float16(x):
    return x.astype(np.float16).astype(np.float32)


STORE = {"float32": lambda x: x, "float16": to_float16, "bfloat16": to_bfloat16}


@dataclass
class Machine:
    """Computes in float32 inside, or with `same` in the format itself, and stores in a format."""

    format: str
    order: str
    moments: str
    generator: np.random.Generator
    same: bool = False
    bias_apart: bool = False
    exp: float = 31.0
    """What functions err by on top of their rounding, in ulps."""
    divide: float = 1.5
    root: float = 3.0

    def store(self, x):
        return STORE[self.format](np.asarray(x, np.float32))

    def inner(self, x):
        return self.store(x) if self.same else np.asarray(x, np.float32)

    def total(self, terms):
        """... n -> ...: their sum, in this machine's order."""
        terms = self.arrange(terms)
        if self.order == "tree":
            while terms.shape[-1] > 1:
                odd = terms[..., -1:] if terms.shape[-1] % 2 else terms[..., :0]
                pairs = terms[..., : terms.shape[-1] // 2 * 2]
                terms = np.concatenate([self.inner(pairs[..., ::2] + pairs[..., 1::2]), odd], axis=-1)
            return terms[..., 0]
        held = terms[..., 0]
        for i in range(1, terms.shape[-1]):
            held = self.inner(held + terms[..., i])
        return held

    def arrange(self, terms):
        if self.order == "backwards":
            return terms[..., ::-1]
        if self.order in ("random", "tree"):
            return terms[..., self.generator.permutation(terms.shape[-1])]
        if self.order in ("large first", "small first"):
            sign = -1 if self.order == "large first" else 1
            return np.take_along_axis(terms, np.argsort(sign * np.abs(terms), axis=-1), -1)
        if self.order == "signs apart":
            return np.sort(terms, axis=-1)
        return terms

    def affine(self, weight, bias, x, *, store=True):
        """R n -> R e."""
        weight, x = np.asarray(weight, np.float32), np.asarray(x, np.float32)
        if self.order == "fused":
            held = np.broadcast_to(np.asarray(bias, np.float32), (len(x), len(bias)))
            for i in range(weight.shape[1]):
                held = self.inner(x[:, i : i + 1].astype(np.float64) * weight[:, i] + held)
            return self.store(held) if store else held
        products = self.inner(x[:, None, :] * weight)
        if self.bias_apart:
            total = self.total(products)
            held = self.inner((self.store(total) if store else total) + bias)
        else:
            whole = np.concatenate([products, np.broadcast_to(bias, products.shape[:2])[..., None]], axis=-1)
            held = self.total(whole)
        return self.store(held) if store else held

    def add(self, x, y):
        return self.store(self.inner(x + y))

    def multiply(self, x, y):
        return self.store(self.inner(x * y))

    def erring(self, x, ulps):
        """Off by up to so many ulps, either way."""
        with np.errstate(over="ignore", invalid="ignore"):
            unit = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}[
                self.format if self.same else "float32"
            ]
            off = self.generator.choice([-1.0, 1.0], np.shape(x)) * 2.0 * ulps * unit
            return self.inner(np.asarray(x, np.float64) * (1.0 + off))

    def divided(self, x, by):
        return self.erring(x / np.asarray(by, np.float64), self.divide)

    def silu(self, x):
        with np.errstate(over="ignore"):
            e = self.erring(np.exp(-x.astype(np.float64)), self.exp)
        return self.store(self.divided(x, self.inner(np.float32(1.0) + e)))

    def norm(self, gain, bias, epsilon, x):
        m = np.float32(x.shape[-1])
        mean = self.divided(self.total(x), m)
        if self.moments == "two passes":
            centred = self.inner(x - mean[..., None])
            variance = self.divided(self.total(self.inner(centred * centred)), m)
        elif self.moments == "one pass":
            square = self.divided(self.total(self.inner(x * x)), m)
            variance = self.inner(square - self.inner(mean * mean))
        else:
            mean, variance = self.running(x)
        root = self.erring(1.0 / np.sqrt(self.inner(variance + np.float32(epsilon)).astype(np.float64)), self.root)[
            ..., None
        ]
        if self.moments == "two passes":
            f = self.inner(self.inner(x - mean[..., None]) * root)
            return self.store(self.inner(self.inner(f * np.float32(gain)) + bias))
        shift = self.inner(-self.inner(mean[..., None] * root))
        return self.store(self.inner(self.inner(self.inner(self.inner(x * root) + shift) * gain) + bias))

    def running(self, x):
        mean, held = np.zeros(x.shape[:-1], np.float32), np.zeros(x.shape[:-1], np.float32)
        for i in range(x.shape[-1]):
            before = self.inner(x[..., i] - mean)
            mean = self.inner(mean + self.inner(before / np.float32(i + 1)))
            held = self.inner(held + self.inner(before * self.inner(x[..., i] - mean)))
        return mean, self.inner(held / np.float32(x.shape[-1]))


class Network:
    """A backbone on one of these machines."""

    def __init__(self, model, machine):
        self.machine = machine
        self.p = {name: machine.store(value.detach().numpy()) for name, value in model.named_parameters()}
        self.heads = [layer.block.heads for layer in model.layers]

    def affine(self, name, x, *, store=True):
        return self.machine.affine(self.p[f"{name}.weight"], self.p[f"{name}.bias"], x, store=store)

    def norm(self, name, x):
        return self.machine.norm(self.p[f"{name}.weight"], self.p[f"{name}.bias"], 1e-5, x)

    def mlp(self, name, x):
        gate = self.machine.silu(self.affine(f"{name}.gate", x))
        return self.affine(f"{name}.down", self.machine.multiply(gate, self.affine(f"{name}.up", x)))

    def encode(self, tokens):
        return self.norm("encoder_norm", self.mlp("encoder", self.p["embedding.weight"][tokens]))

    def normalise(self, layer, h):
        return self.norm(f"layers.{layer}.norm1", h)

    def convolve(self, layer, window):
        name, held = f"layers.{layer}.conv", None
        held = self.p[f"{name}.bias"]
        for tap, x in enumerate(window):
            held = self.machine.add(held, self.machine.multiply(x, self.p[f"{name}.weight"][:, tap]))
        return self.machine.silu(np.asarray(held))

    def logits(self, layer, u):
        name = f"layers.{layer}.block"
        if f"{name}.mix_proj.weight" in self.p:
            u = self.affine(f"{name}.mix_proj", u, store=False)
        return self.affine(name, u, store=False)

    def above(self, layer, h, indices):
        name, at = f"layers.{layer}.block", np.cumsum([0, *self.heads[layer]])[:-1]
        words = self.p[f"{name}.values"][indices + at].reshape(len(indices), -1)
        h = self.machine.add(h, self.machine.store(self.affine(f"{name}.out_proj", words, store=False)))
        return self.machine.add(h, self.mlp(f"layers.{layer}.mlp", self.norm(f"layers.{layer}.norm2", h)))

    def label(self, h):
        return self.affine("readout", self.mlp("decoder", self.norm("final_norm", h)))

    def one_layer(self, tokens, rows):
        """(logits of the tokens: A e, logits of the labels: R n)."""
        h = self.encode(tokens)
        return self.logits(0, self.normalise(0, h)), self.label(self.above(0, h[rows[:, 0]], rows[:, 1:]))
