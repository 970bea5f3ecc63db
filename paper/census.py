"""A census of scan-compatible affine recurrences: the spectrum of each transition, and what it can then track.

    d  size of a hidden state     rho  spectral radius     g  random generator

Every architecture comes with a function that draws its transition matrices, with random parameters or, at the `edge`,
with gates as open as its parameters permit. The stated spectrum and branch are checked against the eigenvalues. To add
an architecture, add an entry to `ARCHITECTURES`. No torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exactstate.records import Row
from paper.theory.shapes import Floats

Matrix = NDArray[Any]
Generator = np.random.Generator
Branch = Literal["rho = 1", "rho < 1"]
REALIZES: dict[Branch, str] = {
    "rho = 1": "no automaton at every length: R2 fails",
    "rho < 1": "at most the definite automata at every length: else R3 fails",
}
TOLERANCE = 1e-7
"""Eigenvalues of a non-normal matrix are accurate to about the square root of float64's precision."""
OPEN = 8.0
"""Logit of a gate that is as open as possible."""


@dataclass(frozen=True, eq=False)
class Transition:
    """A transition matrix with permitted parameters, and what these parameters imply for its spectrum."""

    matrix: Matrix
    moduli: Floats | None = None
    """d: the moduli of all eigenvalues, where the parameters determine them."""
    bound: float = np.inf
    """Upper bound of all moduli."""

    @property
    def radius(self) -> float:
        return float(np.abs(np.linalg.eigvals(self.matrix)).max())

    def mismatch(self) -> str | None:
        """How the eigenvalues contradict the parameters; None if they do not."""
        moduli = np.sort(np.abs(np.linalg.eigvals(self.matrix)))
        if moduli[-1] > self.bound + TOLERANCE:
            return f"an eigenvalue has modulus {moduli[-1]:.9g}, above {self.bound:.9g}"
        if self.moduli is not None and np.abs(moduli - np.sort(self.moduli)).max() > TOLERANCE:
            return f"the moduli are {_short(moduli)}, not {_short(np.sort(self.moduli))}"
        return None


class Draw(Protocol):
    def __call__(self, g: Generator, d: int, *, edge: bool) -> Transition:
        """A transition of size d (even) with random parameters; at the edge, with gates as open as permitted."""


@dataclass(frozen=True)
class Architecture:
    """A row of the census."""

    name: str
    source: str
    recurrence: str
    transition: str
    spectrum: str
    branch: Branch
    """By the largest modulus that the parameters permit."""
    draw: Draw
    note: str = ""

    @property
    def realizes(self) -> str:
        return REALIZES[self.branch]

    def mismatch(self, generator: Generator, d: int = 8, draws: int = 20) -> str | None:
        """How random matrices contradict the stated spectrum and branch; None if they do not."""
        usual, at_edge = ([self.draw(generator, d, edge=edge) for _ in range(draws)] for edge in (False, True))
        for drawn in (*usual, *at_edge):
            if drawn.matrix.shape != (d, d):
                return f"{self.name}: a matrix has shape {drawn.matrix.shape}, not {(d, d)}"
            if reason := drawn.mismatch():
                return f"{self.name}: {reason}"
        largest = max(drawn.radius for drawn in (*usual, *at_edge))
        if self.branch == "rho < 1" and largest >= 1:
            return f"{self.name}: a permitted matrix has spectral radius {largest:.9g}, so it is not on rho < 1"
        if self.branch == "rho = 1" and largest < 1 - TOLERANCE:
            return f"{self.name}: no spectral radius above {largest:.9g} was attained, so it is not on rho = 1"
        return None

    def radii(self, generator: Generator, d: int = 8, draws: int = 20) -> tuple[float, float]:
        """The smallest and the largest spectral radius of random matrices, half of them at the edge."""
        found = [self.draw(generator, d, edge=edge).radius for edge in (False, True) for _ in range(draws)]
        return min(found), max(found)


def census_rows(seed: int = 0) -> list[Row]:
    """Every architecture as a row; `rho` holds the smallest and the largest spectral radius of 40 random matrices."""
    return [
        {
            "name": entry.name, "source": entry.source, "recurrence": entry.recurrence, "transition": entry.transition,
            "spectrum": entry.spectrum, "branch": entry.branch, "realizes": entry.realizes, "note": entry.note,
            "rho": list(entry.radii(np.random.default_rng((seed, number)))),
        }
        for number, entry in enumerate(ARCHITECTURES)
    ]  # fmt: skip


def _short(values: Floats) -> str:
    return ", ".join(f"{value:.6g}" for value in values)


def sigmoid(x: ArrayLike) -> Floats:
    return 1 / (1 + np.exp(-np.asarray(x, float)))


def softplus(x: ArrayLike) -> Floats:
    return np.log1p(np.exp(np.asarray(x, float)))


def gate(g: Generator, d: int, edge: bool) -> Floats:
    """d: sigmoids of normal logits; at the edge the first is nearly one."""
    logits = g.standard_normal(d)
    if edge:
        logits[0] = OPEN
    return sigmoid(logits)


def step_size(g: Generator, edge: bool = False) -> float:
    """Delta; nearly zero at the edge."""
    return float(softplus(g.standard_normal() - (OPEN if edge else 0)))


def first_entry(values: Matrix, value: complex, edge: bool) -> Matrix:
    """The values; at the edge the first one is replaced."""
    if edge:
        values[0] = value
    return values


def unit_vector(g: Generator, d: int) -> Floats:
    drawn = g.standard_normal(d)
    return drawn / np.linalg.norm(drawn)


def householder(g: Generator, d: int, beta: float) -> Matrix:
    """I - beta k k^T for a unit key k: one eigenvalue is 1 - beta, the others are one."""
    k = unit_vector(g, d)
    return np.eye(d) - beta * np.outer(k, k)


def phases(g: Generator, d: int) -> Matrix:
    return np.exp(1j * g.uniform(0, 2 * np.pi, d))


def diagonal(values: Callable[[Generator, int, bool], Matrix]) -> Draw:
    """Diagonal transitions: the entries are the eigenvalues."""

    def draw(g: Generator, d: int, *, edge: bool) -> Transition:
        entries = values(g, d, edge)
        return Transition(np.diag(entries), np.abs(entries), float(np.abs(entries).max()))

    return draw


def reflection(coefficients: Callable[[Generator, bool], tuple[float, float]]) -> Draw:
    """scale (I - beta k k^T), with (scale, beta) drawn first."""

    def draw(g: Generator, d: int, *, edge: bool) -> Transition:
        scale, beta = coefficients(g, edge)
        moduli = abs(scale) * np.append(np.ones(d - 1), abs(1 - beta))
        return Transition(scale * householder(g, d, beta), moduli, abs(scale))

    return draw


def reflection_product(g: Generator, d: int, *, edge: bool) -> Transition:
    """A product of three factors, which has the eigenvalue one at least d - 3 times."""
    return Transition(np.linalg.multi_dot([householder(g, d, beta) for beta in g.uniform(0, 2, 3)]), bound=1)


def gated_reflection(g: Generator, d: int, *, edge: bool) -> Transition:
    alpha = np.ones(d) if edge else g.uniform(0, 1, d)
    return Transition(householder(g, d, g.uniform(0, 1)) @ np.diag(alpha), bound=float(alpha.max()))


def diagonal_plus_rank_one(g: Generator, d: int, *, edge: bool) -> Transition:
    """Similar to diag(w) - c c^T with c = sqrt(a) k, so the eigenvalues are real, from min w - |c|^2 to max w."""
    w = np.exp(-np.exp(-0.5) * sigmoid(g.standard_normal(d) - (OPEN if edge else 0)))
    a, k = gate(g, d, edge), unit_vector(g, d)
    lowest = w.min() - (a * k**2).sum()
    return Transition(np.diag(w) - np.outer(k, a * k), bound=float(max(w.max(), abs(lowest))))


def skew_exponential(g: Generator, d: int, *, edge: bool) -> Transition:
    """e^K for a random skew-symmetric K, through the Hermitian iK."""
    K = g.standard_normal((d, d))
    values, vectors = np.linalg.eigh(1j * (K - K.T))
    return Transition((vectors * np.exp(-1j * values)) @ vectors.conj().T, np.ones(d), 1)


def scaled_rotations(g: Generator, d: int, *, edge: bool) -> Transition:
    """Blocks that rotate pairs of coordinates, times one scalar."""
    a = np.exp(-step_size(g, edge) * np.exp(g.standard_normal()))
    matrix = np.zeros((d, d))
    for i, angle in enumerate(g.uniform(0, 2 * np.pi, d // 2)):
        block = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
    return Transition(a * matrix, np.full(d, a), a)


def conjugated_rotations(g: Generator, d: int, *, edge: bool) -> Transition:
    """L (gamma e^(i theta)) L^-1."""
    gamma = 1 - 2.0 ** -(5 + (15 if edge else g.integers(0, 8)))
    basis = g.standard_normal((d, d)) + d * np.eye(d)
    return Transition((basis * (gamma * phases(g, d))) @ np.linalg.inv(basis), np.full(d, gamma), gamma)


def oscillator(g: Generator, d: int, *, edge: bool) -> Transition:
    """Implicit-explicit integration of d / 2 oscillators."""
    dt = g.uniform(0.1, 1)
    A, eye = np.diag(g.uniform(0.05, 3.95, d // 2) / dt**2), np.eye(d // 2)
    return Transition(np.block([[eye, -dt * A], [dt * eye, eye - dt**2 * A]]), np.ones(d), 1)


def damped_oscillator(g: Generator, d: int, *, edge: bool) -> Transition:
    """Implicit integration of d / 2 oscillators."""
    dt = g.uniform(0.1, 1)
    A = first_entry(g.uniform(0.1, 3, d // 2), 0, edge)
    S = 1 / (1 + dt**2 * A)
    matrix = np.block([[np.diag(S), np.diag(-dt * A * S)], [np.diag(dt * S), np.diag(S)]])
    return Transition(matrix, np.sqrt(np.repeat(S, 2)), 1)


def bilinear_hippo(g: Generator, d: int, *, edge: bool) -> Transition:
    """HiPPO-LegS has eigenvalues -1 .. -d; training may shift them, at the edge past zero."""
    n = np.arange(d)
    A = np.tril(-np.sqrt(np.outer(2 * n + 1, 2 * n + 1)), -1) - np.diag(n + 1.0)
    rates = -(n + 1.0) + (g.uniform(1, 2) if edge else 0)
    half = 0.05 * g.uniform(0.1, 1)
    A += np.diag(rates - np.diag(A))
    moduli = np.abs((1 + half * rates) / (1 - half * rates))
    return Transition(np.linalg.solve(np.eye(d) - half * A, np.eye(d) + half * A), moduli)


def one_hot_times_diagonal(g: Generator, d: int, *, edge: bool) -> Transition:
    """Column k has one entry, of modulus |d_k|."""
    moduli = gate(g, d, edge)
    entries = moduli * phases(g, d)
    matrix = np.zeros((d, d), complex)
    matrix[g.integers(0, d, d), np.arange(d)] = entries
    return Transition(matrix, bound=float(moduli.max()))


def exponentials(g: Generator, d: int, edge: bool) -> Floats:
    """e^(-Delta e^a), with normal a."""
    return np.exp(-step_size(g, edge) * np.exp(g.standard_normal(d)))


def complex_rates(g: Generator, d: int) -> Matrix:
    return -np.exp(g.standard_normal(d)) + 1j * g.uniform(-3, 3, d)


def longhorn(g: Generator, d: int, edge: bool) -> Matrix:
    k, beta = g.standard_normal(d), float(softplus(g.standard_normal()))
    k = first_entry(k, 0, edge)
    return 1 - beta / (1 + beta * k @ k) * k**2


def s5(g: Generator, d: int, edge: bool) -> Matrix:
    rates = complex_rates(g, d)
    if edge:
        rates[0] = g.uniform(0, 0.5) + 1j * rates[0].imag
    return np.exp(step_size(g) * rates)


def hgrn(g: Generator, d: int, edge: bool) -> Matrix:
    floor = g.uniform(0, 0.9)
    moduli = floor + (1 - floor) * gate(g, d, edge)
    return moduli * phases(g, d)


INPUT_GATES = "gates read the input only, so that a scan is possible"
UNCONSTRAINED = "nothing keeps the real parts negative in training, so 1 can be attained and exceeded"

ARCHITECTURES = (
    # rho = 1: the spectral radius may be one or more, so no bounded region is invariant under perturbations (R2 fails)
    Architecture("linear attention", "Katharopoulos et al. 2020", "S_t = S_{t-1} + phi(k_t) v_t^T", "I", "1, d times",
                 "rho = 1", diagonal(lambda g, d, edge: np.ones(d)), "an isometry: up to O(1/eta) steps"),
    Architecture("DeltaNet", "Yang et al. 2024", "S_t = S_{t-1} (I - b_t k_t k_t^T) + b_t v_t k_t^T",
                 "I - b_t k_t k_t^T, b_t in (0, 1), |k_t| = 1", "1, d - 1 times, and 1 - b_t in (0, 1)",
                 "rho = 1", reflection(lambda g, edge: (1, g.uniform(0, 1)))),
    Architecture("DeltaNet, negative eigenvalues", "Grazzi et al. 2025",
                 "H_t = (I - 2 b_t k_t k_t^T) H_{t-1} + b_t k_t v_t^T",
                 "I - 2 b_t k_t k_t^T, b_t in (0, 1), |k_t| = 1", "1, d - 1 times, and 1 - 2 b_t in (-1, 1)",
                 "rho = 1", reflection(lambda g, edge: (1, 2 * g.uniform(0, 1)))),
    Architecture("DeltaProduct", "Siems et al. 2025", "H_t = A_t H_{t-1} + B_t",
                 "product of n_h factors I - b_j k_j k_j^T, b_j in (0, 1) or (0, 2)",
                 "1, at least d - n_h times; no modulus above 1", "rho = 1", reflection_product, "drawn with n_h = 3"),
    Architecture("PaTH", "Yang et al. 2025", "S_t = S_{t-1} (I - b_t w_t w_t^T) + v_t k_t^T",
                 "I - b_t w_t w_t^T, b_t in (0, 2), |w_t| = 1", "1, d - 1 times, and 1 - b_t in (-1, 1)",
                 "rho = 1", reflection(lambda g, edge: (1, g.uniform(0, 2)))),
    Architecture("AUSSM", "Karuvally et al. 2025", "x_t = e^(D_t A_t) x_{t-1} + D_t B u_t",
                 "e^(D_t A_t), A_t skew-symmetric", "every modulus is 1", "rho = 1", skew_exponential,
                 "an isometry: up to O(1/eta) steps; `exactstate.baselines.AUSSM`"),
    Architecture("LinOSS-IMEX", "Rusch and Rus 2024", "x_n = M x_{n-1} + F_n",
                 "M = [[I, -dt A], [dt I, I - dt^2 A]], A >= 0 diagonal", "every modulus is 1 where dt^2 A <= 4",
                 "rho = 1", oscillator, "not normal: errors may grow before they level off"),
    Architecture("LinOSS-IM", "Rusch and Rus 2024", "x_n = M^-1 x_{n-1} + M^-1 F_n",
                 "[[S, -dt A S], [dt S, S]], S = 1 / (1 + dt^2 A), A = ReLU(.) diagonal", "moduli sqrt(S) in (0, 1]",
                 "rho = 1", damped_oscillator, "1 is attained where A = 0, which the ReLU allows"),
    Architecture("S4", "Gu et al. 2021", "x_k = A' x_{k-1} + B' u_k",
                 "(I - D/2 A)^-1 (I + D/2 A), A begins at HiPPO", "below 1 where Re(eigenvalue of A) < 0",
                 "rho = 1", bilinear_hippo, UNCONSTRAINED),
    Architecture("S5", "Smith et al. 2022", "x_k = L' x_{k-1} + B' u_k", "diag(e^(D L)), L complex",
                 "moduli e^(D Re L), below 1 where Re L < 0", "rho = 1", diagonal(s5), UNCONSTRAINED),
    Architecture("Longhorn", "Liu et al. 2024", "S_t = A_t * S_{t-1} + B_t, entrywise",
                 "1 - e_t k_t^2 entrywise, e_t = b_t / (1 + b_t |k_t|^2), k_t of any length", "in (0, 1]",
                 "rho = 1", diagonal(longhorn), "1 is attained where an entry of the key is 0"),
    Architecture("Kimi Delta Attention", "Kimi Team 2025",
                 "S_t = (I - b_t k_t k_t^T) Diag(a_t) S_{t-1} + b_t k_t v_t^T",
                 "(I - b_t k_t k_t^T) Diag(a_t), entries of a_t and b_t in [0, 1]", "rho <= max a_t",
                 "rho = 1", gated_reflection, "the gates may be closed and open: a_t = 1 is permitted"),
    Architecture("RWKV-4", "Peng et al. 2023", "a_t = e^-w * a_{t-1} + e^(k_t) * v_t, entrywise",
                 "diag(e^-w), w >= 0", "in (0, 1]", "rho = 1",
                 diagonal(lambda g, d, edge: np.exp(-first_entry(np.exp(g.standard_normal(d)), 0, edge))),
                 "1 is attained where w = 0"),
    Architecture("mLSTM, exponential gate", "Beck et al. 2024", "C_t = f_t C_{t-1} + i_t v_t k_t^T",
                 "f_t I, f_t = e^(.)", "f_t in (0, infinity)", "rho = 1",
                 diagonal(lambda g, d, edge: np.full(d, np.exp(abs(g.standard_normal()) * (1 if edge else -1)))),
                 "the gate may exceed 1; with a sigmoid in its place it would be on rho < 1"),
    # rho < 1: every spectral radius is below one, so old inputs are forgotten (R3 fails where they matter)
    Architecture("S4D", "Gu et al. 2022", "x_k = A' x_{k-1} + B' u_k", "diag(e^(D A)), A = -e^a + ib",
                 "moduli e^(-D e^a) < 1", "rho < 1",
                 diagonal(lambda g, d, edge: np.exp(complex_rates(g, d) * step_size(g, edge)))),
    Architecture("DSS (DSS-exp)", "Gupta et al. 2022", "x_k = A' x_{k-1} + B' u_k", "diag(e^(D L)), L = -e^a + ib",
                 "moduli e^(-D e^a) < 1", "rho < 1",
                 diagonal(lambda g, d, edge: np.exp(complex_rates(g, d) * step_size(g, edge)))),
    Architecture("Mamba", "Gu and Dao 2024", "h_t = A'_t h_{t-1} + B'_t x_t", "diag(e^(D_t A)), A < 0", "in (0, 1)",
                 "rho < 1", diagonal(exponentials)),
    Architecture("Mamba-", "Grazzi et al. 2025", "h_t = Diag(2 s_t - 1) h_{t-1} + B'_t x_t",
                 "Diag(2 s_t - 1), s_t = e^(-D_t e^w)", "in (-1, 1)", "rho < 1",
                 diagonal(lambda g, d, edge: 2 * exponentials(g, d, edge) - 1),
                 "Mamba with negative eigenvalues; `exactstate.baselines.MambaMinus`"),
    Architecture("Mamba-2 / SSD", "Dao and Gu 2024", "h_t = a_t h_{t-1} + b_t", "a_t I, one number per head",
                 "a_t in (0, 1), d times", "rho < 1",
                 diagonal(lambda g, d, edge: np.full(d, exponentials(g, 1, edge)[0]))),
    Architecture("Mamba-3", "Lahoti et al. 2025", "h_t = e^(D_t A_t) R_t h_{t-1} + D_t B_t x_t",
                 "e^(D_t A_t) R_t, A_t < 0, R_t rotates pairs", "every modulus is e^(D_t A_t) in (0, 1)",
                 "rho < 1", scaled_rotations),
    Architecture("LRU", "Orvieto et al. 2023", "x_k = L x_{k-1} + g * B u_k", "diag(e^(-e^n + i e^t))",
                 "moduli e^(-e^n) < 1", "rho < 1",
                 diagonal(lambda g, d, edge: np.exp(-np.exp(g.standard_normal(d) - (OPEN if edge else 0))
                                                    + 1j * np.exp(g.standard_normal(d))))),
    Architecture("gated linear attention", "Yang et al. 2024", "S_t = G_t * S_{t-1} + k_t^T v_t",
                 "diag(a_t), a_t = sigmoid(.)^(1/16)", "in (0, 1)", "rho < 1",
                 diagonal(lambda g, d, edge: gate(g, d, edge) ** (1 / 16))),
    Architecture("gated DeltaNet", "Yang et al. 2024", "S_t = S_{t-1} a_t (I - b_t k_t k_t^T) + b_t v_t k_t^T",
                 "a_t (I - b_t k_t k_t^T), a_t and b_t in (0, 1)", "a_t, d - 1 times, and a_t (1 - b_t)",
                 "rho < 1", reflection(lambda g, edge: (gate(g, 1, edge)[0], gate(g, 1, False)[0])),
                 "on rho = 1 if the gate a_t could attain 1"),
    Architecture("RetNet", "Sun et al. 2023", "s_n = A s_{n-1} + K_n^T v_n",
                 "L (g e^(i t)) L^-1, g = 1 - 2^-(5 + head)", "every modulus is g < 1", "rho < 1",
                 conjugated_rotations),
    Architecture("RWKV-7", "Peng et al. 2025", "S_t = S_{t-1} G_t + v_t^T k_t",
                 "diag(w_t) - k_t^T (a_t * k_t), w_t in (e^-e^-0.5, 1), a_t in (0, 1), |k_t| = 1", "in (-1, 1)",
                 "rho < 1", diagonal_plus_rank_one),
    Architecture("HGRN / HGRN2", "Qin et al. 2023, 2024", "h_t = l_t * e^(i t) * h_{t-1} + (1 - l_t) * c_t",
                 "diag(l_t e^(i t)), l_t = g + (1 - g) m_t, m_t = sigmoid(.)", "moduli in (g, 1)",
                 "rho < 1", diagonal(hgrn)),
    Architecture("Hawk / Griffin RG-LRU", "De et al. 2024", "h_t = a_t * h_{t-1} + sqrt(1 - a_t^2) * (i_t * x_t)",
                 "diag(a^(8 r_t)), a = sigmoid(.)", "in (0, 1)", "rho < 1",
                 diagonal(lambda g, d, edge: gate(g, d, edge) ** (8 * gate(g, d, False)))),
    Architecture("QRNN", "Bradbury et al. 2017", "h_t = f_t * h_{t-1} + (1 - f_t) * z_t",
                 "diag(f_t), f_t = sigmoid(.)", "in (0, 1)", "rho < 1", diagonal(gate)),
    Architecture("GILR", "Martin and Cundy 2018", "h_t = g_t * h_{t-1} + (1 - g_t) * i_t",
                 "diag(g_t), g_t = sigmoid(U x_t + b)", "in (0, 1)", "rho < 1", diagonal(gate), INPUT_GATES),
    Architecture("minGRU / minLSTM", "Feng et al. 2024", "h_t = (1 - z_t) * h_{t-1} + z_t * c_t",
                 "diag(1 - z_t), or diag(f_t)", "in (0, 1)", "rho < 1",
                 diagonal(lambda g, d, edge: 1 - sigmoid(g.standard_normal(d) - (OPEN if edge else 0))), INPUT_GATES),
    Architecture("MLGRU", "Zhu et al. 2025", "h_t = f_t * h_{t-1} + (1 - f_t) * c_t",
                 "diag(f_t), f_t = sigmoid(.), ternary weights", "in (0, 1)", "rho < 1", diagonal(gate), INPUT_GATES),
    Architecture("PD-SSM", "Terzic et al. 2025", "x_t = P(u_t) D(u_t) x_{t-1} + B u_t",
                 "P D, P one-hot in every column, |D| = sigmoid(.)", "rho <= max |d_j| < 1", "rho < 1",
                 one_hot_times_diagonal, "P alone has rho = 1, D makes it contract; `exactstate.baselines.PDSSM`"),
)  # fmt: skip
