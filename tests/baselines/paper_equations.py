"""The affine baselines as the paper's appendix writes them, in NumPy, a sequence, a step and an entry at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactstate.baselines import AUSSM, PDSSM, MambaMinus

Array = NDArray[Any]


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def weights(layer: Any) -> dict[str, Array]:
    return {name: tensor.detach().double().numpy() for name, tensor in layer.state_dict().items()}


def mamba(layer: MambaMinus, x: Array, h: Array) -> tuple[Array, Array]:
    """x: L m, h: d n."""
    w, outputs, h = weights(layer), [], h.copy()
    d, n = w["A_log"].shape
    for row in x:
        entered = w["in_proj.weight"] @ row
        u, z = silu(entered[:d]), entered[d:]
        delta = np.log1p(np.exp(w["dt_proj.weight"] @ u + w["dt_proj.bias"]))
        spoken = w["bc_proj.weight"] @ u
        B, C = spoken[:n], spoken[n:]
        y = np.zeros(d)
        for i in range(d):
            for j in range(n):
                a = 2 * np.exp(-delta[i] * np.exp(w["A_log"][i, j])) - 1
                h[i, j] = a * h[i, j] + delta[i] * B[j] * u[i]
                y[i] += C[j] * h[i, j]
            y[i] = (y[i] + w["skip"][i] * u[i]) * silu(z[i])
        outputs.append(w["out_proj.weight"] @ y)
    return np.array(outputs), h


def aussm(layer: AUSSM, x: Array, h: Array) -> tuple[Array, Array]:
    """x: L m, h: d n complex."""
    w, outputs, h = weights(layer), [], h.copy()
    d, n = h.shape
    B, C = (w[name] @ np.array([1, 1j]) for name in ("B", "C"))
    for row in x:
        entered = w["in_proj.weight"] @ row
        u, z = silu(entered[:d]), entered[d:]
        delta = np.log1p(np.exp(w["dt_proj.weight"] @ u + w["dt_proj.bias"]))
        phase = (w["phase_proj.weight"] @ u).reshape(d, n)
        y = np.zeros(d)
        for i in range(d):
            for j in range(n):
                h[i, j] = np.exp(1j * phase[i, j]) * h[i, j] + delta[i] * B[j] * u[i]
                y[i] += (C[j] * h[i, j]).real
            y[i] = (y[i] + w["skip"][i] * u[i]) * silu(z[i])
        outputs.append(w["out_proj.weight"] @ y)
    return np.array(outputs), h


def pdssm(layer: PDSSM, x: Array, h: Array) -> tuple[Array, Array]:
    """x: L m, h: N complex."""
    w, outputs, h = weights(layer), [], h.copy()
    N = len(h)

    def small_network(name: str, row: Array) -> Array:
        inner = silu(w[f"{name}.0.weight"] @ row + w[f"{name}.0.bias"])
        return sigmoid(w[f"{name}.2.weight"] @ inner + w[f"{name}.2.bias"])

    for row in x:
        scores = w["mix_proj.weight"] @ row
        mixture = np.exp(scores) / np.exp(scores).sum()
        M = sum(share * matrix for share, matrix in zip(mixture, w["dictionary"], strict=True))
        P = np.zeros((N, N))
        for k in range(N):
            P[np.argmax(M[:, k]), k] = 1
        D = np.diag(small_network("modulus", row) * np.exp(2j * np.pi * small_network("phase", row)))
        drive = (w["in_proj.weight"] @ row).reshape(N, 2) @ np.array([1, 1j])
        h = P @ D @ h + drive
        read = np.stack([h.real, h.imag], axis=-1).reshape(-1)
        outputs.append(w["out_proj.weight"] @ read + w["skip"] * row)
    return np.array(outputs), h
