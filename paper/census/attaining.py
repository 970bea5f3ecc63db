"""Architectures whose transition attains spectral radius one (or may exceed it): nothing is held, R2 fails."""

from __future__ import annotations

import numpy as np

from paper.census.entry import Drawn, Entry
from paper.census.parts import diagonal, pace, reflected, reflection, skew_exponential, softplus

Generator = np.random.Generator


def linear_attention(generator: Generator, d: int, *, edge: bool) -> Drawn:
    return Drawn(np.eye(d), np.ones(d), 1)


def delta_net(generator: Generator, d: int, *, edge: bool) -> Drawn:
    beta = generator.uniform(0, 1)
    return Drawn(reflection(generator, d, beta), reflected(d, beta), 1)


def negative_delta_net(generator: Generator, d: int, *, edge: bool) -> Drawn:
    beta = 2 * generator.uniform(0, 1)
    return Drawn(reflection(generator, d, beta), reflected(d, beta), 1)


def delta_product(generator: Generator, d: int, *, edge: bool) -> Drawn:
    """Three factors leave a space of dimension d - 3 alone."""
    factors = [reflection(generator, d, beta) for beta in generator.uniform(0, 2, 3)]
    return Drawn(np.linalg.multi_dot(factors), at_most=1)


def path(generator: Generator, d: int, *, edge: bool) -> Drawn:
    beta = generator.uniform(0, 2)
    return Drawn(reflection(generator, d, beta), reflected(d, beta), 1)


def aussm(generator: Generator, d: int, *, edge: bool) -> Drawn:
    return Drawn(skew_exponential(generator, d), np.ones(d), 1)


def linoss_imex(generator: Generator, d: int, *, edge: bool) -> Drawn:
    dt = generator.uniform(0.1, 1)
    A, eye = np.diag(generator.uniform(0.05, 3.95, d // 2) / dt**2), np.eye(d // 2)
    return Drawn(np.block([[eye, -dt * A], [dt * eye, eye - dt**2 * A]]), np.ones(d), 1)


def linoss_im(generator: Generator, d: int, *, edge: bool) -> Drawn:
    dt = generator.uniform(0.1, 1)
    A = generator.uniform(0.1, 3, d // 2)
    if edge:
        A[0] = 0
    S = 1 / (1 + dt**2 * A)
    matrix = np.block([[np.diag(S), np.diag(-dt * A * S)], [np.diag(dt * S), np.diag(S)]])
    return Drawn(matrix, np.sqrt(np.repeat(S, 2)), 1)


def s4(generator: Generator, d: int, *, edge: bool) -> Drawn:
    """HiPPO-LegS has eigenvalues -1 .. -d; training may shift them, at the edge past zero."""
    n = np.arange(d)
    A = np.tril(-np.sqrt(np.outer(2 * n + 1, 2 * n + 1)), -1) - np.diag(n + 1.0)
    rates = -(n + 1.0) + (generator.uniform(1, 2) if edge else 0)
    half = 0.05 * generator.uniform(0.1, 1)
    A += np.diag(rates - np.diag(A))
    moduli = np.abs((1 + half * rates) / (1 - half * rates))
    return Drawn(np.linalg.solve(np.eye(d) - half * A, np.eye(d) + half * A), moduli)


def s5(generator: Generator, d: int, *, edge: bool) -> Drawn:
    rates = -np.exp(generator.standard_normal(d)) + 1j * generator.uniform(-3, 3, d)
    if edge:
        rates[0] = generator.uniform(0, 0.5) + 1j * rates[0].imag
    return diagonal(np.exp(pace(generator, edge=False) * rates))


def longhorn(generator: Generator, d: int, *, edge: bool) -> Drawn:
    k, beta = generator.standard_normal(d), float(softplus(generator.standard_normal()))
    if edge:
        k[0] = 0
    return diagonal(1 - beta / (1 + beta * k @ k) * k**2)


def kimi_delta(generator: Generator, d: int, *, edge: bool) -> Drawn:
    alpha = np.ones(d) if edge else generator.uniform(0, 1, d)
    return Drawn(reflection(generator, d, generator.uniform(0, 1)) @ np.diag(alpha), at_most=float(alpha.max()))


def rwkv4(generator: Generator, d: int, *, edge: bool) -> Drawn:
    w = np.exp(generator.standard_normal(d))
    if edge:
        w[0] = 0
    return diagonal(np.exp(-w))


def mlstm(generator: Generator, d: int, *, edge: bool) -> Drawn:
    forget = np.exp(abs(generator.standard_normal()) * (1 if edge else -1))
    return Drawn(forget * np.eye(d), np.full(d, forget), forget)


ATTAINING = (
    Entry(
        name="linear attention", source="Katharopoulos et al. 2020", recurrence="S_t = S_{t-1} + phi(k_t) v_t^T",
        transition="I", spectrum="1, d times", branch="rho = 1", draw=linear_attention,
        note="an isometry: up to O(1/eta) steps",
    ),
    Entry(
        name="DeltaNet", source="Yang et al. 2024", recurrence="S_t = S_{t-1} (I - b_t k_t k_t^T) + b_t v_t k_t^T",
        transition="I - b_t k_t k_t^T, b_t in (0, 1), |k_t| = 1", spectrum="1, d - 1 times, and 1 - b_t in (0, 1)",
        branch="rho = 1", draw=delta_net,
    ),
    Entry(
        name="DeltaNet, negative eigenvalues", source="Grazzi et al. 2025",
        recurrence="H_t = (I - 2 b_t k_t k_t^T) H_{t-1} + b_t k_t v_t^T",
        transition="I - 2 b_t k_t k_t^T, b_t in (0, 1), |k_t| = 1", spectrum="1, d - 1 times, and 1 - 2 b_t in (-1, 1)",
        branch="rho = 1", draw=negative_delta_net,
    ),
    Entry(
        name="DeltaProduct", source="Siems et al. 2025", recurrence="H_t = A_t H_{t-1} + B_t",
        transition="product of n_h factors I - b_j k_j k_j^T, b_j in (0, 1) or (0, 2)",
        spectrum="1, at least d - n_h times; no modulus above 1", branch="rho = 1", draw=delta_product,
        note="drawn with n_h = 3",
    ),
    Entry(
        name="PaTH", source="Yang et al. 2025",
        recurrence="S_t = S_{t-1} (I - b_t w_t w_t^T) + v_t k_t^T",
        transition="I - b_t w_t w_t^T, b_t in (0, 2), |w_t| = 1", spectrum="1, d - 1 times, and 1 - b_t in (-1, 1)",
        branch="rho = 1", draw=path,
    ),
    Entry(
        name="AUSSM", source="Karuvally et al. 2025", recurrence="x_t = e^(D_t A_t) x_{t-1} + D_t B u_t",
        transition="e^(D_t A_t), A_t skew-symmetric", spectrum="every modulus is 1", branch="rho = 1", draw=aussm,
        note="an isometry: up to O(1/eta) steps; `detent.nn.AUSSM`",
    ),
    Entry(
        name="LinOSS-IMEX", source="Rusch and Rus 2024", recurrence="x_n = M x_{n-1} + F_n",
        transition="M = [[I, -dt A], [dt I, I - dt^2 A]], A >= 0 diagonal",
        spectrum="every modulus is 1 where dt^2 A <= 4", branch="rho = 1", draw=linoss_imex,
        note="not normal: errors may grow before they level off",
    ),
    Entry(
        name="LinOSS-IM", source="Rusch and Rus 2024", recurrence="x_n = M^-1 x_{n-1} + M^-1 F_n",
        transition="[[S, -dt A S], [dt S, S]], S = 1 / (1 + dt^2 A), A = ReLU(.) diagonal",
        spectrum="moduli sqrt(S) in (0, 1]", branch="rho = 1", draw=linoss_im,
        note="1 is attained where A = 0, which the ReLU allows",
    ),
    Entry(
        name="S4", source="Gu et al. 2021", recurrence="x_k = A' x_{k-1} + B' u_k",
        transition="(I - D/2 A)^-1 (I + D/2 A), A begins at HiPPO",
        spectrum="below 1 where Re(eigenvalue of A) < 0", branch="rho = 1", draw=s4,
        note="nothing keeps the real parts negative in training, so 1 can be attained and exceeded",
    ),
    Entry(
        name="S5", source="Smith et al. 2022", recurrence="x_k = L' x_{k-1} + B' u_k",
        transition="diag(e^(D L)), L complex", spectrum="moduli e^(D Re L), below 1 where Re L < 0", branch="rho = 1",
        draw=s5, note="nothing keeps the real parts negative in training, so 1 can be attained and exceeded",
    ),
    Entry(
        name="Longhorn", source="Liu et al. 2024", recurrence="S_t = A_t * S_{t-1} + B_t, entrywise",
        transition="1 - e_t k_t^2 entrywise, e_t = b_t / (1 + b_t |k_t|^2), k_t of any length",
        spectrum="in (0, 1]", branch="rho = 1", draw=longhorn, note="1 is attained where an entry of the key is 0",
    ),
    Entry(
        name="Kimi Delta Attention", source="Kimi Team 2025",
        recurrence="S_t = (I - b_t k_t k_t^T) Diag(a_t) S_{t-1} + b_t k_t v_t^T",
        transition="(I - b_t k_t k_t^T) Diag(a_t), entries of a_t and b_t in [0, 1]", spectrum="rho <= max a_t",
        branch="rho = 1", draw=kimi_delta, note="the gates may be closed and open: a_t = 1 is permitted",
    ),
    Entry(
        name="RWKV-4", source="Peng et al. 2023", recurrence="a_t = e^-w * a_{t-1} + e^(k_t) * v_t, entrywise",
        transition="diag(e^-w), w >= 0", spectrum="in (0, 1]", branch="rho = 1", draw=rwkv4,
        note="1 is attained where w = 0",
    ),
    Entry(
        name="mLSTM, exponential gate", source="Beck et al. 2024", recurrence="C_t = f_t C_{t-1} + i_t v_t k_t^T",
        transition="f_t I, f_t = e^(.)", spectrum="f_t in (0, infinity)", branch="rho = 1", draw=mlstm,
        note="the gate may exceed 1; with a sigmoid in its place it would be on rho < 1",
    ),
)  # fmt: skip
