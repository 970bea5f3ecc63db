"""Architectures whose transition stays below spectral radius one: old inputs are forgotten, R3 fails if they matter."""

from __future__ import annotations

import numpy as np

from paper.census.entry import Drawn, Entry
from paper.census.parts import (
    DECAYING,
    GATED,
    diagonal,
    direction,
    gate,
    pace,
    reflected,
    reflection,
    rotations,
    sigmoid,
)

Generator = np.random.Generator


def mamba(generator: Generator, d: int, *, edge: bool) -> Drawn:
    return diagonal(np.exp(-pace(generator, edge=edge) * np.exp(generator.standard_normal(d))))


def mamba_minus(generator: Generator, d: int, *, edge: bool) -> Drawn:
    return diagonal(2 * np.exp(-pace(generator, edge=edge) * np.exp(generator.standard_normal(d))) - 1)


def mamba2(generator: Generator, d: int, *, edge: bool) -> Drawn:
    a = np.exp(-pace(generator, edge=edge) * np.exp(generator.standard_normal()))
    return diagonal(np.full(d, a))


def mamba3(generator: Generator, d: int, *, edge: bool) -> Drawn:
    a = np.exp(-pace(generator, edge=edge) * np.exp(generator.standard_normal()))
    return Drawn(a * rotations(generator.uniform(0, 2 * np.pi, d // 2)), np.full(d, a), a)


def lru(generator: Generator, d: int, *, edge: bool) -> Drawn:
    nu = generator.standard_normal(d) - (8 if edge else 0)
    return diagonal(np.exp(-np.exp(nu) + 1j * np.exp(generator.standard_normal(d))))


def gated_linear_attention(generator: Generator, d: int, *, edge: bool) -> Drawn:
    return diagonal(gate(generator, d, edge=edge) ** (1 / 16))


def gated_delta_net(generator: Generator, d: int, *, edge: bool) -> Drawn:
    alpha, beta = float(gate(generator, None, edge=edge)), float(gate(generator, None, edge=False))
    return Drawn(alpha * reflection(generator, d, beta), reflected(d, beta, alpha), alpha)


def retnet(generator: Generator, d: int, *, edge: bool) -> Drawn:
    gamma = 1 - 2.0 ** -(5 + (15 if edge else generator.integers(0, 8)))
    basis = generator.standard_normal((d, d)) + d * np.eye(d)
    turns = np.exp(1j * generator.uniform(0, 2 * np.pi, d))
    return Drawn((basis * (gamma * turns)) @ np.linalg.inv(basis), np.full(d, gamma), gamma)


def rwkv7(generator: Generator, d: int, *, edge: bool) -> Drawn:
    """Similar to diag(w) - c c^T with c = sqrt(a) kappa, so the eigenvalues are real, from min w - |c|^2 to max w."""
    w = np.exp(-np.exp(-0.5) * sigmoid(generator.standard_normal(d) - (8 if edge else 0)))
    a, kappa = gate(generator, d, edge=edge), direction(generator, d)
    lowest = w.min() - (a * kappa**2).sum()
    return Drawn(np.diag(w) - np.outer(kappa, a * kappa), at_most=float(max(w.max(), abs(lowest))))


def hgrn(generator: Generator, d: int, *, edge: bool) -> Drawn:
    floor = generator.uniform(0, 0.9)
    moduli = floor + (1 - floor) * gate(generator, d, edge=edge)
    return diagonal(moduli * np.exp(1j * generator.uniform(0, 2 * np.pi, d)))


def rg_lru(generator: Generator, d: int, *, edge: bool) -> Drawn:
    return diagonal(gate(generator, d, edge=edge) ** (8 * gate(generator, d, edge=False)))


def min_gru(generator: Generator, d: int, *, edge: bool) -> Drawn:
    return diagonal(1 - sigmoid(generator.standard_normal(d) - (8 if edge else 0)))


def pd_ssm(generator: Generator, d: int, *, edge: bool) -> Drawn:
    """Column one-hot times diagonal: column k has one entry, of modulus |d_k|."""
    moduli = gate(generator, d, edge=edge)
    scaled = moduli * np.exp(1j * generator.uniform(0, 2 * np.pi, d))
    matrix = np.zeros((d, d), complex)
    matrix[generator.integers(0, d, d), np.arange(d)] = scaled
    return Drawn(matrix, at_most=float(moduli.max()))


CONTRACTING = (
    Entry(
        name="S4D", source="Gu et al. 2022", recurrence="x_k = A' x_{k-1} + B' u_k",
        transition="diag(e^(D A)), A = -e^a + ib", spectrum="moduli e^(-D e^a) < 1", branch="rho < 1", draw=DECAYING,
    ),
    Entry(
        name="DSS (DSS-exp)", source="Gupta et al. 2022", recurrence="x_k = A' x_{k-1} + B' u_k",
        transition="diag(e^(D L)), L = -e^a + ib", spectrum="moduli e^(-D e^a) < 1", branch="rho < 1", draw=DECAYING,
    ),
    Entry(
        name="Mamba", source="Gu and Dao 2024", recurrence="h_t = A'_t h_{t-1} + B'_t x_t",
        transition="diag(e^(D_t A)), A < 0", spectrum="in (0, 1)", branch="rho < 1", draw=mamba,
    ),
    Entry(
        name="Mamba-", source="Grazzi et al. 2025", recurrence="h_t = Diag(2 s_t - 1) h_{t-1} + B'_t x_t",
        transition="Diag(2 s_t - 1), s_t = e^(-D_t e^w)", spectrum="in (-1, 1)", branch="rho < 1", draw=mamba_minus,
        note="Mamba with negative eigenvalues; `detent.nn.MambaMinus`",
    ),
    Entry(
        name="Mamba-2 / SSD", source="Dao and Gu 2024", recurrence="h_t = a_t h_{t-1} + b_t",
        transition="a_t I, one number per head", spectrum="a_t in (0, 1), d times", branch="rho < 1", draw=mamba2,
    ),
    Entry(
        name="Mamba-3", source="Lahoti et al. 2025", recurrence="h_t = e^(D_t A_t) R_t h_{t-1} + D_t B_t x_t",
        transition="e^(D_t A_t) R_t, A_t < 0, R_t rotates pairs", spectrum="every modulus is e^(D_t A_t) in (0, 1)",
        branch="rho < 1", draw=mamba3,
    ),
    Entry(
        name="LRU", source="Orvieto et al. 2023", recurrence="x_k = L x_{k-1} + g * B u_k",
        transition="diag(e^(-e^n + i e^t))", spectrum="moduli e^(-e^n) < 1", branch="rho < 1", draw=lru,
    ),
    Entry(
        name="gated linear attention", source="Yang et al. 2024", recurrence="S_t = G_t * S_{t-1} + k_t^T v_t",
        transition="diag(a_t), a_t = sigmoid(.)^(1/16)", spectrum="in (0, 1)", branch="rho < 1",
        draw=gated_linear_attention,
    ),
    Entry(
        name="gated DeltaNet", source="Yang et al. 2024",
        recurrence="S_t = S_{t-1} a_t (I - b_t k_t k_t^T) + b_t v_t k_t^T",
        transition="a_t (I - b_t k_t k_t^T), a_t and b_t in (0, 1)", spectrum="a_t, d - 1 times, and a_t (1 - b_t)",
        branch="rho < 1", draw=gated_delta_net, note="on rho = 1 if the gate a_t could attain 1",
    ),
    Entry(
        name="RetNet", source="Sun et al. 2023", recurrence="s_n = A s_{n-1} + K_n^T v_n",
        transition="L (g e^(i t)) L^-1, g = 1 - 2^-(5 + head)", spectrum="every modulus is g < 1", branch="rho < 1",
        draw=retnet,
    ),
    Entry(
        name="RWKV-7", source="Peng et al. 2025", recurrence="S_t = S_{t-1} G_t + v_t^T k_t",
        transition="diag(w_t) - k_t^T (a_t * k_t), w_t in (e^-e^-0.5, 1), a_t in (0, 1), |k_t| = 1",
        spectrum="in (-1, 1)", branch="rho < 1", draw=rwkv7,
    ),
    Entry(
        name="HGRN / HGRN2", source="Qin et al. 2023, 2024",
        recurrence="h_t = l_t * e^(i t) * h_{t-1} + (1 - l_t) * c_t",
        transition="diag(l_t e^(i t)), l_t = g + (1 - g) m_t, m_t = sigmoid(.)",
        spectrum="moduli in (g, 1)", branch="rho < 1", draw=hgrn,
    ),
    Entry(
        name="Hawk / Griffin RG-LRU", source="De et al. 2024",
        recurrence="h_t = a_t * h_{t-1} + sqrt(1 - a_t^2) * (i_t * x_t)", transition="diag(a^(8 r_t)), a = sigmoid(.)",
        spectrum="in (0, 1)", branch="rho < 1", draw=rg_lru,
    ),
    Entry(
        name="QRNN", source="Bradbury et al. 2017", recurrence="h_t = f_t * h_{t-1} + (1 - f_t) * z_t",
        transition="diag(f_t), f_t = sigmoid(.)", spectrum="in (0, 1)", branch="rho < 1", draw=GATED,
    ),
    Entry(
        name="GILR", source="Martin and Cundy 2018", recurrence="h_t = g_t * h_{t-1} + (1 - g_t) * i_t",
        transition="diag(g_t), g_t = sigmoid(U x_t + b)", spectrum="in (0, 1)", branch="rho < 1", draw=GATED,
        note="gates read the input only, so that a scan is possible",
    ),
    Entry(
        name="minGRU / minLSTM", source="Feng et al. 2024", recurrence="h_t = (1 - z_t) * h_{t-1} + z_t * c_t",
        transition="diag(1 - z_t), or diag(f_t)", spectrum="in (0, 1)", branch="rho < 1", draw=min_gru,
        note="gates read the input only, so that a scan is possible",
    ),
    Entry(
        name="MLGRU", source="Zhu et al. 2025", recurrence="h_t = f_t * h_{t-1} + (1 - f_t) * c_t",
        transition="diag(f_t), f_t = sigmoid(.), ternary weights", spectrum="in (0, 1)", branch="rho < 1", draw=GATED,
        note="gates read the input only, so that a scan is possible",
    ),
    Entry(
        name="PD-SSM", source="Terzic et al. 2025", recurrence="x_t = P(u_t) D(u_t) x_{t-1} + B u_t",
        transition="P D, P one-hot in every column, |D| = sigmoid(.)", spectrum="rho <= max |d_j| < 1",
        branch="rho < 1", draw=pd_ssm, note="P alone has rho = 1, D makes it contract; `detent.nn.PDSSM`",
    ),
)  # fmt: skip
